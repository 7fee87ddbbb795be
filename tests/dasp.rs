//! What the tiles of dasp could get wrong and small matrices do not show: giants whose parts grow, columns that are far
//! apart, windows of rows, rows beside others that are not finite, and what multiplies the tiles of a type.

mod cuda;
mod structures;

use cuda::{from_bytes, to_bytes};
use ptx_sim::{Arg, Launch, Module, Simulator};
use spmv_codegen::{Dasp, KernelConfig, ValueType};
use spmv_matrix::{CsrMatrix, bf16, f16};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, RealElement, Spmv, Vector};

/// The product of a matrix and x converted to one type, with y of another, in which it is summed.
fn product_in<V: RealElement, Y: RealElement>(
    schedule: Schedule,
    a: &CsrMatrix<f64>,
    x: &[f64],
    times: usize,
) -> Vec<f64> {
    let device = Device::simulator_with(schedule);
    let config =
        KernelConfig::builder(Dasp::default()).value(V::TYPE).x(V::TYPE).y(Y::TYPE).accumulator(Y::TYPE);
    let mut plan = Spmv::with(&device, &a.convert::<V>(), config.build().unwrap()).unwrap();
    let x: Vec<V> = x.iter().map(|&x| V::from_f64(x)).collect();
    let x = Vector::from_slice(&device, &x).unwrap();
    let mut y = Vector::<Y>::zeros(&device, a.num_rows()).unwrap();
    for _ in 0..times {
        y.fill(Y::from_f64(f64::NAN)).unwrap();
        match Y::TYPE {
            ValueType::F32 => plan.apply(1.0f32, &x, 0.0f32, &mut y).unwrap(),
            _ => plan.apply(1.0, &x, 0.0, &mut y).unwrap(),
        }
    }
    y.to_vec().unwrap().into_iter().map(|y| y.to_f64()).collect()
}

fn product(schedule: Schedule, a: &CsrMatrix<f64>, x: &[f64], times: usize) -> Vec<f64> {
    product_in::<f64, f64>(schedule, a, x, times)
}

/// More than 4096 parts of 2048 would be: they are longer then, and their sums several a lane.
#[test]
fn parts_of_a_giant_grow() {
    let giant = 4096 * 2048 + 777;
    let num_cols = 100;
    let row =
        |len: usize| (0..len).map(|k| ((k % num_cols) as u32, (k % 7) as f64 - 2.0)).collect::<Vec<_>>();
    let lengths = [3, giant, 300_000, 40];
    let a = structures::from_rows(num_cols, lengths.map(row));
    let x: Vec<f64> = (0..num_cols).map(|col| (col % 5) as f64).collect();
    let expected =
        lengths.map(|len| row(len).iter().map(|&(col, value)| value * x[col as usize]).sum::<f64>());
    // Twice: what the parts count with is zero again after a product.
    assert_eq!(product(Schedule::Natural, &a, &x, 2), expected);
    assert_eq!(product(Schedule::Adversarial(7), &a, &x, 2), expected);
}

/// Slices keep differences of columns: up to 65,534 in 16 bits, where 65,535 is padding, and larger ones in 32.
#[test]
fn columns_are_near_or_far() {
    for spread in [65_533u32, 65_534, 65_535, 65_536, 200_000] {
        let x: Vec<f64> = (0..spread + 10).map(|col| f64::from(col % 11) - 4.0).collect();
        let lengths = [3usize, 7, 12, 40, 2];
        // Of each length, whole slices and one that is padded, whose rows are one entry shorter at the end.
        let rows = lengths.iter().flat_map(|&length| (0..135u32).map(move |row| (row, length))).map(
            |(row, length)| {
                let length = if row > 130 { length - 1 } else { length };
                let col = |k: usize| match (row % 3, k) {
                    (0, 0) => 5,
                    (1, 0) => 5 + spread,
                    _ => 5 + (row * 977 + k as u32 * 31_013) % (spread + 1),
                };
                (0..length).map(|k| (col(k), f64::from(row % 7) - k as f64)).collect::<Vec<_>>()
            },
        );
        let rows: Vec<_> = rows.collect();
        let sum =
            |row: &Vec<(u32, f64)>| row.iter().map(|&(col, value)| value * x[col as usize]).sum::<f64>();
        let expected: Vec<f64> = rows.iter().map(sum).collect();
        let a = structures::from_rows(x.len(), rows);
        assert_eq!(product(Schedule::Natural, &a, &x, 1), expected, "{spread}");
    }
}

/// Short rows are sorted within windows of 4096; medium ones among them leave the windows.
#[test]
fn short_rows_fill_several_windows() {
    let lengths =
        (0..13_001u32).map(|row| if row % 50 == 3 { 20 } else { row.wrapping_mul(2_654_435_761) >> 16 & 7 });
    let rows = lengths.enumerate().map(|(row, length)| {
        let entry = |k: u32| ((row as u32 + 3 * k) % 13_001, f64::from(k + 1));
        (0..length).map(entry).collect::<Vec<_>>()
    });
    let rows: Vec<_> = rows.collect();
    let x: Vec<f64> = (0..13_001).map(|col| f64::from(col % 1000)).collect();
    let sum = |row: &Vec<(u32, f64)>| row.iter().map(|&(col, value)| value * x[col as usize]).sum::<f64>();
    let expected: Vec<f64> = rows.iter().map(sum).collect();
    let a = structures::from_rows(x.len(), rows);
    assert_eq!(product(Schedule::Natural, &a, &x, 1), expected);
}

/// Rows of every kind, with columns near and far, whose sums are exact in every type: whole blocks of eight and 32
/// columns, last columns of every number, parts that begin at any place.
#[test]
fn every_entry_counts_once_in_every_type() {
    let mut lengths: Vec<usize> = (0..34).flat_map(|length| [length; 9]).collect();
    lengths.extend((35..70).flat_map(|length| [length; 3]));
    lengths.extend([95, 96, 97, 128, 200, 255, 256, 257, 258, 259, 300, 511, 2048, 2049, 2050, 5001, 9003]);
    for spread in [40_000usize, 80_000] {
        let row = |(row, &length): (usize, &usize)| {
            let entry = |k: usize| {
                let col = (row * 97 + k * k * 31 + k * 13_007) % spread;
                (col as u32, ((row + k) % 7) as f64 - 3.0)
            };
            (0..length).map(entry).collect::<Vec<_>>()
        };
        let rows: Vec<_> = lengths.iter().enumerate().map(row).collect();
        let x: Vec<f64> = (0..spread).map(|col| (col % 11) as f64 - 4.0).collect();
        let sum =
            |row: &Vec<(u32, f64)>| row.iter().map(|&(col, value)| value * x[col as usize]).sum::<f64>();
        let expected: Vec<f64> = rows.iter().map(sum).collect();
        let a = structures::from_rows(spread, rows);
        for schedule in [Schedule::Natural, Schedule::Adversarial(3)] {
            assert_eq!(product_in::<f16, f32>(schedule, &a, &x, 2), expected, "f16 {spread}");
            assert_eq!(product_in::<bf16, f32>(schedule, &a, &x, 2), expected, "bf16 {spread}");
            assert_eq!(product_in::<f32, f32>(schedule, &a, &x, 2), expected, "f32 {spread}");
            assert_eq!(product_in::<f64, f64>(schedule, &a, &x, 2), expected, "f64 {spread}");
        }
    }
}

/// Rows that share a tile or a block with one that is not finite stay finite, those with padding too: column 0, which
/// padding would most likely read, is the bad one.
fn what_is_not_finite_stays<V: RealElement, Y: RealElement>() {
    for length in [1, 2, 3, 4, 5, 7, 8, 9, 33, 100, 300, 2000] {
        for bad in [f64::NAN, f64::INFINITY] {
            let rows = (0..45u32).map(|row| {
                let at_half = if row == 19 { 0 } else { 1 };
                (0..length).map(|k| (if k == length / 2 { at_half } else { 2 }, 1.0)).collect::<Vec<_>>()
            });
            // Rows of one entry less, so that the slice is padded.
            let shorter = (0..3u32).map(|_| vec![(2u32, 1.0); length - 1]);
            let a = structures::from_rows(3, rows.chain(shorter));
            let y = product_in::<V, Y>(Schedule::Natural, &a, &[bad, 1.0, 1.0], 1);
            for (row, sum) in y.into_iter().enumerate() {
                let expected = if row < 45 { length } else { length - 1 } as f64;
                let right = if row == 19 { !sum.is_finite() } else { sum == expected };
                assert!(right, "{}: row {row} of {length} entries beside {bad} is {sum}", V::TYPE);
            }
        }
    }
}

#[test]
fn what_is_not_finite_stays_in_its_row() {
    what_is_not_finite_stays::<f64, f64>();
    what_is_not_finite_stays::<f32, f32>();
    what_is_not_finite_stays::<f16, f32>();
    what_is_not_finite_stays::<bf16, f32>();
}

/// What a lane returns of four tiles: the sum of its row of its own tile, and that over all tiles.
fn tile_sums(arch: &str, types: [&str; 3], mma: &str, a: &[f64], b: &[f64]) -> Vec<f64> {
    let [value, x, accumulator] = types;
    let aliases = format!(
        "using ValueT = {value}; using XT = {x}; using AccumT = {accumulator};
         using OffsetT = uint32_t; using IndexT = uint32_t;"
    );
    let source = [
        "#define SPMV_GENERATED 1\n",
        include_str!("../templates/prelude/types.cuh"),
        include_str!("../templates/prelude/f16.cuh"),
        include_str!("../templates/prelude/bf16.cuh"),
        &aliases,
        include_str!("../templates/prelude/arithmetic.cuh"),
        include_str!("../templates/prelude/plus_times.cuh"),
        include_str!("../templates/prelude/group.cuh"),
        include_str!("../templates/prelude/tile.cuh"),
        r#"extern "C" __global__ void tiles(const double* a, const double* b, int num_steps, double* sums_of_lanes) {
             const int lane = threadIdx.x;
             TileSums sums[4] = {};
             for (int t = 0; t < 4 * num_steps; ++t) {
               const int at = 64 * t + 2 * lane;
               const ValueT entries[2] = {ValueT(a[at]), ValueT(a[at + 1])};
               const XT gathers[2] = {XT(b[at]), XT(b[at + 1])};
               add_tile_product(entries, gathers, sums + t % 4);
             }
             sums_of_lanes[lane] = double(sum_of_own_tile(sums));
             const TileSums sum = sum_of(sum_of(sums[0], sums[1]), sum_of(sums[2], sums[3]));
             sums_of_lanes[32 + lane] = double(sum_of_tile(sum));
           }"#,
    ]
    .concat();
    let artifact = cuda::compile(&source, arch).unwrap();
    let found: Vec<&str> =
        artifact.images[0].ptx.split_whitespace().filter(|word| word.starts_with("mma")).collect();
    assert!(found.iter().all(|word| *word == mma) && found.is_empty() == mma.is_empty(), "{found:?} {mma}");
    let module = Module::load(&artifact.images[0].ptx).unwrap();
    let mut simulator = Simulator::new();
    let [at_a, at_b, at_sums] = [a.len(), b.len(), 64].map(|len| simulator.allocate(8 * len as u64).unwrap());
    simulator.write(at_a, &to_bytes(a)).unwrap();
    simulator.write(at_b, &to_bytes(b)).unwrap();
    let launch = Launch {
        args: [Arg::U64(at_a), Arg::U64(at_b), Arg::U32(a.len() as u32 / 256), Arg::U64(at_sums)].into(),
        ..Launch::new(1, 32)
    };
    simulator.launch(&module, "tiles", &launch).unwrap();
    let mut bytes = [0; 512];
    simulator.read(at_sums, &mut bytes).unwrap();
    from_bytes(&bytes)
}

/// Every pair of types is multiplied by the unit that it should be, which adds what the lanes of a row bring.
#[test]
fn tiles_are_multiplied_by_their_unit() {
    const F64: &str = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64";
    const F16: &str = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32";
    const BF16: &str = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32";
    let steps = 3;
    let entry = |i: usize, factor: usize| (i * factor % 13) as f64 - 6.0;
    let a: Vec<f64> = (0..256 * steps).map(|i| entry(i, 29)).collect();
    let b: Vec<f64> = (0..256 * steps).map(|i| entry(i, 31)).collect();
    let sum = |row: usize, tile: usize| -> f64 {
        let entries = (0..steps).flat_map(|step| (0..8).map(move |k| 64 * (4 * step + tile) + 8 * row + k));
        entries.map(|i| a[i] * b[i]).sum()
    };
    let own = (0..32).map(|lane| sum(lane / 4, lane % 4));
    let all = (0..32).map(|lane| (0..4).map(|tile| sum(lane / 4, tile)).sum());
    let expected: Vec<f64> = own.chain(all).collect();
    for (types, before, since_sm_80) in [
        (["double", "double", "double"], "", F64),
        (["float", "F16", "double"], "", F64),
        (["float", "float", "float"], "", ""),
        (["F16", "Bf16", "float"], "", ""),
        (["F16", "F16", "float"], F16, F16),
        (["Bf16", "Bf16", "float"], "", BF16),
    ] {
        assert_eq!(tile_sums("sm_75", types, before, &a, &b), expected, "{types:?} sm_75");
        assert_eq!(tile_sums("sm_80", types, since_sm_80, &a, &b), expected, "{types:?} sm_80");
        assert_eq!(tile_sums("sm_90", types, since_sm_80, &a, &b), expected, "{types:?} sm_90");
    }
}
