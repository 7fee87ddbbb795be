//! The real matrices of `tests/matrices`, against counts that were made apart from this library.

use std::path::PathBuf;

use spmv_matrix::matrix_market::{Field, Format, Header, Symmetry, read_file};
use spmv_matrix::{CsrMatrix, Statistics};

/// file, rows, columns, entries in the file, nonzeros, empty rows, shortest and longest row, stored zeros.
type Row = (&'static str, usize, usize, u64, usize, usize, usize, usize, usize);

const CATALOGUE: [Row; 19] = [
    ("Ashear", 243, 243, 7969, 7969, 0, 22, 59, 2942),
    ("LFAT5_hypersparse", 2000, 2000, 30, 46, 1986, 0, 5, 0),
    ("Q2Q1_9x9_B", 81, 578, 2318, 2318, 0, 6, 42, 0),
    ("USAir97", 332, 332, 2126, 4252, 0, 1, 139, 0),
    ("arc130", 130, 130, 1282, 1282, 0, 1, 124, 245),
    ("bfw782a", 782, 782, 7514, 7514, 0, 3, 24, 0),
    ("cryg2500", 2500, 2500, 12349, 12349, 0, 3, 5, 0),
    ("full_symmetric", 4, 4, 10, 16, 0, 4, 4, 0),
    ("gemat12", 4929, 4929, 33111, 33111, 0, 2, 44, 67),
    ("jagmesh7", 1138, 1138, 4294, 7450, 0, 4, 7, 0),
    ("karate", 34, 34, 78, 156, 0, 1, 17, 0),
    ("lp_afiro", 27, 51, 102, 102, 0, 2, 10, 0),
    ("olm1000", 1000, 1000, 3996, 3996, 0, 2, 6, 0),
    ("orsirr_2", 886, 886, 5970, 5970, 0, 3, 14, 0),
    ("sherman1", 1000, 1000, 2375, 3750, 0, 1, 7, 0),
    ("skew_fp64", 6, 6, 10, 20, 0, 3, 4, 0),
    ("skew_int32", 6, 6, 10, 20, 0, 3, 4, 1),
    ("sources_7", 64, 1, 64, 64, 0, 1, 1, 0),
    ("zenios", 2873, 2873, 15032, 27191, 0, 1, 47, 14375),
];

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices").join(name).with_extension("mtx")
}

#[test]
fn counts_are_those_of_the_catalogue() {
    for (name, rows, cols, stored, nnz, empty, shortest, longest, zeros) in CATALOGUE {
        let header = Header::read_file(path(name)).unwrap();
        assert_eq!((header.num_rows, header.num_cols, header.num_stored), (rows, cols, stored), "{name}");
        let matrix: CsrMatrix<f64> = read_file(path(name)).unwrap();
        let found = Statistics::of(&matrix);
        assert_eq!((found.num_rows, found.num_cols, found.nnz), (rows, cols, nnz), "{name}");
        assert_eq!(
            (found.empty_rows, found.row_nnz_min, found.row_nnz_max),
            (empty, shortest, longest),
            "{name}"
        );
        // The catalogue counts zeros as they are stored; a mirror image makes two of one.
        let zeros =
            if header.symmetry == Symmetry::General { zeros } else { found.stored_zeros.min(2 * zeros) };
        assert_eq!(found.stored_zeros, zeros, "{name}");
        assert!(found.sorted_columns && found.adjacent_duplicates == 0, "{name}");
    }
}

#[test]
fn every_file_of_the_folder_is_in_the_catalogue() {
    let mut names: Vec<String> = std::fs::read_dir(path("karate").parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "mtx"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert_eq!(names, CATALOGUE.map(|row| row.0.to_owned()));
}

#[test]
fn symmetric_matrices_are_their_transposes() {
    for (name, ..) in CATALOGUE {
        let header = Header::read_file(path(name)).unwrap();
        let matrix: CsrMatrix<f64> = read_file(path(name)).unwrap();
        let transpose = matrix.transpose().unwrap();
        match header.symmetry {
            Symmetry::Symmetric => assert!(transpose == matrix, "{name}"),
            Symmetry::SkewSymmetric => assert!(transpose.map_values(|value| -value) == matrix, "{name}"),
            _ => assert!(transpose.transpose().unwrap() == matrix, "{name}"),
        }
    }
}

#[test]
fn single_values_are_where_the_files_have_them() {
    let zenios = Header::read_file(path("zenios")).unwrap();
    assert_eq!(
        (zenios.format, zenios.field, zenios.symmetry),
        (Format::Coordinate, Field::Real, Symmetry::Symmetric)
    );
    let skew: CsrMatrix<f64> = read_file(path("skew_fp64")).unwrap();
    let at = |row: usize, col: u32| {
        let (cols, values) = skew.row(row);
        cols.iter().position(|&c| c == col).map(|position| values[position])
    };
    assert_eq!((at(3, 0), at(0, 3)), (Some(-0.12565458736262625), Some(0.12565458736262625)));
    let full: CsrMatrix<f32, u64> = read_file(path("full_symmetric")).unwrap();
    assert_eq!(full.row(0).1[0], 10.762_189_f32);
}
