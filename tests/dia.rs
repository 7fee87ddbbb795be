//! What a thread that stores two rows at once must not forget of diagonals: which rows they are.

use spmv_codegen::KernelConfig;
use spmv_matrix::{CsrMatrix, f16};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, Spmv, Vector};

const ROWS: usize = 777;

/// Three diagonals, whose numbers of columns from the main one are odd and even; whole numbers, which are exact.
fn matrix() -> CsrMatrix<f16> {
    let (mut row_offsets, mut cols, mut values) = (vec![0u32], vec![], vec![]);
    for row in 0..ROWS {
        for col in
            [row.checked_sub(3), Some(row), Some(row + 4)].into_iter().flatten().filter(|&col| col < ROWS)
        {
            cols.push(col as u32);
            values.push(f16::from_f32(((row + col) % 5) as f32 - 2.0));
        }
        row_offsets.push(cols.len() as u32);
    }
    CsrMatrix::new(ROWS, ROWS, row_offsets, cols, values).unwrap()
}

#[test]
fn an_epilogue_is_told_its_row() {
    let a = matrix();
    let (x, b): (Vec<f32>, Vec<f32>) = (0..ROWS).map(|i| ((i % 7) as f32 - 3.0, (i % 11) as f32)).unzip();
    let expected: Vec<f32> = (0..ROWS)
        .map(|row| {
            let entries = a.row_offsets()[row] as usize..a.row_offsets()[row + 1] as usize;
            let sum: f32 = entries.map(|j| a.values()[j].to_f32() * x[a.col_indices()[j] as usize]).sum();
            sum + b[row] - row as f32
        })
        .collect();
    let halves = |numbers: &[f32]| numbers.iter().map(|&number| f16::from_f32(number)).collect::<Vec<_>>();
    for schedule in [Schedule::Natural, Schedule::Adversarial(5)] {
        let device = Device::simulator_with(schedule);
        let mut config = KernelConfig::named("dia").unwrap();
        for (key, value) in [
            ("value", "f16"),
            ("accumulator", "f32"),
            ("epilogue", "|row, sum, y, b| sum + b - row as f32"),
            ("vectors", "[b]"),
        ] {
            config.set(key, value).unwrap();
        }
        let mut plan = Spmv::with(&device, &a, config.build().unwrap()).unwrap();
        plan.set_vector("b", &Vector::from_slice(&device, &halves(&b)).unwrap()).unwrap();
        let mut y = Vector::from_slice(&device, &vec![f16::NAN; ROWS]).unwrap();
        plan.apply(1.0, &Vector::from_slice(&device, &halves(&x)).unwrap(), 0.0, &mut y).unwrap();
        assert_eq!(y.to_vec().unwrap(), halves(&expected));
    }
}
