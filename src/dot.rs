//! The sum over all rows that a configuration's `dot` adds up beside y (`prelude/dot.cuh`).

use std::fmt::Write;

use crate::parameter::cuda_constant;
use crate::program::{Arg, Buffer, Pass};
use crate::types::ValueType;

/// The bins that terms of one type are added in.
pub(crate) struct DotBins {
    /// Bins for all magnitudes that the type has.
    bins: u32,
    /// Entries that a bin is spread over.
    lanes: u32,
    /// Neighbouring powers of two that share a bin.
    width: u32,
}

impl DotBins {
    /// Threads of the blocks that add the bins up.
    const THREADS: u32 = 256;

    /// An entry takes fewer than twice 2^31 / `lanes` terms of at most 2^26, shifted by less than `width`, without overflow.
    pub(crate) fn of(accumulator: ValueType) -> DotBins {
        match accumulator {
            // Positions of the last bit of a piece: 0 to 253 and 0 to 2045 + 27.
            ValueType::F32 => DotBins { bins: 16, lanes: 1024, width: 16 },
            _ => DotBins { bins: 130, lanes: 1024, width: 16 },
        }
    }

    /// Entries, two halves of each bin's sum, flags, arrivals.
    fn words(&self) -> u32 {
        self.bins * self.lanes + 2 * self.bins + 2
    }

    /// The constants in front of `prelude/dot.cuh`.
    pub(crate) fn cuda_constants(&self) -> String {
        let numbers = [
            ("dot_bins", self.bins),
            ("dot_lanes", self.lanes),
            ("dot_width", self.width),
            ("dot_threads", Self::THREADS),
        ];
        numbers.iter().fold(String::new(), |mut text, (name, number)| {
            writeln!(text, "constexpr int {} = {number};", cuda_constant(name)).expect("a String");
            text
        })
    }

    /// The bins and the sum; they become the buffers of these two indices.
    pub(crate) fn buffers(&self) -> [Buffer; 2] {
        [Buffer::new("dot_bins", self.words() * 8).zeroed(), Buffer::new("dot", 8).zeroed()]
    }

    /// What follows the passes of a product.
    pub(crate) fn pass(&self, bins: usize, dot: usize) -> Pass {
        Pass {
            kernel: "spmv_dot".into(),
            grid: self.bins.into(),
            threads_per_block: Self::THREADS,
            shared_bytes: 0,
            args: vec![Arg::Buffer(bins), Arg::Buffer(dot)],
        }
    }
}
