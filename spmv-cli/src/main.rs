//! The command `spmv`: run, generate, compile, inspect and verify sparse matrix–vector products.

mod choice;
mod cli;
mod command;
mod counters;
mod cusparse;
mod device;
mod expected;
mod failure;
mod files;
mod kernel;
mod logging;
mod measure;
mod memory;
mod on_cpu;
mod on_device;
mod operands;
mod product;
mod progress;
mod quantity;
mod reading;
mod records;
mod report;
mod settings;
mod stored;
mod vectors;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let json = cli.command.json();
    logging::start(cli.verbose, json);
    match cli.command.run(cli.verbose) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.tell(json),
    }
}
