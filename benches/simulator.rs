//! How fast the embedded device is, with all checks on: warp instructions and nonzeros a second, on one core and
//! on all, and where the time goes: nanoseconds for each kind of instruction. With `--record FOLDER` writes `FOLDER/host/simulator.json`; with `--profile ALGORITHM` runs one kernel
//! for ten seconds, for a profiler to watch.

mod record;

use std::time::{Duration, Instant};

use ptx_sim::{Arg, Launch, Module, Simulator};
use spmv_codegen::{Algorithm, AlgorithmSpec, KernelConfig, ValueType};
use spmv_matrix::generate::Generator;
use spmv_matrix::{CsrMatrix, cpu_serial};
use spmv_runtime::Compiler;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What the simulator must reach on one core.
const WARP_INSTRUCTIONS_A_SECOND: f64 = 25e6;
const SAMPLES: usize = 5;

fn main() -> Outcome<()> {
    let a = Generator::new("stencil_27")?
        .set("nx", 34.0)?
        .set("ny", 34.0)?
        .set("nz", 34.0)?
        .generate::<f32, u32>()?;
    println!("stencil_27: {} rows, {} nonzeros, f32, sm_90", a.num_rows(), a.nnz());
    if let Some(algorithm) = std::env::args().skip_while(|argument| argument != "--profile").nth(1) {
        let mut case = Case::new(&algorithm, &a, 1)?;
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(10) {
            case.run()?;
        }
        return Ok(());
    }
    println!(
        "{:<14} {:>8} {:>24} {:>16} {:>12}",
        "", "cores", "warp instructions / s", "nonzeros / s", "time"
    );
    let cores = std::thread::available_parallelism()?.get();
    let mut figures = Vec::new();
    let mut slowest = f64::INFINITY;
    let of_triangles = |spec: &&AlgorithmSpec| spec.operations[0].is_of_triangle();
    for spec in Algorithm::ALL.iter().filter(|spec| !of_triangles(spec)) {
        for threads in [1, cores] {
            let mut case = Case::new(spec.name, &a, threads)?;
            let mut samples = (0..SAMPLES).map(|_| case.run()).collect::<Outcome<Vec<_>>>()?;
            samples.sort_by_key(|(elapsed, _)| *elapsed);
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
    println!("\n{:<34} {:>10}", "one warp instruction", "time");
    let mut kinds = Vec::new();
    for (kind, instruction) in KINDS {
        let nanoseconds = nanoseconds_of(instruction)?;
        println!("{kind:<34} {nanoseconds:>7.1} ns");
        kinds.push(
            serde_json::json!({ "kind": kind, "instruction": instruction, "nanoseconds": nanoseconds }),
        );
    }
    figures.push(serde_json::json!({ "nanoseconds_of_one_warp_instruction": kinds }));
    record::write_host_if_asked("simulator", &figures)?;
    if slowest < WARP_INSTRUCTIONS_A_SECOND {
        return Err(
            format!("{:.1} M warp instructions a second on one core are too few", slowest / 1e6).into()
        );
    }
    Ok(())
}

/// Kinds of instructions and one of each. `%rd1` is the lane's own place, `%rd2` the same in a scattered order.
const KINDS: &[(&str, &str)] = &[
    ("copy", "mov.u32 %r2, %r1;"),
    ("integer, 32 bits", "add.s32 %r2, %r1, %r3;"),
    ("integer, 64 bits", "add.s64 %rd3, %rd1, 8;"),
    ("wide product", "mul.wide.u32 %rd3, %r1, 4;"),
    ("fused multiply-add, f32", "fma.rn.f32 %f2, %f1, %f1, %f2;"),
    ("fused multiply-add, f64", "fma.rn.f64 %d2, %d1, %d1, %d2;"),
    ("comparison", "setp.lt.u32 %p2, %r1, %r3;"),
    ("load, f32, neighbouring", "ld.global.f32 %f3, [%rd1];"),
    ("load, f32, scattered", "ld.global.f32 %f3, [%rd2];"),
    ("load, f64, neighbouring", "ld.global.f64 %d3, [%rd4];"),
    ("load, four f32", "ld.global.v4.f32 {%f3, %f4, %f5, %f6}, [%rd5];"),
    ("store, f32", "st.global.f32 [%rd1], %f1;"),
    ("load, shared", "ld.shared.f32 %f3, [%r4];"),
    ("store, shared", "st.shared.f32 [%r4], %f1;"),
    ("load, shared, scattered", "ld.shared.f32 %f3, [%r10];"),
    ("atomic, shared", "red.shared.add.f32 [%r4], %f1;"),
    ("barrier", "bar.sync 0;"),
    (
        "store, load behind a barrier",
        "st.shared.f32 [%r4], %f1; bar.sync 0; ld.shared.f32 %f3, [%r10]; bar.sync 0;",
    ),
    ("shuffle", "shfl.sync.bfly.b32 %r5, %r1, 4, 6175, 0xffffffff;"),
    ("ballot", "vote.sync.ballot.b32 %r5, %p1, 0xffffffff;"),
    ("atomic, one address", "red.global.add.u32 [%rd6], 1;"),
];

/// Processor time of one warp instruction: that of a loop with many of them less that of the loop without.
fn nanoseconds_of(instruction: &str) -> Outcome<f64> {
    const ROUNDS: u32 = 4000;
    const COPIES: usize = 64;
    let seconds = |copies: usize| -> Outcome<f64> {
        let module = Module::load(&KIND_KERNEL.replace("INSTRUCTIONS", &instruction.repeat(copies)))?;
        let mut simulator = Simulator::new().threads(1);
        let data = simulator.allocate(1024)?;
        simulator.write(data, &[0; 1024])?;
        let launch = Launch::new(1, 32).arg(Arg::U64(data)).arg(Arg::U32(ROUNDS));
        let mut samples = Vec::new();
        for _ in 0..SAMPLES {
            let started = processor_time();
            simulator.launch(&module, "kind", &launch)?;
            samples.push((processor_time() - started).as_secs_f64());
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[SAMPLES / 2])
    };
    Ok((seconds(COPIES)? - seconds(0)?) / (f64::from(ROUNDS) * COPIES as f64) * 1e9)
}

const KIND_KERNEL: &str = "
.version 8.0
.target sm_90
.address_size 64
.visible .entry kind(.param .u64 data, .param .u32 rounds) {
  .reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %rd<10>; .reg .f32 %f<8>; .reg .f64 %d<4>;
  .shared .align 4 .b8 shared[128];
  ld.param.u64 %rd6, [data];
  ld.param.u32 %r9, [rounds];
  mov.u32 %r1, %tid.x;
  mov.u32 %r3, 16;
  mov.f32 %f1, 0f3F000000; mov.f32 %f2, 0f00000000;
  mov.f64 %d1, 0d3FE0000000000000; mov.f64 %d2, 0d0000000000000000;
  setp.lt.u32 %p1, %r1, 7;
  mul.wide.u32 %rd1, %r1, 4;
  add.s64 %rd1, %rd6, %rd1;
  mul.lo.u32 %r6, %r1, 13;
  and.b32 %r6, %r6, 31;
  mul.wide.u32 %rd2, %r6, 32;
  add.s64 %rd2, %rd6, %rd2;
  mul.wide.u32 %rd4, %r1, 8;
  add.s64 %rd4, %rd6, %rd4;
  mul.wide.u32 %rd5, %r1, 16;
  add.s64 %rd5, %rd6, %rd5;
  mov.u32 %r7, shared;
  shl.b32 %r4, %r1, 2;
  add.s32 %r4, %r4, %r7;
  mad.lo.u32 %r10, %r6, 4, %r7;
  st.shared.f32 [%r4], %f1;
  mov.u32 %r8, 0;
loop:
  INSTRUCTIONS
  add.s32 %r8, %r8, 1;
  setp.lt.u32 %p3, %r8, %r9;
  @%p3 bra loop;
  ret;
}";

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
        let floats =
            |floats: &[f32]| floats.iter().flat_map(|float| float.to_le_bytes()).collect::<Vec<u8>>();
        let x: Vec<f32> = (0..a.num_cols()).map(|i| (i % 17) as f32 - 8.0).collect();
        let y = place(floats(&vec![0.0; a.num_rows()]))?;
        let program = config.program();
        let pass = &program.multiply[0];
        let blocks =
            if algorithm == "light_vector" { 4 * 8 } else { pass.grid.eval(&|_| a.num_rows() as u64) as u32 };
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
        let module = Module::load(&artifact.images[0].ptx)?;
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
        let actual =
            bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().expect("four bytes")));
        let wrong = actual.zip(&self.expected).filter(|(a, e)| (a - *e).abs() > 1e-3).count();
        if wrong > 0 {
            return Err(format!("{wrong} rows are wrong").into());
        }
        Ok((elapsed, report.counters.warp_instructions))
    }
}
