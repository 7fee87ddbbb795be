//! Matrix Market files that are right, in every way they can be written.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use spmv_matrix::matrix_market::{
    Field, Format, Header, Problem, Progress, ReadError, ReadOptions, Symmetry, read_bytes, read_bytes_with,
    read_file, read_file_with, read_symmetric_bytes, read_symmetric_file, write, write_file,
};
use spmv_matrix::{Complex32, Complex64, CsrMatrix, Entry, SymmetricCsr, bf16, f16, generate::Generator};

fn read<V: Entry>(text: &str) -> CsrMatrix<V> {
    read_bytes(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// All entries row by row: row, column, value.
fn entries<V: Entry>(matrix: &CsrMatrix<V>) -> Vec<(usize, u32, V)> {
    (0..matrix.num_rows())
        .flat_map(|row| {
            let (cols, values) = matrix.row(row);
            cols.iter().zip(values).map(move |(&col, &value)| (row, col, value)).collect::<Vec<_>>()
        })
        .collect()
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

const FORMATS: [Format; 2] = [Format::Coordinate, Format::Array];
const FIELDS: [Field; 4] = [Field::Real, Field::Integer, Field::Complex, Field::Pattern];
const SYMMETRIES: [Symmetry; 4] =
    [Symmetry::General, Symmetry::Symmetric, Symmetry::SkewSymmetric, Symmetry::Hermitian];

/// What a 3 × 3 file stores: rows and columns from 1, both parts of the value.
fn stored(format: Format, field: Field, symmetry: Symmetry) -> Vec<(usize, usize, f64, f64)> {
    let all = (1..=3).flat_map(|col| (1..=3).map(move |row| (row, col)));
    all.filter(|&(row, col)| match symmetry {
        Symmetry::General => true,
        Symmetry::SkewSymmetric => row > col,
        _ => row >= col,
    })
    .filter(|&(row, col)| format == Format::Array || (row, col) != (2, 1))
    .map(|(row, col)| {
        let number = (10 * row + col) as f64;
        match field {
            Field::Pattern => (row, col, 1.0, 0.0),
            Field::Integer => (row, col, -number, 0.0),
            Field::Real => (row, col, number / 8.0, 0.0),
            Field::Complex => (row, col, number, if row == col { 0.0 } else { -number / 4.0 }),
        }
    })
    .collect()
}

fn file(format: Format, field: Field, symmetry: Symmetry) -> String {
    let stored = stored(format, field, symmetry);
    let mut text = format!("%%MatrixMarket matrix {format} {field} {symmetry}\n");
    match format {
        Format::Coordinate => text += &format!("3 3 {}\n", stored.len()),
        Format::Array => text += "3 3\n",
    }
    for (row, col, re, im) in stored {
        if format == Format::Coordinate {
            text += &format!("{row} {col}");
        }
        match field {
            Field::Pattern => {}
            Field::Complex => text += &format!(" {re} {im}"),
            _ => text += &format!(" {re}"),
        }
        text += "\n";
    }
    text
}

fn expected(format: Format, field: Field, symmetry: Symmetry) -> Vec<(usize, u32, Complex64)> {
    let mut all = Vec::new();
    for (row, col, re, im) in stored(format, field, symmetry) {
        let value = Complex64::new(re, im);
        all.push((row - 1, col as u32 - 1, value));
        if row != col && symmetry != Symmetry::General {
            let mirrored = match symmetry {
                Symmetry::SkewSymmetric => -value,
                Symmetry::Hermitian => value.conj(),
                _ => value,
            };
            all.push((col - 1, row as u32 - 1, mirrored));
        }
    }
    if format == Format::Array && symmetry == Symmetry::SkewSymmetric {
        all.extend((0..3).map(|place| (place, place as u32, Complex64::ZERO)));
    }
    all.sort_by_key(|&(row, col, _)| (row, col));
    all
}

#[test]
fn every_field_symmetry_and_format() {
    let mut read_ones = 0;
    for format in FORMATS {
        for field in FIELDS {
            for symmetry in SYMMETRIES {
                let text = file(format, field, symmetry);
                let allowed = match (format, field, symmetry) {
                    (Format::Array, Field::Pattern, _) => false,
                    (_, Field::Pattern, symmetry) => {
                        matches!(symmetry, Symmetry::General | Symmetry::Symmetric)
                    }
                    (_, Field::Real | Field::Integer, symmetry) => symmetry != Symmetry::Hermitian,
                    _ => true,
                };
                if !allowed {
                    let error = read_bytes::<Complex64, u32>(text.as_bytes()).unwrap_err().to_string();
                    let start =
                        format!("line 1, column 23: `{format}`: {format} {field} {symmetry} does not exist");
                    assert!(error.starts_with(&start), "{error}");
                    continue;
                }
                read_ones += 1;
                let expected = expected(format, field, symmetry);
                // In any letter case, with either line ending, with and without a last newline, compressed.
                let upper = text.replace("%%MatrixMarket", "%%MATRIXMARKET").to_uppercase();
                let texts = [
                    text.clone(),
                    upper,
                    text.replace('\n', "\r\n"),
                    text.trim_end().to_owned(),
                    text.replace('\n', "\n\n \t\n% comment 1 2 3\n"),
                    text.replace(' ', " \t "),
                    text.replace('\n', "  \n"),
                    format!("\u{feff}{text}"),
                ];
                for text in texts {
                    assert_eq!(entries(&read::<Complex64>(&text)), expected, "{text}");
                    let packed = read_bytes::<Complex64, u32>(&gzip(text.as_bytes())).unwrap();
                    assert_eq!(entries(&packed), expected, "{text}");
                    let single: Vec<_> = entries(&read::<Complex32>(&text))
                        .into_iter()
                        .map(|(r, c, v)| (r, c, widen(v)))
                        .collect();
                    assert_eq!(single, expected, "{text}");
                    if field != Field::Complex {
                        let real =
                            |(row, col, value): (usize, u32, f64)| (row, col, Complex64::new(value, 0.0));
                        let found: Vec<_> = entries(&read::<f64>(&text)).into_iter().map(real).collect();
                        assert_eq!(found, expected, "{text}");
                    }
                }
            }
        }
    }
    assert_eq!(read_ones, 22);
}

fn widen(value: Complex32) -> Complex64 {
    Complex64::new(value.re.into(), value.im.into())
}

#[test]
fn a_header_can_be_read_alone() {
    // What SciPy writes of unsigned numbers.
    let unsigned = b"%%MatrixMarket matrix coordinate unsigned-integer general\n1 1 0\n";
    assert_eq!(Header::read_bytes(unsigned).unwrap().field, Field::Integer);
    let header =
        Header::read_bytes(b"%%MatrixMarket matrix array double skew-symmetric\n% c\n\n5 5\ngarbage")
            .unwrap();
    assert_eq!(
        (header.format, header.field, header.symmetry),
        (Format::Array, Field::Real, Symmetry::SkewSymmetric)
    );
    assert_eq!((header.num_rows, header.num_cols, header.num_stored), (5, 5, 10));
}

#[test]
fn long_comments_and_long_lines() {
    let comment = format!("%{}\n", "c".repeat(3_000_000));
    let text = format!("%%MatrixMarket matrix coordinate real general\n{comment}{comment}2 2 1\n1 1 3\n");
    assert_eq!(entries(&read::<f64>(&text)), [(0, 0, 3.0)]);
    assert_eq!(entries(&read_bytes::<f64, u32>(&gzip(text.as_bytes())).unwrap()), [(0, 0, 3.0)]);
    let blanks = " ".repeat(900_000);
    let text = format!("%%MatrixMarket matrix coordinate real general\n2 2 2\n{blanks}1 1 3\n1{blanks}2 4\n");
    assert_eq!(entries(&read::<f64>(&text)), [(0, 0, 3.0), (0, 1, 4.0)]);
    let zeros = "0".repeat(900_000);
    let text = format!("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 0.1{zeros}\n");
    assert_eq!(entries(&read::<f64>(&text)), [(0, 0, 0.1)]);
}

#[test]
fn numbers_in_every_notation() {
    let text = |field: &str, number: &str| {
        format!("%%MatrixMarket matrix coordinate {field} general\n1 1 1\n1 1 {number}\n")
    };
    let real = [
        ("1", 1.0),
        ("+1.5", 1.5),
        ("-.25", -0.25),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1E+03", 1000.0),
        ("1.5D-01", 0.15),
        ("1d2", 100.0),
        ("0.1", 0.1),
        ("123456789012345678901234567890", 123_456_789_012_345_678_901_234_567_890.0),
        ("9007199254740993", 9_007_199_254_740_992.0),
        ("9007199254740993.0000000000000000000000001", 9_007_199_254_740_994.0),
        ("2.2250738585072011e-308", 2.225_073_858_507_201e-308),
        ("4.9e-324", 4.9e-324),
        ("1e-400", 0.0),
        ("-0", -0.0),
        ("1.7976931348623157e308", f64::MAX),
        ("inf", f64::INFINITY),
        ("-Infinity", f64::NEG_INFINITY),
    ];
    for (number, value) in real {
        let found: CsrMatrix<f64> = read(&text("real", number));
        assert_eq!(found.values()[0].to_bits(), value.to_bits(), "{number}");
    }
    assert!(read::<f64>(&text("real", "NaN")).values()[0].is_nan());
    // Rounded once: by way of f64 this one would come out a unit higher.
    assert_eq!(read::<f32>(&text("real", "1.00000005960464477540")).values()[0].to_bits(), 0x3f80_0001);
    assert_eq!(read::<f32>(&text("real", "1.00000017881393432617187499")).values()[0].to_bits(), 0x3f80_0001);
    // In f64 these are in the middle between two halves.
    for (number, value) in
        [("257", 256.0), ("259.0", 260.0), ("-129.5", -130.0), ("257.00000000000000000001", 258.0)]
    {
        assert_eq!(read::<bf16>(&text("real", number)).values()[0].to_f64(), value);
    }
    assert_eq!(
        read::<f16>(&text("real", "1.00048828125000000000000000001")).values()[0].to_f64(),
        1.0009765625
    );
    assert_eq!(read::<f16>(&text("real", "1.00048828125")).values()[0].to_f64(), 1.0);
    assert_eq!(
        read::<f16>(&text("real", "10.0146484374999999999999999D-1")).values()[0].to_f64(),
        1.0009765625
    );
    assert_eq!(
        read::<bf16>(&text("real", "1.00390625000000000000000000001")).values()[0].to_f64(),
        1.0078125
    );
    for (number, value) in
        [("-7", -7.0), ("+42", 42.0), ("007", 7.0), ("18446744073709551617", 18_446_744_073_709_551_616.0)]
    {
        assert_eq!(read::<f64>(&text("integer", number)).values()[0], value);
    }
    assert_eq!(read::<f32>(&text("integer", "9007199791611905")).values()[0].to_bits(), 0x5a00_0001);
}

#[test]
fn duplicates_zeros_and_order_are_kept() {
    let text =
        "%%MatrixMarket matrix coordinate real general\n3 3 6\n3 2 1\n1 3 2\n3 2 3\n3 1 0\n1 3 -2\n3 2 5\n";
    let found = entries(&read::<f64>(text));
    assert_eq!(found, [(0, 2, 2.0), (0, 2, -2.0), (2, 0, 0.0), (2, 1, 1.0), (2, 1, 3.0), (2, 1, 5.0)]);
}

#[test]
fn matrices_without_entries() {
    for (rows, cols) in [(0, 0), (0, 3), (3, 0), (3, 4)] {
        let text = format!("%%MatrixMarket matrix coordinate pattern general\n{rows} {cols} 0\n");
        let matrix = read::<f32>(&text);
        assert_eq!((matrix.num_rows(), matrix.num_cols(), matrix.nnz()), (rows, cols, 0));
    }
    for (rows, cols) in [(0, 0), (0, 3), (3, 0)] {
        let matrix = read::<f32>(&format!("%%MatrixMarket matrix array real general\n{rows} {cols}\n"));
        assert_eq!((matrix.num_rows(), matrix.num_cols(), matrix.nnz()), (rows, cols, 0));
    }
}

#[test]
fn a_large_array_is_placed_column_by_column() {
    for (rows, cols) in [(300, 251), (70_001, 1), (1, 70_001)] {
        let mut text = format!("%%MatrixMarket matrix array integer general\n{rows} {cols}\n");
        (0..rows * cols).for_each(|number| text += &format!("{number}\n"));
        let expected =
            (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col as u32, (row + col * rows) as f64)));
        assert!(entries(&read::<f64>(&text)).into_iter().eq(expected), "{rows} x {cols}");
    }
}

#[test]
fn a_large_file_is_the_same_with_any_number_of_threads() {
    let matrix = Generator::new("rmat").unwrap().set("scale", 15.0).unwrap().set("per_row", 4.0).unwrap();
    let matrix = matrix.generate::<f64, u32>().unwrap();
    let mut text = Vec::new();
    write(&mut text, &matrix).unwrap();
    assert!(text.len() > 8 * (256 << 10), "several pieces");
    for threads in [1, 2, 3, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert!(pool.install(|| read_bytes::<f64, u32>(&text)).unwrap() == matrix, "{threads} threads");
    }
    assert!(read_bytes::<f64, u32>(&gzip(&text)).unwrap() == matrix);
    let wide = read_bytes::<Complex64, u32>(&text).unwrap();
    assert!(wide.map_values(|value| value.re) == matrix);
    // In the order of columns, as many collections have it.
    let transpose = matrix.transpose().unwrap();
    let lines: String = (0..transpose.num_rows())
        .flat_map(|col| {
            let (rows, values) = transpose.row(col);
            rows.iter()
                .zip(values)
                .map(move |(row, value)| format!("{} {} {value:e}\n", row + 1, col + 1))
                .collect::<Vec<_>>()
        })
        .collect();
    let head = format!(
        "%%MatrixMarket matrix coordinate real general\n{0} {0} {1}\n",
        matrix.num_rows(),
        matrix.nnz()
    );
    assert!(read_bytes::<f64, u32>((head + &lines).as_bytes()).unwrap() == matrix);
}

#[test]
fn progress_reaches_the_end() {
    let matrix =
        Generator::new("tridiagonal").unwrap().set("n", 40_000.0).unwrap().generate::<f64, u32>().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.mtx", "a.mtx.gz"] {
        let path = folder.path().join(name);
        write_file(&path, &matrix).unwrap();
        let seen = std::sync::Mutex::new(Vec::new());
        let record = |progress: Progress| seen.lock().unwrap().push(progress);
        let read = read_file_with::<f64, u32>(&path, &ReadOptions::new().progress(&record)).unwrap();
        assert!(read == matrix);
        let seen = seen.into_inner().unwrap();
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(seen.len() > 2, "{name}");
        assert!(seen.is_sorted_by_key(|progress| progress.done));
        assert_eq!(seen.last().unwrap(), &Progress { done: size, total: Some(size) }, "{name}");
    }
}

#[test]
fn a_limit_refuses_before_anything_is_allocated() {
    let text = b"%%MatrixMarket matrix coordinate real symmetric\n4 4 2\n1 1 1\n2 1 1\n";
    let limited = |bytes| read_bytes_with::<f64, u32>(text, &ReadOptions::new().max_bytes(bytes));
    // 5 offsets, 3 columns, 3 values after mirroring.
    assert!(limited(5 * 4 + 3 * 12).is_ok());
    assert!(matches!(limited(55), Err(ReadError::TooLarge { bytes: 56, max_bytes: 55 })));
    let huge = b"%%MatrixMarket matrix coordinate real general\n2147483647 2147483647 0\n";
    let error = read_bytes_with::<f64, u64>(huge, &ReadOptions::new().max_bytes(1 << 30)).unwrap_err();
    assert_eq!(error.to_string(), "the matrix takes 17179869184 bytes: at most 1073741824 are allowed");
}

#[test]
fn what_is_written_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let values = vec![0.1, -0.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY, 5e-324, 1e22, 123456.0];
    let matrix =
        CsrMatrix::<f64, u64>::new(3, 5, vec![0, 4, 4, 8], vec![0, 1, 2, 4, 0, 0, 3, 4], values).unwrap();
    for name in ["plain.mtx", "packed.mtx.gz", "UPPER.MTX.GZ"] {
        let path = folder.path().join(name);
        write_file(&path, &matrix).unwrap();
        let back = read_file::<f64, u64>(&path).unwrap();
        assert_eq!(back, matrix);
        assert!(back.values()[1].is_sign_negative(), "-0.0 keeps its sign");
        let packed = std::fs::read(&path).unwrap().starts_with(&[0x1f, 0x8b]);
        assert_eq!(packed, name != "plain.mtx");
    }
    let complex = matrix.map_values(|value| Complex64::new(value, 1.0 / 3.0));
    let path = folder.path().join("complex.mtx");
    write_file(&path, &complex).unwrap();
    assert!(read_file::<Complex64, u64>(&path).unwrap() == complex);
    let text = std::fs::read_to_string(folder.path().join("plain.mtx")).unwrap();
    assert!(
        text.starts_with("%%MatrixMarket matrix coordinate real general\n3 5 8\n1 1 0.1\n1 2 -0.0\n"),
        "{text}"
    );
}

#[test]
fn writing_is_all_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let matrix = CsrMatrix::<f64>::new(1, 1, vec![0, 1], vec![0], vec![2.0]).unwrap();
    let path = folder.path().join("a.mtx");
    std::fs::write(&path, "old").unwrap();
    write_file(&path, &matrix).unwrap();
    assert!(read_file::<f64, u32>(&path).unwrap() == matrix);
    let names = || std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(names(), 1, "no temporary file is left");
    let missing = folder.path().join("no/such/folder/a.mtx");
    let error = write_file(&missing, &matrix).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: could not be written: ", missing.display())), "{error}");
    assert!(write_file(folder.path(), &matrix).is_err(), "a folder is not replaced");
    assert_eq!(names(), 1);
}

#[cfg(unix)]
#[test]
fn links_devices_and_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let matrix = CsrMatrix::<f64>::new(1, 1, vec![0, 1], vec![0], vec![2.0]).unwrap();
    let (target, link) = (folder.path().join("target.mtx"), folder.path().join("link.mtx"));
    std::fs::write(&target, "old").unwrap();
    std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    write_file(&link, &matrix).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(read_file::<f64, u32>(&target).unwrap() == matrix);
    assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    write_file("/dev/null", &matrix).unwrap();
    if std::path::Path::new("/dev/full").exists() {
        let error = write_file("/dev/full", &matrix).unwrap_err().to_string();
        assert!(error.starts_with("/dev/full: could not be written: "), "a full disk is said: {error}");
    }
    if std::path::Path::new("/dev/fd").exists() {
        use std::io::Read;
        use std::os::fd::AsRawFd;
        let (mut reader, writer) = std::io::pipe().unwrap();
        write_file(format!("/dev/fd/{}", writer.as_raw_fd()), &matrix).unwrap();
        drop(writer);
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        assert!(read_bytes::<f64, u32>(&text).unwrap() == matrix);
    }
}

#[test]
fn a_pipe_can_be_read() {
    #[cfg(target_os = "linux")]
    {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        if !made.is_ok_and(|status| status.success()) {
            return;
        }
        let text = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 x\n";
        std::thread::scope(|scope| {
            scope.spawn(|| std::fs::write(&path, text).unwrap());
            let error = read_file::<f64, u32>(&path).unwrap_err().to_string();
            assert!(error.starts_with("line 3, column 5: `x`"), "{error}");
        });
    }
}

/// One triangle is what both triangles hold, whichever the file has, and whatever the format.
#[test]
fn one_triangle_is_read_as_it_is() {
    let head = "%%MatrixMarket matrix";
    let texts = [
        (format!("{head} coordinate real symmetric\n3 3 4\n1 1 2\n2 1 3\n2 3 5\n3 2 7\n"), [4, 7]),
        (format!("{head} coordinate pattern symmetric\n3 3 2\n3 1\n3 3\n"), [2, 3]),
        (format!("{head} coordinate integer skew-symmetric\n3 3 2\n3 1 4\n1 2 5\n"), [2, 4]),
        (format!("{head} array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n"), [6, 9]),
        (format!("{head} array real skew-symmetric\n3 3\n1\n2\n3\n"), [6, 9]),
    ];
    for (text, [nnz, full_nnz]) in texts {
        let a = read_symmetric_bytes::<f64, u32>(text.as_bytes(), &ReadOptions::new()).unwrap();
        let full = read_bytes::<f64, u32>(text.as_bytes()).unwrap();
        assert_eq!(a.to_csr().unwrap(), full, "{text}");
        assert_eq!([a.nnz(), a.full_nnz()], [nnz, full_nnz]);
        SymmetricCsr::new(a.symmetry(), a.lower().clone()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mtx");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(read_symmetric_file::<f64, u32>(&path, &ReadOptions::new()).unwrap(), a);
    }
    let wide = format!("{head} coordinate real skew-symmetric\n2 2 1\n1 2 3\n");
    let a = read_symmetric_bytes::<Complex64, u32>(wide.as_bytes(), &ReadOptions::new()).unwrap();
    assert_eq!(a.lower().values(), [Complex64::new(-3.0, 0.0)]);
}

#[test]
fn what_is_not_symmetric_has_no_triangle() {
    let general = b"%%MatrixMarket matrix coordinate real general\n1 1 0\n";
    let error = read_symmetric_bytes::<f64, u32>(general, &ReadOptions::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file says general; read as one triangle are symmetric, skew-symmetric and hermitian"
    );
    let skew = b"%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 1\n1 1 2\n";
    let error = read_symmetric_bytes::<f64, u32>(skew, &ReadOptions::new()).unwrap_err();
    assert_eq!(error.fault().unwrap().problem, Problem::SkewDiagonal);
}

/// Every whole number of its type is read and written as it is; others are refused.
#[test]
fn whole_numbers_stay_what_they_are() {
    fn check<V: Entry>(numbers: &str, expected: &[V], beyond: &[&str]) {
        let lines: Vec<String> =
            numbers.split(' ').enumerate().map(|(row, number)| format!("{} 1 {number}\n", row + 1)).collect();
        let head = "%%MatrixMarket matrix coordinate integer general\n";
        let text = format!("{head}{0} 1 {0}\n{1}", lines.len(), lines.concat());
        let a = read_bytes::<V, u32>(text.as_bytes()).unwrap();
        assert_eq!(a.values(), expected);
        let mut written = Vec::new();
        write(&mut written, &a).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), text);
        for number in beyond {
            let text = format!("{head}1 1 1\n1 1 {number}\n");
            let error = read_bytes::<V, u32>(text.as_bytes()).unwrap_err().to_string();
            assert!(error.ends_with(&format!("outside the range of {}", V::NAME)), "{error}");
        }
        let pattern = "%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n";
        let a = read_bytes::<V, u32>(pattern.as_bytes()).unwrap();
        assert_eq!(a.values()[0].times(expected[1]), expected[1]);
        let real = text.replace("integer", "real");
        let error = read_bytes::<V, u32>(real.as_bytes()).unwrap_err().to_string();
        let wanted = format!("`real`: real entries may have fractions, which {} has not", V::NAME);
        assert!(error.contains(&wanted), "{error}");
    }
    check("-128 127 0", &[-128i8, 127, 0], &["128", "-129", "99999999999999999999"]);
    check("-2147483648 2147483647", &[i32::MIN, i32::MAX], &["2147483648"]);
    check("-9223372036854775808 9223372036854775807", &[i64::MIN, i64::MAX], &["9223372036854775808"]);
    check("0 4294967295", &[0, u32::MAX], &["-1", "4294967296"]);
    check("0 1", &[false, true], &["2", "-1"]);
}

#[test]
fn whole_numbers_are_refused_where_half_precision_has_none() {
    let read = |number: &str| {
        let text = format!("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 {number}\n");
        read_bytes::<spmv_matrix::f16, u32>(text.as_bytes())
    };
    assert_eq!(read("65504").unwrap().values(), [spmv_matrix::f16::from_f32(65504.0)]);
    for number in ["70000", "-70000", "700000000000000000"] {
        let error = read(number).unwrap_err().to_string();
        assert!(error.contains(number) && error.contains("f16"), "{error}");
    }
}

#[test]
fn unsigned_entries_have_no_negative_mirror_images() {
    let text = "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 3\n";
    let a = read_bytes::<i8, u32>(text.as_bytes()).unwrap();
    assert_eq!(a.values(), [-3, 3]);
    let error = read_bytes::<u32, u32>(text.as_bytes()).unwrap_err().to_string();
    assert!(
        error.contains("`skew-symmetric`: mirror images are negatives, and that of an entry is no u32"),
        "{error}"
    );
    let least = text.replace("1 3", "1 -128");
    let error = read_bytes::<i8, u32>(least.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("that of an entry is no i8"), "{error}");
    assert_eq!(read_bytes::<i32, u32>(least.as_bytes()).unwrap().values(), [128, -128]);
    let lower = |value| CsrMatrix::<i8>::new(2, 2, vec![0, 0, 1], vec![0], vec![value]).unwrap();
    assert!(SymmetricCsr::new(spmv_matrix::Symmetry::SkewSymmetric, lower(-127)).is_ok());
    let error = SymmetricCsr::new(spmv_matrix::Symmetry::SkewSymmetric, lower(-128)).unwrap_err().to_string();
    assert_eq!(error, "-128 at row 1, column 0: the negative, its mirror image, is no i8");
    let error = SymmetricCsr::from_lower_of(spmv_matrix::Symmetry::SkewSymmetric, &lower(-128)).unwrap_err();
    assert_eq!(error.to_string(), "-128 at row 1, column 0: the negative, its mirror image, is no i8");
    // Of truth values either mirrors itself.
    let both = CsrMatrix::<bool>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![true, true]).unwrap();
    assert!(SymmetricCsr::from_csr(spmv_matrix::Symmetry::Symmetric, &both).is_ok());
    let error = SymmetricCsr::from_csr(spmv_matrix::Symmetry::SkewSymmetric, &both).unwrap_err().to_string();
    assert_eq!(error, "true at row 1, column 0: the negative, its mirror image, is no bool");
}

#[test]
fn hermitian_entries_have_conjugate_mirror_images() {
    let text = "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 2 0\n2 1 3 -4\n";
    let a = read_bytes::<Complex32, u32>(text.as_bytes()).unwrap();
    let parts: Vec<_> = a.values().iter().map(|value| (value.re, value.im)).collect();
    assert_eq!(parts, [(2.0, 0.0), (3.0, 4.0), (3.0, -4.0)]);
    // One triangle, in either format, whichever triangle the file has.
    let above = text.replace("2 1 3 -4", "1 2 3 4");
    let array = "%%MatrixMarket matrix array complex hermitian\n2 2\n2 0\n3 -4\n5 0\n";
    for text in [text, &above, array] {
        let a = read_symmetric_bytes::<Complex64, u32>(text.as_bytes(), &ReadOptions::new()).unwrap();
        assert_eq!(a.symmetry(), spmv_matrix::Symmetry::Hermitian);
        assert_eq!(a.lower().row(1).1[0], Complex64::new(3.0, -4.0));
        assert_eq!(a.to_csr().unwrap(), read_bytes::<Complex64, u32>(text.as_bytes()).unwrap());
    }
    let turned = text.replace("1 1 2 0", "1 1 2 0.5");
    let turned_array = array.replace("5 0", "5 -1");
    for (text, place) in [(&turned, "line 3, column 7: `0.5`"), (&turned_array, "line 5, column 3: `-1`")] {
        let narrow = read_bytes::<Complex32, u32>(text.as_bytes()).unwrap_err();
        let wide = read_bytes::<Complex64, u32>(text.as_bytes()).unwrap_err();
        let of_one =
            read_symmetric_bytes::<Complex64, u32>(text.as_bytes(), &ReadOptions::new()).unwrap_err();
        for error in [narrow, wide, of_one] {
            assert_eq!(error.fault().unwrap().problem, Problem::HermitianDiagonal);
            assert!(error.to_string().starts_with(place), "{error}");
        }
    }
    // Only the diagonal is looked at.
    for text in [text.replace("2 1 3 -4", "2 1 3 0.5"), array.replace("3 -4", "3 7")] {
        read_bytes::<Complex64, u32>(text.as_bytes()).unwrap();
    }
}
