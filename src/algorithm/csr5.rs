//! Tiles of 32 × sigma nonzeros, transposed.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::ValueEncoding;
use crate::program::{Arg, Buffer, Count, Guarantees, Pass};
use crate::types::IndexType;

parameters! {
    /// A warp a tile of 32 × sigma nonzeros in an order of their own (Liu and Vinter's CSR5).
    pub struct Csr5 {
        /// Nonzeros of a tile that a lane takes; near the mean row length from 4 to 32, 16 or more for long rows.
        sigma = 16, one of [4, 8, 12, 16, 24, 32];
        /// Values: 0 as they are, 1 as f32 where every f64 is one, 3 whole ones up to 127 as bytes.
        encoding = 0, one of [0, 1, 3];
    }
}

/// Entries of `buffers`.
const TILE_ROWS: usize = 0;
const BIT_FLAGS: usize = 1;
const DESCRIPTORS: usize = 2;
const EMPTY_BASES: usize = 3;
const EMPTY_OFFSETS: usize = 4;
const EMPTY_ROWS: usize = 5;
const TILE_COLS: usize = 6;
const TILE_VALUES: usize = 7;
const TAILS: usize = 8;
const HEADS: usize = 9;
const MEETINGS: usize = 10;
const COUNTS: usize = 11;
const ENCODED_VALUES: usize = 12;
const OTHERS: usize = 13;

/// Entries of `counts`: rows without nonzeros, rows that begin in tiles with such rows between theirs, and rows without
/// nonzeros that no tile stores.
const NUM_EMPTY_ROWS: Variable = Variable::Count(0);
const NUM_EMPTY_OFFSETS: Variable = Variable::Count(1);
const NUM_LISTED_ROWS: Variable = Variable::Count(2);
/// Values that are not kept by the encoding.
const NUM_OTHERS: Variable = Variable::Count(3);

impl Csr5 {
    fn tile_nnz(&self) -> u32 {
        32 * self.sigma
    }

    fn num_tiles(&self) -> Expr {
        Expr::from(Variable::Nnz).div_ceil(self.tile_nnz())
    }

    fn value_encoding(&self, config: &KernelConfig) -> ValueEncoding {
        ValueEncoding::new(self.encoding, config, None, OTHERS, NUM_OTHERS.into())
    }

    fn prepare(&self, config: &KernelConfig) -> Vec<Pass> {
        let encoding = self.value_encoding(config);
        let threads_per_block = config.threads_per_block();
        let num_rows = || Arg::Size(Variable::NumRows.into(), IndexType::U32);
        let nnz = || Arg::Size(Variable::Nnz.into(), config.types().offset);
        let num_tiles = || Arg::Size(self.num_tiles(), IndexType::U32);
        let pass = |kernel: &str, grid, mut args: Vec<Arg>, buffers: &[usize]| {
            args.extend(buffers.iter().map(|buffer| Arg::Buffer(*buffer)));
            Pass { kernel: kernel.into(), grid, threads_per_block, shared_bytes: 0, args }
        };
        let a_thread_a_row = || Expr::from(Variable::NumRows).div_ceil(threads_per_block);
        let a_warp_a_tile = || self.num_tiles().div_ceil(threads_per_block / 32);
        let mut passes = vec![
            pass(
                "spmv_csr5_mark",
                a_thread_a_row(),
                vec![num_rows(), nnz(), Arg::RowOffsets],
                &[TILE_ROWS, BIT_FLAGS, EMPTY_BASES, COUNTS],
            ),
            pass(
                "spmv_csr5_describe",
                a_warp_a_tile(),
                vec![num_tiles()],
                &[BIT_FLAGS, TILE_ROWS, DESCRIPTORS, EMPTY_BASES, COUNTS],
            ),
            pass(
                "spmv_csr5_rows",
                a_thread_a_row(),
                vec![num_rows(), Arg::RowOffsets, num_tiles()],
                &[TILE_ROWS, DESCRIPTORS, EMPTY_BASES, EMPTY_OFFSETS, EMPTY_ROWS, COUNTS],
            ),
        ];
        passes.extend(encoding.look().map(|(look, _)| look));
        let is_encoded = Arg::Size(encoding.if_encoded(), IndexType::U32);
        passes.push(pass(
            "spmv_csr5_convert",
            a_warp_a_tile(),
            vec![num_tiles(), nnz(), Arg::ColIndices, Arg::Values, is_encoded],
            &[TILE_COLS, TILE_VALUES, ENCODED_VALUES],
        ));
        passes
    }

    /// The product with values stored in this buffer.
    fn multiply(&self, config: &KernelConfig, kernel: &str, values: usize, condition: Expr) -> Pass {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let mut args = vec![
            Arg::Size(Variable::NumRows.into(), IndexType::U32),
            Arg::Size(Variable::Nnz.into(), types.offset),
            Arg::RowOffsets,
            Arg::X,
            Arg::Y,
            Arg::Alpha(types.accumulator),
            Arg::Beta(types.accumulator),
            Arg::Size(self.num_tiles(), IndexType::U32),
        ];
        args.extend([TILE_ROWS, DESCRIPTORS, EMPTY_BASES, EMPTY_OFFSETS].map(Arg::Buffer));
        args.push(Arg::Size(NUM_LISTED_ROWS.into(), IndexType::U32));
        args.extend([EMPTY_ROWS, TILE_COLS, values, TAILS, HEADS, MEETINGS].map(Arg::Buffer));
        let blocks = self.num_tiles().div_ceil(threads_per_block / 32)
            + Expr::from(NUM_LISTED_ROWS).div_ceil(threads_per_block);
        Pass { kernel: kernel.into(), grid: blocks * condition, threads_per_block, shared_bytes: 0, args }
    }

    fn buffers(&self, config: &KernelConfig) -> Vec<Buffer> {
        let types = config.types();
        let accumulator = types.accumulator.size() as u32;
        // Flags, ten bits and five bits.
        let descriptor = if self.sigma <= 16 { 4 } else { 8 };
        let entries = |size: u32| self.num_tiles() * (self.tile_nnz() * size);
        let encoding = self.value_encoding(config);
        vec![
            Buffer::new("tile_rows", self.num_tiles() * 4),
            Buffer::new("bit_flags", self.num_tiles() * (32 * 4)).zeroed().scratch(),
            Buffer::new("descriptors", self.num_tiles() * (32 * descriptor)),
            Buffer::new("empty_bases", self.num_tiles() * 4).zeroed(),
            Buffer::new("empty_offsets", Expr::from(NUM_EMPTY_OFFSETS) * 4),
            Buffer::new("empty_rows", Expr::from(NUM_EMPTY_ROWS) * 4),
            Buffer::new("tile_cols", entries(types.index.size() as u32)),
            Buffer::new("tile_values", entries(types.value.size() as u32) * encoding.if_as_given()),
            Buffer::new("tails", self.num_tiles() * accumulator),
            Buffer::new("heads", self.num_tiles() * accumulator),
            Buffer::new("meetings", self.num_tiles() * types.accumulator.piece_word_bytes()).zeroed(),
            Buffer::new("counts", 3 * 8).zeroed().scratch(),
            Buffer::new("encoded_values", entries(encoding.bytes()) * encoding.if_encoded()),
            ValueEncoding::found(),
        ]
    }
}

impl Plans for Csr5 {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        ValueEncoding::check(self.encoding, config)
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let encoding = self.value_encoding(config);
        let count = |name, entry, after| Count { name, buffer: COUNTS, entry, after };
        let mut counts =
            vec![count("empty_rows", 0, 0), count("empty_offsets", 1, 1), count("listed_rows", 2, 2)];
        counts.extend(encoding.look().map(|(_, name)| Count { name, buffer: OTHERS, entry: 0, after: 3 }));
        let mut multiply = vec![self.multiply(config, "spmv_csr5", TILE_VALUES, encoding.if_as_given())];
        if encoding.is_any() {
            let condition = encoding.if_encoded();
            multiply.push(self.multiply(config, "spmv_csr5_encoded", ENCODED_VALUES, condition));
        }
        Plan {
            prepare: self.prepare(config),
            multiply,
            buffers: self.buffers(config),
            counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: true,
                // A lane's chain; the tree over the lanes and their carry; the tree over the tiles of a block; a lane's
                // chain over the tiles of the row, one longer where they are not aligned, with the head, and the tree;
                // alpha, beta, two conversions.
                summation_depth: Expr::from(Variable::RowNnz).div_ceil(32 * self.tile_nnz())
                    + (self.sigma + 5 + 1 + 5 + 2 + 5 + 4),
                operation: config.operation(),
            },
        }
    }
}
