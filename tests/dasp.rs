//! What the tiles of dasp could get wrong and small matrices do not show: giants whose parts grow, columns that are far
//! apart, windows of rows, rows beside others that are not finite, and lanes that do the work of tensor cores.

mod cuda;
mod structures;

use cuda::{from_bytes, to_bytes};
use ptx_sim::{Arg, Launch, Module, Simulator};
use spmv_codegen::{Dasp, KernelConfig, ValueType};
use spmv_matrix::CsrMatrix;
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, Spmv, Vector};

fn config() -> KernelConfig {
    KernelConfig::builder(Dasp::default()).value(ValueType::F64).build().unwrap()
}

fn product(schedule: Schedule, a: &CsrMatrix<f64>, x: &[f64], times: usize) -> Vec<f64> {
    let device = Device::simulator_with(schedule);
    let mut plan = Spmv::with(&device, a, config()).unwrap();
    let x = Vector::from_slice(&device, x).unwrap();
    let mut y = Vector::<f64>::zeros(&device, a.num_rows()).unwrap();
    for _ in 0..times {
        y.fill(f64::NAN).unwrap();
        plan.apply(1.0, &x, 0.0, &mut y).unwrap();
    }
    y.to_vec().unwrap()
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

/// Rows that share a tile or a block with one that is not finite stay finite, those with padding too: column 0, which
/// padding would most likely read, is the bad one.
#[test]
fn what_is_not_finite_stays_in_its_row() {
    for length in [1, 2, 3, 4, 5, 7, 8, 9, 33, 100, 300, 2000] {
        for bad in [f64::NAN, f64::INFINITY] {
            let rows = (0..45u32).map(|row| {
                let at_half = if row == 19 { 0 } else { 1 };
                (0..length).map(|k| (if k == length / 2 { at_half } else { 2 }, 1.0)).collect::<Vec<_>>()
            });
            // Rows of one entry less, so that the slice is padded.
            let shorter = (0..3u32).map(|_| vec![(2u32, 1.0); length - 1]);
            let a = structures::from_rows(3, rows.chain(shorter));
            let y = product(Schedule::Natural, &a, &[bad, 1.0, 1.0], 1);
            for (row, sum) in y.into_iter().enumerate() {
                let expected = if row < 45 { length } else { length - 1 } as f64;
                let right = if row == 19 { !sum.is_finite() } else { sum == expected };
                assert!(right, "row {row} of {length} entries beside {bad} is {sum}");
            }
        }
    }
}

/// The sums of a warp's tiles, by row, with the tile product of an architecture.
fn tile_sums(arch: &str, a: &[f64], b: &[f64]) -> Vec<f64> {
    let source = [
        include_str!("../templates/prelude/types.cuh"),
        include_str!("../templates/prelude/arithmetic.cuh"),
        include_str!("../templates/prelude/tile.cuh"),
        r#"extern "C" __global__ void tiles(const double* a, const double* b, int num_tiles, double* rows) {
             TileSums sums = {};
             for (int t = 0; t < num_tiles; ++t) add_tile_product(a[32 * t + threadIdx.x], b[32 * t + threadIdx.x], &sums);
             const int row = threadIdx.x / 4;
             if (threadIdx.x == lane_of_tile_row(row)) rows[row] = tile_row_sum(sums);
           }"#,
    ];
    let artifact = cuda::compile(&source.concat(), arch).unwrap();
    assert_eq!(artifact.ptx.contains("mma.sync"), arch != "sm_75");
    let module = Module::load(&artifact.ptx).unwrap();
    let mut simulator = Simulator::new();
    let [at_a, at_b, at_rows] = [a.len(), b.len(), 8].map(|len| simulator.allocate(8 * len as u64).unwrap());
    simulator.write(at_a, &to_bytes(a)).unwrap();
    simulator.write(at_b, &to_bytes(b)).unwrap();
    let launch = Launch {
        args: [Arg::U64(at_a), Arg::U64(at_b), Arg::U32(a.len() as u32 / 32), Arg::U64(at_rows)].into(),
        ..Launch::new(1, 32)
    };
    simulator.launch(&module, "tiles", &launch).unwrap();
    let mut bytes = [0; 64];
    simulator.read(at_rows, &mut bytes).unwrap();
    from_bytes(&bytes)
}

#[test]
fn lanes_sum_as_tensor_cores_do() {
    let (a, b) = (structures::random(32 * 5, 3), structures::random(32 * 5, 4));
    let expected: Vec<f64> = (0..8)
        .map(|row| {
            let entries = (0..5).flat_map(|tile| (0..4).map(move |k| 32 * tile + 4 * row + k));
            entries.fold(0.0, |sum, i| a[i].mul_add(b[i], sum))
        })
        .collect();
    assert_eq!(tile_sums("sm_80", &a, &b), expected);
    assert_eq!(tile_sums("sm_75", &a, &b), expected);
}
