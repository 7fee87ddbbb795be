//! What `special` packs is the matrix, entry by entry and bit by bit, and matrices that a layout is not for are refused.

mod prepared;
mod structures;

use prepared::{Prepared, prepare};
use spmv_codegen::{KernelConfig, Special, ValueType};
use spmv_matrix::CsrMatrix;
use spmv_runtime::{Device, Error, Spmv, Vector};
use structures::{Numbers, from_rows, random};

fn config(layout: Special) -> KernelConfig {
    KernelConfig::builder(layout).value(ValueType::F64).build().unwrap()
}

/// Rows of (column, bits of the value), in their order.
type Rows = Vec<Vec<(u32, u64)>>;

fn rows_of(a: &CsrMatrix<f64>) -> Rows {
    let row = |row: usize| {
        let range = a.row_offsets()[row] as usize..a.row_offsets()[row + 1] as usize;
        let values = a.values()[range.clone()].iter().map(|value| value.to_bits());
        a.col_indices()[range].iter().copied().zip(values).collect()
    };
    (0..a.num_rows()).map(row).collect()
}

/// Where what a lane loads at once lies beside what the other lanes do.
fn place(count: usize, bytes: usize, step: usize, lane: usize, i: usize) -> usize {
    let per_load = (1usize << count.trailing_zeros()).min(16 / bytes);
    ((step * (count / per_load) + i / per_load) * 32 + lane) * per_load + i % per_load
}

/// The matrix that was packed.
struct Packed {
    layout: Special,
    targets: Vec<u32>,
    cut_rows: Vec<u32>,
    permutation: Vec<u16>,
    is_moved: bool,
    step_offsets: Vec<u32>,
    cols: Vec<u32>,
    upper_cols: Vec<u16>,
    bases: Vec<u32>,
    values: Vec<f64>,
    value_bytes: usize,
}

impl Packed {
    fn new(layout: Special, device: &Prepared) -> Packed {
        let permutation = device.half_words("permutation");
        let sigma = layout.sigma as usize;
        let is_moved = permutation.iter().enumerate().any(|(place, row)| place % sigma != usize::from(*row));
        // What is encoded is not there as it was.
        let (values, value_bytes) = match layout.encoding {
            1 if !device.bytes("encoded_values").is_empty() => {
                let narrow = device.words("encoded_values").into_iter();
                (narrow.map(|bits| f64::from(f32::from_bits(bits))).collect(), 4)
            }
            2 if !device.bytes("encoded_values").is_empty() => {
                let table = device.long_words("table");
                let places = device.bytes("encoded_values").iter();
                (places.map(|place| f64::from_bits(!table[usize::from(*place)])).collect(), 1)
            }
            3 if !device.bytes("encoded_values").is_empty() => {
                let stored = device.bytes("encoded_values").iter();
                (stored.map(|byte| f64::from(i16::from(*byte) - 128)).collect(), 1)
            }
            _ => (device.doubles("slot_values"), 8),
        };
        let cols = match layout.col_bits {
            16 => device.half_words("slot_cols").into_iter().map(u32::from).collect(),
            _ => device.words("slot_cols"),
        };
        Packed {
            layout,
            targets: device.words("targets"),
            cut_rows: device.words("cut_rows"),
            permutation,
            step_offsets: device.words("step_offsets"),
            is_moved,
            cols,
            upper_cols: device.half_words("upper_cols"),
            bases: device.words("bases"),
            values,
            value_bytes,
        }
    }

    fn slots(&self) -> usize {
        (self.layout.rows_per_lane * self.layout.entries_per_step) as usize
    }

    /// The column of a slot, in blocks.
    fn col(&self, step: usize, lane: usize, i: usize) -> Option<u32> {
        let slots = self.slots();
        if self.layout.col_bits == 32 {
            let col = self.cols[place(slots, 4, step, lane, i)];
            return (col != u32::MAX).then_some(col);
        }
        let (low, base) = (self.cols[place(slots, 2, step, lane, i)], self.bases[step]);
        if base >> 31 == 0 {
            return (low != 0xffff).then(|| base + low);
        }
        let rank = (base & 0x7fff_ffff) as usize;
        let col = u32::from(self.upper_cols[place(slots, 2, rank, lane, i)]) << 16 | low;
        (col != u32::MAX).then_some(col)
    }

    /// The row and the piece that the place is for.
    fn target(&self, place: usize) -> (usize, usize) {
        if !self.targets.is_empty() {
            let target = self.targets[place] as usize;
            if target >> 31 == 0 {
                return (target, 0);
            }
            let part = target & 0x7fff_ffff;
            let of_part = self.cut_rows.chunks_exact(2).rfind(|cut| cut[1] as usize <= part).unwrap();
            return (of_part[0] as usize, part - of_part[1] as usize);
        }
        let (row, sigma) = (place as u32, self.layout.sigma);
        let is_sorted = sigma > 1 && self.is_moved;
        let row = if is_sorted { row / sigma * sigma + u32::from(self.permutation[place]) } else { row };
        (row as usize, 0)
    }

    fn rows(&self, num_rows: usize, num_places: usize) -> Rows {
        let Special { block, lanes_per_row, rows_per_lane, entries_per_step, .. } = self.layout;
        let [block, lanes, per_lane, per_step] =
            [block, lanes_per_row, rows_per_lane, entries_per_step].map(|number| number as usize);
        let offsets = &self.step_offsets;
        let mut pieces: Vec<Vec<Vec<(u32, u64)>>> = vec![Vec::new(); num_rows];
        for at in 0..num_places {
            let (slice, in_slice) = (at / (32 / lanes * per_lane), at % (32 / lanes * per_lane));
            let (r, first_lane) = (in_slice / (32 / lanes), in_slice % (32 / lanes) * lanes);
            let mut entries: Vec<Vec<(u32, u64)>> = vec![Vec::new(); block];
            for step in offsets[slice] as usize..offsets[slice + 1] as usize {
                for k in 0..lanes * per_step {
                    let (lane, i) = (first_lane + k % lanes, r * per_step + k / lanes);
                    let Some(col) = self.col(step, lane, i) else { continue };
                    for v in 0..block * block {
                        let count = self.slots() * block * block;
                        let value =
                            self.values[place(count, self.value_bytes, step, lane, i * block * block + v)];
                        entries[v / block].push((col * block as u32 + (v % block) as u32, value.to_bits()));
                    }
                }
            }
            let (row, piece) = self.target(at);
            for (r, entries) in entries.into_iter().enumerate() {
                let pieces = &mut pieces[row * block + r];
                pieces.resize(pieces.len().max(piece + 1), Vec::new());
                pieces[piece] = entries;
            }
        }
        pieces.into_iter().map(|pieces| pieces.concat()).collect()
    }
}

fn check(layout: Special, a: &CsrMatrix<f64>, what: &str) -> Vec<u64> {
    let config = config(layout);
    let device = prepare(&config.program(), &prepared::module(&config), a);
    let places = match device.words("targets").len() {
        0 => a.num_rows().div_ceil(layout.block as usize),
        pieces => pieces,
    };
    let unpacked = Packed::new(layout, &device).rows(a.num_rows(), places);
    assert!(unpacked == rows_of(a), "{what} in {layout:?}");
    device.counts.clone()
}

/// Layouts in which every choice occurs.
fn layouts() -> Vec<Special> {
    let usual = Special::default();
    vec![
        usual,
        Special { rows_per_lane: 4, entries_per_step: 1, sigma: 256, ..usual },
        Special { rows_per_lane: 2, entries_per_step: 2, sigma: 1024, piece: 128, encoding: 1, ..usual },
        Special { lanes_per_row: 32, entries_per_step: 8, encoding: 2, ..usual },
        Special {
            lanes_per_row: 4,
            rows_per_lane: 2,
            sigma: 4096,
            piece: 512,
            col_bits: 32,
            encoding: 3,
            ..usual
        },
    ]
}

#[test]
fn every_structure_comes_back() {
    // A third of the structures each, and every structure with one layout or two.
    for (turn, layout) in layouts().into_iter().enumerate() {
        for structure in structures::all().into_iter().skip(turn % 3).step_by(3) {
            check(layout, &structure.matrix(Numbers::Random), structure.name);
        }
    }
}

/// Steps that reach just as far as 16 bits, and just farther.
#[test]
fn far_columns_come_back() {
    let row = |row: u32| {
        let reach = [65_534, 65_535, 131_072, 7][row as usize / 64];
        vec![(row % 3, 1.5), (row % 3 + reach, f64::from(row)), (200_000, -0.0)]
    };
    let a = from_rows(200_001, (0..256).map(row));
    for layout in layouts() {
        check(layout, &a, "far columns");
    }
    let layout = Special { entries_per_step: 1, ..Special::default() };
    let (row, num_cols) = (|col: u32| vec![(col, 2.0)], 70_000);
    for (reach, wide) in [(65_534, 0), (65_535, 1)] {
        let a = from_rows(num_cols, [row(5), row(5 + reach)]);
        assert_eq!(check(layout, &a, "two columns"), [2, 0, 1, wide], "pieces, cut rows, steps, wide steps");
    }
}

/// Rows of blocks that are there in any order, and several times.
fn blocks(block: u32, rows_of_blocks: &[&[u32]]) -> CsrMatrix<f64> {
    let mut values = random(100_000, 5).into_iter();
    let row = |blocks: &&[u32]| {
        let cols: Vec<u32> = blocks.iter().flat_map(|&b| b * block..(b + 1) * block).collect();
        let mut row = || cols.iter().map(|&col| (col, values.next().unwrap())).collect::<Vec<_>>();
        (0..block).map(|_| row()).collect::<Vec<_>>()
    };
    let rows: Vec<_> = rows_of_blocks.iter().flat_map(row).collect();
    from_rows(120 * block as usize, rows)
}

#[test]
fn blocks_come_back_and_are_multiplied() {
    let patterns: [&[u32]; 5] = [&[3, 1, 100], &[], &[7], &[5, 5, 2, 0, 119], &[4, 6]];
    let rows_of_blocks: Vec<_> = patterns.into_iter().cycle().take(77).collect();
    for (block, lanes_per_row, entries_per_step, sigma) in
        [(2, 1, 4, 1), (3, 1, 1, 1), (3, 2, 2, 256), (4, 1, 2, 1), (6, 8, 1, 1)]
    {
        let layout = Special { block, lanes_per_row, entries_per_step, sigma, ..Special::default() };
        let a = blocks(block, &rows_of_blocks);
        check(layout, &a, "blocks");
        check_product(layout, &a);
    }
}

/// Whole blocks alone are stored in blocks.
#[test]
fn what_is_not_in_blocks_is_refused() {
    let whole = blocks(2, &[&[0, 3], &[1], &[2]]);
    let mut rows: Vec<Vec<(u32, f64)>> = rows_of(&whole)
        .into_iter()
        .map(|row| row.into_iter().map(|(col, bits)| (col, f64::from_bits(bits))).collect())
        .collect();
    let device = Device::simulator();
    let layout = Special { block: 2, ..Special::default() };
    let refused = |rows: &Vec<Vec<(u32, f64)>>, wanted: u64| {
        let a = from_rows(240, rows.clone());
        match Spmv::with(&device, &a, config(layout)) {
            Ok(_) => assert_eq!(wanted, 0),
            Err(Error::Misfit { algorithm, number, .. }) => {
                assert_eq!((algorithm, number), ("special", wanted))
            }
            Err(error) => panic!("{error}"),
        }
    };
    refused(&rows, 0);
    let other_order = rows.clone();
    rows[3].swap(0, 1);
    refused(&rows, 1);
    rows[1].remove(3);
    refused(&rows, 2);
    rows.pop();
    refused(&rows, 3);
    rows = other_order;
    rows[4].iter_mut().for_each(|(col, _)| *col += 1);
    rows[5].iter_mut().for_each(|(col, _)| *col += 1);
    refused(&rows, 1);
}

/// Values are narrowed only where each comes back as it was.
#[test]
fn values_are_narrowed_without_loss() {
    let layout = Special { encoding: 1, ..Special::default() };
    let narrow = [1.5, -0.0, 0.0, f64::INFINITY, f64::from(f32::MIN_POSITIVE), f64::from(1e-45f32)];
    let signalling = f64::from_bits(0x7ff0_0000_0000_0001);
    for (value, others) in [(2.0, 0), (0.1, 1), (1e300, 1), (1e-320, 1), (signalling, 1)] {
        let row = narrow.into_iter().chain([value]).enumerate().map(|(col, value)| (col as u32, value));
        let a = from_rows(7, [row.collect()]);
        let counts = check(layout, &a, "values");
        assert_eq!(counts[0], others, "{value}");
        check_product(layout, &a);
    }
}

/// Whole numbers up to 127 are stored as bytes; zero with a sign is none.
#[test]
fn whole_numbers_are_stored_as_bytes() {
    let layout = Special { encoding: 3, ..Special::default() };
    let whole =
        |row: u32| (0..3).map(move |k| (k * 5 + row % 7, f64::from((row * 3 + k) % 255) - 127.0)).collect();
    for (value, others) in [
        (127.0, 0),
        (-127.0, 0),
        (0.0, 0),
        (-0.0, 1),
        (128.0, 1),
        (-128.0, 1),
        (1.5, 1),
        (f64::from_bits(4_611_686_018_427_387_905), 1),
        (f64::NAN, 1),
        (f64::NEG_INFINITY, 1),
        (1e300, 1),
        (1e-300, 1),
    ] {
        let a = from_rows(60, (0..500).map(whole).chain([vec![(3, value)]]));
        let counts = check(layout, &a, "whole numbers");
        assert_eq!(counts[0], others, "{value}");
        let config = config(layout);
        let device = prepare(&config.program(), &prepared::module(&config), &a);
        assert_eq!(!device.bytes("encoded_values").is_empty(), others == 0, "{value}");
        check_product(layout, &a);
    }
}

/// Up to 256 values are stored by their places in a table.
#[test]
fn few_values_are_stored_once() {
    let layout = Special { encoding: 2, ..Special::default() };
    for (different, encoded) in [(1, true), (7, true), (256, true), (257, false), (4000, false)] {
        // 0 and -0 differ, and so do numbers that f32 has not.
        let value = |i: u32| if i % different == 1 { -0.0 } else { f64::from(i % different) / 3.0 };
        let row = |row: u32| (0..9).map(|k| (k * 5 + row % 7, value(row * 9 + k))).collect();
        let a = from_rows(60, (0..500).map(row));
        let config = config(layout);
        let device = prepare(&config.program(), &prepared::module(&config), &a);
        assert_eq!(!device.bytes("encoded_values").is_empty(), encoded, "{different}");
        assert!(!encoded || device.counts[0] == u64::from(different), "{:?}", device.counts);
        check(layout, &a, "few values");
        check_product(layout, &a);
    }
    // The key of this one would say that nothing is there.
    let odd = from_rows(2, [vec![(0, 1.0), (1, f64::from_bits(u64::MAX))]]);
    check(layout, &odd, "a NaN of ones");
    check_product(layout, &from_rows(3, [vec![(1, f64::INFINITY)], vec![(0, 1.0), (1, 2.0), (2, -1.0)]]));
}

fn check_product(layout: Special, a: &CsrMatrix<f64>) {
    let x = Numbers::Integers.vector(a.num_cols(), 3);
    let mut expected = vec![1.0; a.num_rows()];
    spmv_matrix::cpu_serial(2.0, a, &x, -1.0, &mut expected).unwrap();
    let device = Device::simulator();
    let x = Vector::from_slice(&device, &x).unwrap();
    let mut y = Vector::from_slice(&device, &vec![1.0; a.num_rows()]).unwrap();
    Spmv::with(&device, a, config(layout)).unwrap().apply(2.0, &x, -1.0, &mut y).unwrap();
    for (y, expected) in y.to_vec().unwrap().iter().zip(&expected) {
        let alike = (y - expected).abs() <= 1e-12 * expected.abs().max(1.0);
        assert!(
            alike || y.to_bits() == expected.to_bits() || y.is_nan() && expected.is_nan(),
            "{y} {expected} {layout:?}"
        );
    }
}
