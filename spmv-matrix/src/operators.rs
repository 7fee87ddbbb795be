//! Products with what the user writes: other operators, maps, an epilogue and a dot.

use spmv_codegen::function::Float;
use spmv_codegen::{Operators, SemiringNumber};

use crate::product::check_lengths;
use crate::reference::{row_nnz, sum_of};
use crate::{Accumulate, CsrMatrix, ExactSum, MatrixError, Offset, Reference, Value, parallel};

/// How many rows a task takes at a time.
const BLOCK: usize = 1024;

/// What an epilogue and a dot take beside the row.
#[derive(Clone, Copy, Debug)]
pub enum EpilogueOperand<'a, V> {
    /// An entry for each row.
    Vector(&'a [V]),
    /// The same number for all rows.
    Scalar(V),
}

impl<V: Copy> EpilogueOperand<'_, V> {
    fn at(&self, row: usize) -> V {
        match self {
            EpilogueOperand::Vector(vector) => vector[row],
            EpilogueOperand::Scalar(number) => *number,
        }
    }
}

/// y\[r\] ← what is stored of ⊕ over j of values\[j\] ⊗ x\[col_indices\[j\]\], with all threads of the current rayon pool.
///
/// `x` has `num_cols` entries, `y` and every vector of `operands` have `num_rows`; the operands are in the order of
/// [`Program::operands`](spmv_codegen::Program::operands). A row is reduced in its order, from the identity, in `V`, which
/// is the type of the operators' sums, and where there is no epilogue reduced with y or stored.
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where a vector does not fit the matrix.
pub fn cpu_operators<V: Value<RealSum = V> + SemiringNumber + Float, O: Offset>(
    operators: &Operators,
    a: &CsrMatrix<V, O>,
    x: &[V],
    accumulate: Accumulate,
    operands: &[EpilogueOperand<'_, V>],
    y: &mut [V],
) -> Result<(), MatrixError> {
    check_lengths(a, x, y)?;
    for operand in operands {
        if let EpilogueOperand::Vector(vector) = operand {
            check_lengths(a, x, vector)?;
        }
    }
    parallel::update(y, BLOCK, |row, y| {
        let sum =
            terms(operators, a, x, row).fold(operators.identity(), |sum, term| operators.reduce(sum, term));
        let sum = if accumulate == Accumulate::Reduce { operators.reduce(sum, *y) } else { sum };
        let of_row = operands.iter().map(|operand| operand.at(row));
        *y = operators.store(row as u32, sum, *y, &of_row.collect::<Vec<_>>());
    });
    Ok(())
}

/// What `dot` adds up over the rows of `y`, which are what was stored in them: exact before it is rounded; 0 without `dot`.
/// Every vector of `operands` is as long as `y`; they are as for [`cpu_operators`].
pub fn cpu_dot<V: Value<RealSum = V> + Float>(
    operators: &Operators,
    operands: &[EpilogueOperand<'_, V>],
    y: &[V],
) -> f64 {
    let terms = y.iter().enumerate().filter_map(|(row, y)| {
        let of_row: Vec<V> = operands.iter().map(|operand| operand.at(row)).collect();
        operators.dot(row as u32, *y, &of_row).map(Value::to_f64)
    });
    terms.collect::<ExactSum>().value()
}

/// What is combined in a row.
fn terms<'a, V: Value<RealSum = V> + SemiringNumber + Float, O: Offset>(
    operators: &'a Operators,
    a: &'a CsrMatrix<V, O>,
    x: &'a [V],
    row: usize,
) -> impl Iterator<Item = V> + 'a {
    let (cols, values) = a.row(row);
    cols.iter().zip(values).map(|(&col, &value)| operators.combine(value, x[col as usize], col))
}

/// What [`cpu_operators`] gives without an epilogue, to compare others with: sums are kept in doubled double precision,
/// so that others differ by their own roundings alone, and by the conversion to their type of y.
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
pub fn reference_over_operators<V: Value<RealSum = V> + SemiringNumber + Float, O: Offset>(
    operators: &Operators,
    a: &CsrMatrix<V, O>,
    x: &[V],
    accumulate: Accumulate,
    y: &[V],
) -> Result<Reference, MatrixError> {
    check_lengths(a, x, y)?;
    let row = |row: usize| {
        let before = (accumulate == Accumulate::Reduce).then(|| y[row]);
        if operators.adds() {
            return sum_of(terms(operators, a, x, row).chain(before).map(Value::to_f64));
        }
        let all = terms(operators, a, x, row).chain(before);
        let (mut sum, mut magnitude): (V, V) = (operators.identity(), operators.identity());
        let mut rounds = false;
        for term in all {
            let reduced = operators.reduce(sum, term);
            // What chooses one of two gives the same in every order.
            rounds |= reduced.to_f64() != sum.to_f64() && reduced.to_f64() != term.to_f64();
            (sum, magnitude) = (reduced, operators.reduce(magnitude, V::from_f64(term.to_f64().abs())));
        }
        (sum.to_f64(), if rounds { magnitude.to_f64().abs() } else { 0.0 })
    };
    Ok(Reference::new(parallel::collect(a.num_rows(), BLOCK, row).into_iter().unzip(), row_nnz(a)))
}
