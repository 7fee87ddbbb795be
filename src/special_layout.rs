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

/// Mean entries of a row below which a lane has several rows.
const SHORT: f64 = 4.0;
/// Mean entries from which on lanes share a row, and from which on a warp does.
const SHARED: f64 = 96.0;
const LONG: f64 = 512.0;
/// Slots an entry from which on rows are sorted.
const FILL: f64 = 1.08;
/// Times the mean length, and entries, from which on the longest row is a giant.
const GIANT: f64 = 16.0;
const LEAST_GIANT: u64 = 512;
/// Times the mean length that pieces have at least: what is cut is added by a second pass.
const PIECE: f64 = 4.0;

/// Sectors of x that entries near each other read from which on reads of x decide how long a product takes; and how much
/// less long stretches must read for a multiprocessor to find them in its cache if it stays in one stretch of rows.
const SCATTERED: f64 = 0.3;
const REUSED: f64 = 0.5;
/// How many times the sectors of x a warp reads in a step where its lanes have a row each, over those where two share one, from
/// which on two do.
const APART: f64 = 1.3;

/// Rows and columns of dense blocks that are stored as such, the first that all of a matrix consists of.
const BLOCKS: [u32; 4] = [6, 4, 3, 2];

const fn shape(lanes_per_row: u32, rows_per_lane: u32, entries_per_step: u32, unroll: u32) -> Special {
    Special { lanes_per_row, rows_per_lane, entries_per_step, unroll, ..Special::DEFAULT }
}

const fn resident(shape: Special) -> Special {
    Special { resident: 1, ..shape }
}

/// Lanes with several rows each; and with one.
const SEVERAL_ROWS: Special = shape(1, 4, 1, 2);
const USUAL: Special = shape(1, 1, 2, 4);

impl Special {
    /// How rows are shared out, for matrices that are stored by entries. Any has its matrices; the last three are for long rows.
    pub const SHAPES: [Special; 14] = [
        USUAL,
        SEVERAL_ROWS,
        resident(SEVERAL_ROWS),
        shape(1, 2, 2, 2),
        shape(1, 1, 1, 4),
        shape(1, 1, 4, 2),
        resident(USUAL),
        resident(shape(1, 1, 4, 2)),
        shape(2, 1, 4, 2),
        resident(shape(2, 1, 4, 2)),
        shape(4, 1, 4, 2),
        shape(8, 1, 4, 2),
        shape(32, 1, 4, 2),
        shape(32, 1, 4, 4),
    ];

    /// The parameters that follow from a matrix, whatever the shape.
    pub const FOLLOWING: [&str; 4] = ["sigma", "piece", "col_bits", "encoding"];

    /// What of these parameters does not follow from a matrix: one of [`Special::SHAPES`], or blocks of 2 × 2, which stand for
    /// those of every size.
    #[must_use]
    pub fn shape(self) -> Special {
        match self.block {
            1 => Special { sigma: 1, piece: USUAL.piece, col_bits: 16, encoding: 0, ..self },
            _ => Special { block: 2, ..Special::DEFAULT },
        }
    }

    /// The layout of this shape for a matrix with these features, its values stored as they are. Where the rows that were looked
    /// at consist of dense blocks, so does the layout, whatever the shape: a matrix that has others elsewhere is refused when it
    /// is prepared.
    pub fn laid_out(self, features: &Features) -> SpecialLayout {
        let is_full = |block: &u32| features.slots_per_entry((*block, *block)) == Some(1.0);
        if let Some(block) = BLOCKS.into_iter().find(is_full) {
            // About as many values in flight, whatever the blocks.
            let (entries_per_step, unroll) = match block {
                2 => (2, 4),
                3 => (1, 3),
                _ => (1, 1),
            };
            let parameters = Special { block, entries_per_step, unroll, ..Special::DEFAULT };
            return SpecialLayout { parameters, threads_per_block: 256 };
        }
        let mut parameters = self;
        let mean = mean(features);
        // Rows next to each other, each as long as the longest of as many as a warp takes at a time.
        let width = parameters.lanes_per_row.ilog2() as usize;
        let slots = 32.0 * features.warp_steps[width] as f64;
        if slots > FILL * features.nnz as f64 {
            parameters.sigma = if mean < SHORT { 4096 } else { 1024 };
        }
        // A lane takes the steps of a piece one after the other, each as long as a read of x.
        let least = match parameters.lanes_per_row {
            1 if mean < 2.0 * SHORT => 32,
            1 => 128,
            2..=8 => 512,
            _ => 4096,
        };
        let is_long = |piece: &u32| f64::from(*piece) >= PIECE * mean;
        parameters.piece = [32, 128, 512].into_iter().filter(|piece| *piece >= least).find(is_long).unwrap_or(4096);
        // Entries from anywhere: no step is narrow.
        if features.sectors_per_entry(1) > SCATTERED {
            parameters.col_bits = 32;
        }
        SpecialLayout { parameters, threads_per_block: if self.resident == 1 { 1024 } else { 256 } }
    }
}

fn mean(features: &Features) -> f64 {
    features.nnz as f64 / features.num_rows.max(1) as f64
}

/// The layout for a matrix with these features where nothing else is known: its shape by rules of thumb.
pub fn special_layout(features: &Features, value: ValueType) -> SpecialLayout {
    let mean = mean(features);
    let [near, far] = [0, 1].map(|kind| features.sectors_per_entry(kind));
    let is_giant = features.longest_row > LEAST_GIANT && features.longest_row as f64 > GIANT * mean;
    let sweeps = !is_giant && near > SCATTERED && far <= SCATTERED && far < REUSED * near;
    let [apart, together] = [1, 2].map(|lanes| features.sectors_per_gather(Some(lanes)));
    let shape = if mean < SHORT {
        SEVERAL_ROWS
    } else if mean < SHARED && sweeps {
        resident(USUAL)
    } else if mean < SHARED && apart > APART * together {
        shape(2, 1, 4, 2)
    } else if mean < SHARED && value.size() == 2 {
        // As many bytes in flight as of wider values.
        shape(1, 1, 4, 2)
    } else if mean < SHARED {
        USUAL
    } else if mean < LONG {
        let shape = shape(8, 1, 4, 2);
        if sweeps { resident(shape) } else { shape }
    } else {
        shape(32, 1, 4, if value.size() > 4 { 2 } else { 4 })
    };
    shape.laid_out(features)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::KernelConfig;

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
    fn every_choice_has_its_matrices() {
        let near = [0.15, 0.1];
        let usual = layout(22, 30, near);
        assert_eq!((usual.parameters, usual.threads_per_block), (Special::default(), 256));
        let narrow = special_layout(&features(22, 30, near), ValueType::F16).parameters;
        assert_eq!((narrow.entries_per_step, narrow.unroll), (4, 2));
        assert_eq!(layout(2, 4, near).parameters.rows_per_lane, 4);
        assert_eq!(layout(150, 300, near).parameters.lanes_per_row, 8);
        assert_eq!(layout(1900, 2000, near).parameters.lanes_per_row, 32);
        assert_eq!(layout(22, 100_000, [0.8, 0.12]).parameters.resident, 0);
        let pieces = [6, 8, 150, 1900].map(|mean| layout(mean, mean, near).parameters.piece);
        assert_eq!(pieces, [32, 128, 512, 4096]);
        let long =
            [ValueType::F32, ValueType::F64].map(|value| special_layout(&features(1900, 1900, near), value));
        assert_eq!(long.map(|layout| layout.parameters.unroll), [4, 2]);
        let sweeping = layout(22, 30, [0.8, 0.12]);
        assert_eq!((sweeping.parameters.resident, sweeping.threads_per_block), (1, 1024));
        assert_eq!((sweeping.parameters.col_bits, layout(8, 8, [0.95, 0.9]).parameters.col_bits), (16, 32));
        let mut uneven = features(22, 60, near);
        uneven.warp_steps[0] *= 2;
        assert_eq!(special_layout(&uneven, ValueType::F64).parameters.sigma, 1024);
        for (block, steps) in [(2, (2, 4)), (3, (1, 3)), (4, (1, 1)), (6, (1, 1))] {
            let mut blocked = features(24, 24, near);
            let places = |(rows, cols): (u32, u32)| u64::from(rows * cols);
            let fills = |shape: &(u32, u32)| block % shape.0 == 0 && block % shape.1 == 0;
            blocked.grouped = 5760;
            blocked.blocks =
                Features::BLOCK_SHAPES.map(|shape| 5760 / places(shape) * if fills(&shape) { 1 } else { 2 });
            let layout = special_layout(&blocked, ValueType::F64);
            KernelConfig::builder(layout.parameters).value(ValueType::F64).build().expect("allowed");
            let Special { block: chosen, entries_per_step, unroll, .. } = layout.parameters;
            assert_eq!(chosen, block);
            assert_eq!((entries_per_step, unroll), steps);
        }
    }
}
