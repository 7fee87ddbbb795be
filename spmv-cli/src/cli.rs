//! The command line: what can be asked, and what was asked.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::command::{
    algorithms, bench, cache, compare, compile, completions, demo, doctor, explain, fit, generate, inspect,
    man, matrix, plot, results, run, tune,
};
use crate::failure::{Failure, Kind};

/// Sparse matrix-vector products y <- alpha A x + beta y with CUDA kernels that are generated for a
/// configuration, compiled by NVRTC at run time and cached
#[derive(Debug, Parser)]
#[command(name = "spmv", version, arg_required_else_help = true, after_help = AFTER_HELP)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Tell on standard error what happens: -v steps, -vv everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

const AFTER_HELP: &str = "\
Start here:
  spmv demo                            a tour on a real matrix that comes with the command
  spmv doctor                          what this machine has, what it lacks and what to do
  spmv run A.mtx                       read, generate, compile, run, verify, time
  spmv tune A.mtx                      find the fastest kernel for it, and keep it for spmv run
  spmv bench --suite standard          measured beside cuSPARSE and the CPU
  spmv gen --algorithm csr_vector      the CUDA text of a kernel

Exit codes:
  0 right   1 verification failed   2 usage   3 input   4 environment   5 memory   6 kernel fault

Environment:
  SPMV_NVRTC            file or folder of NVRTC, where it is not found by itself
  SPMV_CACHE_DIR        folder of the kernel cache, or `off`; `spmv cache path` says which
  SPMV_CACHE_MAX_BYTES  its size: 512M, 2G, bytes; 268435456 where it is not set
  RAYON_NUM_THREADS     threads of the CPU product
  NO_COLOR              no colours";

/// One module a command.
#[derive(Debug, Subcommand)]
pub enum Command {
    Run(run::Run),
    Bench(bench::Bench),
    Gen(generate::Generate),
    Compile(compile::Compile),
    Algorithms(algorithms::Algorithms),
    Inspect(inspect::Inspect),
    Explain(explain::Explain),
    Tune(tune::Tune),
    Matrix(matrix::Matrix),
    Compare(compare::Compare),
    Plot(plot::Plot),
    Results(results::Results),
    Fit(fit::Fit),
    Doctor(doctor::Doctor),
    Cache(cache::Cache),
    Demo(demo::Demo),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Whether the answer, and what goes wrong, is wanted as JSON.
    pub fn json(&self) -> bool {
        match self {
            Command::Run(run) => run.output.json,
            Command::Bench(bench) => bench.output.json,
            Command::Gen(generate) => generate.output.json,
            Command::Compile(compile) => compile.output.json,
            Command::Algorithms(algorithms) => algorithms.output.json,
            Command::Inspect(inspect) => inspect.output.json,
            Command::Explain(explain) => explain.output.json,
            Command::Tune(tune) => tune.output.json,
            Command::Matrix(matrix) => matrix.json(),
            Command::Compare(compare) => compare.output.json,
            Command::Plot(plot) => plot.output.json,
            Command::Fit(fit) => fit.output.json,
            Command::Doctor(doctor) => doctor.output.json,
            Command::Cache(cache) => cache.output.json,
            Command::Demo(demo) => demo.output.json,
            Command::Results(_) | Command::Completions(_) | Command::Man(_) => false,
        }
    }

    pub fn run(self, verbose: u8) -> Result<(), Failure> {
        match self {
            Command::Run(run) => run.run(),
            Command::Bench(bench) => bench.run(verbose > 0),
            Command::Gen(generate) => generate.run(),
            Command::Compile(compile) => compile.run(),
            Command::Algorithms(algorithms) => algorithms.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::Explain(explain) => explain.run(),
            Command::Tune(tune) => tune.run(),
            Command::Matrix(matrix) => matrix.run(),
            Command::Compare(compare) => compare.run(),
            Command::Plot(plot) => plot.run(),
            Command::Results(results) => results.run(),
            Command::Fit(fit) => fit.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Cache(cache) => cache.run(),
            Command::Demo(demo) => demo.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}

/// The command line of this process; where it is not one, or asks for help, what to exit with.
pub fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
            let text = error.to_string();
            let text = text.trim().trim_start_matches("error: ");
            return Failure::new(Kind::Usage, text).tell(true);
        }
        match error.print() {
            _ if error.use_stderr() => Kind::Usage.exit_code(),
            Ok(()) => ExitCode::SUCCESS,
            Err(failed) => Failure::from(failed).tell(false),
        }
    })
}

/// The whole command line, for completions and manual pages.
pub fn definition() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
#[path = "../../tests/fuzz/mutation.rs"]
#[allow(dead_code, reason = "other inputs are edited byte by byte")]
mod mutation;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::mutation::{Outcome, Target, mutate_text};
    use super::{Cli, definition};

    #[test]
    fn the_command_line_is_sound() {
        definition().debug_assert();
    }

    /// Words of the command line, a line each.
    const SEEDS: &[&str] = &[
        "run\nA.mtx\n--algorithm\ncsr_vector\n--set\nunroll=4\n--value\nf32\n--device\nsim\n--schedule\n7",
        "run\nA.mtx\n--device\ncuda:1\n--alpha=-1.5\n--beta\n2\n--transpose\n--max-extra-bytes\n2G",
        "bench\n--suite\nstandard\n--class\nuniform:rows=100\n--operation\nnon_transpose,transpose\n--variants\nall\n--samples\n15",
        "bench\n--configuration\ncsr_vector:unroll=4,loads=cached\n--values\nf32,f64\n--contenders\nours,cusparse:op",
        "gen\n--algorithm\ncsr_vector\n--semiring\nmin_plus\n--json\n-vv",
        "compile\n--algorithm\nhola\n--arch\nsm_90\n-o\nkernel.cubin",
        "matrix\nmake\nbanded\n--set\nn=1e3\n--seed\n7\n-o\nA.mtx",
        "matrix\nconvert\nA.mtx\n-o\nA.npz",
        "cache\ngc\n--max-bytes\n512M",
        "compare\nold.csv\nnew.csv\n--threshold\n5",
        "tune\nA.mtx\n--products\n200\n--export\nchoices.tsv",
        "plot\nrecord.csv\n--report\nreport.html",
        "explain\nA.mtx\n--deterministic",
    ];

    const WORDS: [&str; 36] = [
        "--help",
        "--version",
        "-v",
        "-vvvv",
        "--json",
        "--",
        "-",
        "--set",
        "--device",
        "--algorithm",
        "--alpha",
        "--beta",
        "--value",
        "--arch",
        "--schedule",
        "--time-limit",
        "=",
        ":",
        ",",
        "auto",
        "cpu",
        "sim",
        "cuda",
        "natural",
        "0",
        "-1",
        "1e400",
        "nan",
        "18446744073709551616",
        "16777216T",
        "\n",
        "\n\n",
        "help",
        "inspect",
        "doctor",
        "\u{e9}",
    ];

    #[test]
    fn fuzz_command_line() {
        Target {
            name: "command_line",
            seeds: SEEDS.iter().map(|text| text.as_bytes().to_vec()).collect(),
            mutate: &|text, random| mutate_text(text, &WORDS, random),
            run: &mut |text| {
                let text = String::from_utf8_lossy(text);
                match Cli::try_parse_from(["spmv"].into_iter().chain(text.split('\n'))) {
                    Ok(_) => Outcome::Taken,
                    Err(error) => Outcome::Refused(error.to_string()),
                }
            },
        }
        .fuzz(1_000);
    }
}
