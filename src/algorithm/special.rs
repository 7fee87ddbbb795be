//! Slices packed for one matrix.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::{GridScan, ValueEncoding, ValueTable};
use crate::program::{Arg, Buffer, Count, Guarantees, Misfits, Pass, Slots};
use crate::types::{IndexType, ValueKind};

parameters! {
    /// Slices of rows packed for one matrix: how rows are grouped, and what columns and values are stored as.
    pub struct Special {
        /// Rows and columns of the dense blocks that are stored; 1 stores entries.
        block = 1, one of [1, 2, 3, 4, 6];
        /// Lanes that share a row.
        lanes_per_row = 1, one of [1, 2, 4, 8, 16, 32];
        /// Rows of a lane, whose entries of a step it loads together.
        rows_per_lane = 1, one of [1, 2, 4];
        /// Entries of a row that a lane loads in a step.
        entries_per_step = 2, one of [1, 2, 4, 8];
        /// Rows of a window, in which rows are sorted by falling length; 1 keeps the order of the matrix.
        sigma = 1, one of [1, 256, 1024, 4096];
        /// Entries from which on a row is cut into pieces of as many, where it is not of blocks; 0 cuts none.
        piece = 128, one of [0, 32, 128, 512, 4096];
        /// Bits of a column: 16 with a base a step, and 32 where a step reaches farther; or 32.
        col_bits = 16, one of [16, 32];
        /// Values: 0 as they are, 1 as f32 where every f64 is one, 2 by places in a table of 256, 3 whole ones up to 127 as bytes.
        encoding = 0, one of [0, 1, 2, 3];
        /// Steps whose loads are in flight together.
        unroll = 4, one of [1, 2, 3, 4, 6, 8];
        /// Blocks: 0 as many as slices need, 1 as many as are resident, each with a stretch of slices.
        resident = 0, one of [0, 1];
        /// KiB of shared memory for x, which a block copies first, about the columns of its stretch; 0, or dense blocks, copy none.
        x_kib = 0, one of [0, 4, 96, 160];
    }
}

/// Entries of `buffers`.
const PERMUTATION: usize = 0;
const TARGETS: usize = 1;
const STEP_OFFSETS: usize = 2;
const BASES: usize = 3;
const SLOT_COLS: usize = 4;
const UPPER_COLS: usize = 5;
const SLOT_VALUES: usize = 6;
const ENCODED_VALUES: usize = 7;
const TABLE: usize = 8;
const PARTS: usize = 9;
const CUT_ROWS: usize = 10;
const PIECE_OFFSETS: usize = 11;
const CUT_RANKS: usize = 12;
const PIECE_ROWS: usize = 13;
const WIDE_RANKS: usize = 14;
const PARTIALS: usize = 15;
const HASHED: usize = 16;
const MISFITS: usize = 17;
const OTHERS: usize = 18;
const MOVED: usize = 19;
const TOTAL: usize = 20;

/// The passes that prepare a plan, and what they find out, in their order.
struct Preparation {
    threads_per_block: u32,
    passes: Vec<Pass>,
    counts: Vec<Count>,
}

impl Preparation {
    fn pass(&mut self, kernel: &str, threads: Expr, args: Vec<Arg>) {
        let kernel = format!("spmv_special_{kernel}");
        self.passes.push(Pass::of_threads(kernel, threads, self.threads_per_block, args));
    }

    /// The scan of what is there; its second pass leaves the sum.
    fn scan(&mut self, entries: usize, length: Expr) {
        let scan = GridScan::in_place(entries, length, self.threads_per_block, PARTIALS, TOTAL);
        self.passes.extend(scan.passes());
    }

    /// What the pass so many before the end left in the buffer.
    fn count(&mut self, name: &'static str, buffer: usize, before_the_end: usize) -> Expr {
        let after = self.passes.len() - before_the_end;
        self.counts.push(Count { name, buffer, entry: 0, after });
        Variable::Count(self.counts.len() as u8 - 1).into()
    }
}

/// What is found out when a plan is made, or is known for the configuration.
struct Found {
    misfits: Expr,
    encoding: ValueEncoding,
    pieces: Expr,
    cuts: Expr,
    moved: Expr,
    steps: Expr,
    wide_steps: Expr,
}

impl Special {
    /// Slots of a warp in a step.
    fn step_slots(&self) -> u32 {
        32 * self.rows_per_lane * self.entries_per_step
    }

    fn slot_values(&self) -> u32 {
        self.block * self.block
    }

    /// Rows, or rows of blocks.
    fn num_rows(&self) -> Expr {
        Expr::from(Variable::NumRows).div_ceil(self.block)
    }

    fn num_slices(&self, pieces: &Expr) -> Expr {
        pieces.clone().div_ceil(32 / self.lanes_per_row * self.rows_per_lane)
    }

    fn prepare(&self, config: &KernelConfig) -> (Preparation, Found) {
        let size = |value: &Expr| Arg::Size(value.clone(), IndexType::U32);
        let buffers = |buffers: &[usize]| buffers.iter().copied().map(Arg::Buffer).collect::<Vec<_>>();
        let rows = Expr::from(Variable::NumRows);
        let threads_per_block = config.threads_per_block();
        let mut made = Preparation { threads_per_block, passes: Vec::new(), counts: Vec::new() };
        let mut found = Found {
            misfits: 0.into(),
            encoding: self.value_encoding(config, 0.into()),
            pieces: self.num_rows(),
            cuts: 0.into(),
            moved: 0.into(),
            steps: 0.into(),
            wide_steps: 0.into(),
        };
        if self.block > 1 {
            let args = vec![size(&rows), Arg::RowOffsets, Arg::ColIndices, Arg::Buffer(MISFITS)];
            made.pass("blocks", self.num_rows(), args);
            found.misfits = made.count("misfits", MISFITS, 1);
        }
        if let Some((look, name)) = found.encoding.look() {
            made.passes.push(look);
            found.encoding = self.value_encoding(config, made.count(name, OTHERS, 1));
            made.passes.extend(found.encoding.make_table());
        }
        if self.piece > 0 {
            let pieces = [vec![size(&rows), Arg::RowOffsets], buffers(&[PIECE_OFFSETS, CUT_RANKS])];
            made.pass("pieces", rows.clone(), pieces.concat());
            made.scan(PIECE_OFFSETS, rows.clone());
            found.pieces = made.count("pieces", TOTAL, 2);
            made.scan(CUT_RANKS, rows.clone());
            found.cuts = made.count("cut_rows", TOTAL, 2);
            let cut = buffers(&[PIECE_OFFSETS, CUT_RANKS, PIECE_ROWS, CUT_ROWS]);
            made.pass("cut", rows.clone(), [vec![size(&rows)], cut].concat());
        }
        let slices = self.num_slices(&found.pieces);
        let of_pieces =
            vec![size(&found.pieces), Arg::RowOffsets, Arg::Buffer(PIECE_OFFSETS), Arg::Buffer(PIECE_ROWS)];
        if self.sigma > 1 {
            let windows = found.pieces.clone().div_ceil(self.sigma);
            let args = [of_pieces.clone(), buffers(&[PERMUTATION, MOVED])].concat();
            made.pass("sort", windows * threads_per_block, args);
            found.moved = made.count("moved_rows", MOVED, 1);
        }
        let order = vec![size(&slices), size(&found.moved), Arg::Buffer(PERMUTATION)];
        let a_warp_a_slice = slices.clone() * 32;
        made.pass(
            "widths",
            a_warp_a_slice.clone(),
            [of_pieces.clone(), order.clone(), buffers(&[STEP_OFFSETS])].concat(),
        );
        made.scan(STEP_OFFSETS, slices);
        found.steps = made.count("steps", TOTAL, 2);
        if self.col_bits == 16 {
            let args = [
                of_pieces.clone(),
                vec![Arg::ColIndices],
                order.clone(),
                buffers(&[STEP_OFFSETS, BASES, WIDE_RANKS]),
            ];
            made.pass("bases", a_warp_a_slice.clone(), args.concat());
            made.scan(WIDE_RANKS, found.steps.clone());
            found.wide_steps = made.count("wide_steps", TOTAL, 2);
        }
        let packed = buffers(&[STEP_OFFSETS, WIDE_RANKS, BASES, SLOT_COLS, UPPER_COLS]);
        let sizes = vec![size(&found.encoding.if_encoded()), size(&found.encoding.distinct())];
        let values = [sizes, buffers(&[TABLE, SLOT_VALUES, ENCODED_VALUES])].concat();
        let matrix = vec![Arg::ColIndices, Arg::Values];
        made.pass("convert", a_warp_a_slice, [of_pieces, matrix, order, packed, values].concat());
        if self.piece > 0 {
            let pieces = buffers(&[PIECE_OFFSETS, PIECE_ROWS, CUT_RANKS]);
            let order = vec![size(&found.moved), Arg::Buffer(PERMUTATION), Arg::Buffer(TARGETS)];
            let threads = found.pieces.clone() * Expr::from(1).min(found.cuts.clone());
            made.pass("targets", threads, [vec![size(&found.pieces)], pieces, order].concat());
        }
        (made, found)
    }

    /// One of the first two has no blocks: values are encoded or they are not.
    fn multiply(&self, config: &KernelConfig, found: &Found) -> Vec<Pass> {
        let accumulator = config.types().accumulator;
        let threads_per_block = config.threads_per_block();
        let size = |value: Expr| Arg::Size(value, IndexType::U32);
        let result = vec![Arg::Y, Arg::Alpha(accumulator), Arg::Beta(accumulator)];
        let slices = self.num_slices(&found.pieces);
        let needed = slices.clone().div_ceil(threads_per_block / 32);
        let resident = Expr::from(Variable::Multiprocessors) * Variable::ResidentBlocks;
        let blocks = if self.resident == 1 { needed.min(resident) } else { needed };
        let product = |kernel: &str, values: usize, condition: Expr| {
            let sizes = [&found.pieces, &self.num_parts(found), &slices, &found.moved];
            let sizes = sizes.map(|value| size(value.clone()));
            let packed = [PERMUTATION, TARGETS, STEP_OFFSETS, BASES, SLOT_COLS, UPPER_COLS, values, PARTS]
                .map(Arg::Buffer);
            let x = vec![size(Variable::NumCols.into()), Arg::X];
            let args = [sizes.to_vec(), packed.to_vec(), x, result.clone()].concat();
            let grid = blocks.clone() * condition;
            Pass { kernel: kernel.into(), grid, threads_per_block, shared_bytes: self.x_kib * 1024, args }
        };
        let mut passes = vec![product("spmv_special", SLOT_VALUES, found.encoding.if_as_given())];
        if found.encoding.is_any() {
            let mut encoded = product("spmv_special_encoded", ENCODED_VALUES, found.encoding.if_encoded());
            encoded.args.extend([size(found.encoding.distinct()), Arg::Buffer(TABLE)]);
            passes.push(encoded);
        }
        if self.piece > 0 {
            let sizes = vec![size(found.cuts.clone()), size(self.num_parts(found))];
            let parts = vec![Arg::Buffer(CUT_ROWS), Arg::Buffer(PARTS)];
            let threads = found.cuts.clone() * threads_per_block;
            let args = [sizes, parts, result].concat();
            passes.push(Pass::of_threads("spmv_special_add_parts", threads, threads_per_block, args));
        }
        passes
    }

    fn value_encoding(&self, config: &KernelConfig, found: Expr) -> ValueEncoding {
        let table = ValueTable { most_distinct: ValueEncoding::TABLE, table: TABLE, hashed: HASHED };
        ValueEncoding::new(self.encoding, config, Some(table), OTHERS, found)
    }

    /// Pieces of rows that are cut.
    fn num_parts(&self, found: &Found) -> Expr {
        (found.pieces.clone() + found.cuts.clone()).minus(self.num_rows())
    }

    /// The layout as it is: rows of blocks are not cut, nor is x copied for them.
    fn stored(&self) -> Special {
        if self.block == 1 { *self } else { Special { piece: 0, x_kib: 0, ..*self } }
    }

    fn plan_stored(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let (Preparation { passes, counts, .. }, found) = self.prepare(config);
        let rows = self.num_rows();
        let slices = self.num_slices(&found.pieces);
        let if_narrow_cols = |expr: Expr| if self.col_bits == 16 { expr } else { 0.into() };
        let if_cut = |expr: Expr| if self.piece > 0 { expr } else { 0.into() };
        let if_sorted = |expr: Expr| if self.sigma > 1 { expr } else { 0.into() };
        let slots = found.steps.clone() * self.step_slots();
        let values = |bytes: u32| slots.clone() * (self.slot_values() * bytes);
        let encoding = &found.encoding;
        let [table, hashed_values] = encoding.tables();
        Plan {
            multiply: self.multiply(config, &found),
            prepare: passes,
            buffers: vec![
                Buffer::new("permutation", if_sorted(found.pieces.clone()) * 2),
                Buffer::new("targets", found.pieces.clone() * Expr::from(1).min(found.cuts.clone()) * 4),
                Buffer::new("step_offsets", (slices + 1) * 4),
                Buffer::new("bases", if_narrow_cols(found.steps.clone()) * 4),
                Buffer::new("slot_cols", slots.clone() * (self.col_bits / 8)),
                Buffer::new("upper_cols", found.wide_steps.clone() * (self.step_slots() * 2)),
                Buffer::new("slot_values", values(types.value.size() as u32) * encoding.if_as_given()),
                Buffer::new("encoded_values", values(encoding.bytes()) * encoding.if_encoded()),
                table,
                Buffer::new("parts", self.num_parts(&found) * types.accumulator.size() as u32),
                Buffer::new("cut_rows", found.cuts.clone() * 8),
                Buffer::new("piece_offsets", if_cut(rows.clone() + 1) * 4).scratch(),
                Buffer::new("cut_ranks", if_cut(rows + 1) * 4).scratch(),
                Buffer::new("piece_rows", if_cut(found.pieces.clone()) * 4).scratch(),
                Buffer::new("wide_ranks", if_narrow_cols(found.steps.clone() + 1) * 4).scratch(),
                Buffer::new("partials", GridScan::MAX_PARTIALS_BYTES).scratch(),
                hashed_values,
                Buffer::new("misfits", 8).zeroed().scratch(),
                ValueEncoding::found(),
                Buffer::new("moved_rows", 8).zeroed().scratch(),
                Buffer::new("total", 8).zeroed().scratch(),
            ],
            counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: self.piece > 0,
                // Whatever the trees over lanes and pieces; alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz) + 4,
                operation: config.operation(),
            },
        }
    }

    fn refuse(key: &'static str, reason: &str) -> Result<(), ConfigError> {
        Err(ConfigError::Combination { key, reason: reason.into() })
    }
}

impl Plans for Special {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        let value = config.types().value;
        if value.kind() != ValueKind::Float {
            return Err(ConfigError::Combination {
                key: "value",
                reason: format!(
                    "special encodes floating-point values, and value = {value} is none; use sell_c_sigma or another \
                     algorithm; allowed: f16, bf16, f32, f64"
                ),
            });
        }
        if self.rows_per_lane * self.entries_per_step * self.slot_values() > 72 {
            return Self::refuse("block", "a lane has at most 72 values in a step");
        }
        Ok(())
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        let (_, found) = self.stored().prepare(config);
        let number = found.steps * (self.step_slots() * self.slot_values());
        Some(Slots { number, bytes: config.types().value.size() as u32 + self.col_bits / 8 })
    }

    fn misfits(&self, config: &KernelConfig) -> Option<Misfits> {
        let (_, found) = self.stored().prepare(config);
        let wanted = "rows of blocks whose entries are whole blocks, in the same order in each row";
        (self.block > 1).then_some(Misfits { number: found.misfits, wanted })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        self.stored().plan_stored(config)
    }
}
