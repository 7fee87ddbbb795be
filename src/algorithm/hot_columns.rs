//! x of the columns with most entries in shared memory, equal shares of the entries for warps.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::planning::{Planning, count, size};
use crate::primitive::ValueEncoding;
use crate::program::{Arg, Buffer, Pass};
use crate::types::{IndexType, ValueType};

parameters! {
    /// x of the columns with most entries in shared memory, for matrices few of whose columns have most entries.
    pub struct HotColumns {
        /// KiB of x in shared memory; more than 48 needs a device whose blocks may have as much.
        shared_kib = 96, one of [16, 48, 96, 160, 192];
        /// Values: 0 as they are, 1 as f32 where every f64 is one, 3 whole ones up to 127 as bytes.
        encoding = 0, one of [0, 1, 3];
    }
}

/// What a `prepare` pass finds out: the rows with entries.
const FILLED_ROWS: u8 = 0;

/// Entries that a lane, and a warp, sums at once.
const PER_LANE: u32 = 4;
const STEP: u32 = 32 * PER_LANE;
/// Steps of a share at most, and shares below which none has more than one.
const MOST_STEPS: u32 = 8;
const FEW_SHARES: u32 = 32_768;
/// A bound of the keys by which columns are sorted.
const DEGREES: u32 = 1 << 16;

impl HotColumns {
    /// Columns whose x a block has in shared memory.
    pub fn hot_cols(&self, x: ValueType) -> u32 {
        self.shared_kib * 1024 / x.size() as u32
    }
}

impl Plans for HotColumns {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        ValueEncoding::check(self.encoding, config)
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let accumulator = types.accumulator;
        let [num_rows, num_cols, nnz] = [Variable::NumRows, Variable::NumCols, Variable::Nnz].map(Expr::from);
        let num_hot = num_cols.clone().min(self.hot_cols(types.x));
        let num_steps = nnz.clone().div_ceil(STEP);
        let mut plan = Planning::new("spmv_hot_columns", config.threads_per_block());
        let buffer = Arg::Buffer;
        let entries = || Arg::Size(nnz.clone(), IndexType::U64);

        // Columns, the hottest first.
        let degrees = plan.buffer(Buffer::new("degrees", num_cols.clone() * 4).zeroed().scratch());
        let count_degrees = vec![entries(), Arg::ColIndices, buffer(degrees)];
        plan.prepare.push(plan.pass("degrees", nnz.clone(), count_degrees));
        let [pairs, other_pairs] =
            ["pairs", "other_pairs"].map(|name| plan.scratch(name, num_cols.clone(), 8));
        let col_words = plan.scratch("col_words", num_cols.clone(), 4);
        plan.prepare("cols", num_cols.clone(), [degrees, pairs, col_words].map(buffer).into());
        plan.sort([pairs, other_pairs], num_cols, DEGREES.into());
        let hot_cols = plan.kept("hot_cols", num_hot.clone(), 4);
        plan.prepare("list_hot", num_hot.clone(), [pairs, hot_cols, col_words].map(buffer).into());
        let words = plan.kept("words", nnz.clone(), 4);
        let find_words = [vec![entries(), Arg::ColIndices], [col_words, words].map(buffer).into()];
        plan.prepare.push(plan.pass("words", nnz.clone(), find_words.concat()));

        // Rows, those with entries first.
        let ranks = plan.scratch("row_ranks", num_rows.clone() + 1, 4);
        plan.ranks("rows", num_rows.clone(), vec![Arg::RowOffsets], ranks, Some("filled_rows"));
        let row_order = plan.kept("row_order", num_rows.clone(), 4);
        let step_ends = plan.buffer(Buffer::new("step_ends", num_steps.clone() * (4 * PER_LANE)).zeroed());
        let order_rows = [vec![Arg::RowOffsets], [ranks, row_order, step_ends].map(buffer).into()];
        plan.prepare("order_rows", num_rows.clone(), order_rows.concat());
        let step_ranks = plan.kept("step_ranks", num_steps.clone(), 4);
        let find_ranks =
            [vec![size(num_rows.clone()), Arg::RowOffsets], [ranks, step_ranks].map(buffer).into()];
        plan.prepare("step_ranks", num_steps.clone(), find_ranks.concat());

        // Values, where they are not read as the matrix has them.
        let encoding = plan.encode(self.encoding, config);
        let encoded_bytes = nnz.clone() * encoding.bytes() * encoding.if_encoded();
        let encoded_values = plan.buffer(Buffer::new("encoded_values", encoded_bytes));
        if encoding.is_any() {
            let encode = vec![entries(), Arg::Values, buffer(encoded_values)];
            plan.prepare.push(plan.pass("encode", nnz.clone() * encoding.if_encoded(), encode));
        }

        // Products.
        let tile_threads = if types.value.size() + accumulator.size() > 8 { 768 } else { 1024 };
        let blocks_at_most = (num_steps.clone() + num_rows.clone().div_ceil(tile_threads)).max(1);
        let num_blocks = blocks_at_most.min(Expr::from(Variable::Multiprocessors));
        let num_shares = num_steps.clone().div_ceil(MOST_STEPS).max(num_steps.clone().min(FEW_SHARES));
        let hot_x = plan.kept("hot_x", num_hot.clone(), types.x.size() as u32);
        let [firsts, tails] = ["share_firsts", "share_tails"]
            .map(|name| plan.kept(name, num_shares.clone(), accumulator.size() as u32));
        let ends = plan.kept("share_ends", num_shares.clone(), 4);
        let alpha = || Arg::Alpha(accumulator);
        let result = || vec![Arg::Y, alpha(), Arg::Beta(accumulator)];
        let gather = [vec![size(num_hot.clone()), alpha(), buffer(hot_cols)], vec![Arg::X, buffer(hot_x)]];
        let sizes = [num_rows, count(FILLED_ROWS), num_steps.clone(), num_hot.clone()];
        let product = |kernel: &str, values: Arg, condition: Expr| {
            let args = [
                vec![entries()],
                sizes.clone().map(size).into(),
                result(),
                vec![buffer(words), values],
                [step_ends, step_ranks, row_order, hot_cols].map(buffer).into(),
                vec![Arg::X],
                [hot_x, firsts, tails, ends].map(buffer).into(),
            ];
            Pass {
                kernel: kernel.into(),
                grid: num_blocks.clone() * condition,
                threads_per_block: tile_threads,
                shared_bytes: self.shared_kib * 1024,
                args: args.concat(),
            }
        };
        let first_rows = [
            vec![size(num_steps)],
            result(),
            [step_ranks, row_order, firsts, tails, ends].map(buffer).into(),
        ];
        let mut multiply = vec![
            plan.pass("gather", num_hot.clone(), gather.concat()),
            product("spmv_hot_columns", Arg::Values, encoding.if_as_given()),
        ];
        if encoding.is_any() {
            let values = buffer(encoded_values);
            multiply.push(product("spmv_hot_columns_encoded", values, encoding.if_encoded()));
        }
        multiply.push(plan.pass("first_rows", num_shares, first_rows.concat()));
        // In whatever order they are added, alpha, beta and two conversions.
        plan.finish(multiply, Expr::from(Variable::RowNnz) + 5, config)
    }
}
