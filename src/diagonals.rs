//! Diagonals that hold an entry, stored whole and without columns, made on the device when a plan is made: those of the matrix,
//! or of a triangle of it.

use crate::algorithm::Plan;
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::primitive::{GridScan, ValueEncoding, ValueTable};
use crate::program::{Arg, Buffer, Count, Guarantees, Pass, Slots};
use crate::types::{IndexType, ValueKind, ValueType};

/// Entries of `buffers`.
const OFFSETS: usize = Diagonals::OFFSETS;
const SLOT_VALUES: usize = 1;
const BITS: usize = 2;
const RANKS: usize = 3;
const POSITION_COUNTS: usize = 4;
const MORE_LAYERS: usize = 5;
const FIRST_LAYERS: usize = 6;
const PARTIALS: usize = 7;
const COUNTS: usize = 8;
const NUM_FOUND: usize = 9;
const NUM_STORED: usize = 10;
const ENCODED_VALUES: usize = 11;
const TABLE: usize = 12;
const HASHED: usize = 13;
const OTHERS: usize = 14;

/// Different values up to which they are stored by their places in a table: a byte has one more, for fill.
const MOST_DISTINCT: u32 = 255;

/// Rows whose columns do not rise; diagonals that hold an entry; diagonals with those that are stored again for
/// positions that are there several times.
const NUM_DISORDERED: Variable = Diagonals::NUM_DISORDERED;
const NUM_OCCUPIED: Variable = Variable::Count(1);
const NUM_DIAGONALS: Variable = Diagonals::NUM_DIAGONALS;
/// Values that are not kept as f32, or that differ.
const NUM_OTHERS: Variable = Variable::Count(3);

/// Rows whose values of so many bytes a thread loads at once; `kPack` of the template.
fn pack(value_bytes: u32) -> u32 {
    4u32.div_ceil(value_bytes)
}

/// Words of a bit for each diagonal of the matrix.
fn num_words() -> Expr {
    (Expr::from(Variable::NumRows) + Variable::NumCols).div_ceil(32)
}

/// One where a row's columns do not rise, else zero.
fn if_disordered() -> Expr {
    Expr::from(1).min(NUM_DISORDERED)
}

/// Rows with those that fill up the last warp; `diagonal_stride` of the template.
fn stride() -> Expr {
    const MOST_ROWS: u32 = 256;
    Expr::from(Variable::NumRows).div_ceil(MOST_ROWS) * MOST_ROWS
}

/// Rows of a thread of the product; `kRows` of the template.
fn rows_per_thread(value_bytes: u32, x: ValueType, most_packs: u32) -> u32 {
    let packs = match (value_bytes, x.size()) {
        (1, 5..) => 1,
        (2, 2) => most_packs,
        _ => 2,
    };
    pack(value_bytes) * packs
}

/// Diagonals with values that are encoded so. The kernels that make them are those of `prelude/diagonals.cuh`.
pub(crate) struct Diagonals {
    pub(crate) encoding: u32,
    /// Packs of slots that a thread has at most; `kMostPacks` of the template.
    pub(crate) most_packs: u32,
}

impl Diagonals {
    /// The buffer that says how far each diagonal is above the main one.
    pub(crate) const OFFSETS: usize = 0;
    /// Rows whose columns do not rise.
    pub(crate) const NUM_DISORDERED: Variable = Variable::Count(0);
    /// Diagonals that are stored.
    pub(crate) const NUM_DIAGONALS: Variable = Variable::Count(2);

    fn value_encoding(&self, config: &KernelConfig) -> ValueEncoding {
        let table = ValueTable { most_distinct: MOST_DISTINCT, table: TABLE, hashed: HASHED };
        ValueEncoding::new(self.encoding, config, Some(table), OTHERS, NUM_OTHERS.into())
    }

    fn prepare(&self, config: &KernelConfig) -> Vec<Pass> {
        let threads_per_block = config.threads_per_block();
        let num_rows = || Expr::from(Variable::NumRows);
        let size = |size: Expr| Arg::Size(size, IndexType::U32);
        let pass = |kernel: &str, threads: Expr, args: Vec<Arg>, buffers: &[usize]| Pass {
            kernel: kernel.into(),
            grid: threads.div_ceil(threads_per_block),
            threads_per_block,
            shared_bytes: 0,
            args: args.into_iter().chain(buffers.iter().map(|buffer| Arg::Buffer(*buffer))).collect(),
        };
        let scan = |kernel: &str, length: Expr, entries: usize, out: usize, total: usize| GridScan {
            kernel: kernel.into(),
            length,
            threads_per_block,
            entry_args: vec![Arg::Buffer(entries)],
            partials: PARTIALS,
            out,
            total,
        };
        let matrix = || vec![size(num_rows()), Arg::RowOffsets, Arg::ColIndices];
        let mut passes = vec![pass("spmv_diagonals_mark", num_rows(), matrix(), &[BITS, COUNTS])];
        passes.extend(scan("spmv_diagonals_ranks", num_words(), BITS, RANKS, NUM_FOUND).passes());
        passes.push(pass(
            "spmv_diagonals_layers",
            num_rows() * if_disordered(),
            matrix(),
            &[BITS, RANKS, POSITION_COUNTS, MORE_LAYERS],
        ));
        let diagonals =
            scan("spmv_diagonals_stored", NUM_OCCUPIED.into(), MORE_LAYERS, FIRST_LAYERS, NUM_STORED);
        passes.extend(diagonals.passes());
        passes.push(pass(
            "spmv_diagonals_offsets",
            num_words(),
            vec![size(num_rows()), Arg::Size(num_words(), IndexType::U64)],
            &[BITS, RANKS, FIRST_LAYERS, OFFSETS],
        ));
        let mut convert = matrix();
        convert.push(Arg::Values);
        convert.extend([BITS, RANKS, FIRST_LAYERS].map(Arg::Buffer));
        convert.extend([size(NUM_DISORDERED.into()), Arg::Buffer(POSITION_COUNTS)]);
        let encoding = self.value_encoding(config);
        passes.extend(encoding.look().map(|(look, _)| look));
        passes.extend(encoding.make_table());
        convert.extend([size(encoding.if_encoded()), size(encoding.distinct())]);
        passes.push(pass(
            "spmv_diagonals_convert",
            num_rows(),
            convert,
            &[TABLE, SLOT_VALUES, ENCODED_VALUES],
        ));
        passes
    }

    /// The product with values stored in this buffer, of a thread so many rows.
    fn multiply(
        &self,
        config: &KernelConfig,
        kernel: &str,
        values: usize,
        rows_per_thread: u32,
        condition: Expr,
    ) -> Pass {
        let threads_per_block = config.threads_per_block();
        let accumulator = config.types().accumulator;
        Pass {
            kernel: kernel.into(),
            grid: Expr::from(Variable::NumRows).div_ceil(threads_per_block * rows_per_thread) * condition,
            threads_per_block,
            shared_bytes: 0,
            args: vec![
                Arg::Size(Variable::NumRows.into(), IndexType::U32),
                Arg::Size(Variable::NumCols.into(), IndexType::U64),
                Arg::Size(NUM_DIAGONALS.into(), IndexType::U32),
                Arg::Size(stride(), IndexType::U64),
                Arg::Buffer(OFFSETS),
                Arg::Buffer(values),
                Arg::X,
                Arg::Y,
                Arg::Alpha(accumulator),
                Arg::Beta(accumulator),
            ],
        }
    }

    /// Refuses values that leave no bits for fill.
    pub(crate) fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        let value = config.types().value;
        if !matches!(value.kind(), ValueKind::Integer | ValueKind::Bool) {
            return ValueEncoding::check(self.encoding, config);
        }
        let name = config.algorithm().name();
        let others = match config.algorithm().spec().operations[0].is_of_triangle() {
            true => "sym_csr",
            false => "ell, sell_c_sigma or an algorithm without a layout",
        };
        Err(ConfigError::Combination {
            key: "value",
            reason: format!(
                "{name} marks fill by bits that no value has, and value = {value} has a use for all; use {others}"
            ),
        })
    }

    /// The slots of all diagonals.
    pub(crate) fn slots(&self, config: &KernelConfig) -> Slots {
        let diagonals = Expr::from(NUM_OCCUPIED).max(NUM_DIAGONALS);
        Slots { number: stride() * diagonals, bytes: config.types().value.size() as u32 }
    }

    /// Passes and buffers of the algorithm, whose product's kernels are `spmv_<name>` and `spmv_<name>_encoded`, of this depth.
    pub(crate) fn plan(&self, config: &KernelConfig, summation_depth: Expr) -> Plan {
        let kernel = format!("spmv_{}", config.algorithm().name());
        let types = config.types();
        let encoding = self.value_encoding(config);
        let given_bytes = types.value.size() as u32;
        let rows = rows_per_thread(given_bytes, types.x, self.most_packs);
        let mut products = vec![self.multiply(config, &kernel, SLOT_VALUES, rows, encoding.if_as_given())];
        if encoding.is_any() {
            let rows = rows_per_thread(encoding.bytes(), types.x, self.most_packs);
            let mut encoded = self.multiply(
                config,
                &format!("{kernel}_encoded"),
                ENCODED_VALUES,
                rows,
                encoding.if_encoded(),
            );
            encoded.args.extend([Arg::Size(encoding.distinct(), IndexType::U32), Arg::Buffer(TABLE)]);
            products.push(encoded);
        }
        let [table, hashed_values] = encoding.tables();
        let slots = || stride() * NUM_DIAGONALS;
        let mut counts = vec![
            Count { name: "disordered_rows", buffer: COUNTS, entry: 0, after: 0 },
            Count { name: "occupied_diagonals", buffer: NUM_FOUND, entry: 0, after: 3 },
            Count { name: "diagonals", buffer: NUM_STORED, entry: 0, after: 7 },
        ];
        counts.extend(encoding.look().map(|(_, name)| Count { name, buffer: OTHERS, entry: 0, after: 9 }));
        Plan {
            prepare: self.prepare(config),
            multiply: products,
            buffers: vec![
                Buffer::new("offsets", Expr::from(NUM_DIAGONALS) * 8),
                Buffer::new("slot_values", slots() * given_bytes * encoding.if_as_given()).zeroed(),
                Buffer::new("bits", num_words() * 4).zeroed().scratch(),
                Buffer::new("ranks", (num_words() + 1) * 4).scratch(),
                Buffer::new("position_counts", stride() * NUM_OCCUPIED * if_disordered() * 4)
                    .zeroed()
                    .scratch(),
                Buffer::new("more_layers", Expr::from(NUM_OCCUPIED) * 4).zeroed().scratch(),
                Buffer::new("first_layers", (Expr::from(NUM_OCCUPIED) + 1) * 4).scratch(),
                Buffer::new("partials", GridScan::MAX_PARTIALS_BYTES).scratch(),
                Buffer::new("disordered_rows", 8).zeroed().scratch(),
                Buffer::new("occupied_diagonals", 8).zeroed().scratch(),
                Buffer::new("diagonals", 8).zeroed().scratch(),
                Buffer::new("encoded_values", slots() * encoding.bytes() * encoding.if_encoded()).zeroed(),
                table,
                hashed_values,
                ValueEncoding::found(),
            ],
            counts,
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: false,
                summation_depth,
                operation: config.operation(),
            },
        }
    }
}
