//! Packets: square pieces of the diagonal with their part of x in shared memory.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::GridScan;
use crate::program::{Arg, Buffer, Count, Guarantees, Pass, Slots};
use crate::shared_memory;
use crate::types::IndexType;

parameters! {
    /// Square packets on the diagonal with x in shared memory and 16-bit columns (Bell and Garland's PKT).
    pub struct Pkt {
        /// Rows and columns of a packet.
        rows_per_packet = 1024, one of [256, 1024, 4096];
    }
}

/// Entries of `buffers`.
const PACKET_OFFSETS: usize = 0;
const LOCAL_COLS: usize = 1;
const SLOT_VALUES: usize = 2;
const REMAINDER_OFFSETS: usize = 3;
const REMAINDER_COLS: usize = 4;
const REMAINDER_VALUES: usize = 5;
const WIDTHS: usize = 6;
const PARTIALS: usize = 7;
const TOTAL_SLOTS: usize = 8;
const TOTAL_REMAINDER: usize = 9;

/// Products that a warp has in shared memory; `kProducts` of the template.
const PRODUCTS_PER_WARP: u32 = 128;

/// Slots of all packets, and entries outside.
const NUM_SLOTS: Variable = Variable::Count(0);
const NUM_OUTSIDE: Variable = Variable::Count(1);

fn num_rows() -> Arg {
    Arg::Size(Variable::NumRows.into(), IndexType::U32)
}

impl Pkt {
    fn num_packets(&self) -> Expr {
        Expr::from(Variable::NumRows).div_ceil(self.rows_per_packet)
    }

    fn prepare(&self, config: &KernelConfig) -> Vec<Pass> {
        let threads_per_block = config.threads_per_block();
        let a_thread_a_row = |kernel: &str, args: Vec<Arg>, buffers: &[usize]| {
            let args = args.into_iter().chain(buffers.iter().map(|buffer| Arg::Buffer(*buffer))).collect();
            // Those that fill up the last warp are converted too.
            let threads = Expr::from(Variable::NumRows).div_ceil(32) * 32;
            Pass::of_threads(kernel, threads, threads_per_block, args)
        };
        let scan = |kernel: &str, length: Expr, entry_args: Vec<Arg>, out: usize, total: usize| GridScan {
            kernel: kernel.into(),
            length,
            threads_per_block,
            entry_args,
            partials: PARTIALS,
            out,
            total,
        };
        let matrix = || vec![num_rows(), Arg::RowOffsets, Arg::ColIndices];
        let mut passes = vec![a_thread_a_row("spmv_pkt_count", matrix(), &[WIDTHS, REMAINDER_OFFSETS])];
        let widths = vec![num_rows(), Arg::Buffer(WIDTHS)];
        let packets = scan("spmv_pkt_packets", self.num_packets(), widths, PACKET_OFFSETS, TOTAL_SLOTS);
        passes.extend(packets.passes());
        let outside = vec![Arg::Buffer(REMAINDER_OFFSETS)];
        let rows = Variable::NumRows.into();
        let remainder = scan("spmv_pkt_remainder", rows, outside, REMAINDER_OFFSETS, TOTAL_REMAINDER);
        passes.extend(remainder.passes());
        let convert = [matrix(), vec![Arg::Values]].concat();
        let from = [WIDTHS, PACKET_OFFSETS, REMAINDER_OFFSETS];
        let to = [LOCAL_COLS, SLOT_VALUES, REMAINDER_COLS, REMAINDER_VALUES];
        passes.push(a_thread_a_row("spmv_pkt_convert", convert, &[&from[..], &to[..]].concat()));
        passes
    }
}

impl Plans for Pkt {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        let types = config.types();
        // A packet's x, and for each warp products of entries outside.
        let products = config.threads_per_block() / 32 * PRODUCTS_PER_WARP * types.accumulator.size() as u32;
        shared_memory::check(
            config,
            "rows_per_packet",
            self.rows_per_packet * types.x.size() as u32 + products,
        )
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        let number = Expr::from(NUM_SLOTS) + NUM_OUTSIDE;
        Some(Slots { number, bytes: 2 + config.types().value.size() as u32 })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let entries = |number: Variable, size: usize| Expr::from(number) * size as u32;
        let kept =
            [PACKET_OFFSETS, LOCAL_COLS, SLOT_VALUES, REMAINDER_OFFSETS, REMAINDER_COLS, REMAINDER_VALUES];
        let operands = [Arg::X, Arg::Y, Arg::Alpha(types.accumulator), Arg::Beta(types.accumulator)];
        let sizes = [num_rows(), Arg::Size(Variable::NumCols.into(), IndexType::U64)];
        let product = Pass {
            kernel: "spmv_pkt".into(),
            grid: self.num_packets(),
            threads_per_block: config.threads_per_block(),
            shared_bytes: 0,
            args: sizes.into_iter().chain(kept.map(Arg::Buffer)).chain(operands).collect(),
        };
        Plan {
            prepare: self.prepare(config),
            multiply: vec![product],
            buffers: vec![
                Buffer::new("packet_offsets", (self.num_packets() + 1) * 8),
                Buffer::new("local_cols", entries(NUM_SLOTS, 2)),
                Buffer::new("slot_values", entries(NUM_SLOTS, types.value.size())),
                Buffer::new(
                    "remainder_offsets",
                    (Expr::from(Variable::NumRows) + 1) * types.offset.size() as u32,
                ),
                Buffer::new("remainder_cols", entries(NUM_OUTSIDE, types.index.size())),
                Buffer::new("remainder_values", entries(NUM_OUTSIDE, types.value.size())),
                Buffer::new("widths", self.num_packets() * 4).zeroed().scratch(),
                Buffer::new("partials", GridScan::MAX_PARTIALS_BYTES).scratch(),
                Buffer::new("total_slots", 8).scratch(),
                Buffer::new("total_remainder", 8).scratch(),
            ],
            counts: vec![
                Count { name: "slots", buffer: TOTAL_SLOTS, entry: 0, after: 3 },
                Count { name: "outside", buffer: TOTAL_REMAINDER, entry: 0, after: 6 },
            ],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: false,
                // A chain, in which products are rounded outside packets, alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz) + 5,
                operation: config.operation(),
            },
        }
    }
}
