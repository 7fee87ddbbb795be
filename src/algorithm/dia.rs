//! Diagonals, stored whole.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::primitive::GridScan;
use crate::program::{Arg, Buffer, Count, Guarantees, Pass, Slots};
use crate::types::{IndexType, ValueKind, ValueType};

parameters! {
    /// Diagonals that hold an entry, stored whole and without columns (DIA).
    pub struct Dia {}
}

/// Entries of `buffers`.
const OFFSETS: usize = 0;
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

/// Rows whose columns do not rise; diagonals that hold an entry; diagonals with those that are stored again for
/// positions that are there several times.
const NUM_DISORDERED: Variable = Variable::Count(0);
const NUM_OCCUPIED: Variable = Variable::Count(1);
const NUM_DIAGONALS: Variable = Variable::Count(2);

/// Rows of a thread of the product: `kPacks` of the template times `kPack`.
fn rows_per_thread(value: ValueType) -> u32 {
    if value.size() == 2 { 4 } else { 2 }
}

/// Rows with those that fill up the last warp.
fn stride() -> Expr {
    Expr::from(Variable::NumRows).div_ceil(32) * 32
}

/// Words of a bit for each diagonal of the matrix.
fn num_words() -> Expr {
    (Expr::from(Variable::NumRows) + Variable::NumCols).div_ceil(32)
}

/// One where a row's columns do not rise, else zero.
fn if_disordered() -> Expr {
    Expr::from(1).min(NUM_DISORDERED)
}

fn prepare(config: &KernelConfig) -> Vec<Pass> {
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
    let mut passes = vec![pass("spmv_dia_mark", num_rows(), matrix(), &[BITS, COUNTS])];
    passes.extend(scan("spmv_dia_ranks", num_words(), BITS, RANKS, NUM_FOUND).passes());
    passes.push(pass(
        "spmv_dia_layers",
        num_rows() * if_disordered(),
        matrix(),
        &[BITS, RANKS, POSITION_COUNTS, MORE_LAYERS],
    ));
    let diagonals = scan("spmv_dia_diagonals", NUM_OCCUPIED.into(), MORE_LAYERS, FIRST_LAYERS, NUM_STORED);
    passes.extend(diagonals.passes());
    passes.push(pass(
        "spmv_dia_offsets",
        num_words(),
        vec![size(num_rows()), Arg::Size(num_words(), IndexType::U64)],
        &[BITS, RANKS, FIRST_LAYERS, OFFSETS],
    ));
    let mut convert = matrix();
    convert.push(Arg::Values);
    convert.extend([BITS, RANKS, FIRST_LAYERS].map(Arg::Buffer));
    convert.push(size(NUM_DISORDERED.into()));
    passes.push(pass("spmv_dia_convert", num_rows(), convert, &[POSITION_COUNTS, SLOT_VALUES]));
    passes
}

impl Plans for Dia {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        let value = config.types().value;
        if !matches!(value.kind(), ValueKind::Integer | ValueKind::Bool) {
            return Ok(());
        }
        Err(ConfigError::Combination {
            key: "value",
            reason: format!(
                "dia marks fill by bits that no value has, and value = {value} has a use for all; use ell, sell_c_sigma or \
                 an algorithm without a layout"
            ),
        })
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        let diagonals = Expr::from(NUM_OCCUPIED).max(NUM_DIAGONALS);
        Some(Slots { number: stride() * diagonals, bytes: config.types().value.size() as u32 })
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let threads_per_block = config.threads_per_block();
        let product = Pass {
            kernel: "spmv_dia".into(),
            grid: Expr::from(Variable::NumRows).div_ceil(threads_per_block * rows_per_thread(types.value)),
            threads_per_block,
            shared_bytes: 0,
            args: vec![
                Arg::Size(Variable::NumRows.into(), IndexType::U32),
                Arg::Size(Variable::NumCols.into(), IndexType::U64),
                Arg::Size(NUM_DIAGONALS.into(), IndexType::U32),
                Arg::Buffer(OFFSETS),
                Arg::Buffer(SLOT_VALUES),
                Arg::X,
                Arg::Y,
                Arg::Alpha(types.accumulator),
                Arg::Beta(types.accumulator),
            ],
        };
        Plan {
            prepare: prepare(config),
            multiply: vec![product],
            buffers: vec![
                Buffer::new("offsets", Expr::from(NUM_DIAGONALS) * 8),
                Buffer::new("slot_values", stride() * NUM_DIAGONALS * types.value.size() as u32).zeroed(),
                Buffer::new("bits", num_words() * 4).zeroed().scratch(),
                Buffer::new("ranks", (num_words() + 1) * 4).scratch(),
                Buffer::new("position_counts", stride() * NUM_OCCUPIED * if_disordered() * 4)
                    .zeroed()
                    .scratch(),
                Buffer::new("more_layers", Expr::from(NUM_OCCUPIED) * 4).zeroed().scratch(),
                Buffer::new("first_layers", (Expr::from(NUM_OCCUPIED) + 1) * 4).scratch(),
                Buffer::new("partials", GridScan::MAX_PARTIALS * 4).scratch(),
                Buffer::new("disordered_rows", 8).zeroed().scratch(),
                Buffer::new("occupied_diagonals", 8).zeroed().scratch(),
                Buffer::new("diagonals", 8).zeroed().scratch(),
            ],
            counts: vec![
                Count { name: "disordered_rows", buffer: COUNTS, entry: 0, after: 0 },
                Count { name: "occupied_diagonals", buffer: NUM_FOUND, entry: 0, after: 3 },
                Count { name: "diagonals", buffer: NUM_STORED, entry: 0, after: 7 },
            ],
            guarantees: Guarantees {
                bit_reproducible: true,
                fill_touches_x: false,
                splits_rows: false,
                // A chain, to which fill adds exact zeros, alpha, beta and two conversions.
                summation_depth: Expr::from(Variable::RowNnz) + 4,
                operation: config.operation(),
            },
        }
    }
}
