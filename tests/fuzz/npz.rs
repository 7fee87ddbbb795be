//! Random edits of SciPy's files, and reading whatever comes of them.

use std::io::{Cursor, Read, Write};

use spmv_matrix::scipy::{Header, ReadError, ReadOptions, read_bytes_with, write};
use spmv_matrix::{Complex64, CsrMatrix, Entry};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::mutation::{Outcome, Random, edit_byte, how_many};

/// Files that SciPy wrote.
pub const FIXTURES: [&[u8]; 12] = [
    include_bytes!("../../spmv-matrix/tests/scipy/csr.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/csr_array_stored.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/csr_bool.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/csr_complex64.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/csr_float16.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/csr_int64_indices.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/csc.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/coo.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/coo_array_stored.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/bsr_fortran.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/dia.npz"),
    include_bytes!("../../spmv-matrix/tests/scipy/dia_fortran.npz"),
];

/// What an array's head may say.
const WORDS: [&[u8]; 28] = [
    b"<f2",
    b"<f4",
    b"<f8",
    b">f8",
    b"<c8",
    b"<c16",
    b"|b1",
    b"|i1",
    b"<u8",
    b"<i4",
    b"|S3",
    b"<U3",
    b"|O",
    b"True",
    b"False",
    b"0",
    b"1",
    b"-1",
    b"2147483648",
    b"4294967296",
    b"18446744073709551615",
    b"()",
    b"(0,)",
    b"(1, 1)",
    b",",
    b"'",
    b"}",
    b"\xff",
];

/// Numbers at the edges of types.
const NUMBERS: [i64; 9] = [-1, 0, 1, 127, 1 << 31, 1 << 32, i64::MAX, i64::MIN, 0x7ff0_0000_0000_0000];

/// Bytes that a matrix may take.
const MAX_BYTES: u64 = 1 << 24;

/// Reads a file, and checks the matrix if there is one.
pub fn read(file: &[u8]) -> Outcome {
    let options = ReadOptions::new().max_bytes(MAX_BYTES);
    let read = match read_bytes_with::<f64, u32>(file, &options) {
        Err(ReadError::Complex { .. }) => {
            read_bytes_with::<Complex64, u32>(file, &options).map(|a| check(file, &a))
        }
        read => read.map(|a| check(file, &a)),
    };
    match read {
        Ok(()) => Outcome::Taken,
        Err(error) => Outcome::Refused(error.to_string()),
    }
}

/// A matrix that was read is valid, of the size that the file says, and comes back when it is written.
fn check<V: Entry>(file: &[u8], a: &CsrMatrix<V, u32>) {
    let header = Header::read_bytes(file).expect("what was read has a head");
    assert_eq!((a.num_rows(), a.num_cols()), (header.num_rows, header.num_cols));
    assert!(a.nnz() as u64 <= header.num_stored);
    let (offsets, cols) = (a.row_offsets().to_vec(), a.col_indices().to_vec());
    CsrMatrix::new(a.num_rows(), a.num_cols(), offsets, cols, a.values().to_vec()).expect("it is valid");
    let mut written = Vec::new();
    write(&mut written, a).expect("it can be written");
    let back: CsrMatrix<V, u32> = read_bytes_with(&written, &ReadOptions::new()).expect("and be read again");
    // The bytes, because NaN is not equal to itself.
    let mut again = Vec::new();
    write(&mut again, &back).expect("and be written again");
    assert!(written == again, "a matrix comes back as it was");
}

/// Changes a file in one place, or in up to four: its bytes, or an array of it.
pub fn mutate(file: &[u8], random: &mut Random) -> Vec<u8> {
    let edits = how_many(random);
    match unpacked(file) {
        Some(mut arrays) if !arrays.is_empty() && random.below(4) > 0 => {
            for _ in 0..edits {
                edit_array(&mut arrays, random);
            }
            packed(&arrays, random.below(2) == 0)
        }
        _ => {
            let mut bytes = file.to_vec();
            for _ in 0..edits {
                edit_byte(&mut bytes, random);
            }
            bytes
        }
    }
}

type Array = (String, Vec<u8>);

fn edit_array(arrays: &mut Vec<Array>, random: &mut Random) {
    if arrays.is_empty() {
        return;
    }
    let index = random.below(arrays.len());
    match random.below(8) {
        0 => drop(arrays.remove(index)),
        // The array of this name, or any, of another file.
        1 => {
            let other = unpacked(FIXTURES[random.below(FIXTURES.len())]).expect("SciPy's files are archives");
            let same =
                other.iter().find(|(name, _)| *name == arrays[index].0).filter(|_| random.below(2) == 0);
            let (_, bytes) = same.unwrap_or(&other[random.below(other.len())]);
            arrays[index].1.clone_from(bytes);
        }
        2..=4 => edit_head(&mut arrays[index].1, random),
        5 => edit_number(&mut arrays[index].1, random),
        _ => edit_byte(&mut arrays[index].1, random),
    }
}

/// Puts a word in the place of one of an array's head.
fn edit_head(bytes: &mut Vec<u8>, random: &mut Random) {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'<' | b'>' | b'|' | b'-');
    let mut words = Vec::new();
    let mut at = bytes.iter().position(|byte| *byte == b'{').unwrap_or(0);
    while at < end {
        let length = bytes[at..end].iter().take_while(|byte| is_word(byte)).count().max(1);
        words.push(at..at + length);
        at += length;
    }
    if words.is_empty() {
        return;
    }
    let word = words.swap_remove(random.below(words.len()));
    let (removed, new) = (word.len(), WORDS[random.below(WORDS.len())]);
    bytes.splice(word, new.iter().copied());
    // Half of the time the length that is written before the head is still right.
    if random.below(2) == 0 && bytes.get(6) == Some(&1) && bytes.len() > 10 {
        let length = u16::from_le_bytes([bytes[8], bytes[9]]) as usize + new.len();
        bytes[8..10].copy_from_slice(&(length.saturating_sub(removed) as u16).to_le_bytes());
    }
}

/// Puts a number at the edge of a type in the place of eight bytes.
fn edit_number(bytes: &mut [u8], random: &mut Random) {
    let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
    let places = bytes.len() / 8;
    if places > 0 {
        let from = bytes.len() - 8 * (1 + random.below(places));
        bytes[from..from + 8].copy_from_slice(&number);
    }
}

/// Names and bytes of the arrays of an archive, where it is one and what it holds is not much.
fn unpacked(file: &[u8]) -> Option<Vec<Array>> {
    let mut archive = ZipArchive::new(Cursor::new(file)).ok()?;
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).ok()?;
        let name = entry.name().ok()?.into_owned();
        let mut bytes = Vec::new();
        entry.take(1 << 16).read_to_end(&mut bytes).ok()?;
        arrays.push((name, bytes));
    }
    Some(arrays)
}

fn packed(arrays: &[Array], stored: bool) -> Vec<u8> {
    let method = if stored { CompressionMethod::Stored } else { CompressionMethod::Deflated };
    let options = SimpleFileOptions::default().compression_method(method);
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in arrays {
        // A name that is there already is refused, and its array left out.
        if archive.start_file(name.as_str(), options).is_ok() {
            archive.write_all(bytes).expect("memory takes all bytes");
        }
    }
    archive.finish().expect("memory takes all bytes").into_inner()
}
