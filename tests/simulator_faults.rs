//! What a kernel does wrong is found, named and placed: broken CUDA kernels, each beside the same kernel done
//! right, compiled by NVRTC and run in the simulator; then the library's own kernels, broken in one place each.

mod cuda;
mod structures;

use std::fmt;

use cuda::{compile, edited, from_bytes, line_of, to_bytes};
use ptx_sim::{Arg, Error, Fault, FaultKind, Launch, Module, Schedule, Simulator};
use spmv_codegen::{KernelConfig, ValueType, VectorProgram};
use structures::Numbers;

const ARCHS: [&str; 2] = ["sm_75", "sm_90"];

/// The natural schedule and several others.
fn schedules() -> impl Iterator<Item = Schedule> {
    std::iter::once(Schedule::Natural).chain((1..=6).map(Schedule::Adversarial))
}

fn module(source: &str, arch: &str) -> Module {
    let artifact = compile(source, arch).unwrap_or_else(|error| panic!("{error}"));
    Module::load(&artifact.images[0].ptx).unwrap_or_else(|error| panic!("{arch}: {error}"))
}

fn fault(error: Error) -> Fault {
    match error {
        Error::Fault(fault) => *fault,
        other => panic!("no fault of the kernel: {other}"),
    }
}

/// Two kernels, `broken` and `correct`, with the parameters (const float* in, float* out). The fault is at the
/// line that says so.
struct Case {
    source: &'static str,
    blocks: u32,
    threads: u32,
    input: usize,
    output: usize,
    /// What `correct` makes of 1, 2, 3, ...
    expected: fn(usize) -> f32,
    /// Where the fault happens in the natural order, as (block, thread).
    at: (u32, u32),
    /// Adversarial schedules in which the fault is looked for too.
    adversarial: u64,
}

impl Case {
    fn run(&self, module: &Module, kernel: &str, schedule: Schedule) -> Result<Vec<f32>, Error> {
        let mut simulator = Simulator::new();
        let input = simulator.allocate(self.input as u64 * 4)?;
        let output = simulator.allocate(self.output as u64 * 4)?;
        let entries: Vec<f32> = (1..=self.input).map(|entry| entry as f32).collect();
        simulator.write(input, &to_bytes(&entries))?;
        let launch = Launch::new(self.blocks, self.threads).schedule(schedule);
        let launch = launch.arg(Arg::U64(input)).arg(Arg::U64(output));
        simulator.launch(module, kernel, &launch)?;
        let mut bytes = vec![0; self.output * 4];
        simulator.read(output, &mut bytes)?;
        Ok(from_bytes(&bytes))
    }

    /// The fault of `broken`, the same on every architecture; where it must be is checked here.
    fn check(&self, is_expected: impl Fn(&FaultKind) -> bool) {
        let source = self.source.trim_start();
        let line = line_of(source, "// fault");
        let named = format!("#line 1 \"broken.cu\"\n{source}");
        let expected: Vec<f32> = (0..self.output).map(self.expected).collect();
        for arch in ARCHS {
            let module = module(&named, arch);
            for schedule in schedules() {
                match self.run(&module, "correct", schedule) {
                    Ok(output) => assert_eq!(output, expected, "{arch} {schedule:?}"),
                    Err(error) => panic!("a false alarm for {arch} in {schedule:?}: {error}"),
                }
                if matches!(schedule, Schedule::Adversarial(seed) if seed > self.adversarial) {
                    continue;
                }
                let fault = fault(self.run(&module, "broken", schedule).expect_err("a fault"));
                assert!(is_expected(&fault.kind), "{arch} {schedule:?}: {fault}");
                assert_eq!(fault.kernel, "broken");
                // NVRTC puts the current folder before the name.
                assert!(
                    fault.location.file.as_ref().is_some_and(|file| file.ends_with("broken.cu")),
                    "{fault}"
                );
                assert_eq!(fault.location.line, line, "{arch} {schedule:?}: {fault}");
                assert!(fault.location.ptx_line > 0);
                if schedule == Schedule::Natural {
                    let at = ([self.at.0, 0, 0], [self.at.1, 0, 0]);
                    assert_eq!((fault.block, fault.thread), at, "{arch}: {fault}");
                }
            }
        }
    }
}

#[test]
fn global_memory_out_of_bounds() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] + in[i + 1];  // fault
}
extern "C" __global__ void correct(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int last = gridDim.x * blockDim.x - 1;
  out[i] = in[i] + in[i < last ? i + 1 : i];
}
"#,
        blocks: 3,
        threads: 64,
        input: 192,
        output: 192,
        expected: |i| (i + 1 + (i + 2).min(192)) as f32,
        at: (2, 63),
        adversarial: 6,
    };
    case.check(|kind| {
        matches!(kind, FaultKind::OutOfBounds { space: "global", bytes: 4, nearest: Some(_), .. })
    });
}

#[test]
fn global_memory_out_of_bounds_by_a_store() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i % 100];  // fault
}
extern "C" __global__ void correct(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 100) out[i] = in[i];
}
"#,
        blocks: 4,
        threads: 32,
        input: 100,
        output: 100,
        expected: |i| (i + 1) as f32,
        at: (3, 4),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::OutOfBounds { space: "global", bytes: 4, .. }));
}

#[test]
fn shared_memory_out_of_bounds() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  tile[i] = in[i];
  __syncthreads();
  out[i] = tile[i + 1];  // fault
}
extern "C" __global__ void correct(const float* in, float* out) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  tile[i] = in[i];
  __syncthreads();
  out[i] = tile[(i + 1) % 64];
}
"#,
        blocks: 1,
        threads: 64,
        input: 64,
        output: 64,
        expected: |i| ((i + 1) % 64 + 1) as f32,
        at: (0, 63),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::OutOfBounds { space: "shared", address: 256, bytes: 4, .. }));
}

#[test]
fn misaligned_access() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  const float2 pair = reinterpret_cast<const float2*>(in + 1)[threadIdx.x];  // fault
  out[threadIdx.x] = pair.x + pair.y;
}
extern "C" __global__ void correct(const float* in, float* out) {
  const float2 pair = reinterpret_cast<const float2*>(in + 2)[threadIdx.x];
  out[threadIdx.x] = pair.x + pair.y;
}
"#,
        blocks: 1,
        threads: 32,
        input: 66,
        output: 32,
        expected: |i| (4 * i + 7) as f32,
        at: (0, 0),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::Misaligned { space: "global", bytes: 8, .. }));
}

#[test]
fn uninitialised_global_memory() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  out[threadIdx.x] += in[threadIdx.x];  // fault
}
extern "C" __global__ void correct(const float* in, float* out) {
  out[threadIdx.x] = 1;
  out[threadIdx.x] += in[threadIdx.x];
}
"#,
        blocks: 1,
        threads: 40,
        input: 40,
        output: 40,
        expected: |i| (i + 2) as f32,
        at: (0, 0),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::Uninitialised { space: "global", bytes: 4, .. }));
}

#[test]
fn uninitialised_shared_memory() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  __shared__ float tile[65];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x + 1];  // fault
}
extern "C" __global__ void correct(const float* in, float* out) {
  __shared__ float tile[65];
  tile[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x == 0) tile[64] = 0;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x + 1];
}
"#,
        blocks: 2,
        threads: 64,
        input: 64,
        output: 64,
        expected: |i| if i == 63 { 0.0 } else { (i + 2) as f32 },
        at: (0, 63),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::Uninitialised { space: "shared", address: 256, bytes: 4 }));
}

#[test]
fn uninitialised_local_memory() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  float mine[8];
  for (int k = 0; k < 7; ++k) mine[int(in[k]) - 1] = in[threadIdx.x];
  out[threadIdx.x] = mine[threadIdx.x % 8];  // fault
}
extern "C" __global__ void correct(const float* in, float* out) {
  float mine[8];
  for (int k = 0; k < 8; ++k) mine[int(in[k]) - 1] = in[threadIdx.x];
  out[threadIdx.x] = mine[threadIdx.x % 8];
}
"#,
        blocks: 1,
        threads: 32,
        input: 32,
        output: 32,
        expected: |i| (i + 1) as f32,
        at: (0, 7),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::Uninitialised { space: "local", bytes: 4, .. }));
}

#[test]
fn shared_memory_race_between_warps() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  __shared__ float tile[256];
  tile[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int width = 128; width > 0; width /= 2) {
    if (threadIdx.x < width) tile[threadIdx.x] += tile[threadIdx.x + width];  // fault
  }
  if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}
extern "C" __global__ void correct(const float* in, float* out) {
  __shared__ float tile[256];
  tile[threadIdx.x] = in[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  for (int width = 128; width > 0; width /= 2) {
    if (threadIdx.x < width) tile[threadIdx.x] += tile[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = tile[0];
}
"#,
        blocks: 3,
        threads: 256,
        input: 768,
        output: 3,
        expected: |block| (0..256).map(|i| (block * 256 + i + 1) as f32).sum(),
        // Warp 0 goes through the loop first: its 32 lanes need what the next step writes.
        at: (0, 0),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::SharedRace { .. }));
}

#[test]
fn shared_memory_race_inside_a_warp() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  __shared__ float tile[32];
  tile[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = tile[31 - threadIdx.x];  // fault
}
extern "C" __global__ void correct(const float* in, float* out) {
  __shared__ float tile[32];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
"#,
        blocks: 2,
        threads: 32,
        input: 32,
        output: 32,
        expected: |i| (32 - i) as f32,
        at: (0, 0),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::SharedRace { other_wrote: true, .. }));
}

#[test]
fn shuffle_from_an_absent_lane() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_down_sync(0x0000ffffu, in[threadIdx.x], 8);  // fault
  }
}
extern "C" __global__ void correct(const float* in, float* out) {
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_down_sync(0x0000ffffu, in[threadIdx.x], 8, 16);
  }
}
"#,
        blocks: 1,
        threads: 32,
        input: 16,
        output: 16,
        expected: |i| (if i < 8 { i + 9 } else { i + 1 }) as f32,
        at: (0, 8),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::AbsentLane { lane: 16 }));
}

#[test]
fn sync_mask_without_the_own_lane() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  float value = in[threadIdx.x];
  if (threadIdx.x >= 16) value += __shfl_xor_sync(0x0000ffffu, value, 1);  // fault
  out[threadIdx.x] = value;
}
extern "C" __global__ void correct(const float* in, float* out) {
  float value = in[threadIdx.x];
  if (threadIdx.x >= 16) value += __shfl_xor_sync(0xffff0000u, value, 1);
  out[threadIdx.x] = value;
}
"#,
        blocks: 1,
        threads: 32,
        input: 32,
        output: 32,
        expected: |i| (if i >= 16 { i + 1 + (i ^ 1) + 1 } else { i + 1 }) as f32,
        at: (0, 16),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::SyncMask { mask: 0x0000_ffff }));
}

#[test]
fn sync_mask_with_lanes_that_wait_elsewhere() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  float value = in[threadIdx.x];
  if (threadIdx.x % 2 == 0) {
    value += __shfl_xor_sync(0xffffffffu, value, 2);  // fault
  } else {
    value += __popc(__ballot_sync(0xffffffffu, value > 0));
  }
  out[threadIdx.x] = value;
}
extern "C" __global__ void correct(const float* in, float* out) {
  float value = in[threadIdx.x];
  if (threadIdx.x % 2 == 0) {
    value += __shfl_xor_sync(0x55555555u, value, 2);
  } else {
    value += __popc(__ballot_sync(0xaaaaaaaau, value > 0));
  }
  out[threadIdx.x] = value;
}
"#,
        blocks: 1,
        threads: 32,
        input: 32,
        output: 32,
        expected: |i| (if i % 2 == 0 { i + 1 + (i ^ 2) + 1 } else { i + 1 + 16 }) as f32,
        at: (0, 0),
        adversarial: 0,
    };
    case.check(|kind| matches!(kind, FaultKind::SyncDeadlock { waiting: 0x5555_5555, missing: 0xaaaa_aaaa }));
}

#[test]
fn divergent_barrier() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  __shared__ float tile[64];
  if (threadIdx.x % 2 == 0) {
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x / 2] = tile[threadIdx.x ^ 2];
  }
  __syncthreads();  // fault
  tile[threadIdx.x] = 0;
}
extern "C" __global__ void correct(const float* in, float* out) {
  __shared__ float tile[64];
  if (threadIdx.x % 2 == 0) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x % 2 == 0) out[threadIdx.x / 2] = tile[threadIdx.x ^ 2];
  __syncthreads();
  tile[threadIdx.x] = 0;
}
"#,
        blocks: 1,
        threads: 64,
        input: 64,
        output: 32,
        expected: |i| (((2 * i) ^ 2) + 1) as f32,
        // Even lanes wait at the first barrier when odd lanes come to the second.
        at: (0, 1),
        adversarial: 0,
    };
    case.check(|kind| {
        matches!(kind, FaultKind::DivergentBarrier { arrived: 0xaaaa_aaaa, missing: 0x5555_5555 })
    });
}

#[test]
fn missing_barrier() {
    let case = Case {
        source: r#"
extern "C" __global__ void broken(const float* in, float* out) {
  __shared__ float tile[32];
  if (threadIdx.x < 32) {
    tile[threadIdx.x] = in[threadIdx.x];
    asm volatile("bar.sync 1, 64;" ::: "memory");  // fault
  } else {
    __syncthreads();
    out[threadIdx.x - 32] = tile[threadIdx.x - 32];
  }
}
extern "C" __global__ void correct(const float* in, float* out) {
  __shared__ float tile[32];
  if (threadIdx.x < 32) {
    tile[threadIdx.x] = in[threadIdx.x];
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x - 32] = tile[threadIdx.x - 32];
  }
}
"#,
        blocks: 1,
        threads: 64,
        input: 32,
        output: 32,
        expected: |i| (i + 1) as f32,
        at: (0, 0),
        adversarial: 6,
    };
    case.check(|kind| matches!(kind, FaultKind::BarrierDeadlock));
}

#[test]
fn livelock() {
    let case = Case {
        source: r#"
__device__ volatile unsigned ready;
extern "C" __global__ void broken(const float* in, float* out) {
  if (blockIdx.x == 1) {
    out[threadIdx.x] = in[threadIdx.x];
  } else if (threadIdx.x == 0) {
    while (ready == 0) {}  // fault
    ready = 0;
  }
}
extern "C" __global__ void correct(const float* in, float* out) {
  if (blockIdx.x == 1) {
    out[threadIdx.x] = in[threadIdx.x];
    __threadfence();
    if (threadIdx.x == 0) ready = 1;
  } else if (threadIdx.x == 0) {
    while (ready == 0) {}
    ready = 0;
  }
}
"#,
        blocks: 2,
        threads: 32,
        input: 32,
        output: 32,
        expected: |i| (i + 1) as f32,
        at: (0, 0),
        adversarial: 0,
    };
    case.check(|kind| matches!(kind, FaultKind::Livelock { .. }));
}

/// A run of a library kernel: its fault, or whether what it left is what must be there.
enum Outcome {
    Fault(Fault),
    Wrong { row: usize, actual: f32, expected: f64 },
    Right,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Fault(fault) => write!(f, "{fault}"),
            Outcome::Wrong { row, actual, expected } => write!(f, "row {row} is {actual}, not {expected}"),
            Outcome::Right => write!(f, "right"),
        }
    }
}

impl Outcome {
    fn found(&self) -> bool {
        !matches!(self, Outcome::Right)
    }
}

/// A product of whole numbers by a kernel whose source may have been broken: y <- 2 A x + beta y, twice.
struct Product<'a> {
    config: &'a KernelConfig,
    module: Module,
    beta: f32,
    blocks: u32,
}

impl Product<'_> {
    /// The second product finds what the first one left behind in the counter.
    fn run(&self, schedule: Schedule) -> Result<Outcome, Error> {
        let a = structures::all()
            .into_iter()
            .find(|structure| structure.name == "row_length_edges")
            .expect("it is there");
        let matrix = a.matrix(Numbers::Integers);
        let x = Numbers::Integers.vector(matrix.num_cols(), 29);
        let old = Numbers::Integers.vector(matrix.num_rows(), 31);
        let program = self.config.program();
        let mut simulator = Simulator::new();
        let mut place = |bytes: &[u8]| -> Result<u64, Error> {
            let address = simulator.allocate(bytes.len() as u64)?;
            simulator.write(address, bytes)?;
            Ok(address)
        };
        let narrow =
            |entries: &[f64]| to_bytes(&entries.iter().map(|entry| *entry as f32).collect::<Vec<_>>());
        let mut args = vec![
            Arg::U32(matrix.num_rows() as u32),
            Arg::U64(place(&to_bytes(matrix.row_offsets()))?),
            Arg::U64(place(&to_bytes(matrix.col_indices()))?),
            Arg::U64(place(&narrow(matrix.values()))?),
            Arg::U64(place(&narrow(&x))?),
        ];
        let next_ticket = place(&to_bytes(&[0u32]))?;
        // With beta = 0 nobody may read y, so nobody wrote it.
        let y = simulator.allocate(old.len() as u64 * 4)?;
        if self.beta != 0.0 {
            simulator.write(y, &narrow(&old))?;
        }
        args.extend([Arg::U64(y), Arg::F32(2.0), Arg::F32(self.beta)]);
        if program.multiply[0].kernel.starts_with("spmv_light_") {
            args.push(Arg::U64(next_ticket));
        }
        let mut expected = old.clone();
        for product in 0..2u64 {
            let schedule = match schedule {
                Schedule::Natural => Schedule::Natural,
                Schedule::Adversarial(seed) => Schedule::Adversarial(seed * 100 + product),
            };
            let launch = Launch {
                args: args.clone(),
                ..Launch::new(self.blocks, program.multiply[0].threads_per_block).schedule(schedule)
            };
            match simulator.launch(&self.module, &program.multiply[0].kernel, &launch) {
                Ok(_) => {}
                Err(Error::Fault(fault)) => return Ok(Outcome::Fault(*fault)),
                Err(other) => return Err(other),
            }
            expected = spmv_matrix::reference(2.0, &matrix, &x, self.beta.into(), &expected)
                .expect("the sizes fit")
                .y;
            let mut bytes = vec![0; old.len() * 4];
            simulator.read(y, &mut bytes)?;
            for (row, (actual, expected)) in from_bytes::<f32>(&bytes).iter().zip(&expected).enumerate() {
                if f64::from(*actual) != *expected {
                    return Ok(Outcome::Wrong { row, actual: *actual, expected: *expected });
                }
            }
        }
        Ok(Outcome::Right)
    }
}

/// What a changed kernel does in every schedule. The unchanged one must be right in each.
fn outcomes(config: &KernelConfig, from: &str, to: &str, beta: f32) -> Vec<Outcome> {
    let source = config.program().source;
    let broken = edited(&source, from, to);
    ARCHS
        .iter()
        .flat_map(|arch| {
            let product = |source: &str| Product { config, module: module(source, arch), beta, blocks: 3 };
            let (correct, broken) = (product(&source), product(&broken));
            for schedule in schedules() {
                let outcome = correct.run(schedule).expect("it runs");
                assert!(!outcome.found(), "a false alarm for {arch} in {schedule:?}: {outcome}");
            }
            schedules().map(move |schedule| broken.run(schedule).expect("it runs")).collect::<Vec<_>>()
        })
        .collect()
}

/// Every schedule finds a fault of this kind.
fn faults(config: &KernelConfig, from: &str, to: &str, beta: f32, is_expected: impl Fn(&Fault) -> bool) {
    for outcome in outcomes(config, from, to, beta) {
        let expected = matches!(&outcome, Outcome::Fault(fault) if is_expected(fault));
        assert!(expected, "`{from}` became `{to}`: {outcome}");
    }
}

/// Every schedule finds something.
fn found(config: &KernelConfig, from: &str, to: &str, beta: f32) {
    for outcome in outcomes(config, from, to, beta) {
        assert!(outcome.found(), "`{from}` became `{to}`: nothing was found");
    }
}

fn config(algorithm: &str, settings: &[(&str, &str)]) -> KernelConfig {
    let mut builder = KernelConfig::named(algorithm).expect("an algorithm");
    for (key, value) in settings {
        builder.set(key, value).expect("a setting");
    }
    builder.build().expect("an allowed configuration")
}

fn vectors_of_8(algorithm: &str) -> KernelConfig {
    config(algorithm, &[("threads_per_vector", "8"), ("threads_per_block", "64")])
}

/// A row that ends one too late: wrong sums, and behind the last row nothing is allocated.
#[test]
fn a_row_that_ends_too_late() {
    let end = "const OffsetT end = skips_product(alpha) ? begin : next";
    let end_of_warp = "      const OffsetT end = skips_product(alpha) ? begin : next";
    let end_of_block = "      OffsetT end = skips_product(alpha) ? begin : next";
    for (algorithm, settings, end) in [
        ("csr_scalar", [].as_slice(), end),
        ("csr_vector", &[], end),
        ("light_vector", &[("rows_per_fetch", "0")], end_of_block),
        ("light_warp", &[("rows_per_fetch", "1")], end_of_warp),
    ] {
        found(&config(algorithm, settings), end, &format!("{end} + 1"), 0.0);
    }
}

#[test]
fn rows_behind_the_last() {
    let out_of_bounds = |fault: &Fault| matches!(fault.kind, FaultKind::OutOfBounds { space: "global", .. });
    faults(
        &vectors_of_8("csr_vector"),
        "const bool is_row = row < num_rows",
        "const bool is_row = row <= num_rows",
        0.0,
        out_of_bounds,
    );
    let fetch = config("light_vector", &[("rows_per_fetch", "4"), ("threads_per_block", "64")]);
    faults(
        &fetch,
        "if (row < num_rows && threadIdx.x",
        "if (row <= num_rows && threadIdx.x",
        0.0,
        out_of_bounds,
    );
}

#[test]
fn an_unguarded_step() {
    found(&config("csr_scalar", &[("unroll", "4")]), "if (j + u < end) {", "{", 0.0);
}

#[test]
fn rows_that_nobody_computes() {
    let stride = "row += gridDim.x * kRowsPerBlock";
    found(&vectors_of_8("csr_vector"), stride, "row += gridDim.x * kRowsPerBlock + 1", -1.0);
}

/// Whether beta is 0 decides whether y may be read: it was never written.
#[test]
fn beta_zero_that_reads_y() {
    for algorithm in ["csr_scalar", "csr_vector", "light_vector", "light_warp"] {
        let guard = "if (beta != AccumT(0)) result =";
        faults(&config(algorithm, &[]), guard, "result =", 0.0, |fault| {
            matches!(fault.kind, FaultKind::Uninitialised { space: "global", .. })
                && fault.location.file.as_ref().is_some_and(|file| file.ends_with("scaling.cuh"))
        });
    }
}

/// Without the barrier warps go on with a ticket that their block has not drawn yet.
#[test]
fn a_ticket_that_nobody_waits_for() {
    let config = config("light_vector", &[("threads_per_vector", "8"), ("threads_per_block", "64")]);
    let outcomes = outcomes(
        &config,
        "    await_copies<0>();\n    __syncthreads();\n    for",
        "    await_copies<0>();\n    for",
        1.0,
    );
    let found = outcomes.iter().filter(|outcome| outcome.found()).count();
    assert!(found > 0, "none of {} schedules found it", outcomes.len());
}

/// The second product draws numbers for which there are no tickets.
#[test]
fn a_counter_that_does_not_begin_anew() {
    for rows_per_fetch in ["0", "1"] {
        let settings =
            [("rows_per_fetch", rows_per_fetch), ("threads_per_vector", "32"), ("threads_per_block", "64")];
        found(&config("light_vector", &settings), "\"r\"(num_draws - 1)", "\"r\"(0xffffffffu)", 1.0);
    }
}

/// Where groups that are through have exited nobody waits for them: shuffles may name them as they name all lanes.
#[test]
fn a_mask_of_all_lanes() {
    let stays = "row - in_warp < num_rows";
    for outcome in outcomes(&vectors_of_8("csr_vector"), stays, "row < num_rows", 0.0) {
        assert!(!outcome.found(), "a false alarm: {outcome}");
    }
}

/// A ticket that nobody owns and nobody draws.
#[test]
fn a_ticket_between_the_owned_and_the_drawn() {
    for algorithm in ["light_vector", "light_warp"] {
        for (rows_per_fetch, first) in
            [("0", "ticket = 2 * gridDim.x + number"), ("1", "ticket = num_fetchers + __shfl_sync")]
        {
            let settings = [
                ("rows_per_fetch", rows_per_fetch),
                ("threads_per_vector", "32"),
                ("threads_per_block", "64"),
            ];
            found(&config(algorithm, &settings), first, &first.replace(" = ", " = 1 + "), 0.0);
        }
    }
}

#[test]
fn a_mask_of_another_group() {
    let mask = "kInStep ? 0xffffffffu";
    faults(&vectors_of_8("csr_vector"), mask, "kInStep ? 0xffu", 0.0, |fault| {
        matches!(fault.kind, FaultKind::SyncMask { mask: 0xff })
    });
}

#[test]
fn a_sum_over_half_of_a_group() {
    found(
        &vectors_of_8("csr_vector"),
        "int offset = kWidth / 2; offset > 0",
        "int offset = kWidth / 4; offset > 0",
        0.0,
    );
}

/// The sum of a vector: every block's partial result lies in shared memory before all warps read it.
#[test]
fn a_block_sum_without_its_barrier() {
    let source = VectorProgram::new(ValueType::F32).source;
    let barrier = "  __syncthreads();\n  value = warp_results[0];";
    let broken = edited(&source, barrier, "  value = warp_results[0];");
    for arch in ARCHS {
        let run = |module: &Module, schedule| -> Result<Vec<f64>, Error> {
            let mut simulator = Simulator::new();
            let x = simulator.allocate(4000)?;
            simulator.write(x, &to_bytes(&[2.0f32; 1000]))?;
            let partial = simulator.allocate(16)?;
            let launch = Launch::new(2, 256).schedule(schedule).arg(Arg::U64(1000)).arg(Arg::U64(x));
            let launch = launch.arg(Arg::U64(x)).arg(Arg::F64(1.0)).arg(Arg::U64(partial));
            simulator.launch(module, "spmv_dot_partial", &launch)?;
            let mut bytes = [0; 16];
            simulator.read(partial, &mut bytes)?;
            Ok(from_bytes(&bytes))
        };
        let (correct, broken) = (module(&source, arch), module(&broken, arch));
        for schedule in schedules() {
            assert_eq!(run(&correct, schedule).expect("no fault"), [2048.0, 1952.0]);
            let fault = fault(run(&broken, schedule).expect_err("a fault"));
            let expected = matches!(
                fault.kind,
                FaultKind::SharedRace { .. } | FaultKind::Uninitialised { space: "shared", .. }
            );
            assert!(
                expected && fault.location.file.as_ref().is_some_and(|file| file.ends_with("vector.cu")),
                "{fault}"
            );
        }
    }
}
