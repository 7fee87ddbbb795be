//! What NVRTC makes of CUDA C++ runs in the simulator and gives what it must: tables of expressions and kernels of
//! many threads, for several architectures.

mod cuda;

use cuda::expressions::{as_bytes, as_words, tables};
use cuda::kernels::{kernels, settings};
use ptx_sim::{Arg, Launch, Module, Schedule, Simulator};
use rayon::prelude::*;

const ARCHS: [u32; 4] = [75, 80, 90, 100];

fn load(source: &str, arch: u32) -> Result<Module, String> {
    let artifact = cuda::compile(source, &format!("sm_{arch}"))?;
    Module::load(&artifact.images[0].ptx).map_err(|error| error.to_string())
}

/// Runs a kernel of (in, out) with words of either.
fn run(
    module: &Module,
    kernel: &str,
    launch: Launch,
    words: &[u64],
    outputs: usize,
    args: impl Fn(Launch, u64, u64) -> Launch,
) -> Result<Vec<u64>, ptx_sim::Error> {
    let mut simulator = Simulator::new();
    let input = simulator.allocate(words.len() as u64 * 8)?;
    simulator.write(input, &as_bytes(words))?;
    let output = simulator.allocate(outputs as u64 * 8)?;
    let mut bytes = vec![0; outputs * 8];
    simulator.write(output, &bytes)?;
    simulator.launch(module, kernel, &args(launch, input, output))?;
    simulator.read(output, &mut bytes)?;
    Ok(as_words(&bytes))
}

fn all_well(problems: Vec<String>) {
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn expressions() {
    const THREADS: usize = 2048;
    let tables = tables();
    let cases: Vec<_> = tables.iter().flat_map(|table| ARCHS.map(|arch| (table, arch))).collect();
    let check = |(table, arch): &(&cuda::expressions::Table, u32)| -> Result<(), String> {
        let module = load(&table.source(), *arch)?;
        let words = table.words(THREADS);
        let launch = Launch::new((THREADS / 128) as u32, 128);
        let outputs = table.expressions.len() * THREADS;
        let results = run(&module, &table.kernel(), launch, &words, outputs, |launch, input, output| {
            launch.arg(Arg::U32(THREADS as u32)).arg(Arg::U64(input)).arg(Arg::U64(output))
        });
        table.check(&words, &results.map_err(|error| error.to_string())?)
    };
    let problems = cases.par_iter().filter(|(table, arch)| table.since <= *arch).filter_map(|case| {
        check(case).err().map(|problem| format!("{} for sm_{}: {problem}", case.0.name, case.1))
    });
    all_well(problems.collect());
}

#[test]
fn kernels_of_many_threads() {
    let kernels = kernels();
    let cases: Vec<_> = kernels.iter().flat_map(|kernel| ARCHS.map(|arch| (kernel, arch))).collect();
    let check = |(kernel, arch): &(&cuda::kernels::Kernel, u32)| -> Result<(), String> {
        let module = load(&kernel.source(), *arch)?;
        let words = kernel.words();
        for schedule in [Schedule::Natural, Schedule::Adversarial(1), Schedule::Adversarial(2)] {
            let launch = Launch {
                shared_bytes: kernel.shared_bytes,
                ..Launch::new(kernel.blocks, kernel.threads).schedule(schedule)
            };
            let result =
                run(&module, kernel.name, launch, &words, kernel.outputs, |launch, input, output| {
                    let launch = launch.arg(Arg::U64(input)).arg(Arg::U64(output));
                    launch.arg(Arg::U32(words.len() as u32)).arg(Arg::Bytes(settings()))
                });
            let actual = result.map_err(|error| format!("{schedule:?}: {error}"))?;
            let expected = (kernel.expected)(&words);
            if let Some(at) = (0..expected.len()).find(|at| actual[*at] != expected[*at]) {
                let (actual, expected) = (actual[at], expected[at]);
                return Err(format!("{schedule:?}: word {at} is {actual:#x} and must be {expected:#x}"));
            }
            if actual.len() != expected.len() {
                return Err(format!("{} words are expected of {}", expected.len(), actual.len()));
            }
        }
        Ok(())
    };
    let problems = cases.par_iter().filter(|(kernel, arch)| kernel.since <= *arch).filter_map(|case| {
        check(case).err().map(|problem| format!("{} for sm_{}: {problem}", case.0.name, case.1))
    });
    all_well(problems.collect());
}
