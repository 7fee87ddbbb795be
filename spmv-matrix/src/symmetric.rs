//! Symmetric, skew-symmetric and Hermitian matrices: one triangle in compressed sparse rows.

use std::fmt;

use crate::assemble::{self, Buckets, Keyed};
use crate::product::{check_lengths, stored};
use crate::scalar::sealed::Exact;
use crate::{CsrMatrix, Entry, MatrixError, Number, Offset, parallel};

/// How many entries a task takes at a time.
const CHUNK: usize = 1 << 15;

/// What one triangle says of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Symmetry {
    /// A = Aᵀ.
    Symmetric,
    /// A = −Aᵀ.
    SkewSymmetric,
    /// A = Aᴴ, of complex entries: real ones are their own conjugates, and such a matrix is symmetric.
    Hermitian,
}

impl Symmetry {
    /// The entry at (j, i) where this is the one at (i, j).
    #[inline(always)]
    pub fn mirror<V: Entry>(self, value: V) -> V {
        match self {
            Symmetry::Symmetric => value,
            Symmetry::SkewSymmetric => value.negated(),
            Symmetry::Hermitian => value.conj(),
        }
    }

    /// Whether an entry can be its own mirror image, on the diagonal.
    fn allows_on_diagonal<V: Entry>(self, value: V) -> bool {
        match self {
            Symmetry::Symmetric => true,
            Symmetry::SkewSymmetric => value == V::default(),
            Symmetry::Hermitian => value.im() == V::Real::default(),
        }
    }

    /// The word for such a matrix: `symmetric`, `skew-symmetric` or `hermitian`.
    pub const fn name(self) -> &'static str {
        match self {
            Symmetry::Symmetric => "symmetric",
            Symmetry::SkewSymmetric => "skew-symmetric",
            Symmetry::Hermitian => "hermitian",
        }
    }
}

impl fmt::Display for Symmetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A symmetric, skew-symmetric or Hermitian matrix, of which the lower triangle with the diagonal is stored in compressed sparse
/// rows.
///
/// An entry below the diagonal stands for its mirror image too. Columns may be in any order within a row, and a row may
/// hold a column more than once. Only zeros may be stored on the diagonal of a skew-symmetric matrix, and
/// only what has no imaginary part on that of a Hermitian one.
///
/// ```
/// use spmv_matrix::{CooMatrix, Symmetry, SymmetricCsr, cpu_serial_symmetric};
///
/// // 4 1 0
/// // 1 3 2
/// // 0 2 5
/// let lower = CooMatrix::new(3, 3, vec![0, 1, 1, 2, 2], vec![0, 0, 1, 1, 2], vec![4.0, 1.0, 3.0, 2.0, 5.0])?;
/// let a = SymmetricCsr::new(Symmetry::Symmetric, lower.to_csr::<u32>()?)?;
/// assert_eq!((a.nnz(), a.full_nnz()), (5, 7));
/// let mut y = [0.0; 3];
/// cpu_serial_symmetric(1.0, &a, &[1.0, 2.0, 3.0], 0.0, &mut y)?;
/// assert_eq!(y, [6.0, 13.0, 19.0]);
/// # Ok::<(), spmv_matrix::MatrixError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SymmetricCsr<V, O = u32> {
    symmetry: Symmetry,
    lower: CsrMatrix<V, O>,
}

impl<V: Entry, O: Offset> SymmetricCsr<V, O> {
    /// The matrix whose lower triangle, diagonal included, this is; nothing is copied.
    ///
    /// # Errors
    ///
    /// [`MatrixError::NotSquare`], [`MatrixError::RealHermitian`]; [`MatrixError::AboveDiagonal`],
    /// [`MatrixError::SkewDiagonal`], [`MatrixError::HermitianDiagonal`] and [`MatrixError::NoNegative`] with the first
    /// entry that is wrong.
    pub fn new(symmetry: Symmetry, lower: CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        check(symmetry, &lower)?;
        let wrong = |row: usize| {
            let (cols, values) = lower.row(row);
            let is_wrong = |position: usize| {
                let col = cols[position] as usize;
                let is_skew = symmetry == Symmetry::SkewSymmetric;
                let off_symmetry = col == row && !symmetry.allows_on_diagonal(values[position]);
                col > row || off_symmetry || (is_skew && !values[position].has_negative())
            };
            let position = (0..cols.len()).find(|&position| is_wrong(position))?;
            Some((position, cols[position]))
        };
        let first = parallel::find_first(lower.num_rows(), CHUNK / 16, |row| wrong(row).is_some());
        match first.and_then(|row| Some((row, wrong(row)?))) {
            None => Ok(Self { symmetry, lower }),
            Some((row, (position, col))) if col as usize > row => {
                let position = lower.row_range(row).start + position;
                Err(MatrixError::AboveDiagonal { position, row, col })
            }
            Some((row, (position, col))) => {
                let value = lower.row(row).1[position].to_string();
                match col as usize == row {
                    true if symmetry == Symmetry::Hermitian => {
                        Err(MatrixError::HermitianDiagonal { row, value })
                    }
                    true => Err(MatrixError::SkewDiagonal { row, value }),
                    false => Err(MatrixError::NoNegative { row, col, value, value_type: V::NAME }),
                }
            }
        }
    }

    /// The lower triangle of a matrix that has both, with ascending columns in each row. Entries of the same place
    /// must be the mirror images of those of the mirrored place in the order in which they are stored.
    ///
    /// # Errors
    ///
    /// [`MatrixError::NotSquare`], [`MatrixError::RealHermitian`]; [`MatrixError::NotSymmetric`] with the first entry, row by row, whose mirror image is
    /// missing or another; [`MatrixError::NoNegative`]; those of [`CsrMatrix::transpose`].
    pub fn from_csr(symmetry: Symmetry, a: &CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        check(symmetry, a)?;
        let transpose = a.transpose()?;
        // A transpose is sorted, and keeps the order of entries of the same place.
        let sorted = transpose.transpose()?;
        let without_mirror = |row: usize| without_mirror(symmetry, &sorted, &transpose, row);
        let first = parallel::find_first(a.num_rows(), CHUNK / 16, |row| without_mirror(row).is_some());
        if let Some(error) = first.and_then(without_mirror) {
            return Err(error);
        }
        let (row_offsets, mut col_indices, mut values) = sorted.into_parts();
        let mut lower_offsets: Vec<O> = assemble::zeroed(row_offsets.len(), "row_offsets")?;
        let mut nnz = 0;
        for row in 0..row_offsets.len() - 1 {
            let range = row_offsets[row].to_usize()..row_offsets[row + 1].to_usize();
            let below = col_indices[range.clone()].partition_point(|&col| col as usize <= row);
            col_indices.copy_within(range.start..range.start + below, nnz);
            values.copy_within(range.start..range.start + below, nnz);
            nnz += below;
            lower_offsets[row + 1] = O::of(nnz);
        }
        col_indices.truncate(nnz);
        values.truncate(nnz);
        col_indices.shrink_to_fit();
        values.shrink_to_fit();
        Self::new(symmetry, CsrMatrix::from_checked(a.num_cols(), lower_offsets, col_indices, values))
    }

    /// The matrix that has the lower triangle of another, whatever that has above the diagonal. Where it is skew-symmetric,
    /// zeros take the place of the diagonal; where it is Hermitian, the diagonal's real parts do.
    ///
    /// # Errors
    ///
    /// [`MatrixError::NotSquare`], [`MatrixError::RealHermitian`], [`MatrixError::NoNegative`].
    pub fn from_lower_of(symmetry: Symmetry, a: &CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        check(symmetry, a)?;
        let (mut row_offsets, mut col_indices, mut values) = (vec![O::default()], vec![], vec![]);
        for row in 0..a.num_rows() {
            let (cols, of_row) = a.row(row);
            for (&col, &value) in cols.iter().zip(of_row).filter(|(col, _)| **col as usize <= row) {
                col_indices.push(col);
                values.push(match symmetry {
                    Symmetry::SkewSymmetric if col as usize == row => V::default(),
                    Symmetry::Hermitian if col as usize == row => {
                        V::from_parts(value.re(), V::Real::default())
                    }
                    _ => value,
                });
            }
            row_offsets.push(O::of(values.len()));
        }
        Self::new(symmetry, CsrMatrix::from_checked(a.num_cols(), row_offsets, col_indices, values))
    }

    /// A lower triangle that is known to be one.
    pub(crate) fn from_checked(symmetry: Symmetry, lower: CsrMatrix<V, O>) -> Self {
        Self { symmetry, lower }
    }

    /// The matrix with both triangles, with ascending columns in each row.
    ///
    /// # Errors
    ///
    /// [`MatrixError::OffsetOverflow`] where the offsets cannot count both, [`MatrixError::OutOfMemory`].
    pub fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError> {
        let (lower, symmetry) = (&self.lower, self.symmetry);
        let buckets = Buckets::new(lower.num_rows(), 2 * lower.nnz() / CHUNK);
        let chunks = parallel::map(parallel::blocks(lower.nnz(), CHUNK), |range| {
            let mut row = lower.row_offsets().partition_point(|end| end.to_usize() <= range.start) - 1;
            let mut entries = Vec::with_capacity(2 * range.len());
            for position in range {
                while lower.row_offsets()[row + 1].to_usize() <= position {
                    row += 1;
                }
                let (col, value) = (lower.col_indices()[position], lower.values()[position]);
                entries.push(Keyed { row: row as u32, col, value });
                if col != row as u32 {
                    entries.push(Keyed { row: col, col: row as u32, value: symmetry.mirror(value) });
                }
            }
            buckets.sort(&entries)
        });
        assemble::assemble(lower.num_rows(), lower.num_rows(), &buckets, chunks, |_, value| value)
    }

    /// What the stored triangle says of the other.
    pub fn symmetry(&self) -> Symmetry {
        self.symmetry
    }

    /// The stored triangle.
    pub fn lower(&self) -> &CsrMatrix<V, O> {
        &self.lower
    }

    /// The stored triangle; nothing is copied.
    pub fn into_lower(self) -> CsrMatrix<V, O> {
        self.lower
    }

    /// The number of rows, and of columns.
    pub fn num_rows(&self) -> usize {
        self.lower.num_rows()
    }

    /// The number of stored entries, duplicates and stored zeros included.
    pub fn nnz(&self) -> usize {
        self.lower.nnz()
    }

    /// The number of entries that both triangles have together, the diagonal counted once.
    pub fn full_nnz(&self) -> usize {
        let on_diagonal =
            |row: usize| self.lower.row(row).0.iter().filter(|&&col| col as usize == row).count() as u64;
        2 * self.nnz() - parallel::sum(self.num_rows(), CHUNK / 16, on_diagonal) as usize
    }
}

/// y ← α·A·x + β·y in one thread, in one pass over the triangle.
///
/// `x` and `y` have `num_rows` entries. Sums are kept in doubled double precision, 16 bytes a row, and rounded once to
/// the type of y, so this is also what other products can be compared with.
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
pub fn cpu_serial_symmetric<V: Number, O: Offset>(
    alpha: V::Sum,
    a: &SymmetricCsr<V, O>,
    x: &[V],
    beta: V::Sum,
    y: &mut [V],
) -> Result<(), MatrixError> {
    check_lengths(&a.lower, x, y)?;
    let zero = V::Sum::default();
    let mut sums = vec![<V as Exact<V::Sum>>::Total::default(); a.num_rows()];
    if alpha != zero {
        for row in 0..a.num_rows() {
            let (cols, values) = a.lower.row(row);
            for (&col, &value) in cols.iter().zip(values) {
                let col = col as usize;
                V::add_product(&mut sums[row], value, x[col]);
                if col != row {
                    V::add_product(&mut sums[col], a.symmetry.mirror(value), x[row]);
                }
            }
        }
    }
    for (y, sum) in y.iter_mut().zip(sums) {
        *y = stored(sum, alpha, beta, *y);
    }
    Ok(())
}

/// Whether a matrix of this size and type can be of this symmetry.
fn check<V: Entry, O: Offset>(symmetry: Symmetry, a: &CsrMatrix<V, O>) -> Result<(), MatrixError> {
    let (num_rows, num_cols) = (a.num_rows(), a.num_cols());
    if num_rows != num_cols {
        return Err(MatrixError::NotSquare { num_rows, num_cols });
    }
    if symmetry == Symmetry::Hermitian && !V::COMPLEX {
        return Err(MatrixError::RealHermitian { value_type: V::NAME });
    }
    Ok(())
}

/// The first entry of a row whose mirror image is missing or another. Both matrices are sorted.
fn without_mirror<V: Entry, O: Offset>(
    symmetry: Symmetry,
    a: &CsrMatrix<V, O>,
    transpose: &CsrMatrix<V, O>,
    row: usize,
) -> Option<MatrixError> {
    let ((cols, values), (mirror_cols, mirror_values)) = (a.row(row), transpose.row(row));
    let same = |value: V, mirror: V| value == symmetry.mirror(mirror) || is_nan(value) && is_nan(mirror);
    let agree = |i: usize| {
        let both = i < cols.len() && i < mirror_cols.len();
        both && cols[i] == mirror_cols[i] && same(values[i], mirror_values[i])
    };
    let position = (0..cols.len().max(mirror_cols.len())).find(|&i| !agree(i))?;
    let of = |cols: &[u32], values: &[V], col: u32| {
        (cols.get(position) == Some(&col)).then(|| values[position].to_string())
    };
    let col = [cols, mirror_cols].iter().filter_map(|cols| cols.get(position).copied()).min()?;
    Some(MatrixError::NotSymmetric {
        symmetry,
        row,
        col,
        value: of(cols, values, col),
        mirror: of(mirror_cols, mirror_values, col),
    })
}

#[allow(clippy::eq_op)]
fn is_nan<V: Entry>(value: V) -> bool {
    value != value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Complex64, CooMatrix, cpu_serial};

    fn csr(n: usize, entries: &[(u32, u32, f64)]) -> CsrMatrix<f64> {
        let (rows, cols) = entries.iter().map(|entry| (entry.0, entry.1)).unzip();
        CooMatrix::new(n, n, rows, cols, entries.iter().map(|entry| entry.2).collect())
            .unwrap()
            .to_csr()
            .unwrap()
    }

    #[test]
    fn both_triangles_come_back_exactly() {
        for symmetry in [Symmetry::Symmetric, Symmetry::SkewSymmetric] {
            let mut rng = 1u64;
            let mut entries = Vec::new();
            for row in 0..70u32 {
                for _ in 0..row % 9 {
                    rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let col = (rng >> 33) as u32 % (row + 1);
                    let value = if col == row && symmetry == Symmetry::SkewSymmetric {
                        0.0
                    } else {
                        f64::from(col) + 0.5
                    };
                    entries.push((row, col, value));
                }
            }
            let a = SymmetricCsr::new(symmetry, csr(70, &entries)).unwrap();
            let full = a.to_csr().unwrap();
            assert_eq!(full.nnz(), a.full_nnz());
            assert!(full.nnz() > a.nnz());
            assert_eq!(SymmetricCsr::from_csr(symmetry, &full).unwrap(), a);
            assert_eq!(SymmetricCsr::from_lower_of(symmetry, &full).unwrap(), a);
            let transpose = full.transpose().unwrap().map_values(|value| symmetry.mirror(value));
            assert_eq!(transpose, full);

            let x: Vec<f64> = (0..70).map(|i| f64::from(i) - 30.0).collect();
            let (mut y, mut expected) = (vec![2.0; 70], vec![2.0; 70]);
            cpu_serial_symmetric(3.0, &a, &x, -1.0, &mut y).unwrap();
            cpu_serial(3.0, &full, &x, -1.0, &mut expected).unwrap();
            assert_eq!(y, expected);
            cpu_serial_symmetric(0.0, &a, &[f64::NAN; 70], 0.0, &mut y).unwrap();
            assert_eq!(y, [0.0; 70]);
            assert!(cpu_serial_symmetric(1.0, &a, &x[1..], 0.0, &mut y).is_err());
        }
    }

    #[test]
    fn a_missing_number_is_its_own_mirror_image_alone() {
        let nan = f64::NAN;
        let both = csr(2, &[(0, 1, nan), (1, 0, nan)]);
        assert_eq!(SymmetricCsr::from_csr(Symmetry::Symmetric, &both).unwrap().nnz(), 1);
        for (upper, lower) in [(nan, 1.0), (1.0, nan)] {
            let one = csr(2, &[(0, 1, upper), (1, 0, lower)]);
            assert!(SymmetricCsr::from_csr(Symmetry::Symmetric, &one).is_err());
        }
        let diagonal = csr(2, &[(0, 0, 7.0), (1, 0, 3.0)]);
        let skew = SymmetricCsr::from_lower_of(Symmetry::SkewSymmetric, &diagonal).unwrap();
        assert_eq!(skew.lower(), &csr(2, &[(0, 0, 0.0), (1, 0, 3.0)]));
    }

    fn complex(n: usize, entries: &[(u32, u32, f64, f64)]) -> CsrMatrix<Complex64> {
        let (rows, cols) = entries.iter().map(|entry| (entry.0, entry.1)).unzip();
        let values = entries.iter().map(|entry| Complex64::new(entry.2, entry.3)).collect();
        CooMatrix::new(n, n, rows, cols, values).unwrap().to_csr().unwrap()
    }

    #[test]
    fn a_hermitian_matrix_has_conjugates_above() {
        // 2      1-3i   0
        // 1+3i   0      4i
        // 0     -4i    -5
        let entries = [(0, 0, 2.0, 0.0), (1, 0, 1.0, 3.0), (2, 1, 0.0, -4.0), (2, 2, -5.0, 0.0)];
        let a = SymmetricCsr::new(Symmetry::Hermitian, complex(3, &entries)).unwrap();
        let full = a.to_csr().unwrap();
        let above = [(0, 1, 1.0, -3.0), (1, 2, 0.0, 4.0)];
        assert_eq!(full, complex(3, &[&entries[..], &above].concat()));
        assert_eq!((full.nnz(), a.full_nnz()), (6, 6));
        assert_eq!(SymmetricCsr::from_csr(Symmetry::Hermitian, &full).unwrap(), a);
        assert_eq!(SymmetricCsr::from_lower_of(Symmetry::Hermitian, &full).unwrap(), a);
        let turned = complex(2, &[(0, 0, 2.0, 7.0), (1, 0, 1.0, 3.0)]);
        let real = SymmetricCsr::from_lower_of(Symmetry::Hermitian, &turned).unwrap();
        assert_eq!(real.lower(), &complex(2, &[(0, 0, 2.0, 0.0), (1, 0, 1.0, 3.0)]));

        let x: Vec<_> = (0..3).map(|i| Complex64::new(f64::from(i) - 1.0, 2.0 * f64::from(i))).collect();
        let (alpha, beta) = (Complex64::new(2.0, -1.0), Complex64::new(0.0, 3.0));
        let (mut y, mut expected) = (x.clone(), x.clone());
        cpu_serial_symmetric(alpha, &a, &x, beta, &mut y).unwrap();
        cpu_serial(alpha, &full, &x, beta, &mut expected).unwrap();
        assert_eq!(y, expected);
    }

    #[test]
    fn a_hermitian_diagonal_is_real_and_its_entries_complex() {
        let refused = |entries: &[_]| {
            let error = SymmetricCsr::new(Symmetry::Hermitian, complex(2, entries)).unwrap_err();
            let of_both = SymmetricCsr::from_csr(Symmetry::Hermitian, &complex(2, entries)).unwrap_err();
            (error, of_both.to_string())
        };
        let (error, of_both) = refused(&[(0, 0, 1.0, 0.0), (1, 1, 4.0, 0.5)]);
        assert_eq!(error, MatrixError::HermitianDiagonal { row: 1, value: "4+0.5i".into() });
        assert_eq!(
            of_both,
            "not hermitian: 4+0.5i is stored at row 1, column 1, and the diagonal must be real"
        );
        let error = SymmetricCsr::new(Symmetry::Hermitian, csr(2, &[(1, 0, 2.0)])).unwrap_err();
        assert_eq!(error, MatrixError::RealHermitian { value_type: "f64" });
    }

    #[test]
    fn a_triangle_of_several_pieces_comes_back_exactly() {
        let n = 40_000;
        let entries: Vec<_> = (0..n)
            .flat_map(|row: u32| [(row, row.saturating_sub(1), f64::from(row)), (row, row, 1.0)])
            .skip(1)
            .collect();
        assert!(entries.len() > 2 * CHUNK);
        let a = SymmetricCsr::new(Symmetry::Symmetric, csr(n as usize, &entries)).unwrap();
        let full = a.to_csr().unwrap();
        assert_eq!((full.nnz(), a.full_nnz()), (3 * n as usize - 2, 3 * n as usize - 2));
        assert_eq!(full.row(20_000), (&[19_999, 20_000, 20_001][..], &[20_000.0, 1.0, 20_001.0][..]));
        assert!(SymmetricCsr::from_csr(Symmetry::Symmetric, &full).unwrap() == a);
    }

    #[test]
    fn entries_above_the_diagonal_are_refused() {
        let upper = csr(3, &[(0, 0, 1.0), (1, 2, 2.0), (2, 0, 3.0)]);
        let error = SymmetricCsr::new(Symmetry::Symmetric, upper).unwrap_err();
        assert_eq!(error, MatrixError::AboveDiagonal { position: 1, row: 1, col: 2 });
        assert_eq!(
            error.to_string(),
            "col_indices[1] is 2, in row 1: above the diagonal; the lower triangle has columns up to the row's own"
        );
        let wide = CsrMatrix::new(1, 2, vec![0u32, 0], vec![], Vec::<f64>::new()).unwrap();
        let error = SymmetricCsr::new(Symmetry::Symmetric, wide.clone()).unwrap_err();
        assert_eq!(error, MatrixError::NotSquare { num_rows: 1, num_cols: 2 });
        assert_eq!(SymmetricCsr::from_csr(Symmetry::Symmetric, &wide).unwrap_err(), error);
    }

    #[test]
    fn the_diagonal_of_a_skew_symmetric_matrix_is_zero() {
        let stored_zero = csr(2, &[(0, 0, 0.0), (1, 0, 2.0)]);
        assert!(SymmetricCsr::new(Symmetry::SkewSymmetric, stored_zero).is_ok());
        let one = csr(2, &[(1, 0, 2.0), (1, 1, 4.0)]);
        let error = SymmetricCsr::new(Symmetry::SkewSymmetric, one.clone()).unwrap_err();
        assert_eq!(error, MatrixError::SkewDiagonal { row: 1, value: "4".into() });
        assert!(SymmetricCsr::new(Symmetry::Symmetric, one).is_ok());
    }

    #[test]
    fn the_first_entry_without_its_mirror_image_is_named() {
        let refused = |symmetry, entries: &[_]| {
            SymmetricCsr::from_csr(symmetry, &csr(3, entries)).unwrap_err().to_string()
        };
        let entries = [(0, 0, 1.0), (0, 2, 5.0), (1, 0, 7.0), (2, 0, 4.0)];
        assert_eq!(
            refused(Symmetry::Symmetric, &entries),
            "not symmetric: nothing is stored at row 0, column 1, and 7 at row 1, column 0"
        );
        assert_eq!(
            refused(Symmetry::Symmetric, &[entries[1], entries[3]]),
            "not symmetric: 5 is stored at row 0, column 2, and 4 at row 2, column 0"
        );
        assert_eq!(
            refused(Symmetry::SkewSymmetric, &entries[..1]),
            "not skew-symmetric: 1 is stored at row 0, column 0, and the diagonal must be zero"
        );
        let opposite = [(0, 2, 5.0), (2, 0, -5.0)];
        assert!(SymmetricCsr::from_csr(Symmetry::SkewSymmetric, &csr(3, &opposite)).is_ok());
        // Missing numbers are each other's mirror images, and duplicates in their order.
        let nan = [(0, 1, f64::NAN), (0, 1, 1.0), (1, 0, f64::NAN), (1, 0, 1.0)];
        assert_eq!(SymmetricCsr::from_csr(Symmetry::Symmetric, &csr(3, &nan)).unwrap().nnz(), 2);
    }
}
