// two_phase: column tiles with x in shared memory store copies of x for the entries, then blocks with those of a bin in shared memory sum its products row by row.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Beamer, Asanovic and Patterson 2017 (propagation blocking), with places that are planned once, so that both phases stream
// Suits:     many columns that reach anywhere, with few entries in any tile of rows and columns: uniform random, wide bands, tall matrices
// Suffers:   whatever finds x in a cache (copies of x go to memory and come back), most where x is wide; values that change (they are copied when a plan is made)
// Bytes:     nnz * (value + 2) + copies of x * (3 + 2 * x) + rows * (y + 1/8) + x once, with a copy for every entry or for every column that a bin has entries in; from L2 a column tile for every block that works on it; values take 4 or 1 where they are encoded; keeps its own values and columns
// Guarantee: bit-reproducible; a row is summed in the order of its entries, in a fixed tree where threads or blocks share it; nothing but stored entries touches y
// Launch:    up to eight times as many blocks as are resident, with equal shares of the entries, as many as a tile has columns; then a block a bin of equally many entries; a warp a bin for the row that began before it; planned on the device by two sorts, or by four where entries share copies
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kTileKib = 48;
constexpr int kBinKib = 32;
constexpr int kDistinct = 0;
constexpr int kEncoding = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/mapped_x.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/loaded.cuh"
#include "prelude/unsigned.cuh"
#include "prelude/async_copy.cuh"
#include "prelude/stage_async.cuh"
#include "prelude/segmented.cuh"
#include "prelude/first_rows.cuh"
#include "prelude/search.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#include "primitives/value_encoding.cuh"
#endif

// Columns of a tile, which places of 16 bits tell apart.
constexpr uint32_t kFits = kTileKib * 1024 / sizeof(XT);
constexpr uint32_t kTileCols = kFits < 65536 ? kFits : 65536;
__device__ constexpr uint32_t bits_of(uint32_t count) { return count > 1 ? 1 + bits_of((count + 1) / 2) : 0; }
constexpr uint32_t kColBits = bits_of(kTileCols);
// Entries that a thread loads at once. The entries of a bin in a tile, a run, are whole packets; what they are filled up
// with, nobody sums.
constexpr uint32_t kPacket = 4;
// Entries of a packet whose x a thread copies at once, 16 bytes at most, and how often that is under way.
constexpr uint32_t kFitsUnit = 16 / sizeof(MappedX);
constexpr uint32_t kUnit = kFitsUnit < kPacket ? kFitsUnit : kPacket;
constexpr uint32_t kUnitsPerPacket = kPacket / kUnit;
constexpr int kUnitsAhead = 8;
// Threads of a block of the first phase: fewer blocks are resident where tiles are large.
constexpr uint32_t kTileThreads = kTileKib >= 192 ? 1024 : kTileKib >= 96 ? 512 : 256;
// Entries of x that a block has in shared memory, which places of 15 bits tell apart. In the place of the first packet are none:
// empty rows have its first slot, and what the last items are filled up with.
constexpr uint32_t kBinFits = kBinKib * 1024 / sizeof(MappedX);
constexpr uint32_t kSlots = kBinFits < 32768 ? kBinFits : 32768;
constexpr uint32_t kNoSlot = 0;
constexpr uint32_t kRoom = kSlots - kPacket;
constexpr uint32_t kEndsRow = 0x8000;
// Entries that a warp sums at once, and of those a thread's.
constexpr uint32_t kStep = 256;
constexpr int kPerLane = 8;
constexpr int kMostSteps = kSlots / kStep;
constexpr uint32_t kRowsPerItem = 4;
// Threads of a block of the second phase. A warp's sums of rows lie in shared memory too.
constexpr uint32_t kSumThreads = (kBinKib >= 64 ? 512 : 256) / (sizeof(AccumT) > 8 ? 2 : 1);
constexpr uint32_t kSumWarps = kSumThreads / 32;

// Values that a lane loads at once, 16 bytes at most. In memory those of a warp's lanes lie side by side.
template <typename StoredT>
constexpr uint32_t kValuesAtOnce = 16 / sizeof(StoredT) < kPerLane ? 16 / sizeof(StoredT) : kPerLane;

// Where the value of an item is in memory.
template <typename StoredT>
__device__ __forceinline__ uint64_t value_place(uint64_t item) {
  constexpr uint32_t kAtOnce = kValuesAtOnce<StoredT>;
  const uint32_t in_step = item % kStep, in_lane = in_step % kPerLane;
  return item - in_step + in_lane / kAtOnce * (32 * kAtOnce) + in_step / kPerLane * kAtOnce + in_lane % kAtOnce;
}

// Items are the stored entries in order of rows, and one for kRowsPerItem empty rows that begin at a multiple of it, so that
// no step has many more rows than others, and for the first row. A bin has as many items as surely fit into
// shared memory, however few of a run there are: three slots of each are lost at worst.
__device__ __forceinline__ uint32_t steps_per_bin(uint32_t num_tiles) {
  const uint32_t lost = min(num_tiles, kRoom / 3) * 3;
  return max((kRoom - lost) / kStep, kRoom / (4 * kStep));
}

// ---- The plan: items and bins ----

// Of 32 rows at a time a bit for each: has_items <- whether the row has items. marks[row] <- whether it has one and is empty.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_mark_empty(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t* __restrict__ has_items,
                          uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const bool is_row = row < num_rows, has_entries = is_row && row_offsets[row] != row_offsets[row + 1];
  const uint32_t with_entries = __ballot_sync(0xffffffffu, has_entries);
  const bool begins_group = row % kRowsPerItem == 0;
  const bool is_empty_group = (with_entries >> row % 32 & ((1u << kRowsPerItem) - 1)) == 0;
  const bool is_marked = is_row && !has_entries && (row == 0 || (begins_group && is_empty_group));
  const uint32_t marked = __ballot_sync(0xffffffffu, is_marked);
  if (is_row) marks[row] = is_marked;
  if (is_row && row % 32 == 0) has_items[row / 32] = with_entries | marked;
}

// *num_bins <- the bins that hold all items.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_count_bins(uint64_t num_items, uint32_t num_tiles, uint64_t* __restrict__ num_bins) {
  await_stream();
  const uint64_t bin_items = steps_per_bin(num_tiles) * kStep;
  if (threadIdx.x == 0) *num_bins = (num_items + bin_items - 1) / bin_items;
}

// Where the items of a row end.
__device__ __forceinline__ uint64_t items_end(uint32_t row, const OffsetT* __restrict__ row_offsets,
                                              const uint32_t* __restrict__ empty_before) {
  return uint64_t(row_offsets[row + 1]) + empty_before[row + 1];
}

// step_rows <- the row of the first of every kStep items, then the number of rows.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_step_rows(uint32_t num_steps, uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                         const uint32_t* __restrict__ empty_before, uint32_t* __restrict__ step_rows) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i > num_steps) return;
  const uint64_t item = uint64_t(i) * kStep;
  step_rows[i] = first_that(num_rows, [=](uint32_t r) { return items_end(r, row_offsets, empty_before) > item; });
}

// bin_entries[bin] <- the entries before its items.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_bin_entries(uint32_t num_bins, uint32_t num_tiles, uint32_t nnz,
                           const uint32_t* __restrict__ empty_before, const uint32_t* __restrict__ step_rows,
                           uint32_t* __restrict__ bin_entries) {
  await_stream();
  const uint32_t bin = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (bin > num_bins) return;
  const uint32_t step = bin * steps_per_bin(num_tiles);
  bin_entries[bin] = bin == num_bins ? nnz : uint32_t(uint64_t(step) * kStep - empty_before[step_rows[step]]);
}

// ---- The plan: runs ----

// What is known of bins to find that of an entry: `num_empty` empty rows have an item.
struct Bins {
  uint32_t num_tiles, num_empty;
  const uint32_t* entries;

  __device__ __forceinline__ uint32_t of(uint32_t entry) const {
    const uint32_t bin_items = steps_per_bin(num_tiles) * kStep;
    const uint32_t least = entry / bin_items, most = uint32_t((uint64_t(entry) + num_empty) / bin_items);
    const uint32_t* after = entries + least + 1;
    return least + first_that(most - least, [=](uint32_t i) { return __ldg(after + i) > entry; });
  }
};

// The key of a column: its tile, and where it is in that.
__device__ __forceinline__ uint32_t key_of(IndexT col) {
  return uint32_t(col) / kTileCols << kColBits | uint32_t(col) % kTileCols;
}

// pairs <- key and place of every entry.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_entries(uint32_t nnz, const IndexT* __restrict__ col_indices, SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < nnz) pairs[i] = {key_of(col_indices[i]), i};
}

// pairs <- bin and place, in the order they have.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_by_bin(uint32_t nnz, uint32_t num_tiles, uint32_t num_empty, const uint32_t* __restrict__ bin_entries,
                      SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if constexpr (kDistinct != 0) {
    if (i < nnz) pairs[i].x = Bins{num_tiles, num_empty, bin_entries}.of(pairs[i].y);
  }
}

// pairs <- key and place, in the order they have.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_by_col(uint32_t nnz, const IndexT* __restrict__ col_indices, SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if constexpr (kDistinct != 0) {
    if (i < nnz) pairs[i].x = key_of(col_indices[pairs[i].y]);
  }
}

// Whether something begins with the i-th entry in the order of tiles: another bin, or another part of the key above `shift`.
__device__ __forceinline__ bool begins(uint32_t i, uint32_t shift, const Bins& bins,
                                       const SortPair* __restrict__ pairs) {
  if (i == 0) return true;
  const SortPair before = pairs[i - 1], pair = pairs[i];
  return before.x >> shift != pair.x >> shift || bins.of(before.y) != bins.of(pair.y);
}

// marks[i] <- whether a run begins with the i-th entry in the order of tiles.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_mark_runs(uint32_t nnz, uint32_t num_tiles, uint32_t num_empty,
                         const uint32_t* __restrict__ bin_entries, const SortPair* __restrict__ pairs,
                         uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < nnz) marks[i] = begins(i, kColBits, {num_tiles, num_empty, bin_entries}, pairs);
}

// marks[i] <- whether the i-th entry in the order of tiles is the first of its column and bin.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_mark_copies(uint32_t nnz, uint32_t num_tiles, uint32_t num_empty,
                           const uint32_t* __restrict__ bin_entries, const SortPair* __restrict__ pairs,
                           uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if constexpr (kDistinct != 0) {
    if (i < nnz) marks[i] = begins(i, 0, {num_tiles, num_empty, bin_entries}, pairs);
  }
}

// The copy of x that the i-th entry in the order of tiles is multiplied with.
__device__ __forceinline__ uint32_t copy_of(uint32_t i, const uint32_t* __restrict__ copy_ranks) {
  return kDistinct != 0 ? copy_ranks[i + 1] - 1 : i;
}

// Of runs in the order of tiles: firsts <- the first copy in that order, bin_pairs <- bin and run.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_list_runs(uint32_t nnz, uint32_t num_tiles, uint32_t num_empty,
                         const uint32_t* __restrict__ bin_entries, const SortPair* __restrict__ pairs,
                         const uint32_t* __restrict__ ranks, const uint32_t* __restrict__ copy_ranks, uint32_t* __restrict__ firsts,
                         SortPair* __restrict__ bin_pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz || ranks[i] == ranks[i + 1]) return;
  firsts[ranks[i]] = copy_of(i, copy_ranks);
  bin_pairs[ranks[i]] = {Bins{num_tiles, num_empty, bin_entries}.of(pairs[i].y), ranks[i]};
}

// marks[run] <- its packets.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_mark_packets(uint32_t num_runs, uint32_t num_copies, const uint32_t* __restrict__ firsts,
                            uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t run = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (run >= num_runs) return;
  const uint32_t end = run + 1 < num_runs ? firsts[run + 1] : num_copies;
  marks[run] = (end - firsts[run] + kPacket - 1) / kPacket;
}

// marks[i] <- the packets of the i-th run in the order of bins.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_mark_places(uint32_t num_runs, const uint32_t* __restrict__ packet_begins,
                           const SortPair* __restrict__ bin_pairs, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_runs) return;
  const uint32_t run = bin_pairs[i].y;
  marks[i] = packet_begins[run + 1] - packet_begins[run];
}

// run_places[run] <- where its packets begin in the order of bins.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_place_runs(uint32_t num_runs, const SortPair* __restrict__ bin_pairs,
                          const uint32_t* __restrict__ places, uint32_t* __restrict__ run_places) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < num_runs) run_places[bin_pairs[i].y] = places[i];
}

// bin_packets[bin] <- where its packets begin in the order of bins.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_bin_packets(uint32_t num_bins, uint32_t num_runs, const SortPair* __restrict__ bin_pairs,
                           const uint32_t* __restrict__ places, uint32_t* __restrict__ bin_packets) {
  await_stream();
  const uint32_t bin = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (bin > num_bins) return;
  bin_packets[bin] = places[first_that(num_runs, [=](uint32_t i) { return bin_pairs[i].x >= bin; })];
}

// tile_packets[tile] <- where its packets begin in the order of tiles.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_tile_packets(uint32_t num_tiles, uint32_t nnz, const SortPair* __restrict__ pairs,
                            const uint32_t* __restrict__ ranks, const uint32_t* __restrict__ packet_begins,
                            uint32_t* __restrict__ tile_packets) {
  await_stream();
  const uint32_t tile = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (tile > num_tiles) return;
  tile_packets[tile] = packet_begins[ranks[first_that(nnz, [=](uint32_t i) { return pairs[i].x >> kColBits >= tile; })]];
}

// ---- The plan: what products read ----

// tile_cols <- the columns in tiles of copies; packet_places <- where the packets of bins are; entry_slots <- where in its bin
// the x of every entry is. What nobody writes is zero.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_fill_copies(uint32_t nnz, uint32_t num_tiles, uint32_t num_empty,
                           const uint32_t* __restrict__ bin_entries, const SortPair* __restrict__ pairs,
                           const uint32_t* __restrict__ ranks, const uint32_t* __restrict__ copy_ranks,
                           const uint32_t* __restrict__ firsts, const uint32_t* __restrict__ packet_begins,
                           const uint32_t* __restrict__ run_places, const uint32_t* __restrict__ bin_packets,
                           uint16_t* __restrict__ tile_cols, uint32_t* __restrict__ packet_places,
                           uint16_t* __restrict__ entry_slots) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const SortPair pair = pairs[i];
  const uint32_t run = ranks[i + 1] - 1, copy = copy_of(i, copy_ranks), in_run = copy - firsts[run];
  if (i == 0 || copy != copy_of(i - 1, copy_ranks)) {
    const uint64_t at = uint64_t(packet_begins[run]) * kPacket + in_run;
    tile_cols[at] = uint16_t(pair.x & ((1u << kColBits) - 1));
    if (in_run % kPacket == 0) packet_places[run_places[run] + in_run / kPacket] = uint32_t(at / kPacket);
  }
  const uint32_t bin = Bins{num_tiles, num_empty, bin_entries}.of(pair.y);
  entry_slots[pair.y] = uint16_t((1 + run_places[run] - bin_packets[bin]) * kPacket + in_run);
}

// slots, item_values <- where the x of items is in their bins and which of them end a row, and their values, as they are or
// encoded. What nobody writes is zero.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_fill_items(uint32_t num_items, const OffsetT* __restrict__ row_offsets,
                          const ValueT* __restrict__ values, const uint32_t* __restrict__ empty_before,
                          const uint32_t* __restrict__ step_rows, const uint16_t* __restrict__ entry_slots,
                          uint16_t* __restrict__ slots, uint32_t is_encoded, ValueT* __restrict__ item_values,
                          EncodedT* __restrict__ encoded_values) {
  await_stream();
  const uint32_t item = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (item >= num_items) return;
  const uint32_t first_row = step_rows[item / kStep], last_row = step_rows[item / kStep + 1];
  const uint32_t row = first_row + first_that(last_row - first_row, [=](uint32_t r) {
    return items_end(first_row + r, row_offsets, empty_before) > item;
  });
  const uint32_t ends = item + 1 == items_end(row, row_offsets, empty_before) ? kEndsRow : 0;
  if (row_offsets[row] == row_offsets[row + 1]) {
    slots[item] = uint16_t(kNoSlot | ends);
    return;
  }
  const uint32_t entry = item - empty_before[row];
  slots[item] = uint16_t(entry_slots[entry] | ends);
  if (kIsEncoded && is_encoded != 0) {
    encoded_values[value_place<EncodedT>(item)] = EncodingT::stored(values[entry], 0, nullptr);
  } else {
    item_values[value_place<ValueT>(item)] = values[entry];
  }
}

// ---- The first phase: x ----

// Columns of a thread's next units of a tile: each is loaded again as soon as it is used.
struct Columns {
  Loaded<kUnit, uint16_t> cols[kUnitsAhead];

  __device__ __forceinline__ void load(int u, uint64_t unit, uint64_t end, const uint16_t* __restrict__ tile_cols) {
    if (unit < end) cols[u].load(tile_cols + unit * kUnit);
  }
  __device__ __forceinline__ void begin(uint64_t first, uint64_t end, const uint16_t* __restrict__ tile_cols) {
#pragma unroll
    for (int u = 0; u < kUnitsAhead; ++u) load(u, first + threadIdx.x + u * kTileThreads, end, tile_cols);
  }
};

// Units of a tile, whose x begins with column first_col.
__device__ __forceinline__ void gather_units(uint64_t first, uint64_t end, uint32_t first_col, Columns& columns,
                                             const uint16_t* __restrict__ tile_cols, const XT* x,
                                             MappedX* __restrict__ gathered) {
#pragma unroll 1
  for (uint64_t base = first + threadIdx.x; base < end; base += kTileThreads * kUnitsAhead) {
#pragma unroll
    for (int u = 0; u < kUnitsAhead; ++u) {
      const uint64_t unit = base + u * kTileThreads;
      if (unit < end) {
        using Stored = PacketOf<kUnit, MappedX>;
        Stored stored;
#pragma unroll
        for (uint32_t i = 0; i < kUnit; ++i) {
          const uint32_t col = columns.cols[u][i];
          stored.entries[i] = mapped_x(x[col], first_col + col);
        }
        // Most of it leaves L2 before it is read, and shall not push out what is needed again.
        __stcs(reinterpret_cast<typename Stored::Type*>(gathered) + unit, stored.packet);
      }
      columns.load(u, unit + kTileThreads * kUnitsAhead, end, tile_cols);
    }
  }
}

// The first of `count` rising entries that `reaches` says yes to, or `count`, in every lane of a warp, which asks for 32 at
// a time.
template <typename Reaches>
__device__ __forceinline__ uint32_t first_that_of_warp(uint32_t count, Reaches reaches) {
  uint32_t low = 0;
  while (count > 0) {
    const uint32_t stride = (count + 31) / 32, asked = (threadIdx.x % 32 + 1) * stride - 1;
    const uint32_t reached = __ballot_sync(0xffffffffu, asked >= count || reaches(low + asked));
    const uint32_t before = (reached == 0 ? 32 : __ffs(reached) - 1) * stride;
    low += before;
    count = min(count - before, stride - 1);
  }
  return low;
}

extern "C" __global__ void __launch_bounds__(kTileThreads)
spmv_two_phase_gather(uint32_t num_cols, uint32_t num_tiles, uint32_t num_packets, AlphaT alpha,
                      const uint32_t* __restrict__ tile_packets, const uint16_t* __restrict__ tile_cols,
                      const XT* __restrict__ x, MappedX* __restrict__ gathered) {
  await_stream();
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  XT* staged = reinterpret_cast<XT*>(shared_bytes);
  if (skips_product(alpha)) return;
  uint32_t begin = uint32_t(uint64_t(num_packets) * blockIdx.x / gridDim.x);
  const uint32_t share_end = uint32_t(uint64_t(num_packets) * (blockIdx.x + 1) / gridDim.x);
  uint32_t tile = first_that_of_warp(num_tiles, [=](uint32_t t) { return __ldg(tile_packets + t + 1) > begin; });
  for (; begin < share_end; ++tile) {
    const uint32_t end = min(share_end, __ldg(tile_packets + tile + 1));
    const uint32_t first_col = tile * kTileCols, count = min(kTileCols, num_cols - first_col);
    // Copied where that takes fewer sectors than the entries may.
    const XT* from = x + first_col;
    const uint64_t first = uint64_t(begin) * kUnitsPerPacket, last = uint64_t(end) * kUnitsPerPacket;
    Columns columns;
    if ((end - begin) * kPacket >= count * uint32_t(sizeof(XT)) / 32) {
      __syncthreads();
      stage_async<kTileThreads>(count, from, from, staged);
      end_copies();
      columns.begin(first, last, tile_cols);
      await_copies<0>();
      __syncthreads();
      gather_units(first, last, first_col, columns, tile_cols, staged, gathered);
    } else {
      columns.begin(first, last, tile_cols);
      gather_units(first, last, first_col, columns, tile_cols, from, gathered);
    }
    begin = end;
  }
}

// ---- The second phase: sums ----

// A lane's items in a step: slots, two in 32 bits, and values as they are stored.
template <typename StoredT>
struct Items {
  uint32_t slots[kPerLane / 2];
  Loaded<kPerLane, StoredT> values;

  __device__ __forceinline__ void load(uint64_t step, const uint32_t* __restrict__ item_slots,
                                       const StoredT* __restrict__ item_values) {
    constexpr uint32_t kAtOnce = kValuesAtOnce<StoredT>;
    const uint32_t lane = threadIdx.x % 32;
    load_streaming<kPerLane / 2>(slots, item_slots + (step * 32 + lane) * (kPerLane / 2));
    values.load(item_values + step * kStep + lane * kAtOnce, 32 * kAtOnce);
  }

  // Leaves the ends of rows, and nothing to add. Not while loading, which would then be waited for at once.
  __device__ __forceinline__ void empty() {
#pragma unroll
    for (int i = 0; i < kPerLane / 2; ++i) slots[i] &= kEndsRow << 16 | kEndsRow;
    values.empty();
  }
};

// What a step leaves to the block: the sum of its first row that ends, of which there may be more before it, and of the
// row after its last one.
struct Step {
  AccumT first;
  AccumT tail;
  uint32_t ends;
};

// The rows of a step: those that end in it, and those without items behind them. Which have items, a bit for each says, 32 in
// a lane.
struct Rows {
  uint32_t begin, end, has_items;

  __device__ __forceinline__ void load(uint64_t step, const uint32_t* __restrict__ step_rows) {
    begin = __ldg(step_rows + step);
    end = __ldg(step_rows + step + 1);
  }
  // From row `base` on, a multiple of 32.
  __device__ __forceinline__ void load_items(uint32_t base, const uint32_t* __restrict__ row_has_items) {
    const uint32_t of_lane = base + threadIdx.x % 32 * 32;
    has_items = of_lane < end ? __ldg(row_has_items + of_lane / 32) : 0;
  }
};

// Stores all rows of a step but the first: the `num_sums` that have items as their sums say, the others as empty rows.
__device__ __forceinline__ void store_rows(Rows rows, const uint32_t* __restrict__ row_has_items, const AccumT* sums,
                                           uint32_t num_sums, YT* y, AlphaT alpha, BetaT beta) {
  const uint32_t lane = threadIdx.x % 32;
  if (rows.end - rows.begin == num_sums) {
    for (uint32_t i = lane; i < num_sums; i += 32) {
      if (i != 0) store_scaled(y, rows.begin + i, sums[i], alpha, beta);
    }
    return;
  }
  // Of several words, a bit a row, sums are looked up together.
  constexpr uint32_t kWords = 4;
  uint32_t before = 0;
#pragma unroll 1
  for (uint32_t base = rows.begin / 32 * 32, word = 0; base < rows.end; base += 32 * kWords, word += kWords) {
    if (word == 32) {
      rows.load_items(base, row_has_items);
      word = 0;
    }
    AccumT of_rows[kWords];
#pragma unroll
    for (uint32_t i = 0; i < kWords; ++i) {
      uint32_t has_items = __shfl_sync(0xffffffffu, rows.has_items, word + i);
      if (base < rows.begin && i == 0) has_items &= 0xffffffffu << (rows.begin - base);
      const uint32_t rank = before + __popc(has_items & ((1u << lane) - 1));
      before += __popc(has_items);
      of_rows[i] = (has_items >> lane & 1) != 0 && rank < num_sums ? sums[rank] : kIdentity;
    }
#pragma unroll
    for (uint32_t i = 0; i < kWords; ++i) {
      const uint32_t row = base + i * 32 + lane;
      if (row > rows.begin && row < rows.end) store_scaled(y, row, of_rows[i], alpha, beta);
    }
  }
}

// Stores the sums of all rows of a warp's step but of the first; `sums` has room for one of every item.
template <typename StoredT>
__device__ __forceinline__ void sum_step(const Items<StoredT>& items, Rows rows,
                                         const uint32_t* __restrict__ row_has_items, const MappedX* x, AccumT* sums,
                                         YT* y, AlphaT alpha, BetaT beta, Step* step) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t num_ends = 0;
#pragma unroll
  for (int i = 0; i < kPerLane / 2; ++i) num_ends += __popc(items.slots[i] & (kEndsRow << 16 | kEndsRow));
  const uint32_t ends = warp_inclusive_scan(num_ends), all_ends = __shfl_sync(0xffffffffu, ends, 31);
  AccumT* first = sums + ends - num_ends;
  AccumT* next = first;
  AccumT sum = kIdentity;
  const auto slot_of = [&](int i) { return items.slots[i / 2] >> (i % 2 * 16) & 0xffff; };
  // All of them before a sum is stored, behind which none is read earlier than it stands there: both are shared memory. Of 8
  // bytes a lane would hold too many.
  constexpr bool kReadsAhead = sizeof(MappedX) <= 4;
  MappedX entries[kPerLane];
#pragma unroll
  for (int i = 0; kReadsAhead && i < kPerLane; ++i) entries[i] = x[slot_of(i) & (kEndsRow - 1)];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    const uint32_t slot = slot_of(i), place = slot & (kEndsRow - 1);
    const MappedX entry = kReadsAhead ? entries[i] : x[place];
    const AccumT added = combine_reduce_mapped(decode(items.values[i], nullptr), entry, sum);
    sum = kZerosAddNothing || place != kNoSlot ? added : sum;
    if ((slot & kEndsRow) != 0) {
      *next++ = sum;
      sum = kIdentity;
    }
  }
  const uint32_t heads = __ballot_sync(0xffffffffu, num_ends != 0);
  const AccumT carried = warp_segmented_sum(sum, lanes_before_in_segment(heads));
  const AccumT carry = __shfl_up_sync(0xffffffffu, carried, 1);
  if (num_ends != 0 && lane != 0) *first = reduce(carry, *first);
  __syncwarp();
  if (lane == 0 && all_ends != 0) step->first = sums[0];
  store_rows(rows, row_has_items, sums, all_ends, y, alpha, beta);
  __syncwarp();
  if (lane == 31) {
    step->tail = carried;
    step->ends = all_ends;
  }
}

// staged <- the x of a bin; it is there after await_copies.
__device__ __forceinline__ void stage_bin(uint32_t num_packets, const uint32_t* __restrict__ packet_places,
                                          const MappedX* __restrict__ gathered, MappedX* staged) {
  const uint32_t num_units = num_packets * kUnitsPerPacket;
#pragma unroll 1
  for (uint32_t base = threadIdx.x; base < num_units; base += kSumThreads * kUnitsAhead) {
    uint32_t places[kUnitsAhead];
#pragma unroll
    for (int u = 0; u < kUnitsAhead; ++u) {
      const uint32_t unit = base + u * kSumThreads;
      if (unit < num_units) places[u] = __ldcs(packet_places + unit / kUnitsPerPacket);
    }
#pragma unroll
    for (int u = 0; u < kUnitsAhead; ++u) {
      const uint32_t unit = base + u * kSumThreads;
      if (unit < num_units) {
        const uint64_t from = uint64_t(places[u]) * kUnitsPerPacket + unit % kUnitsPerPacket;
        copy_async<kUnit * sizeof(MappedX)>(staged + unit * kUnit, gathered + from * kUnit);
      }
    }
  }
}

// The sums of a block's bin; `staged` is shared memory.
template <typename StoredT>
__device__ __forceinline__ void sum_bin(MappedX* staged, uint32_t num_steps, uint32_t num_tiles, YT* __restrict__ y,
                                        AlphaT alpha, BetaT beta, const uint32_t* __restrict__ item_slots,
                                        const StoredT* __restrict__ item_values,
                                        const uint32_t* __restrict__ step_rows,
                                        const uint32_t* __restrict__ has_items,
                                        const uint32_t* __restrict__ bin_packets,
                                        const uint32_t* __restrict__ packet_places,
                                        const MappedX* __restrict__ gathered, AccumT* __restrict__ bin_firsts,
                                        AccumT* __restrict__ bin_tails, uint32_t* __restrict__ bin_ends) {
  __shared__ Step steps[kMostSteps];
  __shared__ AccumT sums[kSumWarps][kStep];
  const bool none = skips_product(alpha);
  const uint32_t bin = blockIdx.x, first_step = bin * steps_per_bin(num_tiles);
  const uint32_t count = min(steps_per_bin(num_tiles), num_steps - first_step);
  uint32_t step = threadIdx.x / 32;
  Items<StoredT> items;
  Rows rows;
  if (step < count) {
    items.load(uint64_t(first_step) + step, item_slots, item_values);
    rows.load(first_step + step, step_rows);
  }
  const uint32_t first_packet = __ldg(bin_packets + bin), num_packets = __ldg(bin_packets + bin + 1) - first_packet;
  if (threadIdx.x == 0) staged[kNoSlot] = MappedX(0);
  if (!none) stage_bin(num_packets, packet_places + first_packet, gathered, staged + kPacket);
  end_copies();
  await_copies<0>();
  __syncthreads();
#pragma unroll 1
  for (; step < count; step += kSumWarps) {
    rows.load_items(rows.begin / 32 * 32, has_items);
    Items<StoredT> next_items;
    Rows next_rows;
    if (step + kSumWarps < count) {
      next_items.load(uint64_t(first_step) + step + kSumWarps, item_slots, item_values);
      next_rows.load(first_step + step + kSumWarps, step_rows);
    }
    if (none) items.empty();
    sum_step(items, rows, has_items, staged, sums[threadIdx.x / 32], y, alpha, beta, steps + step);
    items = next_items;
    rows = next_rows;
  }
  __syncthreads();
  // A thread a step; the last one is for the end of the bin.
  for (step = threadIdx.x; step <= count; step += kSumThreads) {
    const bool is_end = step == count;
    if (!is_end && steps[step].ends == 0) continue;
    AccumT sum = is_end ? kIdentity : steps[step].first;
    bool began_here = false;
    for (uint32_t before = step; before > 0 && !began_here;) {
      --before;
      sum = reduce(steps[before].tail, sum);
      began_here = steps[before].ends != 0;
    }
    if (is_end) {
      bin_tails[bin] = sum;
      bin_ends[bin] = began_here;
    } else if (began_here) {
      store_scaled(y, __ldg(step_rows + first_step + step), sum, alpha, beta);
    } else {
      bin_firsts[bin] = sum;
    }
  }
}

extern "C" __global__ void __launch_bounds__(kSumThreads)
spmv_two_phase_sums(uint32_t num_steps, uint32_t num_tiles, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                    const uint32_t* __restrict__ item_slots, const ValueT* __restrict__ item_values,
                    const uint32_t* __restrict__ step_rows, const uint32_t* __restrict__ has_items,
                    const uint32_t* __restrict__ bin_packets, const uint32_t* __restrict__ packet_places,
                    const MappedX* __restrict__ gathered, AccumT* __restrict__ bin_firsts,
                    AccumT* __restrict__ bin_tails, uint32_t* __restrict__ bin_ends) {
  await_stream();
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  sum_bin(reinterpret_cast<MappedX*>(shared_bytes), num_steps, num_tiles, y, alpha, beta, item_slots, item_values,
          step_rows, has_items, bin_packets, packet_places, gathered, bin_firsts, bin_tails, bin_ends);
}

extern "C" __global__ void __launch_bounds__(kSumThreads)
spmv_two_phase_sums_encoded(uint32_t num_steps, uint32_t num_tiles, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                            const uint32_t* __restrict__ item_slots, const EncodedT* __restrict__ item_values,
                            const uint32_t* __restrict__ step_rows, const uint32_t* __restrict__ has_items,
                            const uint32_t* __restrict__ bin_packets, const uint32_t* __restrict__ packet_places,
                            const MappedX* __restrict__ gathered, AccumT* __restrict__ bin_firsts,
                            AccumT* __restrict__ bin_tails, uint32_t* __restrict__ bin_ends) {
  await_stream();
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  if constexpr (kIsEncoded) {
    sum_bin(reinterpret_cast<MappedX*>(shared_bytes), num_steps, num_tiles, y, alpha, beta, item_slots, item_values,
            step_rows, has_items, bin_packets, packet_places, gathered, bin_firsts, bin_tails, bin_ends);
  }
}

// A warp a bin in which a row ends: its first row with what earlier bins have of it.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_first_rows(uint32_t num_bins, uint32_t num_tiles, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                          const uint32_t* __restrict__ step_rows, const AccumT* __restrict__ bin_firsts,
                          const AccumT* __restrict__ bin_tails, const uint32_t* __restrict__ bin_ends) {
  await_stream();
  const uint32_t bin = blockIdx.x * (kThreadsPerBlock / 32) + threadIdx.x / 32;
  if (bin >= num_bins || bin_ends[bin] == 0) return;
  const AccumT before = sum_of_tails(bin, bin_tails, bin_ends);
  const uint32_t row = step_rows[bin * steps_per_bin(num_tiles)];
  if (threadIdx.x % 32 == 0) store_scaled(y, row, reduce(before, bin_firsts[bin]), alpha, beta);
}
