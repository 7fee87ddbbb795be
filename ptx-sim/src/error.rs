//! Why a module cannot be loaded.

/// A module that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The text is not PTX.
    #[error("PTX line {line}: {reason}")]
    Syntax {
        /// Line of the PTX, from 1.
        line: u32,
        /// What is wrong.
        reason: String,
    },
    /// An instruction, type or modifier that the simulator does not execute.
    #[error("PTX line {line}: the instruction `{instruction}` is not supported{}", if reason.is_empty() { String::new() } else { format!(": {reason}") })]
    Unsupported {
        /// Line of the PTX, from 1.
        line: u32,
        /// The whole mnemonic.
        instruction: String,
        /// What about it, where it is not the mnemonic itself.
        reason: String,
    },
    /// A name that is not declared.
    #[error("PTX line {line}: `{name}` is not declared")]
    Undeclared {
        /// Line of the PTX, from 1.
        line: u32,
        /// The name.
        name: String,
    },
}

impl LoadError {
    pub(crate) fn syntax(line: u32, reason: impl Into<String>) -> LoadError {
        LoadError::Syntax { line, reason: reason.into() }
    }
}
