//! Matrices of other libraries: there and back, without a copy where the layout allows it.
#![cfg(all(feature = "sprs", feature = "nalgebra-sparse", feature = "faer"))]

use faer::sparse::{SparseRowMat, SparseRowMatRef, SymbolicSparseRowMat};
use spmv_matrix::{CscMatrix, CsrMatrix, MatrixError};
use sprs::{CsMat, CsMatI, CsMatViewI};

/// [[0, 2, 0, 1], [0, 0, 0, 0], [3, 0, 0, 4]]
fn a() -> CsrMatrix<f64> {
    CsrMatrix::new(3, 4, vec![0, 2, 2, 4], vec![1, 3, 0, 3], vec![2.0, 1.0, 3.0, 4.0]).unwrap()
}

fn dense(get: impl Fn(usize, usize) -> f64) -> [[f64; 4]; 3] {
    std::array::from_fn(|row| std::array::from_fn(|col| get(row, col)))
}

const DENSE: [[f64; 4]; 3] = [[0.0, 2.0, 0.0, 1.0], [0.0; 4], [3.0, 0.0, 0.0, 4.0]];

#[test]
fn sprs_moves_and_borrows() {
    let matrix = a();
    let pointers = (matrix.col_indices().as_ptr(), matrix.values().as_ptr());
    let view = CsMatViewI::try_from(&matrix).unwrap();
    assert_eq!((view.indices().as_ptr(), view.data().as_ptr()), pointers);
    assert_eq!(dense(|row, col| view.get(row, col).copied().unwrap_or(0.0)), DENSE);
    let moved = CsMatI::<f64, u32, u32>::try_from(matrix.clone()).unwrap();
    assert_eq!(moved.view(), view);
    let pointer = moved.data().as_ptr();
    let back = CsrMatrix::try_from(moved).unwrap();
    assert_eq!((&back, back.values().as_ptr()), (&matrix, pointer));

    let wide = CsMat::try_from(&matrix.to_offsets::<u64>().unwrap()).unwrap();
    assert_eq!(dense(|row, col| wide.get(row, col).copied().unwrap_or(0.0)), DENSE);
    assert_eq!(CsrMatrix::<f64, u64>::try_from(&wide).unwrap(), matrix.to_offsets().unwrap());
    assert_eq!(CsrMatrix::<f64, u32>::try_from(&wide.to_csc()).unwrap(), matrix);
    let narrow: CsMatI<f64, u32, u32> = CsMatI::try_from(matrix.clone()).unwrap();
    assert_eq!(CsrMatrix::try_from(narrow.to_csc()).unwrap(), matrix);
}

#[test]
fn nalgebra_sparse_moves_the_values() {
    let matrix = a();
    let pointer = matrix.values().as_ptr();
    let theirs = nalgebra_sparse::CsrMatrix::try_from(matrix).unwrap();
    let get = |row, col| theirs.get_entry(row, col).unwrap().into_value();
    assert_eq!((dense(get), theirs.values().as_ptr()), (DENSE, pointer));
    let back: CsrMatrix<f64, u64> = theirs.try_into().unwrap();
    assert_eq!((&back, back.values().as_ptr()), (&a().to_offsets().unwrap(), pointer));

    let columns = CscMatrix::from_csr(&a()).unwrap();
    let theirs = nalgebra_sparse::CscMatrix::try_from(columns.clone()).unwrap();
    assert_eq!(dense(|row, col| theirs.get_entry(row, col).unwrap().into_value()), DENSE);
    assert_eq!(CscMatrix::<f64, u32>::try_from(theirs).unwrap(), columns);
}

#[test]
fn faer_moves_and_borrows() {
    let matrix = a();
    let view = SparseRowMatRef::try_from(&matrix).unwrap();
    assert_eq!(
        (view.col_idx().as_ptr(), view.val().as_ptr()),
        (matrix.col_indices().as_ptr(), matrix.values().as_ptr())
    );
    assert_eq!(dense(|row, col| view.get(row, col).copied().unwrap_or(0.0)), DENSE);
    let moved: SparseRowMat<u32, f64> = matrix.clone().try_into().unwrap();
    let pointer = moved.val().as_ptr();
    let back = CsrMatrix::try_from(moved).unwrap();
    assert_eq!((&back, back.values().as_ptr()), (&matrix, pointer));
    let wide: SparseRowMat<usize, f64> = matrix.to_offsets::<u64>().unwrap().try_into().unwrap();
    assert_eq!(dense(|row, col| wide.get(row, col).copied().unwrap_or(0.0)), DENSE);
    assert_eq!(CsrMatrix::<f64, u32>::try_from(wide).unwrap(), matrix);

    // Rows with room behind them.
    let cols = vec![1u32, 3, 9, 9, 0, 3, 9];
    let cols = cols.into_iter().map(|col| col.min(3)).collect();
    let structure =
        SymbolicSparseRowMat::new_unsorted_checked(3, 4, vec![0, 4, 4, 7], Some(vec![2, 0, 2]), cols);
    let gaps = SparseRowMat::new(structure, vec![2.0, 1.0, -1.0, -1.0, 3.0, 4.0, -1.0]);
    assert_eq!(CsrMatrix::try_from(gaps).unwrap(), matrix);
}

#[test]
fn what_they_do_not_hold_is_refused() {
    let twice = CsrMatrix::new(2, 2, vec![0u32, 0, 2], vec![1, 1], vec![1.0, 2.0]).unwrap();
    let unsorted = CsrMatrix::new(2, 2, vec![0u32, 0, 2], vec![1, 0], vec![1.0, 2.0]).unwrap();
    for matrix in [twice, unsorted] {
        let error = CsMatViewI::try_from(&matrix).unwrap_err();
        assert_eq!(error, MatrixError::NotCanonical { library: "sprs", row: 1 });
        assert!(
            CsMatI::<f64, u32, u32>::try_from(matrix.clone()).is_err() && CsMat::try_from(&matrix).is_err()
        );
        assert!(nalgebra_sparse::CsrMatrix::try_from(matrix.clone()).is_err());
        assert!(SparseRowMatRef::try_from(&matrix).is_err());
        assert!(SparseRowMat::<u32, f64>::try_from(matrix.clone()).is_err());
        let error = SparseRowMat::<usize, f64>::try_from(matrix).unwrap_err();
        assert_eq!(
            error.to_string(),
            "faer needs columns that ascend without repetition, and row 1 has others: sum_duplicates makes them so"
        );
    }
}
