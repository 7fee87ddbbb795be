//! CSR and COO: what is checked, converted and kept.

use proptest::prelude::*;
use spmv_matrix::{CooMatrix, CsrMatrix, MAX_DIMENSION, MatrixError, Offset, Statistics};

/// Offsets, columns, number of values of a 3 × 4 matrix, and the error they give.
#[test]
fn wrong_parts_are_refused() {
    let cases: [(&[u32], &[u32], usize, &str); 8] = [
        (&[0, 1, 2], &[0, 1], 2, "row_offsets has 3 entries: 4 are needed, one more than there are rows"),
        (
            &[0, 1, 2, 2, 2],
            &[0, 1],
            2,
            "row_offsets has 5 entries: 4 are needed, one more than there are rows",
        ),
        (&[1, 1, 2, 2], &[0, 1], 2, "row_offsets starts at 1: it must start at 0"),
        (&[0, 2, 1, 2], &[0, 1], 2, "row_offsets[2] is 1, less than 2 before it: offsets never decrease"),
        (&[0, 1, 2, 3], &[0, 1], 2, "row_offsets ends at 3: it must end at the number of nonzeros, 2"),
        (&[0, 1, 1, 1], &[0, 1], 2, "row_offsets ends at 1: it must end at the number of nonzeros, 2"),
        (&[0, 1, 2, 2], &[0, 1], 3, "values has 3 entries: 2 are needed, as many as in col_indices"),
        (&[0, 1, 2, 2], &[3, 4], 2, "col_indices[1] is 4: with 4 columns it must be below 4"),
    ];
    for (offsets, cols, values, expected) in cases {
        let error = CsrMatrix::new(3, 4, offsets.to_vec(), cols.to_vec(), vec![1.0; values]).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    let too_many = 1_usize << 31;
    let error = CsrMatrix::<f32, u64>::new(too_many, 1, vec![0], vec![], vec![]).unwrap_err();
    assert_eq!(error.to_string(), "2147483648 rows are too many: at most 2147483647 are allowed");
    let error = CsrMatrix::<f32>::new(0, too_many, vec![0], vec![], vec![]).unwrap_err();
    assert_eq!(error, MatrixError::TooManyColumns(1 << 31));
    let error = CsrMatrix::<f32>::new(0, 0, vec![0], vec![0], vec![1.0]).unwrap_err();
    assert_eq!(error, MatrixError::OffsetsEnd { found: 0, nnz: 1 });
}

#[test]
fn a_fault_is_found_anywhere_in_a_long_array() {
    let nnz = 300_000;
    let offsets: Vec<u64> = (0..=nnz as u64).collect();
    for position in [0, 65_535, 65_536, 200_000, nnz - 1] {
        let mut cols = vec![6; nnz];
        cols[position] = 7;
        cols[nnz - 1] = 9;
        let index = cols[position];
        let error = CsrMatrix::new(nnz, 7, offsets.clone(), cols, vec![1.0; nnz]).unwrap_err();
        assert_eq!(error, MatrixError::ColumnOutOfRange { position, index, num_cols: 7 });
    }
}

#[test]
fn coordinates_are_checked() {
    let error = CooMatrix::new(2, 2, vec![0, 2], vec![0, 0], vec![1.0; 2]).unwrap_err();
    assert_eq!(error.to_string(), "row_indices[1] is 2: with 2 rows it must be below 2");
    let error = CooMatrix::new(2, 2, vec![0, 1], vec![0, 2], vec![1.0; 2]).unwrap_err();
    assert_eq!(error.to_string(), "col_indices[1] is 2: with 2 columns it must be below 2");
    let error = CooMatrix::new(2, 2, vec![0], vec![0, 1], vec![1.0; 2]).unwrap_err();
    assert_eq!(error.to_string(), "row_indices has 1 entries: 2 are needed, as many as in values");
    let last = (MAX_DIMENSION - 1) as u32;
    assert!(CooMatrix::new(MAX_DIMENSION, MAX_DIMENSION, vec![last], vec![last], vec![1.0]).is_ok());
    for (num_rows, num_cols, what) in [(MAX_DIMENSION + 1, 1, "rows"), (1, MAX_DIMENSION + 1, "columns")] {
        let error = CooMatrix::new(num_rows, num_cols, vec![0], vec![0], vec![1.0]).unwrap_err();
        assert!(error.to_string().starts_with(&format!("2147483648 {what}")), "{error}");
    }
}

#[test]
fn offsets_convert_both_ways() {
    let a = CsrMatrix::<f32>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![1.0, 2.0]).unwrap();
    let wide = a.to_offsets::<u64>().unwrap();
    assert_eq!(wide.row_offsets(), [0_u64, 1, 2]);
    assert_eq!(wide.to_offsets::<u32>().unwrap(), a);
    assert_eq!(a.convert::<f64>().values(), [1.0_f64, 2.0]);
    assert_eq!(a.row(1), (&[0][..], &[2.0][..]));
    assert_eq!(a.clone().into_parts(), (vec![0, 1, 2], vec![1, 0], vec![1.0, 2.0]));
}

#[test]
fn statistics_of_a_known_matrix() {
    // Rows of 3 (unsorted), 0, 1 and 5 (one twice) entries.
    let cols = vec![4, 0, 1, 2, 0, 1, 3, 3, 5];
    let values = vec![1.0, 0.0, 2.0, 3.0, 4.0, -0.0, 5.0, 6.0, 7.0];
    let a = CsrMatrix::<f64>::new(4, 6, vec![0, 3, 3, 4, 9], cols, values).unwrap();
    let found = Statistics::of(&a);
    assert_eq!((found.num_rows, found.num_cols, found.nnz, found.empty_rows), (4, 6, 9, 1));
    assert_eq!((found.row_nnz_min, found.row_nnz_max, found.row_nnz_mean), (0, 5, 2.25));
    assert!((found.row_nnz_std - 3.6875_f64.sqrt()).abs() < 1e-15);
    assert_eq!(found.row_nnz_histogram, [1, 1, 1, 1]);
    assert_eq!((found.lower_bandwidth, found.upper_bandwidth), (3, 4));
    assert_eq!((found.diagonal_entries, found.stored_zeros, found.adjacent_duplicates), (4, 2, 1));
    assert!(!found.sorted_columns);
    assert_eq!((found.density, found.bytes), (9.0 / 24.0, 5 * 4 + 9 * 12));
    let twice = CsrMatrix::<f64>::new(1, 3, vec![0, 3], vec![0, 2, 2], vec![1.0; 3]).unwrap();
    let found = Statistics::of(&twice);
    assert_eq!((found.sorted_columns, found.adjacent_duplicates), (true, 1));
    let empty = Statistics::of(&CsrMatrix::<f32>::new(0, 0, vec![0], vec![], vec![]).unwrap());
    assert_eq!(empty, {
        let mut none = Statistics::default();
        none.sorted_columns = true;
        none.bytes = 4;
        none
    });
}

type Entries = Vec<(u32, u32, i32)>;

/// Sizes and entries in any order, some of them of the same place.
fn entries() -> impl Strategy<Value = (usize, usize, Entries)> {
    (1..3000_usize, 1..40_usize).prop_flat_map(|(rows, cols)| {
        let entry = (0..rows as u32, 0..cols as u32, -3..=3);
        (Just(rows), Just(cols), prop::collection::vec(entry, 0..400))
    })
}

fn coo(rows: usize, cols: usize, entries: &Entries) -> CooMatrix<f64> {
    let (row_indices, (col_indices, values)) =
        entries.iter().map(|&(row, col, value)| (row, (col, f64::from(value)))).unzip();
    CooMatrix::new(rows, cols, row_indices, col_indices, values).unwrap()
}

fn listed<O: Offset>(matrix: &CsrMatrix<f64, O>) -> Vec<(u32, u32, f64)> {
    (0..matrix.num_rows())
        .flat_map(|row| {
            let (cols, values) = matrix.row(row);
            cols.iter().zip(values).map(move |(&col, &value)| (row as u32, col, value)).collect::<Vec<_>>()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn coordinates_become_rows((rows, cols, entries) in entries()) {
        let matrix = coo(rows, cols, &entries).to_csr::<u32>().unwrap();
        let mut expected: Vec<_> = entries.iter().map(|&(row, col, value)| (row, col, f64::from(value))).collect();
        expected.sort_by_key(|&(row, col, _)| (row, col));
        prop_assert_eq!(listed(&matrix), expected);
        prop_assert_eq!((matrix.num_rows(), matrix.num_cols()), (rows, cols));
    }

    #[test]
    fn transposing_twice_changes_nothing((rows, cols, entries) in entries()) {
        let matrix = coo(rows, cols, &entries).to_csr::<u64>().unwrap();
        let transpose = matrix.transpose().unwrap();
        prop_assert_eq!((transpose.num_rows(), transpose.num_cols()), (cols, rows));
        let mut expected: Vec<_> = listed(&matrix).into_iter().map(|(row, col, value)| (col, row, value)).collect();
        expected.sort_by_key(|&(row, col, _)| (row, col));
        prop_assert_eq!(listed(&transpose), expected);
        prop_assert_eq!(transpose.transpose().unwrap(), matrix);
    }

    #[test]
    fn sorting_and_summing((rows, cols, entries) in entries()) {
        let sorted = coo(rows, cols, &entries).to_csr::<u32>().unwrap();
        // The same entries with the order of each row reversed.
        let mut backwards = sorted.clone().into_parts();
        for row in 0..rows {
            let range = sorted.row_range(row);
            backwards.1[range.clone()].reverse();
            backwards.2[range].reverse();
        }
        let (offsets, col_indices, values) = backwards;
        let mut matrix = CsrMatrix::new(rows, cols, offsets, col_indices, values).unwrap();
        let reversed = matrix.clone();
        matrix.sort_columns();
        let mut expected = listed(&reversed);
        expected.sort_by_key(|&(row, col, _)| (row, col));
        prop_assert_eq!(listed(&matrix), expected.clone());

        matrix.sum_duplicates();
        let mut sums: Vec<(u32, u32, f64)> = Vec::new();
        for (row, col, value) in expected {
            match sums.last_mut() {
                Some(last) if (last.0, last.1) == (row, col) => last.2 += value,
                _ => sums.push((row, col, value)),
            }
        }
        prop_assert_eq!(listed(&matrix), sums);
    }
}

#[test]
fn many_entries_and_one_long_row() {
    // Several chunks, all buckets, a row long enough to be sorted by several threads.
    let entries: Entries = (0..500_000_u64)
        .map(|entry| {
            let row = if entry % 4 == 0 { 5 } else { entry * 7_919 % 20_011 };
            (row as u32, (entry * 104_729 % 99_991) as u32, (entry % 7) as i32)
        })
        .collect();
    let matrix = coo(20_011, 99_991, &entries).to_csr::<u32>().unwrap();
    let mut expected: Vec<_> =
        entries.iter().map(|&(row, col, value)| (row, col, f64::from(value))).collect();
    expected.sort_by_key(|&(row, col, _)| (row, col));
    assert!(listed(&matrix) == expected);
    assert!(matrix.row(5).0.len() > 1 << 16);
    assert!(matrix.transpose().unwrap().transpose().unwrap() == matrix);
}
