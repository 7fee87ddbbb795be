//! SciPy's files: those that SciPy wrote, those that are wrong, and those that come back.

use std::io::{Cursor, Read, Write};
use std::path::PathBuf;

use proptest::prelude::*;
use spmv_matrix::format::{BsrMatrix, BsrParameters, DiaMatrix, Format};
use spmv_matrix::scipy::{
    Header, Layout, ReadError, ReadOptions, is_archive, read_bytes, read_bytes_with, read_file, write,
    write_file,
};
use spmv_matrix::{Complex32, Complex64, CooMatrix, CscMatrix, CsrMatrix, Entry, Value, bf16, f16};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scipy").join(name).with_extension("npz")
}

/// [[0, 2, 0, 0, -1, 0], [0, 0, 0, 0, 0, 0], [3, 0, 0, 5, 0, 0], [0, 4, 0, 0, 0, 7]], as in make.py.
fn dense<V: Entry>(of: impl Fn(f64) -> V) -> CsrMatrix<V> {
    let values = [2.0, -1.0, 3.0, 5.0, 4.0, 7.0].map(of).to_vec();
    CsrMatrix::new(4, 6, vec![0, 2, 2, 4, 6], vec![1, 4, 0, 3, 1, 5], values).unwrap()
}

fn real<V: Value>() -> CsrMatrix<V> {
    dense(V::from_f64)
}

#[test]
fn files_of_scipy_are_read() {
    for layout in [Layout::Csr, Layout::Csc, Layout::Coo, Layout::Dia] {
        for (suffix, value_type) in [("", "float64"), ("_array_stored", "float32")] {
            let name = format!("{layout}{suffix}");
            assert_eq!(read_file::<f64, u32>(path(&name)).unwrap(), real(), "{name}");
            assert_eq!(read_file::<f16, u32>(path(&name)).unwrap(), real(), "{name}");
            let header = Header::read_file(path(&name)).unwrap();
            assert_eq!((header.layout, header.num_rows, header.num_cols), (layout, 4, 6));
            assert_eq!((&*header.value_type, header.complex), (value_type, false));
            assert!(header.num_stored >= 6 && is_archive(path(&name)).unwrap());
        }
    }
    assert_eq!(read_file::<f32, u64>(path("csr_int64_indices")).unwrap(), real().to_offsets().unwrap());
    for name in ["csr_int8", "csr_int32", "csr_int64", "csr_float16", "csr_float32"] {
        assert_eq!(read_file::<f32, u32>(path(name)).unwrap(), real(), "{name}");
        assert_eq!(read_file::<bf16, u32>(path(name)).unwrap(), real(), "{name}");
    }
    for name in ["csr_uint8", "csr_uint64"] {
        assert_eq!(read_file::<f64, u32>(path(name)).unwrap(), dense(f64::abs), "{name}");
    }
    assert_eq!(read_file::<f64, u32>(path("csr_bool")).unwrap(), dense(|_| 1.0));
    assert_eq!(
        read_file::<f64, u32>(path("empty")).unwrap(),
        CsrMatrix::new(0, 7, vec![0], vec![], vec![]).unwrap()
    );
}

#[test]
fn complex_values_need_complex_entries() {
    let expected = |value: f64| Complex64::new(value, 2.0 * value);
    assert_eq!(read_file::<Complex64, u32>(path("csr_complex128")).unwrap(), dense(expected));
    assert_eq!(read_file::<Complex64, u32>(path("csr_complex64")).unwrap(), dense(expected));
    let narrow = dense(|value| Complex32::new(value as f32, 2.0 * value as f32));
    assert_eq!(read_file::<Complex32, u32>(path("csr_complex128")).unwrap(), narrow);
    assert_eq!(read_file::<Complex64, u32>(path("csr")).unwrap(), dense(|value| Complex64::new(value, 0.0)));
    let error = read_file::<f32, u32>(path("csr_complex64")).unwrap_err();
    assert_eq!(error.to_string(), "complex64 values do not fit in f32; read them as c32 or c64");
    assert!(Header::read_file(path("csr_complex64")).unwrap().complex);
}

#[test]
fn whole_numbers_are_read_and_written_as_they_are() {
    for name in ["csr_int8", "csr_int32", "csr_int64"] {
        assert_eq!(read_file::<i8, u32>(path(name)).unwrap(), real(), "{name}");
        assert_eq!(read_file::<i32, u32>(path(name)).unwrap(), real(), "{name}");
        assert_eq!(read_file::<i64, u32>(path(name)).unwrap(), real(), "{name}");
        let error = read_file::<u32, u32>(path(name)).unwrap_err().to_string();
        assert_eq!(error, "data[1] is -1e0, outside the range of u32", "{name}");
    }
    for name in ["csr_uint8", "csr_uint64"] {
        assert_eq!(read_file::<u32, u32>(path(name)).unwrap(), dense(|value| value.abs() as u32), "{name}");
    }
    assert_eq!(read_file::<bool, u32>(path("csr_bool")).unwrap(), dense(|_| true));
    assert_eq!(read_file::<i8, u32>(path("csr_bool")).unwrap(), dense(|_| 1));
    assert_eq!(
        read_file::<i64, u32>(path("csr")).unwrap_err().to_string(),
        "float64 values may have fractions, which i64 has not; read them as f16, bf16, f32, f64, c32 or c64"
    );
    fn come_back<V: Entry>(values: &[V], value_type: &str) {
        let a = CsrMatrix::<V>::new(
            1,
            values.len(),
            vec![0, values.len() as u32],
            (0..).take(values.len()).collect(),
            values.to_vec(),
        );
        let (a, mut file) = (a.unwrap(), Cursor::new(Vec::new()));
        write(&mut file, &a).unwrap();
        let file = file.into_inner();
        assert_eq!(read_bytes::<V, u32>(&file).unwrap(), a);
        assert_eq!(Header::read_bytes(&file).unwrap().value_type, value_type);
    }
    come_back(&[i8::MIN, i8::MAX], "int8");
    come_back(&[i32::MIN, i32::MAX], "int32");
    come_back(&[i64::MIN, i64::MAX, (1 << 53) + 1], "int64");
    come_back(&[0, u32::MAX], "uint32");
    come_back(&[false, true], "bool");
}

#[test]
fn order_and_zeros_are_those_of_the_file() {
    let a: CsrMatrix<f64> = read_file(path("csr_unsorted")).unwrap();
    assert_eq!((a.row_offsets(), a.col_indices()), (&[0, 3, 3, 4][..], &[3, 0, 0, 2][..]));
    assert_eq!(a.values(), [1.0, 0.0, 2.0, 3.0]);
    let a: CsrMatrix<f64> = read_file(path("coo_duplicates")).unwrap();
    assert_eq!(
        (a.row_offsets(), a.col_indices(), a.values()),
        (&[0, 1, 3][..], &[1, 2, 2][..], &[0.0, 1.0, 2.0][..])
    );
    // All of a block, row by row of the matrix.
    let a: CsrMatrix<f64> = read_file(path("bsr")).unwrap();
    assert_eq!(a.nnz(), 24);
    let mut kept = a.clone();
    kept.sort_columns();
    assert_eq!(
        (kept.row(0).1, kept.row(2).1),
        (&[0.0, 2.0, 0.0, 0.0, -1.0, 0.0][..], &[3.0, 0.0, 0.0, 5.0, 0.0, 0.0][..])
    );
    let a: CsrMatrix<f64> = read_file(path("bsr_fortran")).unwrap();
    assert_eq!(
        (a.row(0), a.row(3)),
        ((&[3, 4, 5][..], &[0.0, 1.0, 2.0][..]), (&[0, 1, 2][..], &[9.0, 10.0, 11.0][..]))
    );
    // Values of a diagonal are placed by their columns, and what is behind the last column of the data is nothing.
    let a: CsrMatrix<f64> = read_file(path("dia_fortran")).unwrap();
    let entries: Vec<_> = (0..4).map(|row| (a.row(row).0.to_vec(), a.row(row).1.to_vec())).collect();
    let expected =
        [(vec![1], vec![2.0]), (vec![0, 2], vec![4.0, 3.0]), (vec![1], vec![5.0]), (vec![], vec![])];
    assert_eq!(entries, expected);
}

fn written(matrix: &impl spmv_matrix::scipy::Save) -> Vec<u8> {
    let mut file = Vec::new();
    write(&mut file, matrix).unwrap();
    file
}

/// With `SPMV_PYTHON` naming a Python that has SciPy, which loads every layout with several types of values.
#[test]
fn scipy_reads_what_is_written() {
    let Some(python) = std::env::var_os("SPMV_PYTHON") else {
        println!("set SPMV_PYTHON to a Python with SciPy to have it load what is written");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    let mut write = |layout: &str, value_type: &str, matrix: &dyn Fn(&std::path::Path)| {
        matrix(&folder.path().join(format!("{layout}-{value_type}.npz")));
        count += 1;
    };
    macro_rules! write_all {
        ($($name:literal: $a:expr),+) => {$({
            let a = $a;
            write("csr", $name, &|path| write_file(path, &a).unwrap());
            write("csc", $name, &|path| write_file(path, &CscMatrix::from_csr(&a).unwrap()).unwrap());
            write("coo", $name, &|path| write_file(path, &CooMatrix::from_csr(&a).unwrap()).unwrap());
            write("dia", $name, &|path| write_file(path, &DiaMatrix::from_csr(&a).unwrap()).unwrap());
            let parameters = BsrParameters { block_rows: 2, block_cols: 3 };
            let blocks = BsrMatrix::from_csr_with(&a, parameters).unwrap();
            write("bsr", $name, &|path| write_file(path, &blocks).unwrap());
        })+};
    }
    write_all!("float64": real::<f64>(), "float32": real::<f32>());
    write("csr", "float32", &|path| {
        write_file(path.with_file_name("csr-float32-f16.npz"), &real::<f16>()).unwrap()
    });
    write("csr", "float32", &|path| {
        write_file(path.with_file_name("csr-float32-bf16.npz"), &real::<bf16>()).unwrap()
    });
    write_all!("int8": dense(|value| value as i8), "int32": dense(|value| value as i32));
    write_all!("int64": dense(|value| value as i64));
    write_all!("complex64": dense(|value| Complex32::new(value as f32, 2.0 * value as f32)));
    write_all!("complex128": dense(|value| Complex64::new(value, 2.0 * value)));
    let script = path("load").with_extension("py");
    let told = std::process::Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&told.stdout).into_owned() + &String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success() && said.trim() == format!("{count} files"), "{said}");
}

fn any_matrix() -> impl Strategy<Value = CsrMatrix<f64>> {
    (0..20_usize, 0..20_usize).prop_flat_map(|(num_rows, num_cols)| {
        let most = if num_rows * num_cols == 0 { 0 } else { 60 };
        let entry = (0..num_rows.max(1) as u32, 0..num_cols.max(1) as u32, -4i32..4);
        prop::collection::vec(entry, 0..=most).prop_map(move |entries| {
            let rows = entries.iter().map(|entry| entry.0).collect();
            let cols = entries.iter().map(|entry| entry.1).collect();
            let values = entries.iter().map(|entry| f64::from(entry.2) / 4.0).collect();
            CooMatrix::new(num_rows, num_cols, rows, cols, values).unwrap().to_csr().unwrap()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(a in any_matrix()) {
        let narrow = a.convert::<bf16>();
        prop_assert_eq!(&read_bytes::<f64, u32>(&written(&a)).unwrap(), &a);
        prop_assert_eq!(&read_bytes::<f16, u64>(&written(&a.convert::<f16>())).unwrap(), &a.convert().to_offsets().unwrap());
        prop_assert_eq!(&read_bytes::<bf16, u32>(&written(&narrow)).unwrap(), &narrow);
        let complex = a.map_values(|value| Complex32::new(value as f32, 1.0));
        prop_assert_eq!(&read_bytes::<Complex32, u32>(&written(&complex)).unwrap(), &complex);
        prop_assert_eq!(&read_bytes::<f64, u32>(&written(&CscMatrix::from_csr(&a).unwrap())).unwrap(), &a);
        prop_assert_eq!(&read_bytes::<f64, u32>(&written(&CooMatrix::from_csr(&a).unwrap())).unwrap(), &a);
    }

    /// Blocks bring zeros and diagonals lose them: what remains is the same.
    #[test]
    fn what_is_written_in_blocks_or_diagonals_is_read(a in any_matrix()) {
        let mut a = a;
        a.sum_duplicates();
        let nonzeros = |a: &CsrMatrix<f64>| {
            let row = |row| a.row(row).0.iter().zip(a.row(row).1).filter(|(_, value)| **value != 0.0)
                .map(move |(&col, &value)| (row, col, value)).collect::<Vec<_>>();
            (0..a.num_rows()).flat_map(row).collect::<Vec<_>>()
        };
        let back: CsrMatrix<f64> = read_bytes(&written(&DiaMatrix::from_csr(&a).unwrap())).unwrap();
        prop_assert_eq!(nonzeros(&back), nonzeros(&a));
        prop_assert_eq!(back.nnz(), nonzeros(&a).len());
        let divisor = |size: usize| (1..=4).rev().find(|&divisor| size.is_multiple_of(divisor)).unwrap();
        let parameters = BsrParameters { block_rows: divisor(a.num_rows()), block_cols: divisor(a.num_cols()) };
        let blocks = BsrMatrix::from_csr_with(&a, parameters).unwrap();
        let back: CsrMatrix<f64> = read_bytes(&written(&blocks)).unwrap();
        prop_assert_eq!(nonzeros(&back), nonzeros(&a));
        prop_assert_eq!(back.nnz(), blocks.values().len());
    }

    /// Bytes of archives and of arrays are changed, cut off and doubled.
    #[test]
    fn hostile_files_are_errors(
        file in 0..8_usize,
        array in 0..6_usize,
        edits in prop::collection::vec((0..4000_usize, any::<u8>()), 1..6),
        cut in prop::option::of(0..4000_usize),
        repack in any::<bool>(),
    ) {
        let name = ["csr", "csc", "coo", "dia", "bsr", "csr_array_stored", "csr_complex64", "bsr_fortran"][file];
        let bytes = std::fs::read(path(name)).unwrap();
        let edit = |bytes: &mut Vec<u8>| {
            for &(position, value) in &edits {
                let len = bytes.len();
                bytes[position % len] = value;
            }
            bytes.truncate(cut.map_or(bytes.len(), |cut| cut % (bytes.len() + 1)));
        };
        let bytes = if repack {
            let mut arrays = unpacked(&bytes);
            let index = array % arrays.len();
            edit(&mut arrays[index].1);
            packed(&arrays)
        } else {
            let mut bytes = bytes;
            edit(&mut bytes);
            bytes
        };
        let options = ReadOptions::new().max_bytes(1 << 24);
        let _ = Header::read_bytes(&bytes);
        if let Ok(a) = read_bytes_with::<f32, u32>(&bytes, &options) {
            prop_assert!(CsrMatrix::new(a.num_rows(), a.num_cols(), a.row_offsets().to_vec(), a.col_indices().to_vec(), a.values().to_vec()).is_ok());
        }
    }
}

/// Names and bytes of the arrays of an archive.
fn unpacked(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = ZipArchive::new(Cursor::new(file)).unwrap();
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        arrays.push((entry.name().unwrap().into_owned(), bytes));
    }
    arrays
}

fn packed(arrays: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in arrays {
        archive.start_file(name.as_str(), stored).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// An array in NumPy's format.
fn npy(version: u8, descr: &str, shape: &str, values: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((text.len() as u16).to_le_bytes()),
        _ => bytes.extend((text.len() as u32).to_le_bytes()),
    }
    bytes.extend(text.as_bytes());
    bytes.extend(values);
    bytes
}

/// The same array, said to be in Fortran order.
fn fortran(npy: Vec<u8>) -> Vec<u8> {
    let at = npy.windows(5).position(|window| window == b"False").unwrap();
    [&npy[..at], b"True ", &npy[at + 5..]].concat()
}

fn int64(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The file `csr` with other arrays in the place of some; `None` takes one out.
fn with(changes: &[(&str, Option<Vec<u8>>)]) -> Vec<u8> {
    let mut arrays = unpacked(&std::fs::read(path("csr")).unwrap());
    for (name, bytes) in changes {
        let name = format!("{name}.npy");
        arrays.retain(|(other, _)| *other != name);
        arrays.extend(bytes.clone().map(|bytes| (name, bytes)));
    }
    packed(&arrays)
}

#[test]
fn room_behind_the_entries_is_no_part_of_the_matrix() {
    let whole: CsrMatrix<f64> = read_bytes(&std::fs::read(path("csr")).unwrap()).unwrap();
    let cols = whole.col_indices().iter().map(|col| i64::from(*col));
    let cols = npy(1, "<i8", "(8,)", &int64(&cols.chain([-1, 1 << 40]).collect::<Vec<_>>()));
    let values: Vec<u8> =
        whole.values().iter().chain(&[1e300, f64::NAN]).flat_map(|value| value.to_le_bytes()).collect();
    let file = with(&[("indices", Some(cols)), ("data", Some(npy(1, "<f8", "(8,)", &values)))]);
    assert_eq!(read_bytes::<f64, u32>(&file).unwrap(), whole);
    // Beyond the range of f32, but no entry.
    assert_eq!(read_bytes::<f32, u32>(&file).unwrap().nnz(), 6);

    let block = |first: f64| [first, 2.0, 3.0, 4.0, 5.0, 6.0];
    let blocks = |all: &[[f64; 6]]| {
        let bytes: Vec<u8> = all.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
        let shape = format!("({}, 2, 3)", all.len());
        with(&[
            ("format", Some(npy(1, "|S3", "()", b"bsr"))),
            ("data", Some(npy(1, "<f8", &shape, &bytes))),
            ("indices", Some(npy(1, "<i8", &format!("({},)", all.len()), &int64(&[1, 0, -7][..all.len()])))),
            ("indptr", Some(npy(1, "<i8", "(3,)", &int64(&[0, 1, 2])))),
        ])
    };
    let expected = read_bytes::<f32, u32>(&blocks(&[block(1.0), block(9.0)])).unwrap();
    assert_eq!(expected.nnz(), 12);
    assert_eq!(read_bytes::<f32, u32>(&blocks(&[block(1.0), block(9.0), block(1e300)])).unwrap(), expected);
}

#[test]
fn blocks_of_an_empty_matrix_may_have_any_shape() {
    let file = with(&[
        ("format", Some(npy(1, "|S3", "()", b"bsr"))),
        ("shape", Some(npy(1, "<i8", "(2,)", &int64(&[0, 0])))),
        ("data", Some(npy(1, "<f8", "(0, 8589934592, 8589934592)", &[]))),
        ("indices", Some(npy(1, "<i8", "(0,)", &[]))),
        ("indptr", Some(npy(1, "<i8", "(1,)", &int64(&[0])))),
    ]);
    assert_eq!(
        read_bytes::<f64, u32>(&file).unwrap(),
        CsrMatrix::new(0, 0, vec![0], vec![], vec![]).unwrap()
    );
}

#[test]
fn wrong_files_are_told_what_is_wrong() {
    let format = |name: &str| npy(1, &format!("|S{}", name.len()), "()", name.as_bytes());
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (
            with(&[("data", None)]),
            "there is no data.npy in the file; needed are format, shape, data, indices and indptr",
        ),
        (
            with(&[("format", None)]),
            "there is no format.npy in the file; needed are format, shape, data and those of the format",
        ),
        (
            with(&[("format", Some(format("lil")))]),
            "the format is \"lil\"; allowed are csr, csc, coo, bsr, dia",
        ),
        (
            with(&[("format", Some(format("coo")))]),
            "there is no row.npy in the file; needed are format, shape, data, row and col",
        ),
        (
            with(&[("format", Some(format("csc")))]),
            "indptr.npy has shape (5,); as csc with 4 rows and 6 columns it must be (7,)",
        ),
        (
            with(&[("format", Some(format("bsr")))]),
            "data.npy has shape (6,); as bsr with 4 rows and 6 columns it must be (BLOCKS, ROWS, COLUMNS)",
        ),
        (
            with(&[("shape", Some(npy(1, "<i8", "(2,)", &int64(&[4, -6]))))]),
            "shape.npy says (4, -6); allowed are two whole numbers from 0 to 2147483647",
        ),
        (
            with(&[("shape", Some(npy(1, "<i8", "(3,)", &int64(&[4, 6, 1]))))]),
            "shape.npy says int64 of shape (3,); allowed are two whole numbers from 0 to 2147483647",
        ),
        (
            with(&[("indices", Some(npy(2, "<i8", "(6,)", &int64(&[1, 4, 0, 6, 1, 5]))))]),
            "indices[3] is 6; allowed are whole numbers from 0 to 5",
        ),
        (
            with(&[("indices", Some(npy(3, "<i8", "(6,)", &int64(&[1, -4, 0, 3, 1, 5]))))]),
            "indices[1] is -4; allowed are whole numbers from 0 to 5",
        ),
        (
            with(&[("indices", Some(npy(1, "<i8", "(5,)", &int64(&[1, 4, 0, 3, 1]))))]),
            "indices.npy has shape (5,); as csr with 4 rows and 6 columns it must be (6,)",
        ),
        (
            with(&[("indices", Some(npy(1, "<f8", "(6,)", &int64(&[0; 6]))))]),
            "indices.npy holds float64; allowed are integers",
        ),
        (
            with(&[("indptr", Some(npy(1, "<i8", "(5,)", &int64(&[0, 7, 2, 4, 6]))))]),
            "indptr[1] is 7; allowed are whole numbers from 0 to 6",
        ),
        (
            with(&[("indptr", Some(npy(1, "<i8", "(5,)", &int64(&[0, 3, 2, 4, 6]))))]),
            "row_offsets[2] is 2, less than 3 before it: offsets never decrease",
        ),
        (
            with(&[("data", Some(npy(1, "|S8", "(6,)", &[0; 48])))]),
            "data.npy holds 8 bytes of text; allowed are numbers",
        ),
        (
            with(&[("data", Some(npy(1, ">f8", "(6,)", &[0; 48])))]),
            "data.npy: values of type \">f8\"; allowed are little-endian numbers such as '<f8', '<i4' and '|b1'",
        ),
        (
            with(&[("data", Some(npy(9, "<f8", "(6,)", &[0; 48])))]),
            "data.npy: version 9 of NumPy's format; allowed are 1 to 3",
        ),
        (
            with(&[("data", Some(b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec()))]),
            "data.npy: a header of 4294967295 bytes; at most 65536 are allowed",
        ),
        (with(&[("data", Some(b"\x93NUM".to_vec()))]), "data.npy: the header is cut off"),
        (
            with(&[("data", Some(b"no array".to_vec()))]),
            "data.npy: no array in NumPy's format; it would start with \\x93NUMPY",
        ),
        (with(&[("data", Some(npy(1, "<f8", "(6,)", &[0; 56])))]), "data.npy goes on after its 6 values"),
        (
            with(&[("data", Some(npy(1, "<f8", "(6,)", &[0; 40])))]),
            "data.npy is damaged or cut off after 0 values: failed to fill whole buffer",
        ),
        (
            with(&[("data", Some(npy(1, "<f8", "(6,)", &[1e300f64.to_le_bytes(); 6].concat())))]),
            "data[0] is 1e300, outside the range of f32",
        ),
        (
            with(&[
                ("format", Some(format("bsr"))),
                ("data", Some(npy(1, "<f8", "(1, 2, 4)", &[0; 64]))),
                ("indices", Some(npy(1, "<i4", "(1,)", &[0; 4]))),
                ("indptr", Some(npy(1, "<i4", "(3,)", &[0; 12]))),
            ]),
            "blocks of 2 × 4 do not divide 4 rows and 6 columns",
        ),
        (
            with(&[
                ("format", Some(format("dia"))),
                ("data", Some(npy(1, "<f8", "(2, 1)", &[0; 16]))),
                ("offsets", Some(npy(1, "<i8", "(2,)", &int64(&[-1, 1 << 31])))),
            ]),
            "offsets[1] is 2147483648; allowed are whole numbers from -2147483647 to 2147483647",
        ),
        (
            with(&[
                ("format", Some(format("coo"))),
                ("data", Some(npy(1, "<f8", "(2,)", &[0; 16]))),
                ("coords", Some(fortran(npy(1, "<i8", "(2, 2)", &int64(&[0; 4]))))),
            ]),
            "coords.npy has shape (2, 2) in Fortran order; as coo with 4 rows and 6 columns it must be (2, 2) in C order",
        ),
        (b"%%MatrixMarket".to_vec(), "no .npz file, or a damaged one: "),
        (Vec::new(), "no .npz file, or a damaged one: "),
    ];
    for (file, expected) in cases {
        let error = read_bytes::<f32, u32>(&file).unwrap_err().to_string();
        assert!(
            error == expected || (expected.ends_with(": ") && error.starts_with(expected)),
            "{error}\n{expected}"
        );
    }
    // As much as an archive can promise in a few bytes.
    let huge = npy(1, "<f8", "(2305843009213693950,)", &[]);
    let indices = npy(1, "<i4", "(2305843009213693950,)", &[]);
    let file = with(&[("data", Some(huge)), ("indices", Some(indices))]);
    assert!(matches!(read_bytes::<f32, u64>(&file), Err(ReadError::Damaged { .. } | ReadError::Matrix(_))));
    let error = read_bytes::<f32, u32>(&file).unwrap_err().to_string();
    assert_eq!(
        error,
        "2305843009213693950 nonzeros do not fit in u32 row offsets (at most 4294967295): use u64 offsets"
    );
    let limit = ReadOptions::new().max_bytes(67);
    let file = std::fs::read(path("csr")).unwrap();
    let error = read_bytes_with::<f32, u32>(&file, &limit).unwrap_err().to_string();
    assert_eq!(error, "the matrix takes 68 bytes: at most 67 are allowed");
    assert!(
        read_file::<f32, u32>(path("no such file"))
            .unwrap_err()
            .to_string()
            .contains("no such file.npz: could not be read")
    );
}

/// Many diagonals of one column, and rows that nothing is stored for.
#[test]
fn work_is_that_of_the_values_there_are() {
    let diagonals = 4096;
    let arrays = [
        ("format.npy".to_owned(), npy(1, "|S3", "()", b"dia")),
        ("shape.npy".to_owned(), npy(1, "<i8", "(2,)", &int64(&[4_000_000, 5]))),
        (
            "offsets.npy".to_owned(),
            npy(1, "<i8", "(4096,)", &int64(&(0..diagonals).map(|d| -d * 7).collect::<Vec<_>>())),
        ),
        ("data.npy".to_owned(), npy(1, "<f4", "(4096, 1)", &[1.0f32.to_le_bytes(); 4096].concat())),
    ];
    let a: CsrMatrix<f32> = read_bytes(&packed(&arrays)).unwrap();
    assert_eq!((a.num_rows(), a.nnz(), a.row(7)), (4_000_000, 4096, (&[0][..], &[1.0][..])));
}

#[test]
fn rows_that_are_too_many_are_refused_before_they_are_looked_at() {
    let mut arrays = unpacked(&std::fs::read(path("dia")).unwrap());
    let shape = arrays.iter_mut().find(|(name, _)| name == "shape.npy").expect("it has sizes");
    shape.1 = npy(1, "<i8", "(2,)", &int64(&[900_000_000, 5]));
    let limit = ReadOptions::new().max_bytes(1 << 24);
    let error = read_bytes_with::<f32, u32>(&packed(&arrays), &limit).unwrap_err().to_string();
    // The row offsets alone: entries were not counted.
    assert_eq!(error, "the matrix takes 3600000004 bytes: at most 16777216 are allowed");
}

#[test]
fn files_are_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.npz");
    std::fs::write(&file, "before").unwrap();
    let ragged =
        BsrMatrix::from_csr_with(&real::<f64>(), BsrParameters { block_rows: 3, block_cols: 2 }).unwrap();
    let error = write_file(&file, &ragged).unwrap_err().to_string();
    assert_eq!(
        error,
        "blocks of 3 × 2 do not divide 4 rows and 6 columns, as SciPy has it; write the matrix as CsrMatrix"
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"before");
    write_file(&file, &real::<f64>()).unwrap();
    assert_eq!(read_file::<f64, u32>(&file).unwrap(), real());
    let twice = CsrMatrix::new(1, 1, vec![0u32, 2], vec![0, 0], vec![1.0, 2.0]).unwrap();
    let error = write(Vec::new(), &DiaMatrix::from_csr(&twice).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("diagonal 0 is stored more than once"), "{error}");
}

#[test]
fn progress_is_told() {
    let seen = std::sync::Mutex::new(Vec::new());
    let tell =
        |progress: spmv_matrix::scipy::Progress| seen.lock().unwrap().push((progress.done, progress.total));
    let file = std::fs::read(path("csr")).unwrap();
    read_bytes_with::<f64, u32>(&file, &ReadOptions::new().progress(&tell)).unwrap();
    assert_eq!(seen.into_inner().unwrap(), [(20, Some(92)), (44, Some(92)), (92, Some(92))]);
}
