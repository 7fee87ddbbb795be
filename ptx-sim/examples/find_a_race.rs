//! A sum over a block that lacks a barrier: the simulator says which lines race, then runs the kernel as it should be.
//! `cargo run --example find_a_race`

use ptx_sim::{Arg, Error, Launch, Module, Schedule, Simulator};

/// What a compiler makes of
/// ```cuda
///  3  __shared__ float partial[64];
///  4  partial[threadIdx.x] = x[threadIdx.x];
///  5  __syncthreads();
///  6  for (int stride = 32; stride > 0; stride /= 2) {
///  7    if (threadIdx.x < stride)
///  8      partial[threadIdx.x] += partial[threadIdx.x + stride];
///  9    __syncthreads();
/// 10  }
/// 11  if (threadIdx.x == 0) *sum = partial[0];
/// ```
const SUM: &str = r#"
.version 8.0
.target sm_90
.address_size 64
.file 1 "sum.cu"
.visible .entry sum(.param .u64 x, .param .u64 sum)
{
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
  .shared .align 4 .b8 partial[256];
  .loc 1 4 3
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [sum];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
  mov.u64 %rd5, partial;
  add.s64 %rd6, %rd5, %rd3;
  st.shared.f32 [%rd6], %f1;
  .loc 1 5 3
  bar.sync 0;
  mov.u32 %r2, 32;
NEXT:
  .loc 1 7 5
  setp.ge.u32 %p1, %r1, %r2;
  @%p1 bra SKIP;
  .loc 1 8 7
  mul.wide.u32 %rd7, %r2, 4;
  add.s64 %rd7, %rd6, %rd7;
  ld.shared.f32 %f1, [%rd6];
  ld.shared.f32 %f2, [%rd7];
  add.rn.f32 %f1, %f1, %f2;
  st.shared.f32 [%rd6], %f1;
SKIP:
  .loc 1 9 5
  bar.sync 0;
  .loc 1 6 3
  shr.u32 %r2, %r2, 1;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra NEXT;
  .loc 1 11 3
  setp.ne.u32 %p3, %r1, 0;
  @%p3 bra END;
  ld.shared.f32 %f3, [partial];
  st.global.f32 [%rd2], %f3;
END:
  ret;
}
"#;

fn run(ptx: &str, schedule: Schedule) -> Result<f32, Box<dyn std::error::Error>> {
    let module = Module::load(ptx)?;
    let mut simulator = Simulator::new();
    let x = simulator.allocate(64 * 4)?;
    let numbers: Vec<u8> = (1..=64).flat_map(|number| (number as f32).to_le_bytes()).collect();
    simulator.write(x, &numbers)?;
    let sum = simulator.allocate(4)?;
    let launch = Launch::new(1, 64).arg(Arg::U64(x)).arg(Arg::U64(sum)).schedule(schedule);
    simulator.launch(&module, "sum", &launch)?;
    let mut bytes = [0; 4];
    simulator.read(sum, &mut bytes)?;
    Ok(f32::from_le_bytes(bytes))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let broken = SUM.replacen("  .loc 1 9 5\n  bar.sync 0;\n", "", 1);
    match run(&broken, Schedule::Natural) {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Fault(_))) => {
            println!("without the barrier of line 9:\n  {error}");
        }
        other => return Err(format!("the race is not found: {other:?}").into()),
    }
    for schedule in [Schedule::Natural, Schedule::Adversarial(1), Schedule::Adversarial(2)] {
        let sum = run(SUM, schedule)?;
        assert_eq!(sum, 2080.0);
        println!("with it, {schedule:?}: the sum is {sum}");
    }
    Ok(())
}
