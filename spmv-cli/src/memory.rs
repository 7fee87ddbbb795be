//! Host memory, predicted before it is taken.

pub use spmv_bench::memory::available;

use crate::failure::{Failure, Kind};
use crate::quantity;
use crate::reading::Header;

/// Refuses a matrix whose rows and columns alone take more than there is. Entries are not counted: what a header
/// promises of them is not allocated before they are read.
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
