//! Products over other semirings than sums of products.

use spmv_codegen::{Semiring, SemiringNumber};

use crate::product::check_lengths;
use crate::reference::{row_nnz, sum_of};
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

/// What [`cpu_semiring`] gives, to compare others with: where the semiring adds numbers that may have fractions, sums are
/// kept in doubled double precision, so that others differ by their own roundings alone, and by the conversion to their
/// type of y. `V` is the type that the compared product reduces in.
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
    let adds = matches!(semiring, Semiring::PlusTimes | Semiring::PlusPair);
    if !adds || !V::FRACTIONS {
        let mut product = y.to_vec();
        cpu_semiring(semiring, a, x, accumulate, &mut product)?;
        return Ok(Reference::exact(product, row_nnz(a)));
    }
    check_lengths(a, x, y)?;
    let row = |row: usize| {
        let (cols, values) = a.row(row);
        let terms = cols.iter().zip(values).map(|(&col, &value)| semiring.combine(value, x[col as usize]));
        let before = (accumulate == Accumulate::Reduce).then(|| y[row]);
        sum_of(terms.chain(before).map(Value::to_f64))
    };
    Ok(Reference::new(parallel::collect(a.num_rows(), BLOCK, row).into_iter().unzip(), row_nnz(a)))
}
