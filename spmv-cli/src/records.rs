//! Records of benchmarks, from files.

use std::path::Path;

use spmv_bench::record::{Record, RecordError};

use crate::failure::{Failure, Kind};

/// Reads a record.
pub fn open(path: &Path) -> Result<Record, Failure> {
    Record::open(path).map_err(|error| match error {
        RecordError::File { path, source } => {
            Failure::new(Kind::Input, format!("{path}: could not be read")).because(source)
        }
        error => Failure::new(Kind::Input, error.to_string())
            .in_file(path)
            .help("a record is the CSV file that `spmv bench` writes"),
    })
}
