//! What cache_blocked could get wrong and small matrices do not show: many row tiles, column tiles that are copied and
//! stretches that are not, rows of more slots than a block has warps, and that its bits never change.

mod structures;

use spmv_codegen::{CacheBlocked, KernelConfig, ValueType};
use spmv_matrix::CsrMatrix;
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, Spmv, Vector};

fn config() -> KernelConfig {
    KernelConfig::builder(CacheBlocked { shared_kib: 16, blocks: 20 }).value(ValueType::F64).build().unwrap()
}

/// y <- 2 A x - y, `times` in a row on one plan, each from y = 1, and the counts of the plan.
fn products(
    schedule: Schedule,
    a: &CsrMatrix<f64>,
    x: &[f64],
    times: usize,
) -> (Vec<Vec<f64>>, Vec<(String, u64)>) {
    let device = Device::simulator_with(schedule);
    let mut plan = Spmv::with(&device, a, config()).unwrap();
    let x = Vector::from_slice(&device, x).unwrap();
    let product = |_| {
        let mut y = Vector::<f64>::zeros(&device, a.num_rows()).unwrap();
        y.fill(1.0).unwrap();
        plan.apply(2.0, &x, -1.0, &mut y).unwrap();
        y.to_vec().unwrap()
    };
    let products = (0..times).map(product).collect();
    let counts = plan.counts().map(|(name, value)| (name.to_owned(), value)).collect();
    (products, counts)
}

fn expected(a: &CsrMatrix<f64>, x: &[f64]) -> Vec<f64> {
    let row = |row: usize| {
        let range = a.row_offsets()[row] as usize..a.row_offsets()[row + 1] as usize;
        let products = a.col_indices()[range.clone()].iter().zip(&a.values()[range]);
        products.map(|(col, value)| 2.0 * value * x[*col as usize]).sum::<f64>() - 1.0
    };
    (0..a.num_rows()).map(row).collect()
}

/// Four row tiles, and columns in three stretches: some many rows have, most few. Every fifth row is empty, two are
/// long, one of them where a tile ends, and rows name columns twice and in any order.
fn uneven(whole: bool) -> CsrMatrix<f64> {
    let num_cols = 140_000u32;
    let random = structures::random(60_000, 11);
    let mut next = random.iter().cycle();
    let mut number = move |below: u32| ((next.next().unwrap().abs() * 1e6) as u32) % below;
    let rows: Vec<Vec<(u32, f64)>> = (0..4500u32)
        .map(|row| {
            let len = match row {
                1000 => 9000,
                1880 => 3000,
                _ if row % 5 == 1 => 0,
                _ => 1 + number(6),
            };
            (0..len)
                .map(|entry| {
                    let col = match number(3) {
                        0 => number(num_cols),
                        1 => 65_400 + number(300),
                        _ => number(700),
                    };
                    let value =
                        if whole { f64::from(number(7)) - 3.0 } else { random[(row + entry) as usize] };
                    (col, value)
                })
                .collect()
        })
        .collect();
    structures::from_rows(num_cols as usize, rows)
}

#[test]
fn many_cells() {
    let a = uneven(true);
    let x: Vec<f64> = (0..a.num_cols()).map(|col| (col % 9) as f64 - 4.0).collect();
    let expected = expected(&a, &x);
    for schedule in [Schedule::Natural, Schedule::Adversarial(1), Schedule::Adversarial(2)] {
        let (products, counts) = products(schedule, &a, &x, 2);
        assert_eq!(products, [expected.clone(), expected.clone()]);
        let count = |name: &str| counts.iter().find(|(known, _)| known == name).unwrap().1;
        assert!(count("row_slots") > 3 * 1024 && count("row_slots") > a.num_rows() as u64 * 4 / 5);
        assert!(count("cells") > 3 * 3);
    }
}

#[test]
fn the_same_bits_in_every_schedule() {
    let a = uneven(false);
    let x = structures::random(a.num_cols(), 12);
    let first = products(Schedule::Natural, &a, &x, 1).0.remove(0);
    for seed in 0..4 {
        let (products, _) = products(Schedule::Adversarial(seed), &a, &x, 1);
        assert!(products[0].iter().zip(&first).all(|(a, b)| a.to_bits() == b.to_bits()), "schedule {seed}");
    }
}

/// An entry that is not finite stays out of the rows that do not name it, also where fill lies beside it.
#[test]
fn fill_touches_no_x() {
    let a = uneven(true);
    let mut x = vec![1.0; a.num_cols()];
    x[0] = f64::INFINITY;
    x[65_536] = f64::NAN;
    let (products, _) = products(Schedule::Natural, &a, &x, 1);
    for (row, (y, expected)) in products[0].iter().zip(expected(&a, &x)).enumerate() {
        assert!(*y == expected || y.is_nan() && expected.is_nan(), "row {row}: {y}, not {expected}");
    }
}
