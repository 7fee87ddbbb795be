//! Host memory, predicted before it is taken.

pub use spmv_bench::memory::available;

use crate::failure::{Failure, Kind};
use crate::quantity;
use crate::reading::Header;

/// Bytes of memory that reading a matrix, and looking at it, takes for each row.
pub const READING_ROW_BYTES: u64 = 24;

/// What a file is at most unpacked to, a multiple of its size: what gzip can do.
const MOST_UNPACKED: u64 = 1032;

/// Refuses a matrix whose entries, with values of so many bytes, take more than there is while they are read.
pub fn check_entries(header: &Header, file: FileSize, value_bytes: usize) -> Result<(), Failure> {
    available().map_or(Ok(()), |available| compare_entries(header, file, value_bytes, available))
}

/// How long a file is, and whether it is packed.
#[derive(Clone, Copy, Debug)]
pub struct FileSize {
    pub bytes: u64,
    pub packed: bool,
}

fn compare_entries(
    header: &Header,
    file: FileSize,
    value_bytes: usize,
    available: u64,
) -> Result<(), Failure> {
    // A header promises what it likes: there are no more than the file has room for, a line of four bytes each, or two in an
    // array, of which each may stand for two.
    let room = if file.packed { file.bytes.saturating_mul(MOST_UNPACKED) } else { file.bytes / 2 };
    let entries = header.num_entries.min(room);
    // Of coordinates rows, columns and places before entries are in order; the column, and what is being converted, of all.
    let entry_bytes = if ["coordinate", "coo"].contains(&header.format) { 20 } else { 4 };
    let needed = entries.saturating_mul(entry_bytes + 2 * value_bytes as u64);
    if needed <= available {
        return Ok(());
    }
    let entries = quantity::count(usize::try_from(entries).unwrap_or(usize::MAX));
    let [needed, available] = [needed, available].map(quantity::bytes);
    let message =
        format!("reading {entries} entries needs {needed} of memory, and {available} are available");
    Err(Failure::new(Kind::Memory, message))
}

/// Refuses a matrix whose rows and columns alone take more than there is. Entries are looked at when they are read.
pub fn check(header: Option<&Header>, bytes_per_row: u64, bytes_per_col: u64) -> Result<(), Failure> {
    match (header, available()) {
        (Some(header), Some(available)) => compare(header, bytes_per_row, bytes_per_col, available),
        _ => Ok(()),
    }
}

/// Refuses what the simulator would need more memory for than there is: it keeps what is on its device with a
/// shadow of the same size, and both once more while they grow.
pub fn check_simulated(device_bytes: u64) -> Result<(), Failure> {
    match available() {
        Some(available) if device_bytes.saturating_mul(4) > available => {
            let [device, needed, available] =
                [device_bytes, device_bytes.saturating_mul(4), available].map(quantity::bytes);
            let message = format!(
                "simulating a device with {device} on it needs {needed} of memory, and {available} are available"
            );
            Err(Failure::new(Kind::Memory, message).help("with --device cpu the product needs less"))
        }
        _ => Ok(()),
    }
}

fn compare(header: &Header, bytes_per_row: u64, bytes_per_col: u64, available: u64) -> Result<(), Failure> {
    let needed = header.num_rows as u64 * bytes_per_row + header.num_cols as u64 * bytes_per_col;
    if needed <= available {
        return Ok(());
    }
    let [rows, cols] = [header.num_rows, header.num_cols].map(quantity::count);
    let [needed, available] = [needed, available].map(quantity::bytes);
    let message =
        format!("{rows} rows and {cols} columns need {needed} of memory, and {available} are available");
    Err(Failure::new(Kind::Memory, message))
}

#[cfg(test)]
mod tests {
    use spmv_runtime::matrix::matrix_market;

    use super::*;

    #[test]
    fn more_than_there_is_is_refused() {
        let text = b"%%MatrixMarket matrix coordinate real general\n2147483647 1000 1\n1 1 1.0\n";
        let header = matrix_market::Header::read_bytes(text).unwrap().into();
        let needed = 2_147_483_647 * 64 + 1000 * 24;
        assert!(compare(&header, 64, 24, needed).is_ok());
        let failure = compare(&header, 64, 24, needed - 1).unwrap_err();
        assert_eq!(failure.kind(), Kind::Memory);
        assert_eq!(
            failure.to_string(),
            "2,147,483,647 rows and 1,000 columns need 128 GiB of memory, and 128 GiB are available"
        );
        assert!(check(None, 64, 24).is_ok());
    }

    #[test]
    fn entries_that_a_file_may_have_are_counted() {
        let header = |format: &str| {
            let text = format!("%%MatrixMarket matrix {format}\n1 1 1.0\n");
            Header::from(matrix_market::Header::read_bytes(text.as_bytes()).unwrap())
        };
        let triangle = header("coordinate real symmetric\n2 2 900000000");
        let packed = |bytes| FileSize { bytes, packed: true };
        let needed = 1_800_000_000 * 28;
        assert!(compare_entries(&triangle, packed(3_500_000), 4, needed).is_ok());
        let failure = compare_entries(&triangle, packed(3_500_000), 4, needed - 1).unwrap_err();
        assert_eq!(failure.kind(), Kind::Memory);
        let wanted = "reading 1,800,000,000 entries needs 46.9 GiB of memory, and 46.9 GiB are available";
        assert_eq!(failure.to_string(), wanted);
        // The header promises more than a file can hold: that is for the reader to say.
        assert!(compare_entries(&triangle, packed(68), 4, 68 * MOST_UNPACKED * 28).is_ok());
        let text = FileSize { bytes: 4000, packed: false };
        assert!(compare_entries(&triangle, text, 4, 2000 * 28).is_ok());
        assert!(compare_entries(&triangle, text, 4, 2000 * 28 - 1).is_err());
        assert!(compare_entries(&header("array real general\n50 40"), text, 8, 2000 * 20).is_ok());
    }

    #[test]
    fn the_simulator_needs_a_multiple() {
        assert!(check_simulated(1 << 10).is_ok());
        if available().is_some() {
            assert_eq!(check_simulated(u64::MAX).unwrap_err().kind(), Kind::Memory);
        }
    }

    #[test]
    fn the_system_says_what_it_has() {
        if cfg!(target_os = "linux") {
            assert!(available().unwrap() > 1 << 20);
        }
    }
}
