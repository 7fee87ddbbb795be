// cache_blocked: cells of a row tile and a column tile; x and y of a cell lie in shared memory, a warp has its own rows.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     cache blocking as in Nishtala, Vuduc, Demmel and Yelick 2007, with shared memory for the cache and places of y for parts of long rows
// Suits:     columns that reach far: uniform random, wide bands, power laws, few long rows; what loads of x from L2 cost elsewhere
// Suffers:   fewer entries than sectors of x in nearly all cells (uniform random of millions of rows with few entries); values that change (they are copied when a plan is made)
// Bytes:     slots * (value + 4) + 8 a warp and cell + rows * (y + 4) + x once; from L2 a column tile for every cell with more entries than it has sectors, a sector for every entry of other cells, and two accumulators a row and block that works on it; values take 4 or 1 where they are encoded; keeps its own values and columns
// Guarantee: bit-reproducible; fill touches no x
// Launch:    so many blocks of 512 threads, equal shares of the cells, the next column tile copied while one is used; then a thread a row, or where few tiles are shared by many blocks the warps of a block 32 rows, a block for rows in many parts; planned on the device by a sort

// Rows with entries have slots, one each, or several where a row is long. Slots lie in tiles of kTileSlots, which are
// dealt out to the warps of a block. An entry belongs to a cell, of its slot's tile and its column's, and there to the
// bucket of its slot's warp. The bucket's entries, in the order of the slots, are shared out among the lanes, whole slots
// to a lane, so that no two lanes add to one slot: no atomics are needed, and no lane waits for another.
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kSharedKib = 96;
constexpr int kBlocks = 132;
constexpr int kEncoding = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/loaded.cuh"
#include "prelude/unsigned.cuh"
#include "prelude/async_copy.cuh"
#include "prelude/stage_async.cuh"
#include "prelude/group.cuh"
#include "prelude/block.cuh"
#include "prelude/search.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#include "primitives/value_encoding.cuh"
#endif

constexpr uint32_t kWarps = 16;
// Blocks that are resident on a multiprocessor, which has as many registers for each: two where there are more than
// multiprocessors, and room for both.
constexpr int kResidentBlocks = kBlocks > 148 && kSharedKib <= 96 ? 2 : 1;
constexpr uint32_t kTileThreads = 32 * kWarps;
// Column tiles in shared memory: one is used, the others are on their way.
constexpr uint32_t kStages = 2;
// Bytes of each; the rest is the slots'.
constexpr uint32_t kStageBytes = (kSharedKib >= 224 ? 32 : kSharedKib >= 96 ? 16 : kSharedKib >= 48 ? 8 : 2) * 1024;
constexpr uint32_t kTileCols = kStageBytes / sizeof(XT);
// Cells that are worth no copy of their columns are joined: so many columns have a place of 16 bits.
constexpr uint32_t kWideCols = 65536;
constexpr uint32_t kTilesPerWide = kWideCols / kTileCols;
// Entries from which on a copy brings fewer sectors than they would.
constexpr uint32_t kStagedEntries = kStageBytes / 32;
// Slots of a warp, as many for each bank, and their distance to the next warp's. Places in shared memory have 16 bits.
constexpr uint32_t kSlotsInRoom = ((kSharedKib * 1024 - kStages * kStageBytes) / (kWarps * sizeof(AccumT)) - 1) / 32;
constexpr uint32_t kSlotsWithPlaces = (0xffff / kWarps - 1) / 32;
constexpr uint32_t kSlotsPerBank = kSlotsInRoom < kSlotsWithPlaces ? kSlotsInRoom : kSlotsWithPlaces;
constexpr uint32_t kWarpSlots = 32 * kSlotsPerBank;
constexpr uint32_t kWarpStride = kWarpSlots + 1;
static_assert(kWarps * kWarpStride <= 0xffff);
constexpr uint32_t kTileSlots = kWarps * kWarpSlots;
// Fewer entries in a slot are never worth another.
constexpr uint32_t kShortSlot = 32;
// In cells: x is copied to shared memory.
constexpr uint32_t kIsStaged = 0x80000000u;
// Entries that a lane takes in a round, a unit. They lie side by side, beside those of the next lane.
constexpr uint32_t kRound = 4;
// A unit of nothing but fill.
constexpr uint32_t kFillUnit = 0;
// Rows with more slots are summed by a block.
constexpr uint32_t kFewSlots = 8;

// ---- The plan: slots ----

// The most entries of a slot: the share of a thread in a tile of rows of average length.
__device__ __forceinline__ uint32_t most_in_slot(uint32_t num_rows, uint32_t nnz) {
  const uint64_t in_tile = uint64_t(nnz) * min(num_rows, kTileSlots) / num_rows;
  return max(kShortSlot, uint32_t(in_tile / (32 * kWarps)));
}

// marks[row] <- its slots.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_mark_slots(uint32_t num_rows, uint32_t nnz, const OffsetT* __restrict__ row_offsets,
                              uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const uint32_t length = row_offsets[row + 1] - row_offsets[row], most = most_in_slot(num_rows, nnz);
  marks[row] = length / most + (length % most != 0);
}

// marks[row] <- whether a block sums it.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_mark_long(uint32_t num_rows, const uint32_t* __restrict__ slot_begins,
                             uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row < num_rows) marks[row] = slot_begins[row + 1] - slot_begins[row] > kFewSlots;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_list_long(uint32_t num_rows, const uint32_t* __restrict__ ranks, uint32_t* __restrict__ long_rows) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row < num_rows && ranks[row] != ranks[row + 1]) long_rows[ranks[row]] = row;
}

// The slot of an entry: those of a row take its entries in turn.
__device__ __forceinline__ uint32_t slot_of(uint32_t entry, uint32_t row, const OffsetT* __restrict__ row_offsets,
                                            const uint32_t* __restrict__ slot_begins) {
  const uint32_t first = slot_begins[row];
  return first + (entry - row_offsets[row]) % (slot_begins[row + 1] - first);
}

// rows[entry] <- its row; counts[row tile, column tile] <- entries, for whole stretches of kWideCols columns.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_count(uint32_t nnz, uint32_t num_rows, uint32_t num_wide, const OffsetT* __restrict__ row_offsets,
                         const IndexT* __restrict__ col_indices, const uint32_t* __restrict__ slot_begins,
                         uint32_t* __restrict__ rows, uint32_t* counts) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  uint64_t place = ~uint64_t(0);
  if (i < nnz) {
    const uint32_t row = first_that(num_rows, [=](uint32_t r) { return row_offsets[r + 1] > i; });
    const uint32_t tile = slot_of(i, row, row_offsets, slot_begins) / kTileSlots;
    rows[i] = row;
    place = uint64_t(tile) * num_wide * kTilesPerWide + col_indices[i] / kTileCols;
  }
  // Long rows have many neighbours in a tile: those of a warp are counted together.
  const uint32_t peers = __match_any_sync(0xffffffffu, place);
  if (i < nnz && threadIdx.x % 32 == __ffs(peers) - 1) atomicAdd(counts + place, uint32_t(__popc(peers)));
}

// ---- The plan: cells ----

// Of the cells that a row tile may have in a stretch of kWideCols columns, one for each column tile and one for what is
// not copied: which it has.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_mark_cells(uint64_t num_stretches, const uint32_t* __restrict__ counts,
                              uint32_t* __restrict__ marks) {
  await_stream();
  const uint64_t i = uint64_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
  if (i >= num_stretches) return;
  uint32_t* cell_marks = marks + i * (kTilesPerWide + 1);
  bool has_others = false;
  for (uint32_t tile = 0; tile < kTilesPerWide; ++tile) {
    const uint32_t count = counts[i * kTilesPerWide + tile];
    cell_marks[tile] = count > kStagedEntries;
    has_others |= count > 0 && count <= kStagedEntries;
  }
  cell_marks[kTilesPerWide] = has_others;
}

// cells[cell] <- row tile, and whether its columns are copied; first column.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_list_cells(uint64_t num_places, uint32_t num_wide, const uint32_t* __restrict__ ranks,
                              uint2* __restrict__ cells) {
  await_stream();
  const uint64_t i = uint64_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
  if (i >= num_places || ranks[i] == ranks[i + 1]) return;
  const uint64_t stretch = i / (kTilesPerWide + 1);
  const uint32_t col_tile = uint32_t(i % (kTilesPerWide + 1));
  const uint32_t tile = uint32_t(stretch / num_wide), first_col = uint32_t(stretch % num_wide) * kWideCols;
  const bool is_staged = col_tile < kTilesPerWide;
  cells[ranks[i]] = {is_staged ? tile | kIsStaged : tile, is_staged ? first_col + col_tile * kTileCols : first_col};
}

// pairs <- bucket and place of every entry.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_entries(uint32_t nnz, uint32_t num_wide, const OffsetT* __restrict__ row_offsets,
                           const IndexT* __restrict__ col_indices, const uint32_t* __restrict__ slot_begins,
                           const uint32_t* __restrict__ rows, const uint32_t* __restrict__ ranks,
                           SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const uint32_t slot = slot_of(i, rows[i], row_offsets, slot_begins), col = col_indices[i];
  const uint64_t stretch = uint64_t(slot / kTileSlots) * num_wide + col / kWideCols;
  const uint32_t* cell_ranks = ranks + stretch * (kTilesPerWide + 1);
  const uint32_t tile = col % kWideCols / kTileCols;
  const uint32_t cell = cell_ranks[cell_ranks[tile] != cell_ranks[tile + 1] ? tile : kTilesPerWide];
  pairs[i] = {cell * kWarps + slot % kTileSlots % kWarps, i};
}

// ---- The plan: buckets ----

// begins[bucket] <- its first entry.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_bucket_begins(uint32_t num_buckets, uint32_t nnz, const SortPair* __restrict__ pairs,
                                 uint32_t* __restrict__ begins) {
  await_stream();
  const uint32_t bucket = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (bucket <= num_buckets) begins[bucket] = first_that(nnz, [=](uint32_t i) { return pairs[i].x >= bucket; });
}

// The slots that a row has in a tile and warp: the first, counted from the tile's, and how many, kWarps apart.
struct RowSlots {
  uint32_t first;
  uint32_t count;
};

__device__ __forceinline__ RowSlots row_slots(uint32_t row, uint32_t bucket, const uint32_t* __restrict__ slot_begins,
                                              const uint2* __restrict__ cells) {
  const uint32_t tile_begin = (cells[bucket / kWarps].x & ~kIsStaged) * kTileSlots;
  const uint32_t begin = max(slot_begins[row], tile_begin) - tile_begin;
  const uint32_t end = min(slot_begins[row + 1] - tile_begin, kTileSlots);
  const uint32_t first = begin + (bucket - begin) % kWarps;
  return {first, (end - first + kWarps - 1) / kWarps};
}

// slots[entry of the bucket] <- its slot among the warp's; they rise.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_slots(uint32_t nnz, const OffsetT* __restrict__ row_offsets,
                         const uint32_t* __restrict__ slot_begins, const uint32_t* __restrict__ rows,
                         const uint2* __restrict__ cells, const SortPair* __restrict__ pairs,
                         const uint32_t* __restrict__ begins, uint16_t* __restrict__ slots) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const uint32_t bucket = pairs[i].x, row = rows[pairs[i].y];
  const RowSlots of_row = row_slots(row, bucket, slot_begins, cells);
  uint32_t slot = of_row.first;
  if (of_row.count > 1) {
    // The row's entries in the bucket, in as many parts.
    const uint32_t begin = begins[bucket], count = begins[bucket + 1] - begin;
    const auto first_from = [=](uint32_t place) {
      return first_that(count, [=](uint32_t j) { return pairs[begin + j].y >= place; });
    };
    const uint32_t first = first_from(row_offsets[row]), end = first_from(row_offsets[row + 1]);
    slot += kWarps * uint32_t(uint64_t(i - begin - first) * of_row.count / (end - first));
  }
  slots[i] = uint16_t(slot / kWarps);
}

// lane_begins[32 * bucket + lane] <- the lane's first entry, buckets[bucket].y <- the bucket's rounds and in the low 6
// bits the lanes that have entries, marks[bucket] <- rounds of all lanes.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_mark_units(uint32_t num_buckets, const uint32_t* __restrict__ begins,
                              const uint16_t* __restrict__ slots, uint32_t* __restrict__ lane_begins,
                              uint2* __restrict__ buckets, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t bucket = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (bucket >= num_buckets) return;
  const uint32_t end = begins[bucket + 1];
  uint32_t begin = begins[bucket], lane = 0, rounds = (end - begin + 32 * kRound - 1) / (32 * kRound);
  while (begin < end) {
    begin = begins[bucket];
    for (lane = 0; lane < 32 && begin < end; ++lane) {
      lane_begins[32 * uint64_t(bucket) + lane] = begin;
      uint32_t next = begin + min(end - begin, rounds * kRound);
      if (next < end && slots[next - 1] == slots[next]) {
        next = begin + first_that(next - begin, [=](uint32_t j) { return slots[begin + j] >= slots[next]; });
      }
      if (next == begin) break;
      begin = next;
    }
    // More where whole slots do not fit.
    if (begin < end) rounds += 1 + rounds / 8;
  }
  buckets[bucket].y = rounds << 6 | lane;
  marks[bucket] = rounds * lane;
}

// The place in shared memory of a warp's slot. Slots of a lane are neighbours, and lie in one bank or two.
__device__ __forceinline__ uint32_t slot_place(uint32_t warp, uint32_t slot) {
  return 1 + warp * kWarpStride + slot % kSlotsPerBank * 32 + slot / kSlotsPerBank;
}

// What a step to the next column is in the high 16 bits of a word: bytes, where x is copied.
__device__ __forceinline__ constexpr uint32_t column_step(bool is_staged) { return is_staged ? sizeof(XT) : 1; }
static_assert(kStageBytes <= 65536);

// Of words, a column in the cell and in the low 16 bits the place of a slot in shared memory, where 0 is nobody's, and
// of values, as they are or encoded: those of an entry. What nobody writes is zero, and fill.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_fill(uint32_t nnz, const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                        const uint2* __restrict__ cells, const SortPair* __restrict__ pairs,
                        const uint16_t* __restrict__ slots, const uint32_t* __restrict__ lane_begins,
                        const uint32_t* __restrict__ units, uint2* __restrict__ buckets,
                        uint32_t* __restrict__ words, uint32_t is_encoded, ValueT* __restrict__ slot_values,
                        EncodedT* __restrict__ encoded_values) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const uint32_t bucket = pairs[i].x, entry = pairs[i].y, lanes = buckets[bucket].y & 63;
  const uint32_t* begins = lane_begins + 32 * uint64_t(bucket);
  const uint32_t lane = first_that(lanes - 1, [=](uint32_t l) { return begins[l + 1] > i; });
  const uint32_t first_unit = kFillUnit + 1 + units[bucket];
  if (i == begins[0]) buckets[bucket].x = first_unit;
  const uint32_t rank = i - begins[lane];
  const uint64_t at = (first_unit + uint64_t(rank / kRound) * lanes + lane) * kRound + rank % kRound;
  const uint32_t place = slot_place(bucket % kWarps, slots[i]);
  const uint2 cell = cells[bucket / kWarps];
  const uint32_t col = (uint32_t(col_indices[entry]) - cell.y) * column_step((cell.x & kIsStaged) != 0);
  words[at] = col << 16 | place;
  if (kIsEncoded && is_encoded != 0) {
    encoded_values[at] = EncodingT::stored(values[entry], 0, nullptr);
  } else {
    slot_values[at] = values[entry];
  }
}

// ---- The plan: shares of blocks ----

// marks[cell] <- what it costs: two for a round of the block, and as much for a copy of columns. Reads of x from anywhere
// take a multiprocessor some two rounds for every 512 of them.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_mark_costs(uint32_t num_cells, const uint2* __restrict__ cells, const uint2* __restrict__ buckets,
                              const uint32_t* __restrict__ begins, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t cell = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (cell >= num_cells) return;
  const uint64_t first = uint64_t(cell) * kWarps;
  uint32_t rounds = 0;
  for (uint32_t warp = 0; warp < kWarps; ++warp) rounds = max(rounds, buckets[first + warp].y >> 6);
  const uint32_t entries = begins[first + kWarps] - begins[first];
  marks[cell] = 1 + 2 * rounds + (cells[cell].x & kIsStaged ? 2 : rounds + entries / 256);
}

// shares[block] <- the cell where the block begins, and how much of it, in 65,536ths, is others'.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_cut_shares(uint32_t num_blocks, uint32_t num_cells, const uint32_t* __restrict__ costs,
                              uint2* __restrict__ shares) {
  await_stream();
  const uint32_t block = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (block > num_blocks) return;
  const uint64_t before = uint64_t(costs[num_cells]) * block / num_blocks;
  const uint32_t cell = first_that(num_cells, [=](uint32_t c) { return costs[c + 1] > before; });
  if (cell == num_cells) {
    shares[block] = {cell, 0};
  } else {
    const uint64_t part = (before - costs[cell]) << 16;
    shares[block] = {cell, uint32_t(part / (costs[cell + 1] - costs[cell]))};
  }
}

// The end of the cells that a block works on: one at least.
__device__ __forceinline__ uint32_t cells_end(uint2 share, uint2 next_share) {
  return max(share.x + 1, next_share.x + (next_share.y > 0));
}

// tile_blocks[row tile] <- the first of the blocks that work on it, and their end.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_tile_blocks(uint32_t num_tiles, uint32_t num_cells, uint32_t num_blocks,
                               const uint2* __restrict__ cells, const uint2* __restrict__ shares,
                               uint2* __restrict__ tile_blocks) {
  await_stream();
  const uint32_t tile = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (tile >= num_tiles) return;
  const uint32_t begin = first_that(num_cells, [=](uint32_t c) { return (cells[c].x & ~kIsStaged) >= tile; });
  const uint32_t end = first_that(num_cells, [=](uint32_t c) { return (cells[c].x & ~kIsStaged) > tile; });
  tile_blocks[tile] = {
      first_that(num_blocks, [=](uint32_t b) { return cells_end(shares[b], shares[b + 1]) > begin; }),
      first_that(num_blocks, [=](uint32_t b) { return shares[b].x >= end; }),
  };
}

// ---- The product ----

// Begins to copy a cell's columns, where it has them copied; nobody may read or write `staged` meanwhile.
__device__ __forceinline__ void begin_staging(uint2 cell, uint32_t num_cols, const XT* __restrict__ x, XT* staged) {
  if (cell.x & kIsStaged) stage_async<kTileThreads>(min(kTileCols, num_cols - cell.y), x, x + cell.y, staged);
}

// Rounds whose loads are in flight. The loads of one are issued when the same of the rounds before is added, into the same
// registers: moving them instead would wait for them, and so would a choice between them and fill.
constexpr uint32_t kRoundsAhead = 3;

// What a lane takes in a round, with values as they are stored. A word of 0 is fill.
template <typename StoredT>
struct Entries {
  uint32_t words[kRound];
  Loaded<kRound, StoredT> values;

  __device__ __forceinline__ void load(uint32_t unit, const uint32_t* __restrict__ slot_words,
                                       const StoredT* __restrict__ slot_values) {
    load_streaming<kRound>(words, slot_words + uint64_t(unit) * kRound);
    values.load(slot_values + uint64_t(unit) * kRound);
  }
};

// The rounds that a warp takes of a cell, one at least, and of the first where its lanes find it.
struct Rounds {
  uint32_t left, unit, lanes;

  __device__ __forceinline__ Rounds(uint32_t left, uint32_t unit, uint32_t lanes) : left(left), unit(unit), lanes(lanes) {}
  // Those of a bucket from `first` to `end`.
  __device__ __forceinline__ Rounds(uint2 bucket, uint32_t first, uint32_t end)
      : left(max(end - first, 1u)), unit(bucket.x + first * (bucket.y & 63)), lanes(end > first ? bucket.y & 63 : 0) {}
  // The lane's unit of the next round.
  __device__ __forceinline__ uint32_t next() {
    const uint32_t lane = threadIdx.x % 32, found = lane < lanes ? unit + lane : kFillUnit;
    unit += lanes;
    --left;
    return found;
  }
};

// Adds a lane's entries to their slots, of which it has all entries; x begins with column first_col. Neighbours of one slot
// are added up before, so that the slots' loads are in flight together.
template <bool kIsCopied, typename StoredT>
__device__ __forceinline__ void add_entries(const Entries<StoredT>& entries, const XT* __restrict__ x,
                                            uint32_t first_col, AccumT* slots) {
  AccumT sums[kRound], slot_sums[kRound];
  XT x_entries[kRound];
#pragma unroll
  for (uint32_t i = 0; i < kRound; ++i) {
    const uint32_t step = entries.words[i] >> 16;
    x_entries[i] = kIsCopied ? *reinterpret_cast<const XT*>(reinterpret_cast<const char*>(x) + step) : x[step];
  }
  const auto slot_of = [&](uint32_t i) { return slots + (entries.words[i] & 0xffff); };
  const auto is_followed = [&](uint32_t i) {
    return i + 1 < kRound && ((entries.words[i] ^ entries.words[(i + 1) % kRound]) & 0xffff) == 0;
  };
  const auto is_last_of = [&](uint32_t i) { return (entries.words[i] & 0xffff) != 0 && !is_followed(i); };
#pragma unroll
  for (uint32_t i = 0; i < kRound; ++i) {
    if (is_last_of(i)) slot_sums[i] = *slot_of(i);
  }
#pragma unroll
  for (uint32_t i = 0; i < kRound; ++i) {
    const AccumT before = i > 0 && is_followed(i - 1) ? sums[i - 1] : kIdentity;
    sums[i] = combine_reduce(AccumT(decode(entries.values[i], nullptr)), AccumT(x_entries[i]),
                             first_col + (entries.words[i] >> 16) / column_step(kIsCopied), before);
  }
#pragma unroll
  for (uint32_t i = 0; i < kRound; ++i) {
    if (is_last_of(i)) *slot_of(i) = reduce(slot_sums[i], sums[i]);
  }
}

// The sums of a row tile, in the order of its slots, which are empty then.
__device__ __forceinline__ void put_partials(uint32_t tile, uint32_t num_slots, uint32_t stride, AccumT* slots,
                                             AccumT* __restrict__ partials) {
  const uint32_t count = min(kTileSlots, num_slots - tile * kTileSlots);
  partials += uint64_t(blockIdx.x + tile) * stride;
  for (uint32_t i = threadIdx.x; i < count; i += kTileThreads) {
    AccumT* slot = slots + slot_place(i % kWarps, i / kWarps);
    partials[i] = *slot;
    *slot = kIdentity;
  }
}

// Waits for all warps of the block, which may be at other copies of this: the loop over rounds has three, and warps have unlike
// many. A loop with one copy waits for its loads where turns meet, and takes a third longer.
__device__ __forceinline__ void await_warps() { __barrier_sync(0); }

template <typename StoredT>
__device__ __forceinline__ void multiply(uint32_t num_cols, uint32_t num_slots, uint32_t stride, AlphaT alpha,
                                         const uint2* __restrict__ cells, const uint2* __restrict__ buckets,
                                         const uint2* __restrict__ shares, const uint32_t* __restrict__ words,
                                         const StoredT* __restrict__ slot_values, const XT* __restrict__ x,
                                         AccumT* __restrict__ partials) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  XT* staged = reinterpret_cast<XT*>(shared_bytes);
  AccumT* slots = reinterpret_cast<AccumT*>(shared_bytes + kStages * kStageBytes);
  // Of the cell that is worked on and those behind it, as many as loads run ahead, which are in flight while one more is.
  constexpr uint32_t kKnown = 8;
  static_assert(kRoundsAhead + 2 <= kKnown);
  __shared__ uint2 known_cells[kKnown], known_buckets[kKnown][kWarps];
  const uint2 share = __ldg(shares + blockIdx.x), next_share = __ldg(shares + blockIdx.x + 1);
  uint32_t c = share.x;
  if (skips_product(alpha) || c == __ldg(shares + kBlocks).x) return;
  const uint32_t end = cells_end(share, next_share), warp = threadIdx.x / 32;
  const auto know = [=](uint32_t of) {
    if (of >= end) return;
    if (threadIdx.x % 32 == 0) copy_async<8>(&known_buckets[of % kKnown][warp], buckets + uint64_t(of) * kWarps + warp);
    if (threadIdx.x == 0) copy_async<8>(known_cells + of % kKnown, cells + of);
  };
  const auto stage = [=](uint32_t of) {
    if (of < end) begin_staging(known_cells[of % kKnown], num_cols, x, staged + of % kStages * kTileCols);
  };
  // Of a cell's rounds, those that are the block's.
  const auto rounds_of = [=](uint32_t of) {
    const uint2 bucket = known_buckets[of % kKnown][warp];
    const uint32_t rounds = bucket.y >> 6;
    return Rounds(bucket, of == share.x ? uint32_t(uint64_t(rounds) * share.y >> 16) : 0,
                  of == next_share.x ? uint32_t(uint64_t(rounds) * next_share.y >> 16) : rounds);
  };
#pragma unroll
  for (uint32_t i = 0; i <= kRoundsAhead; ++i) know(c + i);
  end_copies();
  for (uint32_t i = threadIdx.x; i <= kWarps * kWarpStride; i += kTileThreads) slots[i] = kIdentity;
  await_copies<0>();
  __syncthreads();
  stage(c);
  end_copies();
  uint32_t ahead = c;
  Rounds rounds = rounds_of(c), rounds_ahead = rounds;
  Entries<StoredT> entries[kRoundsAhead];
  const auto load = [&](Entries<StoredT>& to) {
    if (rounds_ahead.left == 0) {
      ++ahead;
      rounds_ahead = ahead < end ? rounds_of(ahead) : Rounds(~0u, kFillUnit, 0);
    }
    to.load(rounds_ahead.next(), words, slot_values);
  };
#pragma unroll
  for (uint32_t i = 0; i < kRoundsAhead; ++i) load(entries[i]);
  // Every warp takes part, whose rounds of the cell before are over.
  uint2 cell;
  const auto begin_cell = [&] {
    await_copies<0>();
    await_warps();
    cell = known_cells[c % kKnown];
    rounds = rounds_of(c);
    stage(c + 1);
    know(c + kRoundsAhead + 1);
    end_copies();
  };
  begin_cell();
  // Whether there is one more round, of this cell or the next.
  const auto begin_round = [&] {
    if (rounds.left == 0) {
      const uint32_t tile = cell.x & ~kIsStaged;
      const bool is_last = ++c == end;
      if (is_last || (known_cells[c % kKnown].x & ~kIsStaged) != tile) {
        await_warps();
        put_partials(tile, num_slots, stride, slots, partials);
      }
      if (is_last) return false;
      begin_cell();
    }
    --rounds.left;
    return true;
  };
  const auto take_round = [&](Entries<StoredT>& of_round) {
    if (cell.x & kIsStaged) {
      add_entries<true>(of_round, staged + c % kStages * kTileCols, cell.y, slots);
    } else {
      add_entries<false>(of_round, x + cell.y, cell.y, slots);
    }
    load(of_round);
  };
  static_assert(kRoundsAhead == 3);
  while (true) {
    if (!begin_round()) return;
    take_round(entries[0]);
    if (!begin_round()) return;
    take_round(entries[1]);
    if (!begin_round()) return;
    take_round(entries[2]);
  }
}

extern "C" __global__ void __launch_bounds__(kTileThreads, kResidentBlocks)
spmv_cache_blocked(uint32_t num_cols, uint32_t num_slots, uint32_t stride, AlphaT alpha,
                   const uint2* __restrict__ cells, const uint2* __restrict__ buckets, const uint2* __restrict__ shares,
                   const uint32_t* __restrict__ words, const ValueT* __restrict__ slot_values,
                   const XT* __restrict__ x, AccumT* __restrict__ partials) {
  await_stream();
  multiply(num_cols, num_slots, stride, alpha, cells, buckets, shares, words, slot_values, x, partials);
}

extern "C" __global__ void __launch_bounds__(kTileThreads, kResidentBlocks)
spmv_cache_blocked_encoded(uint32_t num_cols, uint32_t num_slots, uint32_t stride, AlphaT alpha,
                           const uint2* __restrict__ cells, const uint2* __restrict__ buckets,
                           const uint2* __restrict__ shares, const uint32_t* __restrict__ words,
                           const EncodedT* __restrict__ slot_values, const XT* __restrict__ x,
                           AccumT* __restrict__ partials) {
  await_stream();
  if constexpr (kIsEncoded) {
    multiply(num_cols, num_slots, stride, alpha, cells, buckets, shares, words, slot_values, x, partials);
  }
}

// Of a slot's sums, one for each block that works on its tile, those of every `step`-th block from the `first` on, in their
// order.
__device__ __forceinline__ AccumT slot_sum(uint32_t slot, uint32_t first, uint32_t step, uint32_t stride,
                                           const uint2* __restrict__ tile_blocks,
                                           const AccumT* __restrict__ partials) {
  constexpr uint32_t kAtOnce = 16;
  const uint32_t tile = slot / kTileSlots;
  const uint2 blocks = __ldg(tile_blocks + tile);
  partials += uint64_t(tile) * stride + slot % kTileSlots;
  AccumT sum = kIdentity;
#pragma unroll 1
  for (uint32_t base = blocks.x + first; base < blocks.y; base += kAtOnce * step) {
    AccumT sums[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const uint32_t block = base + i * step;
      sums[i] = block < blocks.y ? __ldcs(partials + uint64_t(block) * stride) : kIdentity;
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) sum = reduce(sum, sums[i]);
  }
  return sum;
}

// A thread a row, or where there are few tiles, on each of which many blocks work, the warps of a block for 32 rows: each
// takes the sums of every so many blocks.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_rows(uint32_t num_rows, uint32_t rows_per_block, uint32_t stride, YT* __restrict__ y, AlphaT alpha,
                        BetaT beta, const uint32_t* __restrict__ slot_begins, const uint2* __restrict__ tile_blocks,
                        const AccumT* __restrict__ partials) {
  await_stream();
  __shared__ AccumT shares[kThreadsPerBlock];
  const bool by_warps = rows_per_block == 32 && kThreadsPerBlock > 32;
  const uint32_t row = blockIdx.x * rows_per_block + (by_warps ? threadIdx.x % 32 : threadIdx.x);
  const uint32_t first = by_warps ? threadIdx.x / 32 : 0, step = by_warps ? kThreadsPerBlock / 32 : 1;
  const uint32_t begin = row < num_rows ? __ldg(slot_begins + row) : 0;
  const uint32_t end = row < num_rows ? __ldg(slot_begins + row + 1) : 0;
  const bool is_here = row < num_rows && end - begin <= kFewSlots;
  AccumT sum = kIdentity;
  for (uint32_t slot = begin; is_here && slot < end && !skips_product(alpha); ++slot) {
    sum = reduce(sum, slot_sum(slot, first, step, stride, tile_blocks, partials));
  }
  if (by_warps) {
    shares[threadIdx.x] = sum;
    __syncthreads();
    for (uint32_t i = 1; first == 0 && i < step; ++i) sum = reduce(sum, shares[i * 32 + threadIdx.x]);
  }
  if (is_here && first == 0) store_scaled(y, row, sum, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_cache_blocked_long_rows(uint32_t stride, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                             const uint32_t* __restrict__ long_rows, const uint32_t* __restrict__ slot_begins,
                             const uint2* __restrict__ tile_blocks, const AccumT* __restrict__ partials) {
  await_stream();
  const uint32_t row = __ldg(long_rows + blockIdx.x), end = __ldg(slot_begins + row + 1);
  AccumT sum = kIdentity;
  const bool skips = skips_product(alpha);
  for (uint32_t slot = __ldg(slot_begins + row) + threadIdx.x; slot < end && !skips; slot += kThreadsPerBlock) {
    sum = reduce(sum, slot_sum(slot, 0, 1, stride, tile_blocks, partials));
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) store_scaled(y, row, sum, alpha, beta);
}
