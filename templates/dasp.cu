// dasp: rows by length: long ones in parts of a warp each, medium ones sorted into slices of tiles for tensor cores, short ones a thread each.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Lu and Liu 2023 (DASP); the template says what differs, and why
// Suits:     rows of many lengths in f64, f16 and bf16; giants among them; rows whose neighbours' columns are within 65,535 of each other
// Suffers:   medium rows that share entries of x with their neighbours but not their length: sorting parts them
// Bytes:     nnz * (value + 2 or, where columns of a slice are far apart or rows long, index) + rows * y + x once, 4 more a row that is not beside its neighbour in a slice; the plan keeps a copy of all rows but the long: nnz * (value + index) and padding, 16 a slice, 4 a row, and (8 + accumulator + 2 * offset) a part of a long row
// Guarantee: bit-reproducible; how a row is summed depends on its length and on the longest of its slice; parts are summed in a fixed order
// Launch:    rows are sorted, long ones cut in parts and the others copied by seventeen passes once for a structure; one kernel, a warp a part, eight wide rows, or a slice, longest first; the warp that finishes a long row last adds its parts
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kLongRow = 256;
constexpr int kWideRow = 32;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/stream.cuh"
#include "prelude/tile.cuh"
#include "prelude/spanning_row.cuh"
#include "prelude/row_blocks.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/partition.cuh"
#endif

// What differs from the paper:
// - Products of f64 and of f16 are those of the paper; products of bf16 are as those of f16. Products of f32, for which
//   tensor cores offer nothing as exact as f32, and of mixed types are made by the lanes, from the same tiles.
// - Medium rows are sorted by their exact length, and the last columns of a slice are stored without gaps. So padding is
//   bounded by the longest medium row, not by the number of rows, and there is no irregular rest.
// - A slice has 32 rows, four groups of eight: a lane loads 16 bytes at a time of four tiles or more, however short the
//   rows are.
// - Short rows, up to eight entries, lie column by column, a thread each: tiles of theirs would be mostly shuffles and
//   empty lanes. They are sorted within windows only, so neighbours in A stay neighbours in y and in what they read of x.
// - Columns are kept as differences from the smallest of their slice, low halves apart from high ones: where all of a
//   slice fit in 16 bits, high halves are never read.
// - Parts of a long row have 2048 nonzeros rather than 64, stay where the matrix has them, and meet in the same launch.
// - y is in the caller's order.

constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr uint32_t kWarps = kThreadsPerBlock / 32;

// Registers are shared out among so many threads: entries of two batches stay in them.
constexpr int kResidentThreads = sizeof(AccumT) > 4 ? 768 : sizeof(ValueT) + sizeof(XT) > 4 ? 1024 : 1280;
constexpr int kResidentBlocks = kThreadsPerBlock < kResidentThreads ? kResidentThreads / kThreadsPerBlock : 1;

// Padding has no column.
constexpr IndexT kNoColumn = ~IndexT(0);

// The entries of the longest short row.
constexpr int kShortRow = 8;

constexpr uint32_t kSliceRows = 32;
constexpr uint32_t kRowsPerThread = 4;
constexpr uint32_t kShortSliceRows = 32 * kRowsPerThread;

// Short rows that are sorted together: whole slices.
constexpr uint32_t kWindow = 32 * kShortSliceRows;

// Kinds of rows: long, wide, narrow, short.
constexpr int kKinds = 4;

// Rows sorted by this are sorted by falling length, but long ones first and short ones last, both in their own order.
__device__ __forceinline__ uint32_t sort_key(uint32_t row, const OffsetT* row_offsets) {
  const OffsetT length = row_offsets[row + 1] - row_offsets[row];
  return length > kLongRow ? 0 : kLongRow + 1 - max(uint32_t(length), uint32_t(kShortRow));
}

// The smallest key of a kind; behind the last kind, a key that no row has.
__device__ __forceinline__ uint32_t first_key(int kind) {
  if (kind < 2) return kind;
  return kLongRow + 1 - (kind == 2 ? kWideRow : kind == 3 ? kShortRow : 0);
}

constexpr int kLowBins = 32;
constexpr int kHighBins = (kLongRow + 1) / kLowBins + 1;

struct LowDigit {
  const OffsetT* row_offsets;
  __device__ __forceinline__ uint32_t operator()(uint32_t row) const { return sort_key(row, row_offsets) % kLowBins; }
};

struct HighDigit {
  const OffsetT* row_offsets;
  const uint32_t* first_order;
  __device__ __forceinline__ uint32_t operator()(uint32_t place) const {
    return sort_key(first_order[place], row_offsets) / kLowBins;
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_low_count(uint32_t num_rows, const OffsetT* row_offsets, uint32_t* offsets) {
  await_stream();
  partition_count<kLowBins>(num_rows, offsets, LowDigit{row_offsets});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_low_offsets(uint32_t num_blocks, uint32_t* offsets, uint64_t* bin_counts) {
  await_stream();
  partition_offsets<kLowBins>(num_blocks, offsets, bin_counts);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_low_scatter(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* offsets, uint32_t* first_order) {
  await_stream();
  partition_scatter<kLowBins>(num_rows, offsets, LowDigit{row_offsets},
                              [=](uint32_t place, uint32_t row) { first_order[place] = row; });
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_high_count(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* first_order, uint32_t* offsets) {
  await_stream();
  partition_count<kHighBins>(num_rows, offsets, HighDigit{row_offsets, first_order});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_high_offsets(uint32_t num_blocks, uint32_t* offsets, uint64_t* bin_counts) {
  await_stream();
  partition_offsets<kHighBins>(num_blocks, offsets, bin_counts);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_high_scatter(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* first_order,
                       const uint32_t* offsets, uint32_t* key_order) {
  await_stream();
  partition_scatter<kHighBins>(num_rows, offsets, HighDigit{row_offsets, first_order},
                               [=](uint32_t place, uint32_t from) { key_order[place] = first_order[from]; });
}

// The place of the first row of a kind, or of the next kind that has rows.
__device__ __forceinline__ uint32_t first_place(int kind, uint32_t num_rows, const OffsetT* row_offsets,
                                                const uint32_t* key_order) {
  uint32_t low = 0;
  uint32_t high = num_rows;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (sort_key(key_order[middle], row_offsets) < first_key(kind)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// How many rows each kind has. One block.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_kinds(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* key_order, uint64_t* kind_rows) {
  await_stream();
  const int kind = threadIdx.x;
  if (kind >= kKinds) return;
  kind_rows[kind] = first_place(kind + 1, num_rows, row_offsets, key_order) -
                    first_place(kind, num_rows, row_offsets, key_order);
}

// Sorts the short rows of every window by falling length, a warp a window; the other rows stay where they are.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_windows(uint32_t num_rows, uint32_t first_short, const OffsetT* row_offsets, const uint32_t* key_order,
                  uint32_t* row_order) {
  await_stream();
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t warp = blockIdx.x * kWarps + threadIdx.x / 32;
  const uint32_t copies = (first_short + kWindow - 1) / kWindow;
  if (warp < copies) {
    const uint32_t end = min((warp + 1) * kWindow, first_short);
    for (uint32_t place = warp * kWindow + lane; place < end; place += 32) row_order[place] = key_order[place];
    return;
  }
  const uint32_t begin = first_short + (warp - copies) * kWindow;
  const uint32_t end = min(begin + kWindow, num_rows);
  // A lane has the rows of as many entries as its number.
  uint32_t num_of_length = 0;
  for (uint32_t base = begin; base < end; base += 32) {
    const uint32_t row = base + lane < end ? key_order[base + lane] : 0;
    const uint32_t length = base + lane < end ? uint32_t(row_offsets[row + 1] - row_offsets[row]) : kShortRow + 1;
    for (uint32_t l = 0; l <= kShortRow; ++l) {
      const uint32_t peers = __ballot_sync(kAllLanes, length == l);
      if (lane == l) num_of_length += __popc(peers);
    }
  }
  uint32_t next = begin;
  for (uint32_t l = 1; l <= kShortRow; ++l) {
    const uint32_t longer = __shfl_sync(kAllLanes, num_of_length, l);
    if (l > lane) next += longer;
  }
  for (uint32_t base = begin; base < end; base += 32) {
    const uint32_t row = base + lane < end ? key_order[base + lane] : 0;
    const uint32_t length = base + lane < end ? uint32_t(row_offsets[row + 1] - row_offsets[row]) : kShortRow + 1;
    uint32_t place = 0;
    for (uint32_t l = 0; l <= kShortRow; ++l) {
      const uint32_t peers = __ballot_sync(kAllLanes, length == l);
      const uint32_t first = __shfl_sync(kAllLanes, next, l);
      if (length == l) place = first + __popc(peers & ((1u << lane) - 1));
      if (lane == l) next += __popc(peers);
    }
    if (length <= kShortRow) row_order[place] = row;
  }
}

// Where medium and short rows are in the order of rows.
struct SlicedRows {
  const OffsetT* row_offsets;
  const uint32_t* rows;
  uint32_t num_medium;

  __device__ __forceinline__ uint32_t medium_slices() const { return (num_medium + kSliceRows - 1) / kSliceRows; }

  // The place of the first row of a slice.
  __device__ __forceinline__ uint32_t first_place(uint32_t slice) const {
    const uint32_t medium = medium_slices();
    return slice < medium ? kSliceRows * slice : num_medium + kShortSliceRows * (slice - medium);
  }

  // The columns of a slice, which are the entries of its first row: the longest.
  __device__ __forceinline__ uint32_t columns(uint32_t slice) const {
    const uint32_t row = rows[first_place(slice)];
    return row_offsets[row + 1] - row_offsets[row];
  }

  // The entries of a slice, padding counted, in units of 32.
  __device__ __forceinline__ uint32_t operator()(uint64_t slice) const {
    return columns(slice) * (slice < medium_slices() ? 1 : kRowsPerThread);
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_slices_sum_chunk(uint64_t num_slices, const OffsetT* row_offsets, const uint32_t* row_order,
                           uint32_t num_long, uint32_t num_medium, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(num_slices, partials, SlicedRows{row_offsets, row_order + num_long, num_medium});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_slices_partials(uint32_t num_partials, uint64_t num_slices, uint64_t* partials, uint32_t* first_units,
                          uint64_t* num_units) {
  await_stream();
  scan_partials(num_partials, num_slices, partials, first_units, num_units);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_slices_chunk(uint64_t num_slices, const OffsetT* row_offsets, const uint32_t* row_order, uint32_t num_long,
                       uint32_t num_medium, const uint64_t* partials, uint32_t* first_units) {
  await_stream();
  scan_chunk(num_slices, partials, first_units, SlicedRows{row_offsets, row_order + num_long, num_medium});
}

constexpr OffsetT kNnzPerPart = 2048;
constexpr OffsetT kMaxParts = 4096;

// The nonzeros of each part but the last of a long row: about equally many in all, more in a giant, whose parts one warp
// adds.
__device__ __forceinline__ OffsetT part_length(OffsetT length) {
  const OffsetT parts = min((length + kNnzPerPart - 1) / kNnzPerPart, kMaxParts);
  return ((length + parts - 1) / parts + 31) / 32 * 32;
}

// The parts of the i-th long row.
struct PartsOf {
  const OffsetT* row_offsets;
  const uint32_t* long_rows;
  __device__ __forceinline__ uint32_t operator()(uint64_t i) const {
    const uint32_t row = long_rows[i];
    const OffsetT length = row_offsets[row + 1] - row_offsets[row];
    return (length + part_length(length) - 1) / part_length(length);
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_parts_sum_chunk(uint64_t num_long, const OffsetT* row_offsets, const uint32_t* row_order,
                          uint64_t* partials) {
  await_stream();
  scan_sum_chunk(num_long, partials, PartsOf{row_offsets, row_order});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_parts_partials(uint32_t num_partials, uint64_t num_long, uint64_t* partials, uint32_t* first_parts,
                         uint64_t* num_parts) {
  await_stream();
  scan_partials(num_partials, num_long, partials, first_parts, num_parts);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_parts_chunk(uint64_t num_long, const OffsetT* row_offsets, const uint32_t* row_order,
                      const uint64_t* partials, uint32_t* first_parts) {
  await_stream();
  scan_chunk(num_long, partials, first_parts, PartsOf{row_offsets, row_order});
}

// Which long row every part is of, and where it begins and ends.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_parts(uint32_t num_parts, uint32_t num_long, const OffsetT* row_offsets, const uint32_t* row_order,
                const uint32_t* first_parts, uint32_t* part_rows, OffsetT* part_ends) {
  await_stream();
  const uint32_t part = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (part >= num_parts) return;
  const uint32_t i = first_row_of_block(part, num_long, first_parts);
  const uint32_t row = row_order[i];
  const OffsetT row_end = row_offsets[row + 1];
  const OffsetT length = part_length(row_end - row_offsets[row]);
  const OffsetT begin = row_offsets[row] + (part - first_parts[i]) * length;
  part_rows[part] = i;
  part_ends[2 * part] = begin;
  part_ends[2 * part + 1] = min(begin + length, row_end);
}

// What a product reads of a slice in one load.
struct __align__(16) Slice {
  // Entries before it, in units of 32.
  uint32_t first_unit;
  // The smallest of its columns.
  uint32_t base;
  uint32_t first_row;
  uint32_t columns_and_flags;

  static constexpr uint32_t kFar = 1u << 16;
  static constexpr uint32_t kInOrder = 1u << 17;
  static constexpr uint32_t kFull = 1u << 18;

  __device__ __forceinline__ uint32_t columns() const { return columns_and_flags & (kFar - 1); }
  // Columns whose difference from the base needs more than 16 bits: high halves are read.
  __device__ __forceinline__ bool far() const { return columns_and_flags & kFar; }
  // No padding, of rows or of columns.
  __device__ __forceinline__ bool full() const { return columns_and_flags & kFull; }
  // Every row is the one behind the row before it.
  __device__ __forceinline__ bool in_order() const { return columns_and_flags & kInOrder; }
  // The difference that padding has in place of a column.
  static __device__ __forceinline__ constexpr uint32_t none(bool far) { return far ? 0xffffffffu : 0xffffu; }
};

// The slice as a warp knows it, from the smallest and the largest column that each lane has seen.
__device__ __forceinline__ Slice slice_of(uint32_t first_unit, uint32_t columns, uint32_t first_row, bool in_order,
                                          IndexT smallest, IndexT largest) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    smallest = min(smallest, __shfl_xor_sync(kAllLanes, smallest, offset));
    largest = max(largest, __shfl_xor_sync(kAllLanes, largest, offset));
  }
  Slice slice = {first_unit, columns > 0 ? smallest : 0, first_row, columns};
  if (columns > 0 && largest - smallest >= 0xffffu) slice.columns_and_flags |= Slice::kFar;
  if (__all_sync(kAllLanes, in_order)) slice.columns_and_flags |= Slice::kInOrder;
  return slice;
}

// Columns and values of slices, padding too.
struct Tiles {
  uint16_t* lows;
  uint16_t* highs;
  ValueT* values;

  __device__ __forceinline__ void set(uint64_t i, uint64_t value_at, const Slice& slice, bool filled, IndexT col,
                                      ValueT value) const {
    const uint32_t difference = filled ? col - slice.base : kNoColumn;
    lows[i] = uint16_t(difference);
    if (slice.far()) highs[i] = uint16_t(difference >> 16);
    values[value_at] = filled ? value : ValueT(0);
  }
};

// Medium rows lie in blocks of 256 entries, eight a lane: two of each of four tiles of 8 x 8. A block is eight columns of
// all 32 rows, or, of wide rows, 32 columns of eight rows.
constexpr uint32_t kBlock = 256;
constexpr uint32_t kPerLane = 8;

// A lane's values come 16 bytes at a time, or all of them where they are fewer.
constexpr uint32_t kPerPacket = sizeof(ValueT) == 1 ? kPerLane : 16 / sizeof(ValueT);

// Where the value of entry i of a block lies: a lane's are beside those of other lanes.
__device__ __forceinline__ uint32_t value_place(uint32_t i) {
  const uint32_t lane = i / kPerLane;
  const uint32_t entry = i % kPerLane;
  return (entry / kPerPacket * 32 + lane) * kPerPacket + entry % kPerPacket;
}

// The row of a slice, not a wide one, that a lane stores.
__device__ __forceinline__ uint32_t place_of_lane(uint32_t lane) { return lane % 4 * 8 + lane / 4; }

// An entry of a slice of medium rows: which one of which row it is, and where its value lies.
struct MediumEntry {
  uint32_t place;
  uint32_t k;
  uint32_t value_at;
};

// Blocks, then the last columns, fewer than eight, one after another.
__device__ __forceinline__ MediumEntry narrow_entry(uint32_t i, uint32_t columns) {
  const uint32_t in_block = i % kBlock;
  if (i < columns / 8 * kBlock) {
    const uint32_t lane = in_block / kPerLane;
    const uint32_t entry = in_block % kPerLane;
    return {entry / 2 * 8 + lane / 4, i / kBlock * 8 + lane % 4 * 2 + entry % 2, i - in_block + value_place(in_block)};
  }
  return {place_of_lane(i % 32), i / 32, i};
}

// Eight rows after eight rows, of each blocks, then the last columns, fewer than 32, in tiles four wide, row by row; the
// last tile may be less wide.
__device__ __forceinline__ MediumEntry wide_entry(uint32_t i, uint32_t columns) {
  const uint32_t group = i / (8 * columns);
  const uint32_t of_group = i % (8 * columns);
  const uint32_t in_block = of_group % kBlock;
  if (of_group < columns / 32 * kBlock) {
    const uint32_t lane = in_block / kPerLane;
    const uint32_t entry = in_block % kPerLane;
    return {group * 8 + lane / 4, of_group / kBlock * 32 + entry / 2 * 8 + lane % 4 * 2 + entry % 2,
            i - in_block + value_place(in_block)};
  }
  const uint32_t from_column = of_group / 32 * 4;
  const uint32_t width = min(columns - from_column, 4u);
  return {group * 8 + of_group % 32 / width, from_column + of_group % 32 % width, i};
}

// Calls work(i, value_at, from, filled) for the i-th entry of a slice of medium rows, which is entry `from` of the matrix
// if it is filled.
template <typename Work>
__device__ __forceinline__ void for_medium_entries(bool wide, uint32_t columns, OffsetT begin, uint32_t length,
                                                   Work work) {
  for (uint32_t i = threadIdx.x % 32; i < 32 * columns; i += 32) {
    const MediumEntry entry = wide ? wide_entry(i, columns) : narrow_entry(i, columns);
    const OffsetT from = __shfl_sync(kAllLanes, begin, entry.place) + entry.k;
    work(i, entry.value_at, from, entry.k < __shfl_sync(kAllLanes, length, entry.place));
  }
}

// Copies medium rows, a warp a slice.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_fill_medium(uint32_t num_slices, uint32_t num_long, uint32_t num_wide, uint32_t num_medium,
                      const OffsetT* row_offsets, const IndexT* col_indices, const ValueT* values,
                      const uint32_t* row_order, const uint32_t* first_units, Slice* slices, uint16_t* tile_lows,
                      uint16_t* tile_highs, ValueT* tile_values) {
  await_stream();
  const uint32_t index = blockIdx.x * kWarps + threadIdx.x / 32;
  if (index >= num_slices) return;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t* rows = row_order + num_long + kSliceRows * index;
  const bool wide = kSliceRows * index < num_wide;
  const bool has_row = kSliceRows * index + lane < num_medium;
  const uint32_t first_row = rows[0];
  const uint32_t row = has_row ? rows[lane] : 0;
  const OffsetT begin = has_row ? row_offsets[row] : 0;
  const uint32_t length = has_row ? row_offsets[row + 1] - begin : 0;
  const uint32_t columns = first_units[index + 1] - first_units[index];
  IndexT smallest = kNoColumn;
  IndexT largest = 0;
  for_medium_entries(wide, columns, begin, length, [&](uint32_t, uint32_t, OffsetT from, bool filled) {
    if (!filled) return;
    smallest = min(smallest, col_indices[from]);
    largest = max(largest, col_indices[from]);
  });
  const Slice slice =
      slice_of(first_units[index], columns, first_row, !has_row || row == first_row + lane, smallest, largest);
  if (lane == 0) slices[index] = slice;
  const Tiles tiles = {tile_lows, tile_highs, tile_values};
  const uint64_t out = uint64_t(slice.first_unit) * 32;
  for_medium_entries(wide, columns, begin, length, [&](uint32_t i, uint32_t value_at, OffsetT from, bool filled) {
    const IndexT col = filled ? col_indices[from] : kNoColumn;
    tiles.set(out + i, out + value_at, slice, filled, col, filled ? values[from] : ValueT(0));
  });
}

// The rows that a thread computes at a time in a slice of short rows.
constexpr uint32_t kRowsAtATime = 2;

// Copies short rows, a warp a slice: column by column of the rows that are computed at a time.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_fill_short(uint32_t num_slices, uint32_t num_medium_slices, uint32_t first_short, uint32_t num_rows,
                     const OffsetT* row_offsets, const IndexT* col_indices, const ValueT* values,
                     const uint32_t* row_order, const uint32_t* first_units, Slice* slices, uint16_t* tile_lows,
                     uint16_t* tile_highs, ValueT* tile_values) {
  await_stream();
  const uint32_t index = blockIdx.x * kWarps + threadIdx.x / 32;
  if (index >= num_slices) return;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t first_place = first_short + kShortSliceRows * index;
  const uint32_t first_row = row_order[first_place];
  first_units += num_medium_slices + index;
  const uint32_t columns = (first_units[1] - first_units[0]) / kRowsPerThread;
  OffsetT begins[kRowsPerThread];
  uint32_t lengths[kRowsPerThread];
  bool in_order = true;
  bool full = true;
  IndexT smallest = kNoColumn;
  IndexT largest = 0;
#pragma unroll
  for (int r = 0; r < kRowsPerThread; ++r) {
    const uint32_t place = 32 * r + lane;
    const bool has_row = first_place + place < num_rows;
    const uint32_t row = has_row ? row_order[first_place + place] : 0;
    begins[r] = has_row ? row_offsets[row] : 0;
    lengths[r] = has_row ? row_offsets[row + 1] - begins[r] : 0;
    in_order = in_order && (!has_row || row == first_row + place);
    full = full && has_row && lengths[r] == columns;
    for (uint32_t k = 0; k < lengths[r]; ++k) {
      smallest = min(smallest, col_indices[begins[r] + k]);
      largest = max(largest, col_indices[begins[r] + k]);
    }
  }
  Slice slice = slice_of(first_units[0], columns, first_row, in_order, smallest, largest);
  if (__all_sync(kAllLanes, full)) slice.columns_and_flags |= Slice::kFull;
  if (lane == 0) slices[num_medium_slices + index] = slice;
  const Tiles tiles = {tile_lows, tile_highs, tile_values};
#pragma unroll
  for (int r = 0; r < kRowsPerThread; ++r) {
    for (uint32_t k = 0; k < columns; ++k) {
      const uint32_t i = ((r / kRowsAtATime * columns + k) * 32 + lane) * kRowsAtATime + r % kRowsAtATime;
      const uint64_t at = uint64_t(slice.first_unit) * 32 + i;
      const bool filled = k < lengths[r];
      const IndexT col = filled ? col_indices[begins[r] + k] : kNoColumn;
      tiles.set(at, at, slice, filled, col, filled ? values[begins[r] + k] : ValueT(0));
    }
  }
}

// The entry of x for a column, or zero for padding.
template <typename T>
__device__ __forceinline__ T gathered(uint32_t column, uint32_t none, const XT* __restrict__ x) {
  return column == none ? T() : T(__ldg(x + column));
}

// What of the columns is kept together: low halves, and high ones where they are read.
__device__ __forceinline__ uint32_t first_column(uint32_t lows, uint32_t highs) { return __byte_perm(lows, highs, 0x5410); }
__device__ __forceinline__ uint32_t second_column(uint32_t lows, uint32_t highs) {
  return __byte_perm(lows, highs, 0x7632);
}

// Where a slice is read. High halves of a slice whose columns are near are zeros, those of padding too.
struct SliceReader {
  const uint16_t* lows;
  const uint16_t* highs;
  const ValueT* values;
  const XT* x;

  __device__ __forceinline__ SliceReader(const Slice& slice, const uint16_t* tile_lows, const uint16_t* tile_highs,
                                         const ValueT* tile_values, const XT* x_entries)
      : lows(tile_lows + uint64_t(slice.first_unit) * 32), highs(tile_highs + uint64_t(slice.first_unit) * 32),
        values(tile_values + uint64_t(slice.first_unit) * 32), x(x_entries + slice.base) {}
};

// What padding has in place of columns, two in a word.
__device__ __forceinline__ constexpr uint32_t no_highs(bool far) { return far ? 0xffffffffu : 0; }
constexpr uint32_t kNoLows = 0xffffffffu;

// Columns of a lane's entries of a block, two in a word.
template <bool kFar>
struct BlockColumns {
  uint32_t lows[4];
  uint32_t highs[4];

  __device__ __forceinline__ void load(const SliceReader& from, uint32_t first, bool loads) {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      lows[u] = kNoLows;
      highs[u] = no_highs(kFar);
    }
    const uint32_t lane = threadIdx.x % 32;
    if (loads) load_streaming<4>(lows, reinterpret_cast<const uint32_t*>(from.lows + first) + 4 * lane);
    if (kFar && loads) load_streaming<4>(highs, reinterpret_cast<const uint32_t*>(from.highs + first) + 4 * lane);
  }

  __device__ __forceinline__ void gather(const SliceReader& from, XT* gathers) const {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      gathers[2 * u] = gathered<XT>(first_column(lows[u], highs[u]), Slice::none(kFar), from.x);
      gathers[2 * u + 1] = gathered<XT>(second_column(lows[u], highs[u]), Slice::none(kFar), from.x);
    }
  }
};

__device__ __forceinline__ void load_block_values(const SliceReader& from, uint32_t first, ValueT* values) {
#pragma unroll
  for (uint32_t i = 0; i < kPerLane; i += kPerPacket) {
    load_streaming<kPerPacket>(values + i, from.values + first + 32 * i + kPerPacket * (threadIdx.x % 32));
  }
}

// Adds the products of the blocks from `first` to `end`. The columns of a block are loaded before the one before it is
// multiplied.
template <bool kFar>
__device__ __forceinline__ void add_blocks(const SliceReader& from, uint32_t first, uint32_t end,
                                           BlockColumns<kFar> columns, TileSums* sums) {
#pragma unroll 1
  for (; first < end; first += kBlock) {
    ValueT values[kPerLane];
    load_block_values(from, first, values);
    XT gathers[kPerLane];
    columns.gather(from, gathers);
    columns.load(from, first + kBlock, first + kBlock < end);
#pragma unroll
    for (int u = 0; u < 4; ++u) add_tile_product(values + 2 * u, gathers + 2 * u, sums + u);
  }
}

// Adds the products of the last columns of eight rows, up to 32, of tiles four wide.
template <bool kFar>
__device__ __forceinline__ void add_last_tiles(const SliceReader& from, uint32_t first, uint32_t num_columns,
                                               TileSums* sums) {
  const uint32_t row = threadIdx.x % 32 / 4;
  const uint32_t column = threadIdx.x % 4;
  uint32_t columns[kPerLane];
  ValueT values[kPerLane];
#pragma unroll
  for (uint32_t i = 0; i < kPerLane; ++i) {
    const uint32_t width = min(max(num_columns, 4 * i) - 4 * i, 4u);
    const uint32_t at = first + 32 * i + row * width + column;
    columns[i] = Slice::none(kFar);
    values[i] = ValueT();
    if (column < width) {
      columns[i] = __ldcs(from.lows + at);
      if (kFar) columns[i] |= uint32_t(__ldcs(from.highs + at)) << 16;
      values[i] = __ldcs(from.values + at);
    }
  }
  XT gathers[kPerLane];
#pragma unroll
  for (uint32_t i = 0; i < kPerLane; ++i) gathers[i] = gathered<XT>(columns[i], Slice::none(kFar), from.x);
#pragma unroll
  for (int u = 0; u < 4; ++u) add_tile_product(values + 2 * u, gathers + 2 * u, sums + u);
}

// The product of the last columns of a slice, fewer than eight, of the row that the lane stores.
template <bool kFar>
__device__ __forceinline__ AccumT last_product(const SliceReader& from, uint32_t first, uint32_t num_columns) {
  uint32_t columns[7];
  ValueT values[7];
#pragma unroll
  for (uint32_t k = 0; k < 7; ++k) {
    const uint32_t at = first + 32 * k + threadIdx.x % 32;
    columns[k] = Slice::none(kFar);
    values[k] = ValueT();
    if (k < num_columns) {
      columns[k] = __ldcs(from.lows + at);
      if (kFar) columns[k] |= uint32_t(__ldcs(from.highs + at)) << 16;
      values[k] = __ldcs(from.values + at);
    }
  }
  XT gathers[7];
#pragma unroll
  for (int k = 0; k < 7; ++k) gathers[k] = gathered<XT>(columns[k], Slice::none(kFar), from.x);
  AccumT sum = 0;
#pragma unroll
  for (int k = 0; k < 7; ++k) sum = multiply_add(AccumT(values[k]), AccumT(gathers[k]), sum);
  return sum;
}

// The product of 32 rows with x; a lane returns that of the row that it stores.
template <bool kFar>
__device__ __forceinline__ AccumT narrow_product(const SliceReader& from, uint32_t num_columns) {
  const uint32_t end = num_columns / 8 * kBlock;
  BlockColumns<kFar> columns;
  columns.load(from, 0, end > 0);
  AccumT sum = 0;
  if (num_columns % 8 > 0) sum = last_product<kFar>(from, end, num_columns % 8);
  TileSums sums[4] = {};
  add_blocks<kFar>(from, 0, end, columns, sums);
  return sum + sum_of_own_tile(sums);
}

// The product of eight rows of a slice of wide ones with x; the lanes of a row return it.
template <bool kFar>
__device__ __forceinline__ AccumT wide_product(const SliceReader& from, uint32_t num_columns, uint32_t group) {
  const uint32_t begin = 8 * num_columns * group;
  const uint32_t end = begin + num_columns / 32 * kBlock;
  BlockColumns<kFar> columns;
  columns.load(from, begin, begin < end);
  TileSums sums[4] = {};
  if (num_columns % 32 > 0) add_last_tiles<kFar>(from, end, num_columns % 32, sums);
  add_blocks<kFar>(from, begin, end, columns, sums);
  return sum_of_tile(sum_of(sum_of(sums[0], sums[2]), sum_of(sums[1], sums[3])));
}

// A warp computes the 32 rows of a slice, or, if it is wide, eight of them.
__device__ __forceinline__ void compute_medium(const Slice& slice, const SliceReader& from, bool wide, uint32_t group,
                                               uint32_t first_place, uint32_t num_medium,
                                               const uint32_t* __restrict__ medium_rows, YT* __restrict__ y,
                                               AccumT alpha, BetaT beta) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t within = wide ? 8 * group + lane / 4 : place_of_lane(lane);
  const bool stores = first_place + within < num_medium && (!wide || lane % 4 == 0);
  uint32_t row = slice.first_row + within;
  if (stores && !slice.in_order()) row = __ldcs(medium_rows + first_place + within);
  AccumT sum = 0;
  if (skips_product(alpha)) {
  } else if (wide) {
    sum = slice.far() ? wide_product<true>(from, slice.columns(), group)
                      : wide_product<false>(from, slice.columns(), group);
  } else {
    sum = slice.far() ? narrow_product<true>(from, slice.columns()) : narrow_product<false>(from, slice.columns());
  }
  if (stores) store_scaled(y, row, sum, alpha, beta);
}

// The nonzeros of a long row that a warp loads at a time, eight a lane. Neighbours are loaded by neighbouring lanes, not
// by one: what they read of x is close together then.
struct PartEntries {
  ValueT values[kPerLane];
  IndexT cols[kPerLane];

  __device__ __forceinline__ void load(OffsetT first, OffsetT end, const IndexT* __restrict__ col_indices,
                                       const ValueT* __restrict__ entries) {
#pragma unroll
    for (int u = 0; u < kPerLane; ++u) {
      const OffsetT k = first + u * 32;
      cols[u] = k < end ? __ldcs(col_indices + k) : kNoColumn;
      values[u] = k < end ? __ldcs(entries + k) : ValueT();
    }
  }
};

// The product of consecutive nonzeros with x, summed by a warp; every lane returns the sum.
__device__ __forceinline__ AccumT part_product(OffsetT begin, OffsetT end, const IndexT* __restrict__ col_indices,
                                               const ValueT* __restrict__ values, const XT* __restrict__ x) {
  const uint32_t lane = threadIdx.x % 32;
  TileSums sums[2] = {};
  PartEntries entries;
  entries.load(begin + lane, end, col_indices, values);
  for (OffsetT first = begin; first < end; first += kBlock) {
    PartEntries next;
    next.load(first + kBlock + lane, end, col_indices, values);
    XT gathers[kPerLane];
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) gathers[k] = gathered<XT>(entries.cols[k], kNoColumn, x);
#pragma unroll
    for (int u = 0; u < 4; ++u) add_tile_product(entries.values + 2 * u, gathers + 2 * u, sums + u % 2);
    entries = next;
  }
  const AccumT of_row = sum_of_tile(sum_of(sums[0], sums[1]));
  return group_sum<32>(lane % 4 == 0 ? of_row : AccumT(0), kAllLanes);
}

// The sum of partial sums, which other warps have written, in a fixed order; every lane returns it.
__device__ __forceinline__ AccumT sum_of_parts(const AccumT* part_sums, uint32_t num_parts) {
  AccumT sums[8] = {};
  for (uint32_t i = threadIdx.x % 32; i < num_parts; i += 256) {
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      if (i + 32 * u < num_parts) sums[u] += __ldcg(part_sums + i + 32 * u);
    }
  }
#pragma unroll
  for (int width = 4; width > 0; width /= 2) {
#pragma unroll
    for (int u = 0; u < width; ++u) sums[u] += sums[u + width];
  }
  return group_sum<32>(sums[0], kAllLanes);
}

// A warp computes a part of a long row. The last to finish of a row's parts adds them, and leaves the count of finished
// parts at zero for the next product.
__device__ __forceinline__ void compute_part(uint32_t part, const uint32_t* __restrict__ long_rows,
                                             const uint32_t* __restrict__ first_parts,
                                             const uint32_t* __restrict__ part_rows,
                                             const OffsetT* __restrict__ part_ends, AccumT* part_sums,
                                             uint32_t* finished_parts, const IndexT* __restrict__ col_indices,
                                             const ValueT* __restrict__ values, const XT* __restrict__ x,
                                             YT* __restrict__ y, AccumT alpha, BetaT beta) {
  const uint32_t i = __ldg(part_rows + part);
  const OffsetT begin = __ldg(part_ends + 2 * part), next = __ldg(part_ends + 2 * part + 1);
  const OffsetT end = skips_product(alpha) ? begin : next;
  const uint32_t first = __ldg(first_parts + i);
  const uint32_t num_parts = __ldg(first_parts + i + 1) - first;
  const uint32_t row = __ldg(long_rows + i);
  AccumT sum = part_product(begin, end, col_indices, values, x);
  if (num_parts > 1) {
    uint32_t finished = 0;
    if (threadIdx.x % 32 == 0) {
      part_sums[part] = sum;
      finished = arrive(finished_parts + i);
    }
    if (__shfl_sync(kAllLanes, finished, 0) != num_parts - 1) return;
    // What lane 0 saw arrive, the others see behind the barrier.
    __threadfence();
    __syncwarp();
    sum = sum_of_parts(part_sums + first, num_parts);
    if (threadIdx.x % 32 == 0) finished_parts[i] = 0;
  }
  if (threadIdx.x % 32 == 0) store_scaled(y, row, sum, alpha, beta);
}

// Two rows a thread of kColumns entries each, without padding; columns of both in a word.
template <int kColumns>
struct FullRows {
  ValueT values[kColumns][2];
  uint32_t lows[kColumns];

  __device__ __forceinline__ void load(const SliceReader& from, uint32_t first) {
    const uint32_t begin = first + threadIdx.x % 32 * 2;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) lows[k] = __ldcs(reinterpret_cast<const uint32_t*>(from.lows + begin + 64 * k));
#pragma unroll
    for (int k = 0; k < kColumns; ++k) load_streaming<2>(values[k], from.values + begin + 64 * k);
  }

  __device__ __forceinline__ void multiply(const SliceReader& from, AccumT* sums) const {
    XT gathers[kColumns][2];
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      gathers[k][0] = __ldg(from.x + first_column(lows[k], 0));
      gathers[k][1] = __ldg(from.x + second_column(lows[k], 0));
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sums[r] = 0;
#pragma unroll
      for (int k = 0; k < kColumns; ++k) {
        sums[r] = multiply_add(AccumT(values[k][r]), AccumT(gathers[k][r]), sums[r]);
      }
    }
  }
};

// A warp computes the rows of a slice whose columns are near and none is padding, in the order row, row + 32, ...
template <int kColumns>
__device__ __forceinline__ void full_product(const SliceReader& from, AccumT* sums) {
  static_assert(kRowsPerThread == 4 && kRowsAtATime == 2, "two times two rows");
  // As many registers as there are decide whether all is in flight at once.
  constexpr bool kAtOnce = kColumns <= (kResidentThreads > 1024 ? 3 : 5);
  FullRows<kColumns> first, second;
  first.load(from, 0);
  if (kAtOnce) second.load(from, 64 * kColumns);
  first.multiply(from, sums);
  if (!kAtOnce) second.load(from, 64 * kColumns);
  second.multiply(from, sums + 2);
}

// Two rows a thread of four columns, or of fewer; columns of both in a word.
template <bool kFar>
struct ShortColumns {
  uint32_t lows[4];
  uint32_t highs[4];

  __device__ __forceinline__ void load(const SliceReader& from, uint32_t first, uint32_t num_columns) {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      lows[u] = kNoLows;
      highs[u] = no_highs(kFar);
      if (u < num_columns) {
        lows[u] = __ldcs(reinterpret_cast<const uint32_t*>(from.lows + first + 64 * u));
        if (kFar) highs[u] = __ldcs(reinterpret_cast<const uint32_t*>(from.highs + first + 64 * u));
      }
    }
  }
};

// As above, of any slice: four columns at a time, the next of which are loaded before the last are multiplied.
template <bool kFar>
__device__ __forceinline__ void padded_product(const SliceReader& from, uint32_t num_columns, AccumT* sums) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint32_t first = half * 64 * num_columns + threadIdx.x % 32 * 2;
    AccumT* of_rows = sums + 2 * half;
    of_rows[0] = of_rows[1] = 0;
    ShortColumns<kFar> columns;
    columns.load(from, first, num_columns);
#pragma unroll 1
    for (uint32_t k = 0; k < num_columns; k += 4) {
      ShortColumns<kFar> next;
      ValueT values[4][2] = {};
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        if (u < num_columns - k) load_streaming<2>(values[u], from.values + first + 64 * (k + u));
      }
      next.load(from, first + 64 * (k + 4), max(num_columns, k + 4) - (k + 4));
      XT gathers[4][2];
#pragma unroll
      for (int u = 0; u < 4; ++u) {
        gathers[u][0] = gathered<XT>(first_column(columns.lows[u], columns.highs[u]), Slice::none(kFar), from.x);
        gathers[u][1] = gathered<XT>(second_column(columns.lows[u], columns.highs[u]), Slice::none(kFar), from.x);
      }
#pragma unroll
      for (int u = 0; u < 4; ++u) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          of_rows[r] = multiply_add(AccumT(values[u][r]), AccumT(gathers[u][r]), of_rows[r]);
        }
      }
      columns = next;
    }
  }
}

// A warp computes the rows of a slice; `rows` are these, num_places of them.
__device__ __forceinline__ void compute_short(const Slice& slice, const SliceReader& from, uint32_t num_places,
                                              const uint32_t* __restrict__ rows, YT* __restrict__ y, AccumT alpha,
                                              BetaT beta) {
  const uint32_t lane = threadIdx.x % 32;
  uint32_t to[kRowsPerThread];
#pragma unroll
  for (int r = 0; r < kRowsPerThread; ++r) {
    to[r] = slice.first_row + 32 * r + lane;
    if (!slice.in_order() && 32 * r + lane < num_places) to[r] = __ldcs(rows + 32 * r + lane);
  }
  AccumT sums[kRowsPerThread] = {};
  const uint32_t columns = skips_product(alpha) ? 0 : slice.columns();
  if (slice.far()) {
    padded_product<true>(from, columns, sums);
  } else if (!slice.full() || columns == 0) {
    padded_product<false>(from, columns, sums);
  } else {
    static_assert(kShortRow == 8, "a case a length");
    switch (columns) {
      case 1: full_product<1>(from, sums); break;
      case 2: full_product<2>(from, sums); break;
      case 3: full_product<3>(from, sums); break;
      case 4: full_product<4>(from, sums); break;
      case 5: full_product<5>(from, sums); break;
      case 6: full_product<6>(from, sums); break;
      case 7: full_product<7>(from, sums); break;
      default: full_product<8>(from, sums);
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsPerThread; ++r) {
    if (32 * r + lane < num_places) store_scaled(y, to[r], sums[r], alpha, beta);
  }
}

// A block brings a slice into the second-level cache that one after those on the GPU will begin with: of what a warp waits
// for, slices come first, and nothing else is under way meanwhile.
constexpr uint32_t kSlicesAhead = 6144;

__device__ __forceinline__ void prefetch(const uint4* slices, uint32_t slice, uint32_t num_slices) {
  if (slice < num_slices) asm volatile("prefetch.global.L2 [%0];" ::"l"(slices + slice));
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kResidentBlocks)
spmv_dasp(const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values, const XT* __restrict__ x,
          YT* __restrict__ y, AlphaT alpha, BetaT beta, const uint32_t* __restrict__ row_order, uint32_t num_parts,
          const uint32_t* __restrict__ first_parts, const uint32_t* __restrict__ part_rows,
          const OffsetT* __restrict__ part_ends, AccumT* part_sums, uint32_t* finished_parts, uint32_t num_long,
          uint32_t num_wide, uint32_t num_narrow, uint32_t num_short, const uint4* __restrict__ slices,
          const uint16_t* __restrict__ tile_lows, const uint16_t* __restrict__ tile_highs,
          const ValueT* __restrict__ tile_values) {
  await_stream();
  uint32_t unit = blockIdx.x * kWarps + threadIdx.x / 32;
  if (unit < num_parts) {
    compute_part(unit, row_order, first_parts, part_rows, part_ends, part_sums, finished_parts, col_indices, values, x,
                 y, alpha, beta);
    return;
  }
  unit -= num_parts;
  const uint32_t* rows = row_order + num_long;
  const uint32_t num_medium = num_wide + num_narrow;
  const uint32_t medium_slices = (num_medium + kSliceRows - 1) / kSliceRows;
  const uint32_t wide_slices = (num_wide + kSliceRows - 1) / kSliceRows;
  const uint32_t short_slices = (num_short + kShortSliceRows - 1) / kShortSliceRows;
  // A wide slice is for four warps, any other for one.
  const bool wide = unit < 4 * wide_slices;
  const uint32_t index = wide ? unit / 4 : unit - 3 * wide_slices;
  if (index >= medium_slices + short_slices) return;
  if (threadIdx.x == 0) prefetch(slices, index + kSlicesAhead, medium_slices + short_slices);
  const uint4 loaded = __ldg(slices + index);
  const Slice slice = {loaded.x, loaded.y, loaded.z, loaded.w};
  const SliceReader from(slice, tile_lows, tile_highs, tile_values, x);
  if (index >= medium_slices) {
    const uint32_t first = kShortSliceRows * (index - medium_slices);
    compute_short(slice, from, num_short - first, rows + num_medium + first, y, alpha, beta);
    return;
  }
  compute_medium(slice, from, wide, unit % 4, kSliceRows * index, num_medium, rows, y, alpha, beta);
}
