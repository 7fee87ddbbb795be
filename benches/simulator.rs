//! How fast the embedded device is, with all checks on: warp instructions and nonzeros a second, on one core and
//! on all. With `--record FOLDER` writes `FOLDER/host/simulator.json`; with `--profile ALGORITHM` runs one kernel
//! for ten seconds, for a profiler to watch.

mod record;

use std::time::{Duration, Instant};

use ptx_sim::{Arg, Launch, Module, Simulator};
use spmv_codegen::{Algorithm, KernelConfig, ValueType};
use spmv_matrix::generate::Generator;
use spmv_matrix::{CsrMatrix, cpu_serial};
use spmv_runtime::Compiler;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What the simulator must reach on one core.
const WARP_INSTRUCTIONS_A_SECOND: f64 = 25e6;
const SAMPLES: usize = 5;

fn main() -> Outcome<()> {
    let a = Generator::new("stencil_27")?.set("nx", 34.0)?.set("ny", 34.0)?.set("nz", 34.0)?.generate::<f32, u32>()?;
    println!("stencil_27: {} rows, {} nonzeros, f32, sm_90", a.num_rows(), a.nnz());
    if let Some(algorithm) = std::env::args().skip_while(|argument| argument != "--profile").nth(1) {
        let mut case = Case::new(&algorithm, &a, 1)?;
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(10) {
            case.run()?;
        }
        return Ok(());
    }
    println!("{:<14} {:>8} {:>24} {:>16} {:>12}", "", "cores", "warp instructions / s", "nonzeros / s", "time");
    let cores = std::thread::available_parallelism()?.get();
    let mut figures = Vec::new();
    let mut slowest = f64::INFINITY;
    for spec in Algorithm::ALL {
        for threads in [1, cores] {
            let mut case = Case::new(spec.name, &a, threads)?;
            let mut samples = (0..SAMPLES).map(|_| case.run()).collect::<Outcome<Vec<_>>>()?;
            samples.sort_by(|(a, _), (b, _)| a.cmp(b));
            let (elapsed, instructions) = samples[SAMPLES / 2];
            let seconds = elapsed.as_secs_f64();
            let rate = instructions as f64 / seconds;
            println!(
                "{:<14} {threads:>8} {:>22.1} M {:>14.2} M {:>9.0} ms",
                spec.name,
                rate / 1e6,
                a.nnz() as f64 / seconds / 1e6,
                seconds * 1e3
            );
            if threads == 1 {
                slowest = slowest.min(rate);
            }
            figures.push(serde_json::json!({
                "algorithm": spec.name,
                "cores": threads,
                "warp_instructions": instructions,
                "warp_instructions_per_second": rate,
                "nonzeros_per_second": a.nnz() as f64 / seconds,
                "seconds": seconds,
                "slowest_seconds": samples[SAMPLES - 1].0.as_secs_f64(),
            }));
        }
    }
    record::write_host_if_asked("simulator", &figures)?;
    if slowest < WARP_INSTRUCTIONS_A_SECOND {
        return Err(format!("{:.1} M warp instructions a second on one core are too few", slowest / 1e6).into());
    }
    Ok(())
}

/// One kernel with its operands on a simulator of its own.
struct Case {
    simulator: Simulator,
    module: Module,
    kernel: String,
    launch: Launch,
    threads: usize,
    y: u64,
    expected: Vec<f32>,
}

/// The time that the calling thread has had a processor.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Case {
    fn new(algorithm: &str, a: &CsrMatrix<f32>, threads: usize) -> Outcome<Case> {
        let config = KernelConfig::named(algorithm)?.value(ValueType::F32).build()?;
        let (artifact, _) = Compiler::shared().compile(&config, "sm_90")?;
        let mut simulator = Simulator::new().threads(threads);
        let mut place = |bytes: Vec<u8>| -> Outcome<u64> {
            let address = simulator.allocate(bytes.len() as u64)?;
            simulator.write(address, &bytes)?;
            Ok(address)
        };
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let floats = |floats: &[f32]| floats.iter().flat_map(|float| float.to_le_bytes()).collect::<Vec<u8>>();
        let x: Vec<f32> = (0..a.num_cols()).map(|i| (i % 17) as f32 - 8.0).collect();
        let y = place(floats(&vec![0.0; a.num_rows()]))?;
        let program = config.program();
        let pass = &program.multiply[0];
        let blocks = if algorithm == "light_vector" {
            4 * 8
        } else {
            pass.grid.eval(&|_| a.num_rows() as u64) as u32
        };
        let mut launch = Launch::new(blocks, pass.threads_per_block).arg(Arg::U32(a.num_rows() as u32));
        for pointer in [words(a.row_offsets()), words(a.col_indices()), floats(a.values()), floats(&x)] {
            launch = launch.arg(Arg::U64(place(pointer)?));
        }
        launch = launch.arg(Arg::U64(y)).arg(Arg::F32(1.0)).arg(Arg::F32(0.0));
        for _ in &program.buffers {
            launch = launch.arg(Arg::U64(place(vec![0; 4])?));
        }
        let mut expected = vec![0.0; a.num_rows()];
        cpu_serial(1.0, a, &x, 0.0, &mut expected)?;
        let module = Module::load(&artifact.ptx)?;
        Ok(Case { simulator, module, kernel: pass.kernel.clone(), launch, threads, y, expected })
    }

    /// Time and warp instructions of one product, which is checked.
    fn run(&mut self) -> Outcome<(Duration, u64)> {
        let (started, processor) = (Instant::now(), processor_time());
        let report = self.simulator.launch(&self.module, &self.kernel, &self.launch)?;
        // On one core the processor's time counts: whatever else the machine does is not the simulator's.
        let elapsed = if self.threads == 1 { processor_time() - processor } else { started.elapsed() };
        let mut bytes = vec![0; self.expected.len() * 4];
        self.simulator.read(self.y, &mut bytes)?;
        let actual = bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().expect("four bytes")));
        let wrong = actual.zip(&self.expected).filter(|(a, e)| (a - *e).abs() > 1e-3).count();
        if wrong > 0 {
            return Err(format!("{wrong} rows are wrong").into());
        }
        Ok((elapsed, report.counters.warp_instructions))
    }
}
