//! What cache_blocked, two_phase and hot_columns could get wrong and small matrices do not show: many row tiles, column tiles
//! that are copied and columns that are not, rows in many parts, and that their bits never change; for csr5 too, where values
//! are encoded.

mod structures;

use spmv_codegen::{Algorithm, CacheBlocked, Csr5, HotColumns, KernelConfig, TwoPhase, ValueType};
use spmv_matrix::CsrMatrix;
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, Spmv, Vector};

fn cache_blocked() -> Algorithm {
    CacheBlocked { shared_kib: 16, blocks: 20, encoding: 0 }.into()
}

fn two_phase() -> Algorithm {
    TwoPhase { tile_kib: 16, bin_kib: 32, distinct: 0, encoding: 0 }.into()
}

fn hot_columns() -> Algorithm {
    HotColumns { shared_kib: 16, encoding: 0 }.into()
}

/// y <- 2 A x - y, `times` in a row on one plan, each from y = 1, and the counts of the plan.
fn products(
    algorithm: Algorithm,
    schedule: Schedule,
    a: &CsrMatrix<f64>,
    x: &[f64],
    times: usize,
) -> (Vec<Vec<f64>>, Vec<(String, u64)>) {
    let device = Device::simulator_with(schedule);
    let config = KernelConfig::builder(algorithm).value(ValueType::F64).build().unwrap();
    // Shares of several steps, which hot_columns has for millions of entries.
    let source = config.program().source.replace("kFewShares = 32768;", "kFewShares = 16;");
    // SAFETY: parameters stay as they are, and the device is a simulator, which checks what kernels do.
    let mut plan = unsafe { Spmv::with_source(&device, a, config, &source) }.unwrap();
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

/// Exact products in three schedules, and each plan's counts as `check` wants them.
fn is_exact(algorithm: Algorithm, check: impl Fn(&CsrMatrix<f64>, &dyn Fn(&str) -> u64)) {
    let a = uneven(true);
    let x: Vec<f64> = (0..a.num_cols()).map(|col| (col % 9) as f64 - 4.0).collect();
    let expected = expected(&a, &x);
    for schedule in [Schedule::Natural, Schedule::Adversarial(1), Schedule::Adversarial(2)] {
        let (products, counts) = products(algorithm, schedule, &a, &x, 2);
        assert_eq!(products, [expected.clone(), expected.clone()]);
        check(&a, &|name| counts.iter().find(|(known, _)| known == name).unwrap().1);
    }
}

#[test]
fn many_cells() {
    is_exact(cache_blocked(), |a, count| {
        assert!(count("row_slots") > 3 * 1024 && count("row_slots") > a.num_rows() as u64 * 4 / 5);
        assert!(count("cells") > 3 * 3);
    });
}

#[test]
fn many_runs_in_bins() {
    is_exact(two_phase(), |a, count| {
        // The last packet of a run is seldom full; rows end in other bins than they begin in, and some are empty.
        let nnz = a.nnz() as u64;
        assert!(4 * count("packets") > nnz + count("runs"));
        // Empty rows stand alone, and the first has an item where it is one.
        assert_eq!(count("empty_items"), u64::from(a.row_offsets()[1] == 0));
        // 69 tiles, and 4,092 slots for f64 products: at worst three of each run are lost.
        let num_tiles = a.num_cols().div_ceil(2048) as u64;
        let bin_items = (4092 - 3 * num_tiles) / 256 * 256;
        assert_eq!(count("bins"), (nnz + count("empty_items")).div_ceil(bin_items));
        assert!(count("runs") > 20 * count("bins"));
    });
}

#[test]
fn many_shares() {
    is_exact(hot_columns(), |a, count| {
        // 2,048 columns are hot, of which most are the few that a third of all entries are in.
        assert_eq!(count("filled_rows"), a.num_rows() as u64 * 4 / 5);
        assert!(a.nnz() > 128 * 8 * 16 && a.num_cols() > 2048);
    });
}

/// Rows of many bins, bins in which no row ends, more tiles than slots leave room for, and the end of a row at that of a
/// bin.
#[test]
fn rows_go_through_bins() {
    const BIN_ITEMS: usize = 768;
    let num_cols = 3_000_000u32;
    let row = |len: usize, seed: u32| -> Vec<(u32, f64)> {
        let entry = |i: usize| ((i as u32 * 7919 + seed * 104_729) % num_cols, ((i + 3) % 7) as f64 - 3.0);
        (0..len).map(entry).collect()
    };
    let lens = [5 * BIN_ITEMS, 1, 0, BIN_ITEMS - 2, BIN_ITEMS, 0, 3, 40 * BIN_ITEMS + 17, 0, 0, 2];
    let rows: Vec<_> = lens.iter().enumerate().map(|(seed, &len)| row(len, seed as u32)).collect();
    let a = structures::from_rows(num_cols as usize, rows);
    let x: Vec<f64> = (0..num_cols).map(|col| (col % 9) as f64 - 4.0).collect();
    let (products, counts) = products(two_phase(), Schedule::Natural, &a, &x, 1);
    assert_eq!(products[0], expected(&a, &x));
    let bins = counts.iter().find(|(name, _)| name == "bins").unwrap().1;
    assert_eq!(bins, (a.nnz() as u64).div_ceil(BIN_ITEMS as u64));
}

/// Empty rows at either end and in stretches that are longer than a step has rows; of others every second to seventh has entries.
#[test]
fn empty_rows_in_stretches() {
    let row = |row: usize| -> Vec<(u32, f64)> {
        let is_empty =
            row < 3 || (1000..4200).contains(&row) || row % (2 + row / 4200 % 6) != 1 || row > 29_990;
        let entries = if is_empty { 0 } else { 1 + row % 3 };
        (0..entries).map(|i| ((row * 31 + i * 977) as u32 % 5000, (row % 5) as f64 - 2.0)).collect()
    };
    let a = structures::from_rows(5000, (0..30_011).map(row));
    let x: Vec<f64> = (0..a.num_cols()).map(|col| (col % 9) as f64 - 4.0).collect();
    for schedule in [Schedule::Natural, Schedule::Adversarial(5)] {
        let (products, counts) = products(two_phase(), schedule, &a, &x, 2);
        assert!(products.iter().all(|product| *product == expected(&a, &x)));
        // Aligned groups of four rows, most in stretches, and the first row.
        let groups = (0..a.num_rows().div_ceil(4)).filter(|group| {
            let offsets = a.row_offsets();
            offsets[4 * group] == offsets[(4 * group + 4).min(a.num_rows())]
        });
        assert!(counts.contains(&("empty_items".into(), 1 + groups.count() as u64)), "{counts:?}");
    }
}

/// Entries of a bin in the same column share a copy of its x, in whatever rows they are; no bit changes.
#[test]
fn shared_copies_change_no_bit() {
    let a = uneven(false);
    let x = structures::random(a.num_cols(), 14);
    let count = |counts: &[(String, u64)], name: &str| counts.iter().find(|count| count.0 == name).unwrap().1;
    let (own, of_entries) = products(two_phase(), Schedule::Natural, &a, &x, 1);
    let sharing = TwoPhase { tile_kib: 16, bin_kib: 32, distinct: 1, encoding: 0 };
    let (shared, of_columns) = products(sharing.into(), Schedule::Adversarial(6), &a, &x, 1);
    assert!(own[0].iter().zip(&shared[0]).all(|(a, b)| a.to_bits() == b.to_bits()));
    assert_eq!(count(&of_columns, "runs"), count(&of_entries, "runs"));
    let bin_items = (4092 - 3 * a.num_cols().div_ceil(2048)) / 256 * 256;
    // Row 0, which is empty, may have an item of its own.
    let skipped = count(&of_columns, "empty_items") as usize;
    let bins = a.col_indices().iter().enumerate().map(|(entry, col)| ((entry + skipped) / bin_items, col));
    let copies = bins.collect::<std::collections::BTreeSet<_>>().len() as u64;
    assert_eq!(count(&of_columns, "copies"), copies);
    assert!(
        copies < a.nnz() as u64 * 19 / 20 && count(&of_columns, "packets") < count(&of_entries, "packets")
    );
}

#[test]
fn the_same_bits_in_every_schedule() {
    let a = uneven(false);
    let x = structures::random(a.num_cols(), 12);
    for algorithm in [cache_blocked(), two_phase(), hot_columns()] {
        let first = products(algorithm, Schedule::Natural, &a, &x, 1).0.remove(0);
        for seed in 0..4 {
            let (products, _) = products(algorithm, Schedule::Adversarial(seed), &a, &x, 1);
            let same = products[0].iter().zip(&first).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{}, schedule {seed}", algorithm.name());
        }
    }
}

/// An entry that is not finite stays out of the rows that do not name it, also where fill lies beside it.
#[test]
fn fill_touches_no_x() {
    let a = uneven(true);
    let mut x = vec![1.0; a.num_cols()];
    x[0] = f64::INFINITY;
    x[65_536] = f64::NAN;
    for algorithm in [cache_blocked(), two_phase(), hot_columns()] {
        let (products, _) = products(algorithm, Schedule::Natural, &a, &x, 1);
        for (row, (y, expected)) in products[0].iter().zip(expected(&a, &x)).enumerate() {
            assert!(*y == expected || y.is_nan() && expected.is_nan(), "row {row}: {y}, not {expected}");
        }
    }
}

/// Encoded values are those that they were: products have the bits of those that read values as they are, also where a row is
/// empty and where one value keeps all from being encoded.
#[test]
fn encoded_values_change_no_bit() {
    let whole = uneven(true);
    let x = structures::random(whole.num_cols(), 13);
    let with_last = |last: f64| {
        let mut values = whole.values().to_vec();
        *values.last_mut().unwrap() = last;
        let (offsets, cols) = (whole.row_offsets().to_vec(), whole.col_indices().to_vec());
        CsrMatrix::new(whole.num_rows(), whole.num_cols(), offsets, cols, values).unwrap()
    };
    // A value that is as given, as f32, and a whole number of a byte; what of the encodings does not keep it.
    for (last, others) in [(-127.0, [0, 0]), (0.375, [0, 1]), (-0.0, [0, 1]), (0.1, [1, 1])] {
        let a = with_last(last);
        for algorithm in [cache_blocked(), two_phase(), hot_columns(), Csr5::default().into()] {
            let (as_given, _) = products(algorithm, Schedule::Natural, &a, &x, 1);
            for (encoding, others) in [1, 3].into_iter().zip(others) {
                let encoded = algorithm.with_encoding(encoding);
                assert_eq!(encoded.encoding(), Some(encoding));
                let (products, counts) = products(encoded, Schedule::Natural, &a, &x, 1);
                let same = products[0].iter().zip(&as_given[0]).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{}, encoding = {encoding}, {last}", algorithm.name());
                assert!(counts.contains(&("other_values".into(), others)), "{last}: {counts:?}");
            }
        }
    }
}
