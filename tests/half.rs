//! The types of 16 bits in the generated prelude convert as the host does: to nearest, ties to even, once.

mod cuda;

use cuda::{from_bytes, to_bytes};
use ptx_sim::{Arg, Launch, Module, Simulator};
use spmv_matrix::{Value, bf16, f16};

/// For every number: its bits as F16 and as Bf16, rounded from f64 and from f32.
fn on_device(arch: &str, numbers: &[f64]) -> Vec<u64> {
    let source = [
        include_str!("../templates/prelude/types.cuh"),
        include_str!("../templates/prelude/f16.cuh"),
        include_str!("../templates/prelude/bf16.cuh"),
        r#"extern "C" __global__ void convert(uint32_t count, const double* numbers, uint64_t* words) {
             const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
             if (i >= count) return;
             const F16 f16 = F16(numbers[i]);
             const Bf16 bf16 = Bf16(numbers[i]);
             words[i] = f16.bits | uint64_t(bf16.bits) << 16 | uint64_t(F16(float(numbers[i])).bits) << 32 |
                        uint64_t(Bf16(float(numbers[i])).bits) << 48;
             // Back, and once more.
             if (F16(float(f16)).bits != f16.bits && double(f16) == double(f16)) words[i] = ~0ull;
             if (Bf16(double(bf16)).bits != bf16.bits && double(bf16) == double(bf16)) words[i] = ~0ull;
           }"#,
    ];
    let artifact = cuda::compile(&source.concat(), arch).unwrap();
    let module = Module::load(&artifact.images[0].ptx).unwrap();
    let mut simulator = Simulator::new();
    let bytes = 8 * numbers.len() as u64;
    let [from, to] = [bytes, bytes].map(|bytes| simulator.allocate(bytes).unwrap());
    simulator.write(from, &to_bytes(numbers)).unwrap();
    let blocks = numbers.len().div_ceil(128) as u32;
    let launch = Launch {
        args: [Arg::U32(numbers.len() as u32), Arg::U64(from), Arg::U64(to)].into(),
        ..Launch::new(blocks, 128)
    };
    simulator.launch(&module, "convert", &launch).unwrap();
    let mut words = vec![0; bytes as usize];
    simulator.read(to, &mut words).unwrap();
    from_bytes(&words)
}

#[test]
fn conversions_round_as_the_host_does() {
    let mut numbers = vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e-300, f64::from_bits(1)];
    for pattern in (0..0x7fffu16).step_by(5) {
        for number in [f16::from_bits(pattern).to_f64(), bf16::from_bits(pattern).to_f64()] {
            let next = f16::from_bits(pattern + 1).to_f64().max(number);
            let middles = [(number + next) / 2.0, number * (1.0 + 1.0 / 512.0)];
            numbers.push(-number);
            for middle in middles.into_iter().filter(|middle| middle.is_finite() && *middle != 0.0) {
                numbers.extend(
                    [-1i64, 0, 1].map(|off| f64::from_bits(middle.to_bits().wrapping_add_signed(off))),
                );
            }
        }
    }
    numbers.retain(|number| !number.is_nan());
    let expected = numbers.iter().map(|&number| {
        let narrow = f64::from(number as f32);
        let bits = |number| {
            [<f16 as Value>::from_f64(number).to_bits(), <bf16 as Value>::from_f64(number).to_bits()]
        };
        let [a, b] = bits(number).map(u64::from);
        let [c, d] = bits(narrow).map(u64::from);
        a | b << 16 | c << 32 | d << 48
    });
    let expected: Vec<u64> = expected.collect();
    for arch in ["sm_75", "sm_80", "sm_90"] {
        let found = on_device(arch, &numbers);
        let differ = (0..numbers.len()).find(|&i| found[i] != expected[i]);
        let told =
            differ.map(|i| format!("{:e} is {:#x} and must be {:#x}", numbers[i], found[i], expected[i]));
        assert_eq!(told, None, "{arch}");
    }
}
