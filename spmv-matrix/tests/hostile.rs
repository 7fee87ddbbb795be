//! Files that are wrong, and what is said of each: line, column, text, what is allowed.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use spmv_matrix::matrix_market::{Header, ReadError, read_bytes, read_file, write};
use spmv_matrix::{Complex64, CsrMatrix};

const REAL: &str = "%%MatrixMarket matrix coordinate real general\n";
const INTEGER: &str = "%%MatrixMarket matrix coordinate integer general\n";
const COMPLEX: &str = "%%MatrixMarket matrix coordinate complex general\n";
const PATTERN: &str = "%%MatrixMarket matrix coordinate pattern general\n";
const SYMMETRIC: &str = "%%MatrixMarket matrix coordinate real symmetric\n";
const SKEW: &str = "%%MatrixMarket matrix coordinate real skew-symmetric\n";
const ARRAY: &str = "%%MatrixMarket matrix array real general\n";

/// The first line, the rest, and the error.
const CASES: &[(&str, &str, &str)] = &[
    // The first line.
    ("", "", "line 1, column 1: the file is empty; a Matrix Market file starts with %%MatrixMarket"),
    ("", "\n\n", "line 1, column 1: not a Matrix Market file; it would start with %%MatrixMarket"),
    (
        "",
        "1 1 1\n1 1 1\n",
        "line 1, column 1: `1`: not a Matrix Market file; it would start with %%MatrixMarket",
    ),
    (
        "",
        "%MatrixMarket matrix coordinate real general\n",
        "line 1, column 1: `%MatrixMarket`: not a Matrix Market file; it would start with %%MatrixMarket",
    ),
    (
        "",
        " %%MatrixMarket matrix coordinate real general\n",
        "line 1, column 2: `%%MatrixMarket`: not a Matrix Market file; it would start with %%MatrixMarket",
    ),
    (
        "",
        "%%MatrixMarket matrix coordinate real\n",
        "line 1, column 38: the first line must have five words: %%MatrixMarket matrix FORMAT FIELD SYMMETRY",
    ),
    (
        "",
        "%%MatrixMarket matrix coordinate real general 7\n",
        "line 1, column 47: `7`: the first line must have five words: %%MatrixMarket matrix FORMAT FIELD SYMMETRY",
    ),
    (
        "",
        "%%MatrixMarket vector coordinate real general\n",
        "line 1, column 16: `vector`: not an object that is read; allowed is matrix",
    ),
    (
        "",
        "%%MatrixMarket matrix sparse real general\n",
        "line 1, column 23: `sparse`: not a format; allowed are coordinate, array",
    ),
    (
        "",
        "%%MatrixMarket matrix coordinate float general\n",
        "line 1, column 34: `float`: not a field; allowed are real, double, integer, unsigned-integer, complex, pattern",
    ),
    (
        "",
        "%%MatrixMarket matrix coordinate real lower\n",
        "line 1, column 39: `lower`: not a symmetry; allowed are general, symmetric, skew-symmetric, hermitian",
    ),
    (
        "",
        "%%MatrixMarket matrix array pattern general\n2 2\n",
        "line 1, column 23: `array`: array pattern general does not exist; a pattern is coordinate and general or symmetric, hermitian matrices are complex",
    ),
    (
        "",
        "\u{fd}7zXZ\0garbage",
        "line 1, column 1: `\u{fd}7zXZ\\0garbage`: not a Matrix Market file; it would start with %%MatrixMarket",
    ),
    (
        "",
        "BZh91AY&SY",
        "line 1, column 1: `BZh91AY&SY`: the file is packed as bzip2; unpack it first (only gzip is read as it is)",
    ),
    (
        "",
        "PK\u{3}\u{4}x",
        "line 1, column 1: `PK\\u{3}\\u{4}x`: the file is packed as zip; unpack it first (only gzip is read as it is)",
    ),
    (
        "",
        "\0\0\0\0\0\0\0\0",
        "line 1, column 1: `\\0\\0\\0\\0\\0\\0\\0\\0`: not a Matrix Market file; it would start with %%MatrixMarket",
    ),
    // The line of sizes.
    (REAL, "", "line 2, column 1: the line of sizes is missing: ROWS COLUMNS ENTRIES"),
    (REAL, "% only\n% comments\n", "line 4, column 1: the line of sizes is missing: ROWS COLUMNS ENTRIES"),
    (ARRAY, "", "line 2, column 1: the line of sizes is missing: ROWS COLUMNS"),
    (REAL, "2 2\n1 1 1\n", "line 2, column 4: the line of sizes must be: ROWS COLUMNS ENTRIES"),
    (REAL, "2 2 1 1\n", "line 2, column 7: `1`: the line of sizes must be: ROWS COLUMNS ENTRIES"),
    (ARRAY, "2 2 4\n", "line 2, column 5: `4`: the line of sizes must be: ROWS COLUMNS"),
    (REAL, "-2 2 1\n", "line 2, column 1: `-2`: not a size; allowed are whole numbers from 0 to 2147483647"),
    (
        REAL,
        "2 2.0 1\n",
        "line 2, column 3: `2.0`: not a size; allowed are whole numbers from 0 to 2147483647",
    ),
    (REAL, "2 x 1\n", "line 2, column 3: `x`: not a size; allowed are whole numbers from 0 to 2147483647"),
    (
        REAL,
        "2147483648 1 1\n",
        "line 2, column 1: `2147483648`: not a size; allowed are whole numbers from 0 to 2147483647",
    ),
    (
        REAL,
        "1 9223372036854775808 1\n",
        "line 2, column 3: `9223372036854775808`: not a size; allowed are whole numbers from 0 to 2147483647",
    ),
    (
        REAL,
        "1 1 9223372036854775808\n",
        "line 2, column 5: `9223372036854775808`: not a size; allowed are whole numbers from 0 to 9223372036854775807",
    ),
    (
        REAL,
        "1 1 99999999999999999999999999\n",
        "line 2, column 5: `99999999999999999999999999`: not a size; allowed are whole numbers from 0 to 9223372036854775807",
    ),
    (
        REAL,
        "nan nan nan\n",
        "line 2, column 1: `nan`: not a size; allowed are whole numbers from 0 to 2147483647",
    ),
    (SYMMETRIC, "2 3 1\n1 1 1\n", "line 2, column 3: `3`: a symmetric matrix must be square, not 2 × 3"),
    // Counts that lie.
    (
        REAL,
        "2 2 3\n1 1 1\n2 2 2\n",
        "line 5, column 1: the text ends after 2 entries; the line of sizes promises 3",
    ),
    (
        REAL,
        "2 2 9223372036854775807\n1 1 1\n",
        "line 4, column 1: the text ends after 1 entries; the line of sizes promises 9223372036854775807",
    ),
    (
        PATTERN,
        "2000000000 2000000000 1250000000\n",
        "line 3, column 1: the text ends after 0 entries; the line of sizes promises 1250000000",
    ),
    (
        ARRAY,
        "2147483647 2147483647\n1\n",
        "line 4, column 1: the text ends after 1 entries; the line of sizes promises 4611686014132420609",
    ),
    (
        ARRAY,
        "2 2\n1\n2\n3\n",
        "line 6, column 1: the text ends after 3 entries; the line of sizes promises 4",
    ),
    (
        REAL,
        "2 2 1\n1 1 1\n\n  2 2 2\n",
        "line 5, column 3: `2`: more entries than the 1 that the line of sizes promises",
    ),
    (
        REAL,
        "2 2 0\n% c\n1 1 1\n",
        "line 4, column 1: `1`: more entries than the 0 that the line of sizes promises",
    ),
    (ARRAY, "1 1\n1\n2\n", "line 4, column 1: `2`: more entries than the 1 that the line of sizes promises"),
    (
        REAL,
        "2 2 1\n1 1 1\n\0",
        "line 4, column 1: `\\0`: more entries than the 1 that the line of sizes promises",
    ),
    // Indices.
    (
        REAL,
        "2 2 1\n0 1 1\n",
        "line 3, column 1: `0`: not a row of the matrix; allowed are whole numbers from 1 to 2",
    ),
    (
        REAL,
        "2 2 1\n3 1 1\n",
        "line 3, column 1: `3`: not a row of the matrix; allowed are whole numbers from 1 to 2",
    ),
    (
        REAL,
        "2 3 1\n1 4 1\n",
        "line 3, column 3: `4`: not a column of the matrix; allowed are whole numbers from 1 to 3",
    ),
    (
        REAL,
        "2 2 1\n-1 1 1\n",
        "line 3, column 1: `-1`: not a row of the matrix; allowed are whole numbers from 1 to 2",
    ),
    (
        REAL,
        "2 2 1\nnan 1 1\n",
        "line 3, column 1: `nan`: not a row of the matrix; allowed are whole numbers from 1 to 2",
    ),
    (
        REAL,
        "2 2 1\n1 inf 1\n",
        "line 3, column 3: `inf`: not a column of the matrix; allowed are whole numbers from 1 to 2",
    ),
    (
        REAL,
        "2 2 1\n1.0 1 1\n",
        "line 3, column 1: `1.0`: not a row of the matrix; allowed are whole numbers from 1 to 2",
    ),
    (
        REAL,
        "2 2 1\n4294967297 1 1\n",
        "line 3, column 1: `4294967297`: not a row of the matrix; allowed are whole numbers from 1 to 2",
    ),
    (
        REAL,
        "2 2 1\n18446744073709551617 1 1\n",
        "line 3, column 1: `18446744073709551617`: not a row of the matrix; allowed are whole numbers from 1 to 2",
    ),
    (
        REAL,
        "2 2 1\n1,1,1\n",
        "line 3, column 1: `1,1,1`: not a row of the matrix; allowed are whole numbers from 1 to 2",
    ),
    (REAL, "0 3 1\n1 1 1\n", "line 3, column 1: `1`: an entry in a matrix of 0 × 3; none is allowed"),
    (REAL, "3 0 1\n1 1 1\n", "line 3, column 1: `1`: an entry in a matrix of 3 × 0; none is allowed"),
    (
        SKEW,
        "2 2 1\n2 2 1\n",
        "line 3, column 3: `2`: an entry on the diagonal; a skew-symmetric matrix stores none",
    ),
    // Values and ends of lines.
    (REAL, "2 2 1\n1\n", "line 3, column 2: the line ends here; it must be: ROW COLUMN VALUE"),
    (REAL, "2 2 1\n1 1\n", "line 3, column 4: the line ends here; it must be: ROW COLUMN VALUE"),
    (REAL, "2 2 1\n1 1 ", "line 3, column 4: the line ends here; it must be: ROW COLUMN VALUE"),
    (PATTERN, "2 2 1\n1\n", "line 3, column 2: the line ends here; it must be: ROW COLUMN"),
    (
        PATTERN,
        "2 2 1\n1 1 1\n",
        "line 3, column 5: `1`: more than belongs on the line; it must be: ROW COLUMN",
    ),
    (
        REAL,
        "2 2 1\n1 1 1 1\n",
        "line 3, column 7: `1`: more than belongs on the line; it must be: ROW COLUMN VALUE",
    ),
    (ARRAY, "2 1\n1 2\n", "line 3, column 3: `2`: more than belongs on the line; it must be: VALUE"),
    (
        REAL,
        "2 2 1\n1 1 x\n",
        "line 3, column 5: `x`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (
        REAL,
        "2 2 1\n1 1 1e\n",
        "line 3, column 5: `1e`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (
        REAL,
        "2 2 1\n1 1 0x10\n",
        "line 3, column 5: `0x10`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (
        REAL,
        "2 2 1\n1 1 1,5\n",
        "line 3, column 5: `1,5`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (
        REAL,
        "2 2 1\n1 1 1.5.2\n",
        "line 3, column 5: `1.5.2`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (
        REAL,
        "2 2 1\n1 1 --1\n",
        "line 3, column 5: `--1`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (
        REAL,
        "2 2 1\n1 1 d1\n",
        "line 3, column 5: `d1`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (REAL, "2 2 1\n1 1 1e309\n", "line 3, column 5: `1e309`: outside the range of f64"),
    (
        REAL,
        "2 2 1\n1 1 1d309\n",
        "line 3, column 5: `1d309`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (
        REAL,
        "2 2 2\n1 1 1\n2 2 \u{0}\n",
        "line 4, column 5: `\\0`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (
        REAL,
        "2 2 2\n1 1 1\r2 2 2\n",
        "line 3, column 7: `2`: more than belongs on the line; it must be: ROW COLUMN VALUE",
    ),
    (INTEGER, "2 2 1\n1 1 1.5\n", "line 3, column 5: `1.5`: not a value; allowed are whole numbers"),
    (INTEGER, "2 2 1\n1 1 1e3\n", "line 3, column 5: `1e3`: not a value; allowed are whole numbers"),
    (INTEGER, "2 2 1\n1 1 nan\n", "line 3, column 5: `nan`: not a value; allowed are whole numbers"),
    (INTEGER, "2 2 1\n1 1 -\n", "line 3, column 5: `-`: not a value; allowed are whole numbers"),
    (
        COMPLEX,
        "2 2 1\n1 1 1 1\n",
        "line 1, column 34: `complex`: complex entries do not fit in f64; read them as c32 or c64",
    ),
];

/// Files of complex entries, read as such.
const COMPLEX_CASES: &[(&str, &str, &str)] = &[
    (
        COMPLEX,
        "2 2 1\n1 1 1\n",
        "line 3, column 6: the line ends here; it must be: ROW COLUMN REAL IMAGINARY",
    ),
    (
        COMPLEX,
        "2 2 1\n1 1 1 i\n",
        "line 3, column 7: `i`: not a value; allowed are decimal numbers such as -1.5e-3",
    ),
    (
        COMPLEX,
        "2 2 1\n1 1 1 2 3\n",
        "line 3, column 9: `3`: more than belongs on the line; it must be: ROW COLUMN REAL IMAGINARY",
    ),
    (
        "%%MatrixMarket matrix array complex hermitian\n",
        "2 2\n1 0\n1 1\n2\n",
        "line 5, column 2: the line ends here; it must be: REAL IMAGINARY",
    ),
];

#[test]
fn every_case_says_what_is_wrong_and_where() {
    for (first, rest, expected) in CASES {
        let text = [first.as_bytes(), rest.as_bytes()].concat();
        let error = read_bytes::<f64, u32>(&text).map(|_| ()).expect_err(expected);
        assert_eq!(&error.to_string(), expected, "{first}{rest}");
        // The same place in a compressed file.
        assert_eq!(&read_bytes::<f64, u64>(&gzip(&text)).unwrap_err().to_string(), expected);
    }
    for (first, rest, expected) in COMPLEX_CASES {
        let text = [first.as_bytes(), rest.as_bytes()].concat();
        assert_eq!(&read_bytes::<Complex64, u32>(&text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn there_are_at_least_sixty_hostile_files() {
    println!("{} hostile files, each with its error", CASES.len() + COMPLEX_CASES.len());
    const { assert!(CASES.len() + COMPLEX_CASES.len() >= 60) };
}

#[test]
fn binary_text_is_shown_escaped_and_short() {
    let text = [REAL.as_bytes(), b"2 2 1\n1 1 \xff\xfe", &[b'z'; 100], b"\n"].concat();
    let error = read_bytes::<f64, u32>(&text).unwrap_err();
    let fault = error.fault().unwrap();
    assert_eq!((fault.line, fault.column), (3, 5));
    assert_eq!(fault.text, format!("\u{fffd}\u{fffd}{}…", "z".repeat(38)));
}

#[test]
fn packed_formats_are_named() {
    for (magic, name) in [(&b"\xfd7zXZ\0"[..], "xz"), (&b"\x28\xb5\x2f\xfd"[..], "zstd")] {
        let error = read_bytes::<f64, u32>(magic).unwrap_err().to_string();
        assert!(error.contains(&format!("the file is packed as {name}; unpack it first")), "{error}");
    }
}

#[test]
fn too_large_for_single_precision() {
    let text = format!("{REAL}1 1 1\n1 1 -1e39\n");
    let error = read_bytes::<f32, u32>(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "line 3, column 5: `-1e39`: outside the range of f32");
    assert!(read_bytes::<f64, u32>(text.as_bytes()).is_ok());
    let text = format!("{INTEGER}1 1 1\n1 1 1{}\n", "0".repeat(39));
    let error = read_bytes::<f32, u32>(text.as_bytes()).unwrap_err().to_string();
    assert!(error.ends_with("outside the range of f32"), "{error}");
}

#[test]
fn lines_without_end() {
    // A comment among the entries as well, whether or not entries are missing behind it.
    for (line, rest) in [("1 1 ", '1'), ("%", '%')] {
        for behind in ["", "\n2 2 1\n"] {
            let text = format!("{REAL}2 2 2\n1 1 1\n{line}{}{behind}", String::from(rest).repeat(2_000_000));
            let error = read_bytes::<f64, u32>(text.as_bytes()).unwrap_err().to_string();
            let shown = line.to_owned() + &String::from(rest).repeat(40 - line.len());
            assert_eq!(error, format!("line 4, column 1: `{shown}`: the line has more than 1048576 bytes"));
        }
    }
    let text = format!("{REAL}%{}\n2 2 1\n1 1 1\n", "%".repeat(2_000_000));
    assert!(read_bytes::<f64, u32>(text.as_bytes()).is_ok());
    let text = [b'a'; 2_000_000];
    let error = read_bytes::<f64, u32>(&text).unwrap_err().to_string();
    assert!(error.starts_with("line 1, column 1: `aaaa"), "{error}");
}

#[test]
fn the_first_fault_of_a_large_file_is_the_one_that_is_reported() {
    let good: String =
        (0..200_000).map(|entry| format!("{} {} 0.5\n", entry % 1000 + 1, entry / 1000 + 1)).collect();
    let head = format!("{REAL}1000 200 200000\n");
    assert!(read_bytes::<f64, u32>((head.clone() + &good).as_bytes()).is_ok());
    for line in [0, 1, 77_777, 150_000, 199_999] {
        let mut lines: Vec<&str> = good.lines().collect();
        lines[line] = "1001 1 1";
        // Another fault behind it.
        lines[199_999.max(line)] = if line == 199_999 { "1001 1 1" } else { "x" };
        let text = head.clone() + &lines.join("\n");
        let error = read_bytes::<f64, u32>(text.as_bytes()).unwrap_err();
        assert_eq!(error.fault().unwrap().line, line as u64 + 3);
    }
    let error = read_bytes::<f64, u32>((head.clone() + &good + &good).as_bytes()).unwrap_err();
    assert_eq!(error.fault().unwrap().line, 200_003);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(text).unwrap();
    packed.finish().unwrap()
}

#[test]
fn damaged_and_cut_off_gzip() {
    let text: String = (1..=20_000).map(|row| format!("{row} 1 0.{row}\n")).collect();
    let text = format!("{REAL}20000 1 20000\n{text}");
    let whole = gzip(text.as_bytes());
    assert!(read_bytes::<f64, u32>(&whole).is_ok());
    for cut in [2, 9, 11, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        let error = read_bytes::<f64, u32>(&whole[..cut]).unwrap_err();
        assert!(matches!(error, ReadError::Gzip { .. }), "cut at {cut}: {error}");
        assert!(error.to_string().starts_with("the gzip data are damaged or cut off after "), "{error}");
    }
    for bit in [2 * 8, whole.len() * 4, (whole.len() - 6) * 8] {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(read_bytes::<f64, u32>(&damaged).is_err(), "bit {bit}");
    }
    let mut trailing = whole.clone();
    trailing.extend_from_slice(b"garbage behind the end");
    assert!(read_bytes::<f64, u32>(&trailing).is_err());
}

#[test]
fn gzip_that_expands_to_nothing_useful() {
    let head = format!("{REAL}1000 1000 1000000\n1 1 1\n");
    for filler in [&b"\n"[..], b"                               \n", b"% c\n"] {
        let text = [head.as_bytes(), &filler.repeat((80 << 20) / filler.len())].concat();
        let packed = gzip(&text);
        assert!(packed.len() < text.len() / 20);
        let error = read_bytes::<f64, u32>(&packed).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "the compressed text is mostly filler; allowed are 64 MiB, and 4 KiB more for each entry"
            ),
            "{error}"
        );
    }
    // One endless comment in front of the sizes, and one endless line.
    let comment = [REAL.as_bytes(), &vec![b'%'; 80 << 20]].concat();
    let error = read_bytes::<f64, u32>(&gzip(&comment)).unwrap_err().to_string();
    assert!(error.contains("the compressed text is mostly filler"), "{error}");
    let zeros = gzip(&vec![0; 80 << 20]);
    let error = read_bytes::<f64, u32>(&zeros).unwrap_err().to_string();
    assert_eq!(
        error,
        format!("line 1, column 1: `{}`: the line has more than 1048576 bytes", "\\0".repeat(40))
    );
}

#[test]
fn files_that_cannot_be_read() {
    let error = read_file::<f64, u32>("/no/such/file.mtx").unwrap_err();
    assert!(matches!(&error, ReadError::Io { path: Some(_), .. }));
    assert!(error.to_string().starts_with("/no/such/file.mtx: could not be read: "), "{error}");
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(read_file::<f64, u32>(folder.path()), Err(ReadError::Io { .. })));
    assert!(Header::read_file(folder.path()).is_err());
}

#[test]
fn offsets_that_do_not_fit_are_refused() {
    // 100000 × 100000 values would be needed; the text ends long before.
    let error = read_bytes::<f64, u32>(format!("{ARRAY}100000 100000\n1\n").as_bytes()).unwrap_err();
    assert!(error.to_string().contains("the line of sizes promises 10000000000"), "{error}");
}

/// A right file with some bytes changed, cut out or doubled.
fn mutated() -> impl Strategy<Value = Vec<u8>> {
    let matrix =
        CsrMatrix::<f64>::new(3, 4, vec![0, 2, 2, 4], vec![0, 3, 1, 2], vec![1.5, -2e-7, 3.0, 0.25]).unwrap();
    let mut text = Vec::new();
    write(&mut text, &matrix).unwrap();
    let bytes = prop::sample::select(b"0123456789.eEdD+-% \t\r\nnaifx\x00\xff".to_vec());
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, bytes), 1..5);
    edits.prop_map(move |edits| {
        let mut text = text.clone();
        for (place, kind, byte) in edits {
            let place = place.index(text.len());
            match kind {
                0 => text[place] = byte,
                1 => text.insert(place, byte),
                _ => drop(text.remove(place)),
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Whatever is wrong, both parsers agree that it is: no other error is allowed than one with a place.
    #[test]
    fn changed_files_are_read_or_refused(text in mutated()) {
        match read_bytes::<f64, u32>(&text) {
            Ok(_) => {}
            Err(ReadError::Invalid(_)) => {}
            Err(error) => prop_assert!(false, "{error}"),
        }
        let complex = read_bytes::<Complex64, u32>(&text);
        prop_assert!(matches!(complex, Ok(_) | Err(ReadError::Invalid(_))));
    }

    #[test]
    fn noise_is_refused(text in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read_bytes::<f64, u32>(&text).is_err());
        let text = [REAL.as_bytes(), &text].concat();
        let _ = read_bytes::<f64, u32>(&text);
    }
}
