//! The layout of `special` for a matrix, from its features alone: rules that follow from measurements on an H200
//! (`docs/special.md`).

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

/// Sectors of x that entries near each other read from which on reads of x decide how long a product takes; and how much
/// less long stretches must read for a multiprocessor to find them in its cache if it stays in one stretch of rows.
const SCATTERED: f64 = 0.3;
const REUSED: f64 = 0.5;

/// Rows and columns of dense blocks that are stored as such, the first that all of a matrix consists of.
const BLOCKS: [u32; 4] = [6, 4, 3, 2];

/// The layout for a matrix with these features, its values stored as they are. Where the rows that were looked at consist of
/// dense blocks, so does the layout: a matrix that has others elsewhere is refused when it is prepared.
pub fn special_layout(features: &Features, value: ValueType) -> SpecialLayout {
    let usual = Special::default();
    let is_full = |block: &u32| features.slots_per_entry((*block, *block)) == Some(1.0);
    if let Some(block) = BLOCKS.into_iter().find(is_full) {
        // About as many values in flight, whatever the blocks.
        let (entries_per_step, unroll) = match block {
            2 => (2, 4),
            3 => (1, 3),
            _ => (1, 1),
        };
        let parameters = Special { block, entries_per_step, unroll, ..usual };
        return SpecialLayout { parameters, threads_per_block: 256 };
    }
    let nnz = features.nnz as f64;
    let mean = nnz / features.num_rows.max(1) as f64;
    let [near, far] = [0, 1].map(|kind| features.sectors_per_entry(kind));
    let mut parameters = if mean < SHORT {
        Special { rows_per_lane: 4, entries_per_step: 1, unroll: 2, ..usual }
    } else if mean < SHARED && value.size() == 2 {
        // As many bytes in flight as of wider values.
        Special { entries_per_step: 4, unroll: 2, ..usual }
    } else if mean < SHARED {
        usual
    } else if mean < LONG {
        Special { lanes_per_row: 8, entries_per_step: 4, unroll: 2, ..usual }
    } else {
        let unroll = if value.size() > 4 { 2 } else { 4 };
        Special { lanes_per_row: 32, entries_per_step: 4, unroll, ..usual }
    };
    // Rows next to each other, each as long as the longest of as many as a warp takes at a time.
    let width = parameters.lanes_per_row.ilog2() as usize;
    let slots = 32.0 * features.warp_steps[width] as f64;
    if slots > FILL * nnz {
        parameters.sigma = if mean < SHORT { 4096 } else { 1024 };
    }
    let is_giant = features.longest_row > LEAST_GIANT && features.longest_row as f64 > GIANT * mean;
    // A lane takes the steps of a piece one after the other, each as long as a read of x.
    parameters.piece = match parameters.lanes_per_row {
        1 if mean < 2.0 * SHORT => 32,
        1 => 128,
        8 => 512,
        _ => 4096,
    };
    // Entries from anywhere: no step is narrow, and nothing is reused.
    if far > SCATTERED {
        parameters.col_bits = 32;
    }
    let sweeps = mean >= SHORT && !is_giant && near > SCATTERED && far < REUSED * near;
    if sweeps && far <= SCATTERED {
        return SpecialLayout { parameters: Special { resident: 1, ..parameters }, threads_per_block: 1024 };
    }
    SpecialLayout { parameters, threads_per_block: 256 }
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
