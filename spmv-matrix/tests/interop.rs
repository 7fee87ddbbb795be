//! Matrices of other libraries: there and back, without a copy where the layout allows it.
#![cfg(all(feature = "sprs", feature = "nalgebra-sparse", feature = "faer"))]

use faer::sparse::{SparseRowMat, SparseRowMatRef, SymbolicSparseRowMat};
use nalgebra_sparse::na::DVector;
use spmv_matrix::generate::{Generator, Values};
use spmv_matrix::{Complex32, Complex64, CscMatrix, CsrMatrix, MatrixError, cpu_parallel, cpu_serial};
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

    // What is owned of a slice counts from where that begins in the whole.
    let rows = CsrMatrix::<f64, u32>::try_from(narrow.slice_outer(1..3).to_owned()).unwrap();
    let entries = (rows.row_offsets(), rows.col_indices(), rows.values());
    assert_eq!((rows.num_rows(), entries), (2, (&[0, 0, 2][..], &[0, 3][..], &[3.0, 4.0][..])));
    let cols = CsrMatrix::<f64, u32>::try_from(narrow.to_csc().slice_outer(1..4).to_owned()).unwrap();
    let entries = (cols.row_offsets(), cols.col_indices(), cols.values());
    assert_eq!((cols.num_cols(), entries), (3, (&[0, 2, 2, 3][..], &[0, 2, 2][..], &[2.0, 1.0, 4.0][..])));
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

/// Small whole numbers, and complex ones of two, give the same in every order: products of ours are those of
/// nalgebra-sparse.
#[test]
fn products_are_those_of_nalgebra_sparse() {
    macro_rules! check {
        ($type:ty, $number:expr) => {
            for a in structures() {
                let number: fn(i64) -> $type = $number;
                let a = a.map_values(number);
                let x: Vec<$type> = (0..a.num_cols() as i64).map(|col| number(col % 7 - 3)).collect();
                let y: Vec<$type> = (0..a.num_rows() as i64).map(|row| number(row % 5 - 2)).collect();
                let (alpha, beta) = (number(3), number(-2));
                let theirs = nalgebra_sparse::CsrMatrix::try_from(a.clone()).unwrap();
                let product = &theirs * &DVector::from_vec(x.clone());
                let expected: Vec<$type> =
                    product.iter().zip(&y).map(|(&sum, &y)| alpha * sum + beta * y).collect();
                for multiply in [cpu_serial::<$type, u32>, cpu_parallel::<$type, u32>] {
                    let mut actual = y.clone();
                    multiply(alpha, &a, &x, beta, &mut actual).unwrap();
                    assert!(actual == expected, "{}", stringify!($type));
                }
            }
        };
    }
    check!(i32, |number| number as i32);
    check!(i64, |number| number);
    check!(f64, |number| number as f64);
    check!(Complex32, |number| Complex32::new(number as f32, (number * 5 % 7) as f32));
    check!(Complex64, |number| Complex64::new(number as f64, (number * 5 % 7) as f64));
}

/// Rows of many lengths, one of them long.
fn structures() -> Vec<CsrMatrix<i64>> {
    let generator = |class: &str, settings: &[(&str, f64)]| {
        let generator = Generator::new(class).unwrap().values(Values::Integers).seed(5);
        let set = |generator: Generator, (name, value): &(&str, f64)| generator.set(name, *value).unwrap();
        settings.iter().fold(generator, set).generate().unwrap()
    };
    vec![
        generator("power_law", &[("n", 3000.0), ("longest", 900.0)]),
        generator("stencil_5", &[("nx", 40.0), ("ny", 37.0)]),
        generator("giant_row", &[("n", 30_000.0), ("giant", 20_000.0)]),
    ]
}
