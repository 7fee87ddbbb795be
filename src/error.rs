//! What can be wrong with a configuration, and what is allowed instead.

use std::fmt;

/// A name that is not one of a fixed set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// What kind of name was expected, for example "value type".
    pub what: &'static str,
    /// The name that was given.
    pub name: String,
    /// Every name that would have been accepted.
    pub allowed: Vec<&'static str>,
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown {} `{}`; allowed: {}", self.what, self.name, self.allowed.join(", "))
    }
}

impl std::error::Error for UnknownName {}
