//! Edits of Matrix Market files, one in eight packed, read as every kind of matrix.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use spmv_matrix::matrix_market::{
    Header, ReadError, ReadOptions, read_bytes_with, read_symmetric_bytes, write,
};
use spmv_matrix::{Complex64, CsrMatrix, Entry};

use super::mutation::{Outcome, Random, mutate_text};

/// Every format, field and symmetry.
pub const SEEDS: &[&str] = &[
    "%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 4\n1 1 1.5\n1 4 -2e-7\n3 2 3\n3 3 .25\n",
    "%%MatrixMarket matrix coordinate double general\r\n\r\n2 2 3\r\n1 1 1\r\n1 1 2\r\n2 1 1e300\r\n",
    "%%MatrixMarket matrix coordinate integer general\n2 3 2\n1 1 -7\n2 3 9007199254740993\n",
    "%%MatrixMarket matrix coordinate complex general\n2 2 2\n1 2 1.5 -2\n2 1 0 1e-320\n",
    "%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 1\n3 1\n2 2\n",
    "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n2 1 2\n3 3 -3\n3 2 4\n",
    "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 3\n",
    "%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 5\n3 1 -6\n",
    "%%MatrixMarket matrix coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 3 -4\n",
    "%%MatrixMarket matrix array real general\n2 3\n1\n0\n-3\n4.5\n5\n6\n",
    "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n",
    "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n",
    "%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n",
];

const WORDS: [&str; 42] = [
    "%%MatrixMarket",
    "matrix",
    "vector",
    "coordinate",
    "array",
    "real",
    "double",
    "integer",
    "complex",
    "pattern",
    "general",
    "symmetric",
    "skew-symmetric",
    "hermitian",
    "0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "7",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e-400",
    "0x1p3",
    "1d5",
    "+1",
    "1.",
    ".5",
    "%",
    "\r\n",
    "\n\n",
    "\u{feff}",
];

/// Bytes that a matrix may take.
const MAX_BYTES: u64 = 1 << 24;

pub fn mutate(text: &[u8], random: &mut Random) -> Vec<u8> {
    let text = mutate_text(text, &WORDS, random);
    if random.below(64) > 0 {
        return text;
    }
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&text).expect("memory takes all bytes");
    packed.finish().expect("memory takes all bytes")
}

pub fn read(text: &[u8]) -> Outcome {
    let options = ReadOptions::new().max_bytes(MAX_BYTES);
    let told = |error: ReadError| error.to_string();
    let complex = read_bytes_with::<Complex64, u64>(text, &options).map(|a| check(text, &a)).map_err(told);
    let triangle = read_symmetric_bytes::<f64, u32>(text, &options).map_err(told);
    match read_bytes_with::<f64, u32>(text, &options).map_err(told) {
        Ok(a) => {
            check(text, &a);
            // What may be read as real numbers may be read as complex ones.
            assert_eq!(complex, Ok(()));
            if let Ok(triangle) = triangle {
                assert_eq!(triangle.to_csr().expect("the other triangle fits").nnz(), a.nnz());
            }
            Outcome::Taken
        }
        Err(message) => {
            assert!(triangle.is_err(), "one triangle is read of what is no matrix: {message}");
            Outcome::Refused(message)
        }
    }
}

/// A matrix that was read is valid, of the size that the file says, and comes back when it is written.
fn check<V: Entry, O: spmv_matrix::Offset>(text: &[u8], a: &CsrMatrix<V, O>) {
    let header = Header::read_bytes(text).expect("what was read has a head");
    assert_eq!((a.num_rows(), a.num_cols()), (header.num_rows, header.num_cols));
    assert!(a.nnz() as u64 <= 2 * header.num_stored + header.num_rows as u64);
    let (offsets, cols) = (a.row_offsets().to_vec(), a.col_indices().to_vec());
    CsrMatrix::new(a.num_rows(), a.num_cols(), offsets, cols, a.values().to_vec()).expect("it is valid");
    let written = |a: &CsrMatrix<V, O>| {
        let mut text = Vec::new();
        write(&mut text, a).expect("it can be written");
        text
    };
    let first = written(a);
    let back: CsrMatrix<V, O> = read_bytes_with(&first, &ReadOptions::new()).expect("and be read again");
    // The text, because NaN is not equal to itself.
    assert!(first == written(&back), "a matrix comes back as it was");
}
