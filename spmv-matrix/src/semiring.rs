//! Products over other semirings than sums of products.

use spmv_codegen::{Semiring, SemiringNumber};

use crate::product::check_lengths;
use crate::reference::row_nnz;
use crate::{CsrMatrix, MatrixError, Offset, Reference, Value, parallel};

/// How many rows a task takes at a time.
const BLOCK: usize = 1024;

/// What becomes of y before a product over a semiring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Accumulate {
    /// It is overwritten: β = 0.
    Store,
    /// The product is reduced with it: β = 1.
    Reduce,
}

/// y\[r\] ← ⊕ over j of values\[j\] ⊗ x\[col_indices\[j\]\], or that ⊕ y\[r\], with all threads of the current rayon pool.
///
/// `x` has `num_cols` entries and `y` has `num_rows`. A row is reduced in its order, from the identity, in the type that
/// its values are summed in: what every kernel gives too, but for the rounding of sums where the semiring adds.
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
pub fn cpu_semiring<V: Value, O: Offset>(
    semiring: Semiring,
    a: &CsrMatrix<V, O>,
    x: &[V],
    accumulate: Accumulate,
    y: &mut [V],
) -> Result<(), MatrixError> {
    check_lengths(a, x, y)?;
    parallel::update(y, BLOCK, |row, y| {
        let (cols, values) = a.row(row);
        let terms = cols.iter().zip(values).map(|(&col, value)| (value.to_sum(), x[col as usize].to_sum()));
        let sum = terms.fold(semiring.identity::<V::Sum>(), |sum, (value, x)| {
            semiring.reduce(sum, semiring.combine(value, x))
        });
        *y = V::from_sum(match accumulate {
            Accumulate::Store => sum,
            Accumulate::Reduce => semiring.reduce(sum, y.to_sum()),
        });
    });
    Ok(())
}

/// What [`cpu_semiring`] gives, to compare others with: they differ by the rounding of sums where the semiring adds, and
/// by the conversion to their type of y. `V` is the type that the compared product reduces in.
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
pub fn reference_over_semiring<V: Value<RealSum = V> + SemiringNumber, O: Offset>(
    semiring: Semiring,
    a: &CsrMatrix<V, O>,
    x: &[V],
    accumulate: Accumulate,
    y: &[V],
) -> Result<Reference, MatrixError> {
    let mut product = y.to_vec();
    cpu_semiring(semiring, a, x, accumulate, &mut product)?;
    let adds = matches!(semiring, Semiring::PlusTimes | Semiring::PlusPair);
    let magnitude = |row: usize| {
        let (cols, values) = a.row(row);
        let terms = cols.iter().zip(values).map(|(&col, &value)| semiring.combine(value, x[col as usize]));
        let before = if accumulate == Accumulate::Reduce { y[row].to_f64().abs() } else { 0.0 };
        if adds { terms.map(|term| term.to_f64().abs()).sum::<f64>() + before } else { 0.0 }
    };
    Ok(Reference {
        magnitude: parallel::collect(a.num_rows(), BLOCK, magnitude),
        row_nnz: row_nnz(a),
        y: product.into_iter().map(Value::to_f64).collect(),
    })
}
