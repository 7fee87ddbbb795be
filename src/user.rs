//! What of a product the user writes: functions in place of ⊗ and ⊕, over the entries that they meet, and over the sum of a
//! row before it is stored.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex, PoisonError};

use crate::function::{Function, FunctionError, names};

/// The user's functions, and the names of vectors and scalars that the last of them takes.
///
/// A row becomes `epilogue(row, ⊕ over j of combine(map_value(values[j]), map_x(x[col], col)), y[row], …)`, and adds
/// `dot(row, what was stored, …)` to one number.
/// What is not written is that of the configuration's semiring, and the row is then stored as it is.
///
/// `reduce` must be associative and commutative, up to rounding, over what `combine` gives, and change nothing where one
/// side is `identity`: algorithms reduce a row in an order of their own. It is tried on some numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UserFunctions {
    /// ⊗: `|a, x|`, a value of the matrix and an entry of x.
    pub combine: Option<Function>,
    /// ⊕: `|s, t|`.
    pub reduce: Option<Function>,
    /// What `reduce` leaves as it is: the result of an empty row.
    pub identity: Option<Function>,
    /// `|a|`: what a value of the matrix becomes.
    pub map_value: Option<Function>,
    /// `|x, col|`: what an entry of x becomes, and the column that it is of.
    pub map_x: Option<Function>,
    /// `|row, sum, y, …|`: what is stored, of the row's sum and of what y held before.
    pub epilogue: Option<Function>,
    /// `|row, result, …|`: what a row adds to a sum over all rows, of what was stored in it.
    pub dot: Option<Function>,
    /// Parameters of `epilogue` and `dot` that are vectors with an entry for each row, of the type of y.
    pub vectors: Vec<String>,
    /// Parameters of `epilogue` and `dot` that are numbers, of the type of the sums.
    pub scalars: Vec<String>,
}

/// A setting that is a function, or names what one takes.
pub struct FunctionKey {
    /// Name, the same in the macro and on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// How it is written.
    pub form: &'static str,
    /// The names of its parameters, as the documentation has them; those of vectors and scalars come behind.
    pub parameters: &'static [&'static str],
    function: Option<FunctionField>,
    get: fn(&UserFunctions) -> Option<String>,
    set: fn(&mut UserFunctions, &str) -> Result<(), FunctionError>,
}

type FunctionField = fn(&UserFunctions) -> Option<&Function>;

macro_rules! function_keys {
    ($($name:ident $([$($parameter:literal),*])?: $form:literal, $doc:literal;)+) => {
        /// The settings that are functions, and those that name what they take.
        pub const FUNCTION_KEYS: &[FunctionKey] = &[$(function_keys!(@key $name $([$($parameter),*])?, $form, $doc),)+];
    };
    (@key $name:ident [$($parameter:literal),*], $form:literal, $doc:literal) => {
        FunctionKey {
            name: stringify!($name),
            doc: $doc,
            form: $form,
            parameters: &[$($parameter),*],
            function: Some(|user| user.$name.as_ref()),
            get: |user| user.$name.as_ref().map(ToString::to_string),
            set: |user, text| {
                user.$name = Some(Function::parse(text)?);
                Ok(())
            },
        }
    };
    (@key $name:ident, $form:literal, $doc:literal) => {
        FunctionKey {
            name: stringify!($name),
            doc: $doc,
            form: $form,
            parameters: &[],
            function: None,
            get: |user| (!user.$name.is_empty()).then(|| format!("[{}]", user.$name.join(", "))),
            set: |user, text| {
                user.$name = names(text)?;
                Ok(())
            },
        }
    };
}

function_keys! {
    combine ["a", "x"]: "|a, x| …", "What a value of the matrix and an entry of x are combined to; a * x where it is not given.";
    reduce ["s", "t"]: "|s, t| …", "What two of these are reduced to: associative and commutative; needs identity.";
    identity []: "…", "The result of an empty row, which reduce leaves as it is; needs reduce.";
    map_value ["a"]: "|a| …", "What becomes of a value of the matrix before it is combined.";
    map_x ["x", "col"]: "|x, col| …", "What becomes of an entry of x, of this column, before it is combined.";
    epilogue ["row", "sum", "y"]: "|row, sum, y, …| …", "What is stored in a row of y; alpha is 1 and beta 0 then.";
    dot ["row", "result"]: "|row, result, …| …", "What a row adds to one number beside y, of what is stored in it; alpha is 1 and beta 0 then.";
    vectors: "[d, …]", "Parameters of epilogue and dot that are vectors: an entry a row, of the type of y, bound to a plan by name.";
    scalars: "[omega, …]", "Parameters of epilogue and dot that are numbers, bound to a plan by name.";
}

impl FunctionKey {
    pub(crate) fn find(name: &str) -> Option<&'static FunctionKey> {
        FUNCTION_KEYS.iter().find(|key| key.name == name)
    }

    /// Whether it has a part in how entries become the sum of a row.
    pub(crate) fn changes_product(&self) -> bool {
        self.is_function() && !self.takes_operands()
    }

    /// Whether vectors and scalars come behind its parameters.
    pub(crate) fn takes_operands(&self) -> bool {
        ["epilogue", "dot"].contains(&self.name)
    }

    /// What is written there, in canonical text.
    pub fn of(&self, user: &UserFunctions) -> Option<String> {
        (self.get)(user)
    }

    /// Whether it is a function, and not a list of what one takes.
    pub fn is_function(&self) -> bool {
        self.function.is_some()
    }

    /// The function, where the key is one and it is written.
    pub fn function<'a>(&self, user: &'a UserFunctions) -> Option<&'a Function> {
        self.function.and_then(|function| function(user))
    }

    pub(crate) fn set(&self, user: &mut UserFunctions, text: &str) -> Result<(), FunctionError> {
        (self.set)(user, text)
    }
}

/// The most vectors and scalars that epilogue and dot take.
pub(crate) const MAX_OPERANDS: usize = 16;

impl UserFunctions {
    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        *self == UserFunctions::default()
    }

    /// Whether entries are combined or reduced by what is written, maps among it.
    pub fn changes_product(&self) -> bool {
        FUNCTION_KEYS.iter().any(|key| key.changes_product() && key.function(self).is_some())
    }

    /// Whether what is stored is the user's to say: nothing else scales it, and kernels take operands in place of β.
    pub fn stores(&self) -> bool {
        self.epilogue.is_some() || self.dot.is_some()
    }

    /// Vectors and scalars in the order in which the epilogue takes them, then what dot takes beside them; `true` for
    /// vectors.
    pub(crate) fn operands(&self) -> impl Iterator<Item = (&str, bool)> {
        let of_epilogue = || self.epilogue.iter().flat_map(|epilogue| epilogue.parameters().skip(FIXED));
        let of_dot = self.dot.iter().flat_map(|dot| dot.parameters().skip(FIXED_OF_DOT));
        let others = of_dot.filter(move |name| of_epilogue().all(|other| other != *name));
        let parameters = of_epilogue().chain(others);
        parameters.map(|name| (name, self.vectors.iter().any(|vector| vector == name)))
    }

    /// The places of the operands that `dot` takes, in its order.
    pub(crate) fn operands_of_dot(&self) -> impl Iterator<Item = usize> {
        let names = self.dot.iter().flat_map(|dot| dot.parameters().skip(FIXED_OF_DOT));
        names.filter_map(|name| self.operands().position(|(operand, _)| operand == name))
    }

    /// The same functions at an address that stays, so that configurations that hold it can be copied. There is one of
    /// each for the process: as many as there are texts that were asked for, and each is much less than its kernel.
    pub(crate) fn interned(self) -> Option<&'static UserFunctions> {
        static INTERNED: LazyLock<Mutex<HashSet<&'static UserFunctions>>> = LazyLock::new(Mutex::default);
        if self.is_empty() {
            return None;
        }
        let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = interned.get(&self) {
            return Some(*known);
        }
        let kept: &'static UserFunctions = Box::leak(Box::new(self));
        interned.insert(kept);
        Some(kept)
    }
}

/// Parameters of an epilogue that are not the user's: row, sum, y; and those of a dot: row, result.
pub(crate) const FIXED: usize = 3;
pub(crate) const FIXED_OF_DOT: usize = 2;
