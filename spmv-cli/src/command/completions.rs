//! `spmv completions`: what a shell needs to complete the command line.

use std::io::{self, Write};

use clap_complete::Shell;

use crate::cli;
use crate::failure::Failure;

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const AFTER_HELP: &str = "\
Examples:
  spmv completions bash > ~/.local/share/bash-completion/completions/spmv
  spmv completions zsh  > ~/.zfunc/_spmv
  spmv completions fish > ~/.config/fish/completions/spmv.fish";

impl Completions {
    pub fn run(self) -> Result<(), Failure> {
        // Into memory first: the generator panics where it cannot write.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut cli::definition(), "spmv", &mut script);
        Ok(io::stdout().write_all(&script)?)
    }
}
