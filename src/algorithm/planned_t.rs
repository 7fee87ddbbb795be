//! The transposed product in a fixed order, with a plan for the structure of the matrix.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::planning::{Planning, count, size};
use crate::primitive::RadixSort;
use crate::program::{Arg, Buffer, Pass};

parameters! {
    /// Tiles of nonzeros sum by column, tiles of these sums by column: the transposed product, reproducible.
    pub struct PlannedT computes [Transpose] {
        /// Shared memory of a tile, in KiB; more than 48 needs a device whose blocks may have as much.
        tile_kib = 32, one of [16, 32, 64, 96];
    }
}

/// Numbers that `prepare` passes find out, in their order.
const LISTED_ROWS: u8 = 0;
const SUMS: u8 = 1;
const SEGMENTS: u8 = 2;
const SECTORS: u8 = 3;
const COLUMNS: u8 = 4;
const PIECES: u8 = 5;
const LONG_COLUMNS: u8 = 6;
const EMPTY_COLUMNS: u8 = 7;

impl Plans for PlannedT {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        RadixSort::check_offset(config, "planned_t", "naive_t")
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        let types = config.types();
        let accumulator = types.accumulator;
        let sum_bytes = accumulator.size() as u32;
        let tile = self.tile_kib * 1024 / sum_bytes;
        let tile_threads = (self.tile_kib * 16).min(1024);
        let sector = 32 / sum_bytes;
        let [num_rows, num_cols, nnz] = [Variable::NumRows, Variable::NumCols, Variable::Nnz].map(Expr::from);
        let num_tiles = nnz.clone().div_ceil(tile);
        let num_second_tiles = count(SUMS).div_ceil(tile);
        let num_words = nnz.clone().div_ceil(32);
        let slots = count(SECTORS) * sector;

        let mut plan = Planning::new("spmv_planned_t", config.threads_per_block());
        let buffer = Arg::Buffer;

        // Rows.
        let row_ranks = plan.scratch("row_ranks", num_rows.clone() + 1, 4);
        plan.ranks("rows", num_rows.clone(), vec![Arg::RowOffsets], row_ranks, Some("listed_rows"));
        let row_begins = plan.buffer(Buffer::new("row_begins", num_words.clone() * 4).zeroed().scratch());
        // Listed where a row is empty.
        let all_listed = Expr::from(1).minus(num_rows.clone().minus(count(LISTED_ROWS)));
        let rows = plan.kept("rows", count(LISTED_ROWS) * Expr::from(1).minus(all_listed), 4);
        plan.prepare(
            "row_begins",
            num_rows.clone(),
            vec![
                size(count(LISTED_ROWS)),
                Arg::RowOffsets,
                buffer(row_ranks),
                buffer(row_begins),
                buffer(rows),
            ],
        );
        let begins_before = plan.scratch("begins_before", num_words.clone() + 1, 4);
        plan.ranks("words", num_words.clone(), vec![buffer(row_begins)], begins_before, None);
        let row_words = plan.kept("row_words", num_words.clone(), 8);
        plan.prepare(
            "row_words",
            num_words,
            [
                vec![size(num_rows.clone()), size(count(LISTED_ROWS))],
                [row_begins, begins_before, rows, row_words].map(buffer).into(),
            ]
            .concat(),
        );

        // Sums: nonzeros by column, then by tile and column.
        let [pairs, other_pairs] = ["pairs", "other_pairs"].map(|name| plan.scratch(name, nnz.clone(), 8));
        plan.prepare("entries", nnz.clone(), vec![Arg::ColIndices, buffer(pairs)]);
        plan.sort([pairs, other_pairs], nnz.clone(), num_cols.clone());
        let ranks = plan.scratch("ranks", nnz.clone() + 1, 4);
        plan.ranks("sums", nnz.clone(), vec![buffer(pairs)], ranks, Some("sums"));
        let sum_of = plan.scratch("sum_of", nnz.clone(), 4);
        let sum_cols = plan.scratch("sum_cols", count(SUMS), 4);
        plan.prepare(
            "number_sums",
            nnz.clone(),
            vec![buffer(ranks), buffer(pairs), buffer(sum_of), buffer(sum_cols)],
        );
        plan.sort([pairs, other_pairs], nnz.clone(), num_tiles.clone());
        plan.ranks("tile_sums", nnz.clone(), vec![buffer(pairs), buffer(sum_of)], ranks, None);
        let product_places = plan.kept("product_places", nnz.clone(), 2);
        let begins = plan.scratch("begins", count(SUMS), 2);
        let numbers = plan.scratch("numbers", count(SUMS), 4);
        let tile_sums = plan.scratch("tile_sums", num_tiles.clone(), 4);
        plan.prepare(
            "place_products",
            nnz.clone(),
            [pairs, sum_of, ranks, product_places, begins, numbers, tile_sums].map(buffer).into(),
        );

        // Segments, and the sectors that they fill.
        let segment_ranks = plan.scratch("segment_ranks", count(SUMS) + 1, 4);
        plan.ranks(
            "segments",
            count(SUMS),
            [begins, numbers].map(buffer).into(),
            segment_ranks,
            Some("segments"),
        );
        let firsts = plan.scratch("firsts", count(SEGMENTS) + 1, 4);
        let segment_pairs = plan.scratch("segment_pairs", count(SEGMENTS), 8);
        let other_segment_pairs = plan.scratch("other_segment_pairs", count(SEGMENTS), 8);
        plan.prepare(
            "list_segments",
            count(SUMS),
            [segment_ranks, numbers, firsts, segment_pairs].map(buffer).into(),
        );
        let sectors = plan.scratch("sectors_before", count(SEGMENTS) + 1, 4);
        plan.ranks("sectors", count(SEGMENTS), vec![buffer(firsts)], sectors, Some("sectors"));
        plan.sort([segment_pairs, other_segment_pairs], count(SEGMENTS), num_second_tiles.clone());
        let sorted_sectors = plan.scratch("sorted_sectors", count(SEGMENTS) + 1, 4);
        plan.ranks(
            "sorted_sectors",
            count(SEGMENTS),
            [firsts, segment_pairs].map(buffer).into(),
            sorted_sectors,
            None,
        );
        let targets = plan.scratch("targets", count(SEGMENTS), 4);
        let second_tiles = plan.kept("second_tiles", num_second_tiles.clone() + 1, 4);
        plan.prepare(
            "place_segments",
            count(SEGMENTS),
            [segment_pairs, sorted_sectors, targets, second_tiles].map(buffer).into(),
        );
        let first_tiles = plan.kept("first_tiles", num_tiles.clone() + 1, 4);
        let place_tiles = vec![
            size(num_tiles.clone()),
            size(count(SECTORS)),
            buffer(tile_sums),
            buffer(segment_ranks),
            buffer(sectors),
            buffer(first_tiles),
        ];
        plan.prepare.push(plan.pass("place_tiles", num_tiles.clone() + 1, place_tiles));
        let begin_places = plan.kept("begin_places", slots.clone(), 2);
        let sum_places = plan.kept("sum_places", slots.clone(), 2);
        let sector_targets = plan.kept("sector_targets", count(SECTORS), 4);
        let place_sums = [
            vec![size(nnz.clone())],
            [
                segment_ranks,
                firsts,
                sectors,
                targets,
                begins,
                numbers,
                begin_places,
                sum_places,
                sector_targets,
            ]
            .map(buffer)
            .into(),
        ];
        plan.prepare("place_sums", count(SUMS), place_sums.concat());

        // Columns.
        plan.ranks("cols", count(SUMS), vec![buffer(sum_cols)], ranks, Some("columns"));
        let num_empty = num_cols.clone().minus(count(COLUMNS));
        let piece_ranks = segment_ranks;
        plan.ranks("pieces", count(SUMS), vec![buffer(sum_cols)], piece_ranks, Some("pieces"));
        let piece_begins = plan.kept("piece_begins", count(PIECES), 2);
        let piece_cols = plan.kept("piece_cols", count(PIECES), 4);
        let cols = plan.scratch("cols", count(PIECES), 4);
        let tile_pieces = plan.kept("tile_pieces", num_second_tiles.clone() + 1, 4);
        let col_bits =
            plan.buffer(Buffer::new("col_bits", num_cols.clone().div_ceil(32) * 4).zeroed().scratch());
        plan.prepare(
            "list_pieces",
            count(SUMS),
            [sum_cols, piece_ranks, piece_begins, cols, tile_pieces, col_bits].map(buffer).into(),
        );
        let long_ranks = plan.scratch("long_ranks", count(PIECES) + 1, 4);
        plan.ranks("long", count(PIECES), vec![buffer(cols)], long_ranks, Some("long_columns"));
        let long_pieces = plan.kept("long_pieces", count(LONG_COLUMNS), 8);
        plan.prepare(
            "list_long",
            count(PIECES),
            [cols, long_ranks, piece_cols, long_pieces].map(buffer).into(),
        );
        let empty_ranks = plan.scratch("empty_ranks", num_cols.clone() + 1, 4);
        plan.ranks("empty", num_cols.clone(), vec![buffer(col_bits)], empty_ranks, Some("empty_columns"));
        let empty_cols = plan.kept("empty_cols", count(EMPTY_COLUMNS), 4);
        plan.prepare("list_empty", num_cols, [empty_ranks, empty_cols].map(buffer).into());

        // Products.
        let sums = plan.kept("sums", slots, sum_bytes);
        let pieces = plan.kept("pieces", count(PIECES), sum_bytes);
        let tiles = |kernel: &str, grid: Expr, args: Vec<Arg>| Pass {
            kernel: kernel.into(),
            grid,
            threads_per_block: tile_threads,
            shared_bytes: tile * sum_bytes,
            args,
        };
        let scaled = || vec![Arg::Y, Arg::Alpha(accumulator), Arg::Beta(accumulator)];
        let product = [
            vec![size(nnz), Arg::Values, Arg::X, Arg::Alpha(accumulator)],
            [product_places, row_words, rows, first_tiles, begin_places, sector_targets, sums]
                .map(buffer)
                .into(),
        ];
        let columns = [
            vec![size(count(SUMS)), size(num_empty)],
            scaled(),
            [sums, sum_places, second_tiles, piece_begins, piece_cols, tile_pieces, pieces]
                .map(buffer)
                .into(),
        ];
        let long =
            [vec![size(count(LONG_COLUMNS))], scaled(), [long_pieces, piece_cols, pieces].map(buffer).into()];
        let empty = [vec![size(count(EMPTY_COLUMNS))], scaled(), vec![buffer(empty_cols)]];
        let multiply = vec![
            tiles("spmv_planned_t", num_tiles, product.concat()),
            tiles("spmv_planned_t_columns", num_second_tiles, columns.concat()),
            plan.pass("long_columns", count(LONG_COLUMNS) * 8, long.concat()),
            plan.pass("empty_columns", count(EMPTY_COLUMNS), empty.concat()),
        ];
        // Fewer than 64 products in a sum, fewer than 64 sums in a piece, an eighth of the pieces in a lane.
        let along = Expr::from(Variable::RowNnz).div_ceil(8) + (63 + 63 + 3);
        plan.finish(multiply, Expr::from(Variable::RowNnz).min(along) + 5, config)
    }
}
