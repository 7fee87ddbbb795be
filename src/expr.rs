//! Sizes as data: what a grid, a buffer or a bound depends on, evaluated when a plan is made.

use std::fmt;

/// What is known when a plan is made and an [`Expr`] may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Variable {
    /// Rows of the matrix.
    NumRows,
    /// Columns of the matrix.
    NumCols,
    /// Stored entries of the matrix.
    Nnz,
    /// Entries of a vector.
    Length,
    /// Bytes of a value of the matrix.
    ValueBytes,
    /// Stored entries of the row of op(A) in question.
    RowNnz,
    /// Multiprocessors of the device.
    Multiprocessors,
    /// Blocks of the pass's kernel that are resident on one multiprocessor at a time.
    ResidentBlocks,
    /// The entry of this index in [`Program::counts`](crate::Program::counts), which a `prepare` pass found out.
    Count(u8),
}

impl Variable {
    /// The name shown in listings.
    pub const fn name(self) -> &'static str {
        match self {
            Variable::NumRows => "num_rows",
            Variable::NumCols => "num_cols",
            Variable::Nnz => "nnz",
            Variable::Length => "length",
            Variable::ValueBytes => "value_bytes",
            Variable::RowNnz => "row_nnz",
            Variable::Multiprocessors => "multiprocessors",
            Variable::ResidentBlocks => "resident_blocks",
            Variable::Count(_) => "count",
        }
    }
}

/// A small expression over [`Variable`]s in unsigned 64-bit arithmetic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Expr {
    /// A constant.
    Const(u64),
    /// A variable.
    Var(Variable),
    /// Sum.
    Add(Box<Expr>, Box<Expr>),
    /// Product.
    Mul(Box<Expr>, Box<Expr>),
    /// Difference, zero where it would be negative.
    Sub(Box<Expr>, Box<Expr>),
    /// Quotient rounded up; the divisor is a constant other than zero.
    DivCeil(Box<Expr>, u64),
    /// The smaller of two.
    Min(Box<Expr>, Box<Expr>),
    /// The larger of two.
    Max(Box<Expr>, Box<Expr>),
}

impl Expr {
    /// The quotient of this expression and `divisor`, rounded up.
    pub fn div_ceil(self, divisor: u32) -> Expr {
        assert!(divisor != 0, "a grid rule divides by a constant other than zero");
        Expr::DivCeil(Box::new(self), u64::from(divisor))
    }

    /// This expression less `other`, zero where that would be negative.
    pub fn minus(self, other: impl Into<Expr>) -> Expr {
        Expr::Sub(Box::new(self), Box::new(other.into()))
    }

    /// The smaller of this expression and `other`.
    pub fn min(self, other: impl Into<Expr>) -> Expr {
        Expr::Min(Box::new(self), Box::new(other.into()))
    }

    /// The larger of this expression and `other`.
    pub fn max(self, other: impl Into<Expr>) -> Expr {
        Expr::Max(Box::new(self), Box::new(other.into()))
    }

    /// How many of the program's counts must be known before this can be evaluated.
    pub fn counts_needed(&self) -> usize {
        match self {
            Expr::Const(_) => 0,
            Expr::Var(Variable::Count(index)) => usize::from(*index) + 1,
            Expr::Var(_) => 0,
            Expr::Add(a, b) | Expr::Mul(a, b) | Expr::Sub(a, b) | Expr::Min(a, b) | Expr::Max(a, b) => {
                a.counts_needed().max(b.counts_needed())
            }
            Expr::DivCeil(a, _) => a.counts_needed(),
        }
    }

    /// The same expression of other variables.
    pub(crate) fn map_variables(&self, other: &dyn Fn(Variable) -> Expr) -> Expr {
        let map = |expr: &Expr| Box::new(expr.map_variables(other));
        match self {
            Expr::Const(value) => Expr::Const(*value),
            Expr::Var(variable) => other(*variable),
            Expr::Add(a, b) => Expr::Add(map(a), map(b)),
            Expr::Mul(a, b) => Expr::Mul(map(a), map(b)),
            Expr::Sub(a, b) => Expr::Sub(map(a), map(b)),
            Expr::DivCeil(a, divisor) => Expr::DivCeil(map(a), *divisor),
            Expr::Min(a, b) => Expr::Min(map(a), map(b)),
            Expr::Max(a, b) => Expr::Max(map(a), map(b)),
        }
    }

    /// The value, with `lookup` giving the variables. Saturates instead of wrapping.
    pub fn eval(&self, lookup: &dyn Fn(Variable) -> u64) -> u64 {
        match self {
            Expr::Const(value) => *value,
            Expr::Var(variable) => lookup(*variable),
            Expr::Add(a, b) => a.eval(lookup).saturating_add(b.eval(lookup)),
            Expr::Mul(a, b) => a.eval(lookup).saturating_mul(b.eval(lookup)),
            Expr::Sub(a, b) => a.eval(lookup).saturating_sub(b.eval(lookup)),
            Expr::DivCeil(a, divisor) => a.eval(lookup).div_ceil(*divisor),
            Expr::Min(a, b) => a.eval(lookup).min(b.eval(lookup)),
            Expr::Max(a, b) => a.eval(lookup).max(b.eval(lookup)),
        }
    }
}

impl From<u32> for Expr {
    fn from(value: u32) -> Expr {
        Expr::Const(u64::from(value))
    }
}

impl From<Variable> for Expr {
    fn from(variable: Variable) -> Expr {
        Expr::Var(variable)
    }
}

impl<T: Into<Expr>> std::ops::Add<T> for Expr {
    type Output = Expr;

    fn add(self, other: T) -> Expr {
        Expr::Add(Box::new(self), Box::new(other.into()))
    }
}

impl<T: Into<Expr>> std::ops::Mul<T> for Expr {
    type Output = Expr;

    fn mul(self, other: T) -> Expr {
        Expr::Mul(Box::new(self), Box::new(other.into()))
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Const(value) => write!(f, "{value}"),
            Expr::Var(Variable::Count(index)) => write!(f, "count_{index}"),
            Expr::Var(variable) => f.write_str(variable.name()),
            Expr::Add(a, b) => write!(f, "({a} + {b})"),
            Expr::Mul(a, b) => write!(f, "{a} * {b}"),
            Expr::Sub(a, b) => write!(f, "max(({a} - {b}), 0)"),
            Expr::DivCeil(a, divisor) => write!(f, "ceil({a} / {divisor})"),
            Expr::Min(a, b) => write!(f, "min({a}, {b})"),
            Expr::Max(a, b) => write!(f, "max({a}, {b})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluates_and_prints() {
        let expr = (Expr::from(Variable::NumRows).div_ceil(256) * 2).min(65_535).max(1) + 3;
        assert_eq!(expr.to_string(), "(max(min(ceil(num_rows / 256) * 2, 65535), 1) + 3)");
        let at = |rows| expr.eval(&|v| if v == Variable::NumRows { rows } else { unreachable!() });
        assert_eq!([at(0), at(1), at(256), at(257), at(u64::MAX)], [4, 5, 5, 7, 65_538]);
    }

    #[test]
    fn differences_end_at_zero() {
        let expr = Expr::from(Variable::NumRows).minus(Expr::from(Variable::Count(0)) + 1);
        assert_eq!(expr.to_string(), "max((num_rows - (count_0 + 1)), 0)");
        let at = |rows, count| expr.eval(&|v| if v == Variable::NumRows { rows } else { count });
        assert_eq!([at(7, 2), at(3, 2), at(2, 2), at(0, u64::MAX)], [4, 0, 0, 0]);
        assert_eq!(expr.counts_needed(), 1);
    }

    #[test]
    fn counts_are_known_in_order() {
        let expr = (Expr::from(Variable::Count(1)) * 8).max(Expr::from(Variable::Count(0)).div_ceil(2));
        assert_eq!(expr.counts_needed(), 2);
        assert_eq!(expr.to_string(), "max(count_1 * 8, ceil(count_0 / 2))");
        assert_eq!((Expr::from(Variable::NumRows) + 1).counts_needed(), 0);
    }

    #[test]
    fn saturates() {
        let expr = Expr::from(Variable::Nnz) * Variable::Nnz + 1;
        assert_eq!(expr.eval(&|_| u64::MAX), u64::MAX);
    }
}
