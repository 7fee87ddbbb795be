//! `spmv results`: a record as a table in Markdown.

use std::io::{self, Write};
use std::path::PathBuf;

use spmv_bench::{join, table};

use crate::failure::{Failure, Kind};
use crate::files;
use crate::records;

/// Print the table of results beside cuSPARSE as Markdown
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Geometric means come first, then a line for each matrix and value type: the best cuSPARSE
path, our best kernel, the speed-up, and the share of the copy roof that ours reaches. Losses
are in it. Matrices from files share a line.

Example:
  spmv results record.csv")]
pub struct Results {
    /// Records of the same GPU
    #[arg(value_name = "RECORD", required = true, value_parser = files::input())]
    records: Vec<PathBuf>,
}

impl Results {
    pub fn run(self) -> Result<(), Failure> {
        let records = self.records.iter().map(|path| records::open(path)).collect::<Result<Vec<_>, _>>()?;
        let record = join(records).map_err(|error| Failure::new(Kind::Input, error.to_string()))?;
        Ok(io::stdout().lock().write_all(table::markdown(&record).as_bytes())?)
    }
}
