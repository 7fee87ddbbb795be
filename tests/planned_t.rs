//! What planned_t could get wrong and small matrices do not show: many tiles and segments between them, columns of many
//! pieces, stretches of empty columns, and that its bits never change.

mod structures;

use spmv_codegen::{Algorithm, Arg, CsrScalar, KernelConfig, Operation, PlannedT, ValueType};
use spmv_matrix::CsrMatrix;
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, Spmv, Vector};

fn config(tile_kib: u32) -> KernelConfig {
    KernelConfig::builder(PlannedT { tile_kib }).value(ValueType::F64).build().unwrap()
}

/// y <- 2 A^T x - y, `times` in a row on one plan, each from y = 1.
fn products(schedule: Schedule, a: &CsrMatrix<f64>, x: &[f64], tile_kib: u32, times: usize) -> Vec<Vec<f64>> {
    let device = Device::simulator_with(schedule);
    let mut plan = Spmv::with(&device, a, config(tile_kib)).unwrap();
    let x = Vector::from_slice(&device, x).unwrap();
    let product = |_| {
        let mut y = Vector::<f64>::zeros(&device, a.num_cols()).unwrap();
        y.fill(1.0).unwrap();
        plan.apply(2.0, &x, -1.0, &mut y).unwrap();
        y.to_vec().unwrap()
    };
    (0..times).map(product).collect()
}

fn expected(a: &CsrMatrix<f64>, x: &[f64]) -> Vec<f64> {
    let mut y = vec![-1.0; a.num_cols()];
    for (row, entry) in x.iter().enumerate() {
        let range = a.row_offsets()[row] as usize..a.row_offsets()[row + 1] as usize;
        for (col, value) in a.col_indices()[range.clone()].iter().zip(&a.values()[range]) {
            y[*col as usize] += 2.0 * value * entry;
        }
    }
    y
}

/// Rows of every kind, with every third empty; columns that few or all rows have; gaps of 1, 64 and 65 empty columns
/// and more, also at both ends.
fn uneven(whole: bool) -> CsrMatrix<f64> {
    let num_cols = 2000u32;
    let random = structures::random(40_000, 11);
    let mut next = random.iter().cycle();
    let mut number = move |below: u32| ((next.next().unwrap().abs() * 1e6) as u32) % below;
    let rows: Vec<Vec<(u32, f64)>> = (0..3000u32)
        .map(|row| {
            if row % 3 == 1 {
                return vec![];
            }
            let len = if row == 600 { 1500 } else { number(12) };
            let mut entries = vec![(700, f64::from(row % 5) - 2.0)];
            for _ in 0..len {
                let col = number(num_cols);
                let is_gap = matches!(col, 0..=80 | 101 | 200..=263 | 300..=364 | 1900..);
                let value = if whole { f64::from(number(7)) - 3.0 } else { random[number(40_000) as usize] };
                if !is_gap {
                    entries.push((col, value));
                }
            }
            entries
        })
        .collect();
    structures::from_rows(num_cols as usize, rows)
}

#[test]
fn many_tiles() {
    let a = uneven(true);
    let x: Vec<f64> = (0..a.num_rows()).map(|row| (row % 9) as f64 - 4.0).collect();
    let expected = expected(&a, &x);
    for (tile_kib, schedule) in
        [(16, Schedule::Natural), (16, Schedule::Adversarial(1)), (32, Schedule::Adversarial(2))]
    {
        assert!(a.nnz() > 2 * 32 * 1024 / 8, "more than two tiles");
        assert_eq!(
            products(schedule, &a, &x, tile_kib, 2),
            [expected.clone(), expected.clone()],
            "{tile_kib}"
        );
    }
}

/// A column with more pieces than a group of lanes takes, beside columns with few.
#[test]
fn a_giant_column() {
    let rows = (0..300_000u32).map(|row| {
        let mut entries = vec![(1, f64::from(row % 3) - 1.0)];
        entries.extend((row.is_multiple_of(1000)).then_some((row / 30_000 * 2, 1.0)));
        entries
    });
    let a = structures::from_rows(20, rows);
    let x: Vec<f64> = (0..a.num_rows()).map(|row| (row % 4) as f64).collect();
    assert_eq!(products(Schedule::Natural, &a, &x, 16, 1), [expected(&a, &x)]);
}

#[test]
fn the_same_bits_in_every_schedule() {
    let a = uneven(false);
    let x = structures::random(a.num_rows(), 12);
    let first = products(Schedule::Natural, &a, &x, 16, 1).remove(0);
    for seed in 0..10 {
        for y in products(Schedule::Adversarial(seed), &a, &x, 16, 1) {
            assert!(y.iter().zip(&first).all(|(a, b)| a.to_bits() == b.to_bits()), "schedule {seed}");
        }
    }
}

/// Values may change under a plan: it is made of the structure alone. A transposed copy is not.
#[test]
fn a_plan_is_made_without_values() {
    let takes_values = |config: KernelConfig| {
        config.program().prepare.iter().any(|pass| pass.args.iter().any(|arg| matches!(arg, Arg::Values)))
    };
    assert!(!takes_values(config(32)));
    let copied = KernelConfig::builder(CsrScalar::default()).operation(Operation::Transpose).build().unwrap();
    assert!(takes_values(copied));
    assert_eq!(Algorithm::from(PlannedT { tile_kib: 32 }).spec().operations, [Operation::Transpose]);
}
