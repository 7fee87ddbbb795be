//! What the time of a product consists of: amounts that follow from the structure, the configuration and the device. A
//! model multiplies each with a price that was fitted to measurements.

use spmv_codegen::{Algorithm, Features, KernelConfig, Slots, Special};

/// The terms, in the order of [`terms`]: a name and what one unit is.
pub const TERMS: &[(&str, &str)] = &[
    (
        "launch",
        "a product; two where `special` or `csr_adaptive` cuts rows, whose pieces are added when all are there",
    ),
    (
        "matrix",
        "GB of the matrix as it is stored for the product, fill counted; of encoded values what decoding takes as long as",
    ),
    ("rows", "GB of row offsets and y"),
    ("x", "GB of x that is read once; for kernels that multiply tiles: once for each tile of rows"),
    ("near", "10^9 reads of a sector of x that the block has not read just before"),
    ("near_wide", "the same, where an entry of x takes more than 4 bytes"),
    ("far", "10^9 reads of a sector of x that was not read for long"),
    ("far_wide", "the same, where an entry of x takes more than 4 bytes"),
    ("spilled", "10^9 reads of a sector of x that the L2 cache has no room for"),
    ("spread", "10^9 reads of a sector of x in a vector that is larger than L1"),
    (
        "gathers",
        "10^9 sectors of x that warps read, those of a step together; where an entry of x takes more than 4 bytes, twice as many",
    ),
    (
        "steps",
        "10^9 steps of lanes, idle ones counted; for kernels that share out entries: rows with entries",
    ),
    (
        "chain",
        "10^6 steps that follow one another in the longest row; for kernels that share out entries: 10^9 rows of 1 to 3 entries, or of `csr5` empty rows",
    ),
    (
        "alone",
        "10^6 steps that follow one another in the longest row, times the part of 2^18 lanes that has no row; none for kernels that share out entries",
    ),
    ("giant", "10^6 entries of the longest row beyond 1/2048 of all"),
];

/// How many terms there are.
pub const NUM_TERMS: usize = TERMS.len();

/// Bytes of x that stay in the L1 caches.
const L1_BYTES: f64 = 2e6;

/// Lanes that a device runs at a time: fewer hide less of what a step waits for.
const RESIDENT_LANES: f64 = (1u64 << 18) as f64;

/// Part of the L2 cache that has room for x: each half keeps what its multiprocessors read.
const PART_OF_L2: f64 = 0.5;

/// The amounts of each term for a product of a matrix with these features; `None` where the algorithm's layout would be
/// mostly fill. The operation is not looked at: features are those
/// of what is multiplied.
pub fn terms(config: &KernelConfig, features: &Features, l2_bytes: u64) -> Option<[f64; NUM_TERMS]> {
    let types = config.types();
    let (rows, nnz) = (features.num_rows as f64, features.nnz as f64);
    let slots = slots(config.algorithm(), features)?;
    let entry_bytes = types.value.size() + types.index.size();
    if Slots::are_refused(slots, features.nnz, entry_bytes) || slots > features.nnz.saturating_mul(8) {
        return None;
    }
    let slot_bytes = config.algorithm().value_bytes(types.value) as f64
        + match config.algorithm() {
            Algorithm::Dia(_) => 0.0,
            // A place of 16 bits; of a copy of x another, a quarter of one of 32, and what is stored and read again.
            Algorithm::TwoPhase(phases) => {
                2.0 + phases.copies_per_entry(features, types.x) * (3.0 + 2.0 * types.x.size() as f64)
            }
            // A column a block, or the distance to that of the block before.
            Algorithm::Bsr(bsr) => types.index.size() as f64 / places(bsr.block_shape()),
            Algorithm::Bccoo(bccoo) => 2.0 / places((bccoo.block_rows, bccoo.block_cols)),
            Algorithm::Special(layout) => {
                f64::from(layout.col_bits / 8) / places((layout.block, layout.block))
            }
            _ => types.index.size() as f64,
        };
    let x_bytes = features.num_cols as f64 * types.x.size() as f64;
    let x_reads = match config.algorithm() {
        Algorithm::CacheBlocked(tiles) => (rows / f64::from(tiles.tile_rows(types.accumulator))).ceil(),
        _ => 1.0,
    };
    let is_wide = f64::from(u8::from(types.x.size() > 4));
    let cold = match config.algorithm() {
        Algorithm::HotColumns(hot) => 1.0 - features.degrees.hot_share(hot.hot_cols(types.x).into()),
        _ => 1.0,
    };
    let [near, far] = [0, 1].map(|kind| cold * nnz * features.sectors_per_entry(kind));
    let sector_bytes = f64::from(Features::COLS_PER_SECTOR) * types.x.size() as f64;
    let spilled = (1.0 - PART_OF_L2 * l2_bytes as f64 / x_bytes.max(1.0)).max(0.0);
    // Of steps that follow one another, in so many shares of so many threads, those that nothing hides.
    let alone = |chain: f64, shares: f64, threads: u32| {
        chain * (1.0 - shares * f64::from(threads) / RESIDENT_LANES).max(0.0)
    };
    let shares = shares(config.algorithm(), features);
    let (steps, chain, alone) = match shares {
        Shares::Rows { threads } => {
            let chain = features.longest_row as f64 / f64::from(threads) / 1e6;
            (sliced(features, threads)? as f64 / 1e9, chain, alone(chain, rows, threads))
        }
        Shares::Pieces { threads, longest } => {
            let chain = features.longest_row.min(longest) as f64 / f64::from(threads) / 1e6;
            let pieces = rows.max((nnz / longest as f64).ceil());
            (slots as f64 / 1e9, chain, alone(chain, pieces, threads))
        }
        Shares::Blocks { threads, cols } => {
            let chain = features.longest_row as f64 / f64::from(threads * cols) / 1e6;
            (slots as f64 / 1e9, chain, alone(chain, rows / f64::from(cols), threads))
        }
        Shares::Entries => {
            let with_entries = features.num_rows - features.row_lengths[0];
            let followed = match config.algorithm() {
                // A tile with empty rows reads where its rows begin, and stores those too.
                Algorithm::Csr5(_) => features.row_lengths[0],
                _ => features.row_lengths[1] + features.row_lengths[2],
            };
            (with_entries as f64 / 1e9, followed as f64 / 1e9, 0.0)
        }
    };
    let gathers = match shares {
        Shares::Rows { threads } | Shares::Pieces { threads, .. } | Shares::Blocks { threads, .. } => {
            features.sectors_per_gather(Some(threads))
        }
        Shares::Entries => features.sectors_per_gather(None),
    };
    let launches = match config.algorithm() {
        Algorithm::Special(layout) if layout.block == 1 && layout.piece > 0 => {
            1.0 + f64::from(u8::from(features.longest_row > layout.piece.into()))
        }
        Algorithm::CsrAdaptive(csr) => {
            1.0 + f64::from(u8::from(features.longest_row > csr.nnz_per_block.into()))
        }
        _ => 1.0,
    };
    Some([
        launches,
        slots as f64 * slot_bytes / 1e9,
        rows * (types.offset.size() + types.y.size()) as f64 / 1e9,
        (x_bytes * x_reads).min(far * sector_bytes) / 1e9,
        near / 1e9,
        near * is_wide / 1e9,
        far / 1e9,
        far * is_wide / 1e9,
        far * spilled / 1e9,
        near * (x_bytes / L1_BYTES).min(1.0) / 1e9,
        nnz * gathers * (1.0 + is_wide) / 1e9,
        steps,
        chain,
        alone,
        (features.longest_row as f64 - nnz / 2048.0).max(0.0) / 1e6,
    ])
}

/// Slots that the algorithm's layout has, fill counted.
fn slots(algorithm: Algorithm, features: &Features) -> Option<u64> {
    // Sorting by length leaves little of the fill.
    let sorted = |sliced: u64| features.nnz + sliced.saturating_sub(features.nnz) / 8;
    match algorithm {
        Algorithm::Ell(_) => {
            Some(features.num_rows.next_multiple_of(32).saturating_mul(features.longest_row))
        }
        Algorithm::SellCSigma(sell) if sell.sigma == 1 => sliced(features, 1),
        Algorithm::SellCSigma(_) => sliced(features, 1).map(sorted),
        Algorithm::Special(layout) if layout.block > 1 => in_blocks(features, (layout.block, layout.block)),
        Algorithm::Special(layout) => {
            let sliced = sliced(features, layout.lanes_per_row)?;
            let slots = if layout.sigma == 1 { sliced } else { sorted(sliced) };
            Some(slots.saturating_add(slots_of_whole_steps(features, layout, slots)))
        }
        Algorithm::Bsr(bsr) => in_blocks(features, bsr.block_shape()),
        Algorithm::Bccoo(bccoo) => in_blocks(features, (bccoo.block_rows, bccoo.block_cols)),
        Algorithm::Dia(_) => {
            features.num_diagonals.map(|diagonals| diagonals.saturating_mul(features.num_rows))
        }
        // Whether all rows repeat, features do not say.
        Algorithm::RowPatterns(_) => None,
        _ => Some(features.nnz),
    }
}

/// Slots of a warp's rows next to each other, so many threads each, every row as long as the longest of them.
fn sliced(features: &Features, threads: u32) -> Option<u64> {
    let width = Features::THREADS_PER_ROW.iter().position(|width| *width == threads)?;
    Some(32 * features.warp_steps[width])
}

/// Slots by which so many grow where a lane's entries of a row are a multiple of `entries_per_step`: that of the longest row
/// where all are about as long, and half a step less an entry a lane where not.
fn slots_of_whole_steps(features: &Features, layout: Special, slots: u64) -> u64 {
    let (lanes, entries) = (u64::from(layout.lanes_per_row), u64::from(layout.entries_per_step));
    let empty_rows = if layout.sigma == 1 { 0 } else { features.row_lengths[0] };
    let lanes_of_rows = features.num_rows.saturating_sub(empty_rows).saturating_mul(lanes);
    let longest = features.longest_row.div_ceil(lanes);
    if slots as f64 > ALIKE * longest as f64 * lanes_of_rows as f64 {
        (longest.next_multiple_of(entries) - longest).saturating_mul(lanes_of_rows)
    } else {
        (entries - 1).saturating_mul(lanes_of_rows) / 2
    }
}

/// Rows are about as long as the longest where that many times the slots of it have entries.
const ALIKE: f64 = 0.97;

/// Slots where all entries are stored in dense blocks of this shape.
fn in_blocks(features: &Features, shape: (u32, u32)) -> Option<u64> {
    features.slots_per_entry(shape).map(|slots| (slots * features.nnz as f64).ceil() as u64)
}

/// Entries that a third of the rows have at least, by the longest rows of their class.
fn padded_width(features: &Features) -> u64 {
    let mut rows = 0;
    let class = features.row_lengths.iter().rposition(|of_class| {
        rows += of_class;
        rows >= (features.num_rows / 3).max(1)
    });
    ((1u64 << class.unwrap_or(0)) - 1).clamp(1, features.longest_row.max(1))
}

fn places((rows, cols): (u32, u32)) -> f64 {
    f64::from(rows * cols)
}

/// Whether a product with this configuration multiplies fill with x, as far as the features tell: whether a plan does is known
/// when it has been made.
pub fn multiplies_fill(config: &KernelConfig, features: &Features) -> bool {
    config.algorithm().fill_touches_x()
        && slots(config.algorithm(), features).is_none_or(|slots| slots > features.nnz)
}

/// What threads share out among themselves.
#[derive(Clone, Copy)]
enum Shares {
    /// Rows, so many threads each.
    Rows { threads: u32 },
    /// Rows that were cut where they have more entries than the longest piece, so many threads each.
    Pieces { threads: u32, longest: u64 },
    /// Rows of blocks of so many columns, so many threads each.
    Blocks { threads: u32, cols: u32 },
    /// Entries, however long the rows are.
    Entries,
}

fn shares(algorithm: Algorithm, features: &Features) -> Shares {
    match algorithm {
        Algorithm::CsrScalar(_) | Algorithm::Ell(_) | Algorithm::SellCSigma(_) | Algorithm::Dia(_) => {
            Shares::Rows { threads: 1 }
        }
        Algorithm::Bsr(bsr) => Shares::Rows { threads: if bsr.block_shape().1 > 4 { 8 } else { 4 } },
        Algorithm::Special(layout) if layout.block > 1 => {
            Shares::Blocks { threads: layout.lanes_per_row, cols: layout.block }
        }
        Algorithm::Special(layout) => {
            let longest = match layout.piece {
                0 => u64::MAX,
                piece => piece.into(),
            };
            Shares::Pieces { threads: layout.lanes_per_row, longest }
        }
        // Rows by their lengths, so that a warp's are about as long as one another; of `hyb`, the padded part.
        Algorithm::Jds(_) => Shares::Pieces { threads: 1, longest: u64::MAX },
        Algorithm::Hyb(_) => Shares::Pieces { threads: 1, longest: padded_width(features) },
        Algorithm::CsrVector(csr) => Shares::Rows { threads: csr.threads_per_vector },
        Algorithm::LightVector(light) => Shares::Rows { threads: light.threads_per_vector },
        Algorithm::LightWarp(light) => Shares::Rows { threads: light.threads_per_vector },
        _ => Shares::Entries,
    }
}
