//! Layouts of `special` for a matrix, from its features alone. How lanes share rows is a choice, whose shapes are listed here
//! and priced by the planner; the rest follows from the matrix by rules that were measured on an H200 (`docs/special.md`).

use crate::algorithm::Special;
use crate::features::Features;
use crate::types::ValueType;

/// A layout and the block size that suits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpecialLayout {
    /// The algorithm's parameters.
    pub parameters: Special,
    /// Threads a block.
    pub threads_per_block: u32,
}

/// Mean entries of a row below which a lane has several rows wherever they lie; below which it has them where rows are even;
/// from which on lanes share a row; and from which on a warp does.
const SHORT: f64 = 4.0;
const MEDIUM: f64 = 64.0;
const SHARED: f64 = 96.0;
const LONG: f64 = 512.0;
/// Slots an entry from which on rows are sorted.
const FILL: f64 = 1.08;
/// Times the mean length that pieces have at least: what is cut is added by a second pass.
const PIECE: f64 = 4.0;

/// Sectors of x that entries near each other read from which on reads of x decide how long a product takes; and how much
/// less long stretches must read for a multiprocessor to find them in its cache if it stays in one stretch of rows.
const SCATTERED: f64 = 0.3;
const REUSED: f64 = 0.5;
/// How many times the sectors of x a warp reads in a step where its lanes have a row each, over those where two share one, from
/// which on two do.
const APART: f64 = 1.3;

/// Slices from which on stretches are worth it: three for every four warps that are resident on an H200 in blocks of 1,024
/// threads, since nobody takes over from a block.
const FEWEST_SLICES: u64 = 132 * 32 * 3 / 4;

/// Bytes of different entries of x that a long stretch reads from which on, and up to which, a block has x in shared memory:
/// less stays in L1 beside what passes through, and of more too much is left out.
const WINDOW: std::ops::RangeInclusive<f64> = 49_152.0..=229_376.0;
const WINDOW_KIB: u32 = 160;

/// Rows and columns of dense blocks that are stored as such, the first that all of a matrix consists of. Blocks of 6 are four of
/// 3, which are at least as fast.
const BLOCKS: [u32; 3] = [4, 3, 2];

const fn shape(lanes_per_row: u32, rows_per_lane: u32, entries_per_step: u32, unroll: u32) -> Special {
    Special { lanes_per_row, rows_per_lane, entries_per_step, unroll, ..Special::DEFAULT }
}

const fn resident(shape: Special) -> Special {
    Special { resident: 1, ..shape }
}

/// Lanes with several short rows each; with two; with one.
const SEVERAL_ROWS: Special = shape(1, 4, 1, 2);
const TWO_ROWS: Special = shape(1, 2, 2, 2);
const USUAL: Special = shape(1, 1, 2, 4);
/// Rows that lanes share.
const BY_TWO: Special = shape(2, 1, 4, 2);
const BY_FOUR: Special = shape(4, 1, 4, 2);
const BY_EIGHT: Special = shape(8, 1, 4, 2);
const BY_WARP: Special = shape(32, 1, 4, 2);
/// Rows of blocks that lanes share.
const BLOCKS_BY_TWO: Special = Special { block: 2, ..shape(2, 1, 2, 1) };
const BLOCKS_BY_FOUR: Special = Special { block: 2, ..shape(4, 1, 1, 4) };

impl Special {
    /// How rows are shared out. Each is the fastest for some. Blocks of 2 × 2 stand for those of every size.
    pub const SHAPES: [Special; 15] = [
        SEVERAL_ROWS,
        resident(SEVERAL_ROWS),
        TWO_ROWS,
        resident(TWO_ROWS),
        shape(1, 1, 1, 4),
        USUAL,
        shape(1, 1, 4, 2),
        resident(shape(1, 1, 4, 2)),
        BY_TWO,
        BY_FOUR,
        BY_EIGHT,
        BY_WARP,
        BLOCKS_BY_TWO,
        Special { unroll: 2, ..BLOCKS_BY_FOUR },
        BLOCKS_BY_FOUR,
    ];

    /// The parameters that follow from a matrix, whatever the shape.
    pub const FOLLOWING: [&str; 5] = ["sigma", "piece", "col_bits", "encoding", "x_kib"];

    /// What of a layout of such values does not follow from a matrix: one of [`Special::SHAPES`].
    #[must_use]
    pub fn shape(self, value: ValueType) -> Special {
        let block = self.block.min(BLOCKS_BY_FOUR.block);
        let entries_per_step = (self.entries_per_step / self.times_entries(value)).max(1);
        Special {
            block,
            entries_per_step,
            sigma: 1,
            piece: USUAL.piece,
            col_bits: 16,
            encoding: 0,
            x_kib: 0,
            ..self
        }
    }

    /// Bytes whose time a value of this type takes, where all can be encoded.
    pub fn value_bytes(self, value: ValueType) -> usize {
        match self.encoding {
            // One byte more, or three, is what decoding takes as long as.
            1 if value == ValueType::F64 => 5,
            2 | 3 => 4,
            _ => value.size(),
        }
    }

    /// This shape for such values: where they take two bytes, a lane loads twice as many entries in a step, which are as many bytes,
    /// unless twice as many warps are resident then.
    #[must_use]
    pub fn for_values(self, value: ValueType) -> Special {
        Special { entries_per_step: self.entries_per_step * self.times_entries(value), ..self }
    }

    fn times_entries(self, value: ValueType) -> u32 {
        let has_more_warps = (self.resident, self.rows_per_lane) == (1, 2);
        if self.block == 1 && value.size() == 2 && !has_more_warps { 2 } else { 1 }
    }

    /// The layout of this shape, which is [for such values](Special::for_values), for a matrix with these features. Values are
    /// encoded where samples of them say that they can be; those of a matrix whose other values cannot are stored as they are.
    /// Blocks are stored where the rows
    /// that were looked at consist of them, whatever the shape, and nowhere else: a matrix that has others elsewhere is refused when
    /// it is prepared.
    pub fn laid_out(self, features: &Features, value: ValueType) -> SpecialLayout {
        let layout = self.grouped(features, value);
        let Special { block, lanes_per_row, .. } = layout.parameters;
        // What is stored in a byte takes as long as 4, and more where lanes share rows: a step of theirs is few bytes then.
        let are_shared = block == 1 && lanes_per_row > 1;
        let encoding = match value {
            ValueType::F64 if features.values.are_narrow() && are_shared => 1,
            ValueType::F64 | ValueType::F32 if features.values.are_whole() && !are_shared => 3,
            ValueType::F64 if features.values.are_few() => 2,
            ValueType::F64 if features.values.are_narrow() => 1,
            ValueType::F32 if features.values.are_few() && block > 1 => 2,
            _ => 0,
        };
        SpecialLayout { parameters: Special { encoding, ..layout.parameters }, ..layout }
    }

    fn grouped(self, features: &Features, value: ValueType) -> SpecialLayout {
        let is_full = |block: &u32| features.slots_per_entry((*block, *block)) == Some(1.0);
        if let Some(block) = BLOCKS.into_iter().find(is_full) {
            // Two lanes, two blocks each, of 3 x 3 values: 1.1 to 2.7 times as long in f32.
            let suits = self.block > 1 && (block, self.lanes_per_row) != (3, 2);
            let shape = if suits { self } else { BLOCKS_BY_FOUR };
            return SpecialLayout { parameters: Special { block, ..shape }, threads_per_block: 256 };
        }
        let mut parameters = if self.block > 1 { USUAL.for_values(value) } else { self };
        let mean = mean(features);
        if !is_even(features, parameters.lanes_per_row) {
            // Sorting takes neighbours apart, no farther than a block that sweeps has rows in hand.
            if !pays_to_sweep(features) {
                parameters.resident = 0;
            }
            parameters.sigma = match (parameters.resident, parameters.rows_per_lane) {
                (1, 2) => 4096,
                (1, _) => 1024,
                _ if mean < SHORT => 4096,
                _ => 1024,
            };
        }
        let slices = features.num_rows / u64::from(32 / parameters.lanes_per_row * parameters.rows_per_lane);
        if slices < FEWEST_SLICES {
            parameters.resident = 0;
        }
        // A lane takes the steps of a piece one after the other, each as long as a read of x.
        let least = match parameters.lanes_per_row {
            1 if mean < 2.0 * SHORT => 32,
            1 => 128,
            2..=8 => 512,
            _ => 4096,
        };
        let is_long = |piece: &u32| f64::from(*piece) >= PIECE * mean;
        parameters.piece =
            [32, 128, 512].into_iter().filter(|piece| *piece >= least).find(is_long).unwrap_or(4096);
        // Entries from anywhere: no step is narrow.
        if features.sectors_per_entry(1) > SCATTERED {
            parameters.col_bits = 32;
        }
        let cols = features.sectors_per_entry(1)
            * (Features::STRETCH[1] * u64::from(Features::COLS_PER_SECTOR)) as f64;
        let is_window = WINDOW.contains(&(cols * value.size() as f64));
        // With wider values memory decides.
        let is_narrow = value.size() == 2 && parameters.col_bits == 16;
        if is_narrow && is_window && (parameters.resident, parameters.rows_per_lane) == (1, 4) {
            (parameters.x_kib, parameters.entries_per_step) = (WINDOW_KIB, 1);
        }
        let threads_per_block = if parameters.resident == 1 { 1024 } else { 256 };
        SpecialLayout { parameters, threads_per_block }
    }
}

fn mean(features: &Features) -> f64 {
    features.nnz as f64 / features.num_rows.max(1) as f64
}

/// Whether rows next to each other, each as long as the longest of as many as a warp takes at a time, have little fill.
fn is_even(features: &Features, lanes_per_row: u32) -> bool {
    let slots = 32.0 * features.warp_steps[lanes_per_row.ilog2() as usize] as f64;
    slots <= FILL * features.nnz as f64
}

/// Whether rows near each other read x from anywhere in what many more of them read again.
fn pays_to_sweep(features: &Features) -> bool {
    let [near, far] = [0, 1].map(|kind| features.sectors_per_entry(kind));
    near > SCATTERED && far <= SCATTERED && far < REUSED * near
}

/// The layout for a matrix with these features where nothing else is known: its shape by rules of thumb.
pub fn special_layout(features: &Features, value: ValueType) -> SpecialLayout {
    let mean = mean(features);
    let [alone, together] = [1, 2].map(|lanes| features.sectors_per_gather(Some(lanes)));
    let shape = if mean < SHORT {
        SEVERAL_ROWS
    } else if mean >= LONG {
        BY_WARP
    } else if alone > APART * together {
        if mean < SHARED { BY_TWO } else { BY_EIGHT }
    } else if !is_even(features, 1) {
        match mean {
            ..16.0 => USUAL,
            ..SHARED => BY_FOUR,
            _ => BY_EIGHT,
        }
    } else if mean < MEDIUM && pays_to_sweep(features) {
        resident(SEVERAL_ROWS)
    } else if mean < MEDIUM {
        if mean < 12.0 { SEVERAL_ROWS } else { TWO_ROWS }
    } else {
        USUAL
    };
    shape.for_values(value).laid_out(features, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KernelConfig;
    use crate::features::SampledValues;

    /// Rows of `mean` entries each, of which short and long stretches read these parts of a sector an entry.
    fn features(mean: u64, longest: u64, [near, far]: [f64; 2]) -> Features {
        let num_rows = 1 << 20;
        let nnz = num_rows * mean;
        let samples = Features::samples(nnz);
        let marked = |kind: usize, sectors: f64| {
            let bits = f64::from(1u32 << Features::LOG_BITS[kind]);
            let stretches = (samples.count * samples.length / Features::STRETCH[kind]) as f64;
            let share = 1.0 - (-sectors * Features::STRETCH[kind] as f64 / bits).exp();
            (share * bits * stretches) as u64
        };
        Features {
            num_rows,
            num_cols: num_rows,
            nnz,
            longest_row: longest,
            warp_steps: Features::THREADS_PER_ROW
                .map(|threads| num_rows * u64::from(threads) / 32 * mean.div_ceil(threads.into())),
            marked: [marked(0, near), marked(1, far)],
            ..Features::default()
        }
    }

    fn layout(mean: u64, longest: u64, sectors: [f64; 2]) -> SpecialLayout {
        let layout = special_layout(&features(mean, longest, sectors), ValueType::F32);
        let builder = KernelConfig::builder(layout.parameters).threads_per_block(layout.threads_per_block);
        builder.build().expect("a layout that is allowed");
        layout
    }

    #[test]
    fn every_shape_has_its_matrices() {
        let near = [0.15, 0.1];
        let shape = |mean, sectors| layout(mean, mean + mean / 2, sectors).parameters.shape(ValueType::F64);
        assert_eq!([2, 8].map(|mean| shape(mean, near)), [SEVERAL_ROWS; 2]);
        assert_eq!(shape(22, near), TWO_ROWS);
        assert_eq!(shape(150, near), USUAL);
        assert_eq!(shape(1900, near), BY_WARP);
        let narrow = special_layout(&features(22, 30, near), ValueType::F16).parameters;
        assert_eq!((narrow.shape(ValueType::F16), narrow.entries_per_step), (TWO_ROWS, 4));
        let sweeping = layout(22, 30, [0.8, 0.12]);
        assert_eq!(
            (sweeping.parameters.shape(ValueType::F64), sweeping.threads_per_block),
            (resident(SEVERAL_ROWS), 1024)
        );
        for (mean, expected) in [(8, USUAL), (40, BY_FOUR), (150, BY_EIGHT)] {
            let mut uneven = features(mean, 3 * mean, [0.8, 0.12]);
            uneven.warp_steps[0] *= 2;
            assert_eq!(special_layout(&uneven, ValueType::F64).parameters.shape(ValueType::F64), expected);
            let mut apart = features(mean, 3 * mean, near);
            apart.gathers = [1000, 1000];
            apart.gathered = [1000, 600, 600, 600, 600, 600, 600];
            let expected = if mean < 96 { BY_TWO } else { BY_EIGHT };
            assert_eq!(special_layout(&apart, ValueType::F64).parameters.shape(ValueType::F64), expected);
        }
    }

    #[test]
    fn the_rest_follows_from_the_matrix() {
        let near = [0.15, 0.1];
        let of =
            |shape: Special, mean| shape.laid_out(&features(mean, mean, near), ValueType::F64).parameters;
        assert_eq!([6, 8, 22, 40, 150].map(|mean| of(USUAL, mean).piece), [32, 128, 128, 512, 4096]);
        assert_eq!([6, 40, 150].map(|mean| of(BY_TWO, mean).piece), [512, 512, 4096]);
        assert_eq!(of(BY_WARP, 6).piece, 4096);
        assert_eq!([near, [0.95, 0.9]].map(|sectors| layout(8, 8, sectors).parameters.col_bits), [16, 32]);
        let sorted = |shape: Special, sectors| {
            let mut uneven = features(22, 60, sectors);
            uneven.warp_steps[0] *= 2;
            let layout = shape.laid_out(&uneven, ValueType::F64);
            (layout.parameters.sigma, layout.parameters.resident, layout.threads_per_block)
        };
        let reused = [0.8, 0.2];
        assert_eq!(sorted(SEVERAL_ROWS, reused), (1024, 0, 256));
        assert_eq!(sorted(resident(SEVERAL_ROWS), reused), (1024, 1, 1024));
        assert_eq!(sorted(resident(TWO_ROWS), reused), (4096, 1, 1024));
        for sectors in [near, [0.8, 0.7]] {
            assert_eq!(sorted(resident(SEVERAL_ROWS), sectors), (1024, 0, 256));
        }
        // x in shared memory: two bytes, about a hundred KiB of it, by lanes with four rows.
        let window = |shape: Special, far, value| {
            let layout = shape.for_values(value).laid_out(&features(22, 22, [0.8, far]), value);
            KernelConfig::builder(layout.parameters).value(value).build().expect("allowed");
            assert_eq!(layout.parameters.shape(value), shape);
            (layout.parameters.x_kib, layout.parameters.entries_per_step)
        };
        let four_rows = resident(SEVERAL_ROWS);
        for value in [ValueType::F16, ValueType::Bf16] {
            assert_eq!(window(four_rows, 0.12, value), (WINDOW_KIB, 1));
            assert_eq!([0.03, 0.28].map(|far| window(four_rows, far, value)), [(0, 2); 2]);
            assert_eq!(
                [resident(TWO_ROWS), SEVERAL_ROWS].map(|shape| window(shape, 0.12, value)),
                [(0, 2); 2]
            );
        }
        assert_eq!(window(four_rows, 0.12, ValueType::F32), (0, 1));
        let mut few = features(22, 22, [0.8, 0.12]);
        few.num_rows = 300_000;
        let few =
            [resident(SEVERAL_ROWS), resident(TWO_ROWS)].map(|shape| shape.laid_out(&few, ValueType::F64));
        assert_eq!(few.map(|layout| layout.parameters.resident), [0, 1]);
        // Values by samples of them: (how many, how many differ, how many are wide), and how many are uneven.
        let encoded = |shape: Special, (count, different, wide), uneven, value| {
            let values = SampledValues { count, different, wide, uneven };
            let layout = shape.laid_out(&Features { values, ..features(22, 22, near) }, value).parameters;
            assert_eq!(layout.shape(value).for_values(value), shape.for_values(value));
            layout.encoding
        };
        let encoding = |shape, values, value| encoded(shape, values, 1, value);
        for (values, of_f64) in [
            ((2048, 256, 2048), 2),
            ((2048, 257, 2048), 0),
            ((2048, 2000, 0), 1),
            ((2048, 2000, 1), 0),
            // Others may be others.
            ((100, 13, 100), 0),
            ((100, 12, 100), 2),
            ((0, 0, 0), 0),
        ] {
            assert_eq!(encoding(USUAL, values, ValueType::F64), of_f64);
            assert_eq!(encoding(USUAL, values, ValueType::F32), 0);
        }
        assert_eq!(encoding(USUAL, (2048, 9, 0), ValueType::F64), 2);
        assert_eq!(encoding(BY_FOUR, (2048, 9, 0), ValueType::F64), 1);
        assert_eq!(encoding(BY_FOUR, (2048, 9, 9), ValueType::F64), 2);
        for (shape, value, expected) in [
            (USUAL, ValueType::F64, 3),
            (USUAL, ValueType::F32, 3),
            (BY_FOUR, ValueType::F64, 1),
            (BY_FOUR, ValueType::F32, 0),
        ] {
            assert_eq!(encoded(shape, (2048, 9, 0), 0, value), expected);
        }
        for shape in Special::SHAPES {
            assert_eq!(shape.shape(ValueType::F64), shape);
            assert_eq!(shape.for_values(ValueType::F16).shape(ValueType::F16), shape);
            assert_eq!(of(shape, 22).shape(ValueType::F64), if shape.block > 1 { USUAL } else { shape });
        }
        for (of_blocks, block) in [(2, 2), (3, 3), (4, 4), (6, 3)] {
            let mut blocked = features(24, 24, near);
            let places = |(rows, cols): (u32, u32)| u64::from(rows * cols);
            let fills = |shape: &(u32, u32)| of_blocks % shape.0 == 0 && of_blocks % shape.1 == 0;
            blocked.grouped = 5760;
            blocked.blocks =
                Features::BLOCK_SHAPES.map(|shape| 5760 / places(shape) * if fills(&shape) { 1 } else { 2 });
            for shape in Special::SHAPES {
                let layout = shape.laid_out(&blocked, ValueType::F64).parameters;
                KernelConfig::builder(layout).value(ValueType::F64).build().expect("allowed");
                let suits = shape.block > 1 && (shape != BLOCKS_BY_TWO || block != 3);
                let of_blocks = if suits { shape } else { BLOCKS_BY_FOUR };
                assert_eq!((layout.block, layout.shape(ValueType::F64)), (block, of_blocks));
            }
        }
    }
}
