//! What small matrices do not show of kernels whose groups of lanes take rows: blocks of LightSpMV that meet over several long
//! rows, turn after turn, and half warps that take several.

use spmv_codegen::{Algorithm, CsrAdaptive, KernelConfig, LightVector, LightWarp, ValueType};
use spmv_matrix::{CsrMatrix, cpu_serial};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, Spmv, Vector};

const THREADS_PER_BLOCK: u32 = 64;
/// More nonzeros than a row may have that a group of such a block computes.
const LONG: usize = 16 * THREADS_PER_BLOCK as usize + 5;

/// Rows of which all are long up to row 20, then every seventh, among short and empty ones; whole numbers, whose sums
/// are exact.
fn matrix() -> CsrMatrix<f64> {
    let (mut row_offsets, mut cols, mut values) = (vec![0u32], vec![], vec![]);
    for row in 0..6000 {
        let length = if row < 20 || (row < 400 && row % 7 == 0) { LONG } else { row % 4 };
        for k in 0..length {
            cols.push(((row * 5 + k) % (LONG + 9)) as u32);
            values.push(((row + k * 3) % 9) as f64 - 4.0);
        }
        row_offsets.push(cols.len() as u32);
    }
    CsrMatrix::new(row_offsets.len() - 1, LONG + 9, row_offsets, cols, values).unwrap()
}

/// Two products of one plan are right: the counter is zero again after the first.
fn check(a: &CsrMatrix<f64>, algorithm: Algorithm, threads_per_block: u32, schedule: Schedule) {
    let x: Vec<f64> = (0..a.num_cols()).map(|i| (i % 11) as f64 - 5.0).collect();
    let mut expected = vec![1.0; a.num_rows()];
    cpu_serial(2.0, a, &x, -1.0, &mut expected).unwrap();
    let device = Device::simulator_with(schedule);
    let config = KernelConfig::builder(algorithm)
        .value(ValueType::F64)
        .threads_per_block(threads_per_block)
        .build()
        .unwrap();
    let mut plan = Spmv::with(&device, a, config).unwrap();
    let x = Vector::from_slice(&device, &x).unwrap();
    for _ in 0..2 {
        let mut y = Vector::from_slice(&device, &vec![1.0; a.num_rows()]).unwrap();
        plan.apply(2.0, &x, -1.0, &mut y).unwrap();
        let wrong = y.to_vec().unwrap().iter().zip(&expected).position(|(y, expected)| y != expected);
        assert_eq!(wrong, None, "{config} {schedule:?}");
    }
}

#[test]
fn long_rows_are_the_blocks() {
    let a = matrix();
    for threads_per_vector in [2, 8, 32] {
        for schedule in [Schedule::Natural, Schedule::Adversarial(5)] {
            let algorithms = [
                Algorithm::from(LightVector { threads_per_vector, ..LightVector::default() }),
                Algorithm::from(LightWarp { threads_per_vector, ..LightWarp::default() }),
                Algorithm::from(LightWarp { threads_per_vector, resident: 0, ..LightWarp::default() }),
            ];
            for algorithm in algorithms {
                check(&a, algorithm, THREADS_PER_BLOCK, schedule);
            }
        }
    }
}

/// More rows than blocks own: tickets of several rounds are drawn, then those of one; or nothing is drawn.
#[test]
fn many_short_rows() {
    let num_rows = 40_000;
    let mut row_offsets = vec![0u32];
    row_offsets.extend((1..=num_rows).map(|row| row * 2 - row / 3));
    let nnz = row_offsets[num_rows as usize];
    let cols = (0..num_rows as usize)
        .flat_map(|row| (0..row_offsets[row + 1] - row_offsets[row]).map(move |k| (row as u32 % 7) * 2 + k))
        .collect();
    let values = (0..nnz).map(|k| f64::from(k % 9) - 4.0).collect();
    let a = CsrMatrix::new(num_rows as usize, 14, row_offsets, cols, values).unwrap();
    for (threads_per_vector, threads_per_block) in [(4, 32), (4, 64), (8, 64), (32, 64)] {
        for schedule in [Schedule::Natural, Schedule::Adversarial(3)] {
            let drawn = LightVector { threads_per_vector, ..LightVector::default() };
            // A warp has its round from the hardware.
            let given = LightVector { rows_per_fetch: 1, resident: 0, ..drawn };
            for algorithm in [drawn, given] {
                check(&a, algorithm.into(), threads_per_block, schedule);
            }
        }
    }
}

/// Rows alike, long enough for half a warp each, and not a whole number of blocks.
#[test]
fn half_warps_take_several_rows() {
    let (num_rows, length) = (333, 80);
    let row_offsets = (0..=num_rows).map(|row| row * length).collect();
    let cols = (0..num_rows).flat_map(|row| (0..length).map(move |k| (row + k) % 97)).collect();
    let values = (0..num_rows * length).map(|k| f64::from(k % 9) - 4.0).collect();
    let a = CsrMatrix::new(num_rows as usize, 97, row_offsets, cols, values).unwrap();
    for rows_per_half_warp in [1, 2, 4] {
        for schedule in [Schedule::Natural, Schedule::Adversarial(7)] {
            check(&a, CsrAdaptive { rows_per_half_warp, ..CsrAdaptive::default() }.into(), 64, schedule);
        }
    }
}
