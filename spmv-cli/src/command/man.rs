//! `spmv man`: manual pages.

use std::path::PathBuf;

use crate::cli;
use crate::failure::Failure;
use crate::files;

/// Write a manual page for each command into a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  spmv man ~/.local/share/man/man1 && man spmv-run")]
pub struct Man {
    /// The folder; it is made where there is none
    folder: PathBuf,
}

impl Man {
    pub fn run(self) -> Result<(), Failure> {
        files::prepare_folder(&self.folder)
            .and_then(|()| clap_mangen::generate_to(cli::definition(), &self.folder))
            .map_err(|error| Failure::unwritable(&self.folder, error))
    }
}
