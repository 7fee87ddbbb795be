// dasp: rows by length: long ones in parts of a warp each, medium ones sorted into slices of 8 x 4 tiles for tensor cores, short ones a thread each.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Lu and Liu 2023 (DASP); the template says what differs, and why
// Suits:     rows of many lengths in f64; giants among them
// Suffers:   neighbouring rows that share entries of x but not their length: sorting parts them
// Bytes:     nnz * (value + index) + rows * (4 + y) + x once; the plan keeps a copy of all rows but the long: nnz * (value + index) and up to 32 * long_row entries, 4 a row, and (12 + 2 * offset) a part of a long row
// Guarantee: bit-reproducible; how a row is summed depends on its length alone, parts are summed in a fixed order
// Launch:    rows are sorted, long ones cut in parts and the others copied by sixteen passes once for a structure; one kernel whose blocks find their kind of rows, longest first; the warp that finishes a long row last adds its parts
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
// - Sums are in f64 for products of f32 too: what the tensor cores offer beside that is less exact than f32.
// - Medium rows are sorted by their exact length, and the last columns of a slice, fewer than eight, are stored without
//   gaps. So padding is bounded by the longest medium row, not by the number of rows, and there is no irregular rest.
// - A slice has 32 rows, four groups of eight: four tiles or more are in flight a warp however short its rows are.
// - Short rows lie column by column, a thread each: tiles of theirs would be mostly shuffles and empty lanes.
// - Parts of a long row have 1024 nonzeros rather than 64, stay where the matrix has them, and meet in the same launch.
// - y is in the caller's order.

constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr uint32_t kWarps = kThreadsPerBlock / 32;

// Registers are shared out among so many threads: with fewer for each, two batches of f64 would not stay in them.
constexpr int kResidentThreads = sizeof(ValueT) + sizeof(XT) > 8 ? 640 : 1024;
constexpr int kResidentBlocks = kThreadsPerBlock < kResidentThreads ? kResidentThreads / kThreadsPerBlock : 1;

// Padding of a slice: it has no column.
constexpr IndexT kNoColumn = ~IndexT(0);

// Kinds of rows: long, wide, narrow, of 4, 3, 2 and 1 entries, empty.
constexpr int kKinds = 8;

// Rows sorted by this are sorted by falling length, long ones first in their own order.
__device__ __forceinline__ uint32_t sort_key(uint32_t row, const OffsetT* row_offsets) {
  const OffsetT length = row_offsets[row + 1] - row_offsets[row];
  return length > kLongRow ? 0 : kLongRow + 1 - uint32_t(length);
}

// The smallest key of a kind; behind the last kind, a key that no row has.
__device__ __forceinline__ uint32_t first_key(int kind) {
  if (kind < 2) return kind;
  return kind == 2 ? kLongRow + 1 - kWideRow : kLongRow - 6 + kind;
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
  partition_count<kLowBins>(num_rows, offsets, LowDigit{row_offsets});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_low_offsets(uint32_t num_blocks, uint32_t* offsets, uint64_t* bin_counts) {
  partition_offsets<kLowBins>(num_blocks, offsets, bin_counts);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_low_scatter(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* offsets, uint32_t* first_order) {
  partition_scatter<kLowBins>(num_rows, offsets, LowDigit{row_offsets},
                              [=](uint32_t place, uint32_t row) { first_order[place] = row; });
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_high_count(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* first_order, uint32_t* offsets) {
  partition_count<kHighBins>(num_rows, offsets, HighDigit{row_offsets, first_order});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_high_offsets(uint32_t num_blocks, uint32_t* offsets, uint64_t* bin_counts) {
  partition_offsets<kHighBins>(num_blocks, offsets, bin_counts);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_high_scatter(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* first_order,
                       const uint32_t* offsets, uint32_t* row_order) {
  partition_scatter<kHighBins>(num_rows, offsets, HighDigit{row_offsets, first_order},
                               [=](uint32_t place, uint32_t from) { row_order[place] = first_order[from]; });
}

// The place of the first row of a kind, or of the next kind that has rows.
__device__ __forceinline__ uint32_t first_place(int kind, uint32_t num_rows, const OffsetT* row_offsets,
                                                const uint32_t* row_order) {
  uint32_t low = 0;
  uint32_t high = num_rows;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (sort_key(row_order[middle], row_offsets) < first_key(kind)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// How many rows each kind has. One block.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_kinds(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* row_order, uint64_t* kind_rows) {
  const int kind = threadIdx.x;
  if (kind >= kKinds) return;
  kind_rows[kind] = first_place(kind + 1, num_rows, row_offsets, row_order) -
                    first_place(kind, num_rows, row_offsets, row_order);
}

// The columns of a slice, which are the entries of its first row: the longest.
struct ColumnsOf {
  const OffsetT* row_offsets;
  const uint32_t* medium_rows;
  __device__ __forceinline__ uint32_t operator()(uint64_t slice) const {
    const uint32_t row = medium_rows[32 * slice];
    return row_offsets[row + 1] - row_offsets[row];
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_slices_sum_chunk(uint64_t num_slices, const OffsetT* row_offsets, const uint32_t* row_order,
                           uint32_t num_long, uint32_t* partials) {
  scan_sum_chunk(num_slices, partials, ColumnsOf{row_offsets, row_order + num_long});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_slices_partials(uint32_t num_partials, uint64_t num_slices, uint32_t* partials, uint32_t* first_columns,
                          uint64_t* num_columns) {
  scan_partials(num_partials, num_slices, partials, first_columns, num_columns);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_slices_chunk(uint64_t num_slices, const OffsetT* row_offsets, const uint32_t* row_order, uint32_t num_long,
                       const uint32_t* partials, uint32_t* first_columns) {
  scan_chunk(num_slices, partials, first_columns, ColumnsOf{row_offsets, row_order + num_long});
}

constexpr OffsetT kNnzPerPart = 1024;
constexpr OffsetT kMaxParts = 4096;

// The nonzeros of each part but the last of a long row: more in a giant, whose parts one warp adds.
__device__ __forceinline__ OffsetT part_length(OffsetT length) {
  return (length + kMaxParts * kNnzPerPart - 1) / (kMaxParts * kNnzPerPart) * kNnzPerPart;
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
                          uint32_t* partials) {
  scan_sum_chunk(num_long, partials, PartsOf{row_offsets, row_order});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_parts_partials(uint32_t num_partials, uint64_t num_long, uint32_t* partials, uint32_t* first_parts,
                         uint64_t* num_parts) {
  scan_partials(num_partials, num_long, partials, first_parts, num_parts);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_parts_chunk(uint64_t num_long, const OffsetT* row_offsets, const uint32_t* row_order,
                      const uint32_t* partials, uint32_t* first_parts) {
  scan_chunk(num_long, partials, first_parts, PartsOf{row_offsets, row_order});
}

// Which long row every part is of, and where it begins and ends.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_parts(uint32_t num_parts, uint32_t num_long, const OffsetT* row_offsets, const uint32_t* row_order,
                const uint32_t* first_parts, uint32_t* part_rows, OffsetT* part_ends) {
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

// Copies the rows of a slice, a warp a slice: columns eight at a time, in these row by row; then, of the last columns,
// fewer than eight, up to four and the others, row by row too.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_fill_slices(uint32_t num_slices, uint32_t num_long, uint32_t num_medium, const OffsetT* row_offsets,
                      const IndexT* col_indices, const ValueT* values, const uint32_t* row_order,
                      const uint32_t* first_columns, IndexT* tile_cols, ValueT* tile_values) {
  const uint32_t slice = blockIdx.x * kWarps + threadIdx.x / 32;
  if (slice >= num_slices) return;
  const uint32_t lane = threadIdx.x % 32;
  OffsetT begin = 0;
  uint32_t length = 0;
  if (32 * slice + lane < num_medium) {
    const uint32_t row = row_order[num_long + 32 * slice + lane];
    begin = row_offsets[row];
    length = row_offsets[row + 1] - begin;
  }
  const OffsetT out = OffsetT(first_columns[slice]) * 32;
  const uint32_t columns = first_columns[slice + 1] - first_columns[slice];
  const uint32_t rest = columns % 8;
  const uint32_t in_eights = (columns - rest) * 32;
  const uint32_t in_fours = min(in_eights + 128, 32 * columns);
  for (uint32_t i = lane; i < 32 * columns; i += 32) {
    const uint32_t from_column = i < in_eights ? i / 256 * 8 : i < in_fours ? columns - rest : columns - rest + 4;
    const uint32_t width = i < in_eights ? 8 : i < in_fours ? min(rest, 4u) : rest - 4;
    const uint32_t place = (i - 32 * from_column) / width;
    const uint32_t k = from_column + (i - 32 * from_column) % width;
    const OffsetT from = __shfl_sync(kAllLanes, begin, place) + k;
    const bool filled = k < __shfl_sync(kAllLanes, length, place);
    tile_cols[out + i] = filled ? col_indices[from] : kNoColumn;
    tile_values[out + i] = filled ? values[from] : ValueT(0);
  }
}

// Copies the rows of kLength entries, column by column; `place` counts from their first, *base moves behind them.
template <int kLength>
__device__ __forceinline__ void fill_short_rows(uint32_t place, uint32_t rows, uint64_t* base,
                                                const OffsetT* row_offsets, const IndexT* col_indices,
                                                const ValueT* values, const uint32_t* first_row, IndexT* tile_cols,
                                                ValueT* tile_values) {
  if (place < rows) {
    const OffsetT begin = row_offsets[first_row[place]];
    for (int k = 0; k < kLength; ++k) {
      tile_cols[*base + uint64_t(k) * rows + place] = col_indices[begin + k];
      tile_values[*base + uint64_t(k) * rows + place] = values[begin + k];
    }
  }
  *base += uint64_t(kLength) * rows;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dasp_fill_short(uint32_t first_short, uint64_t base, uint32_t rows_4, uint32_t rows_3, uint32_t rows_2,
                     uint32_t rows_1, const OffsetT* row_offsets, const IndexT* col_indices, const ValueT* values,
                     const uint32_t* row_order, IndexT* tile_cols, ValueT* tile_values) {
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint32_t* rows = row_order + first_short;
  fill_short_rows<4>(place, rows_4, &base, row_offsets, col_indices, values, rows, tile_cols, tile_values);
  rows += rows_4;
  fill_short_rows<3>(place, rows_3, &base, row_offsets, col_indices, values, rows, tile_cols, tile_values);
  rows += rows_3;
  fill_short_rows<2>(place, rows_2, &base, row_offsets, col_indices, values, rows, tile_cols, tile_values);
  rows += rows_2;
  fill_short_rows<1>(place, rows_1, &base, row_offsets, col_indices, values, rows, tile_cols, tile_values);
}

// The entry of x for a column, or zero for padding.
__device__ __forceinline__ double gathered(IndexT col, const XT* __restrict__ x) {
  return col == kNoColumn ? 0.0 : double(__ldg(x + col));
}

// Two entries a lane, those of two tiles, in each of four units: of four groups of eight rows, or of one group.
struct Batch {
  ValueT values[4][2];
  IndexT cols[4][2];
};

// Loads whole tiles of the first num_units units, which are `stride` entries apart.
__device__ __forceinline__ void load_tiles(Batch* batch, const ValueT* __restrict__ values,
                                           const IndexT* __restrict__ cols, uint32_t stride, uint32_t num_units) {
#pragma unroll
  for (int u = 0; u < 4; ++u) {
    batch->values[u][0] = batch->values[u][1] = ValueT(0);
    batch->cols[u][0] = batch->cols[u][1] = kNoColumn;
    if (u < num_units) {
      load_streaming<2>(batch->cols[u], cols + u * stride);
      load_streaming<2>(batch->values[u], values + u * stride);
    }
  }
}

// Loads the tiles of the last columns, `rest` of them, of the first num_units units, from the lane's row on.
__device__ __forceinline__ void load_rest(Batch* batch, const ValueT* __restrict__ values,
                                          const IndexT* __restrict__ cols, uint32_t first_row, uint32_t rest,
                                          uint32_t num_units) {
#pragma unroll
  for (int u = 0; u < 4; ++u) {
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const uint32_t width = t == 0 ? min(rest, 4u) : max(rest, 4u) - 4;
      const uint32_t i = t * 128 + (first_row + u * 8) * width + threadIdx.x % 4;
      const bool loads = u < num_units && threadIdx.x % 4 < width;
      batch->cols[u][t] = loads ? __ldcs(cols + i) : kNoColumn;
      batch->values[u][t] = loads ? __ldcs(values + i) : ValueT(0);
    }
  }
}

__device__ __forceinline__ void multiply_batch(const Batch& batch, const XT* __restrict__ x, TileSums* sums) {
  double gathers[4][2];
#pragma unroll
  for (int u = 0; u < 4; ++u) {
#pragma unroll
    for (int t = 0; t < 2; ++t) gathers[u][t] = gathered(batch.cols[u][t], x);
  }
#pragma unroll
  for (int t = 0; t < 2; ++t) {
#pragma unroll
    for (int u = 0; u < 4; ++u) add_tile_product(double(batch.values[u][t]), gathers[u][t], sums + u);
  }
}

// The products of a slice's rows with x: of all four groups of eight rows a unit each, or, where kWide, of one group,
// four times eight columns at a time. The next batch is loaded before the last is multiplied.
template <bool kWide>
__device__ __forceinline__ void slice_product(uint32_t begin, uint32_t columns, uint32_t group,
                                              const IndexT* __restrict__ tile_cols,
                                              const ValueT* __restrict__ tile_values, const XT* __restrict__ x,
                                              TileSums* sums) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t row = 8 * group + lane / 4;
  const uint32_t eights = columns / 8;
  const uint32_t rest = columns % 8;
  const ValueT* values = tile_values + OffsetT(begin) * 32;
  const IndexT* cols = tile_cols + OffsetT(begin) * 32;
  Batch batch;
  if (rest > 0) load_rest(&batch, values + eights * 256, cols + eights * 256, row, rest, kWide ? 1 : 4);
  values += row * 8 + lane % 4 * 2;
  cols += row * 8 + lane % 4 * 2;
  for (uint32_t i = 0; i < eights; i += kWide ? 4 : 1) {
    Batch next;
    load_tiles(&next, values + i * 256, cols + i * 256, kWide ? 256 : 64, kWide ? eights - i : 4);
    if (i > 0 || rest > 0) multiply_batch(batch, x, sums);
    batch = next;
  }
  if (columns > 0) multiply_batch(batch, x, sums);
}

// A warp computes the 32 rows of a slice, or, where kWide, eight of them.
template <bool kWide>
__device__ __forceinline__ void compute_slice(uint32_t slice, uint32_t group, uint32_t num_medium,
                                              const uint32_t* __restrict__ medium_rows,
                                              const uint32_t* __restrict__ first_columns,
                                              const IndexT* __restrict__ tile_cols,
                                              const ValueT* __restrict__ tile_values, const XT* __restrict__ x,
                                              YT* __restrict__ y, AccumT alpha, AccumT beta) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t begin = __ldg(first_columns + slice);
  const uint32_t end = skips_product(alpha) ? begin : __ldg(first_columns + slice + 1);
  const uint32_t place = 32 * slice + 8 * group + lane;
  const bool stores = place < num_medium && (!kWide || lane < 8);
  const uint32_t row = stores ? __ldcs(medium_rows + place) : 0;
  TileSums sums[4] = {};
  slice_product<kWide>(begin, end - begin, group, tile_cols, tile_values, x, sums);
  const int from = lane_of_tile_row(lane % 8);
  double sum = 0;
  if (kWide) {
    sum = (tile_row_sum(sums[0]) + tile_row_sum(sums[2])) + (tile_row_sum(sums[1]) + tile_row_sum(sums[3]));
    sum = __shfl_sync(kAllLanes, sum, from);
  } else {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const double of_group = __shfl_sync(kAllLanes, tile_row_sum(sums[u]), from);
      if (lane / 8 == u) sum = of_group;
    }
  }
  if (stores) store_scaled(y, row, AccumT(sum), alpha, beta);
}

// The product of consecutive nonzeros with x, summed by a warp in 32 at a time; every lane returns the sum.
__device__ __forceinline__ double part_product(OffsetT begin, OffsetT end, const IndexT* __restrict__ col_indices,
                                               const ValueT* __restrict__ values, const XT* __restrict__ x) {
  const uint32_t lane = threadIdx.x % 32;
  TileSums sums[2] = {};
  for (OffsetT base = begin; base < end; base += 256) {
    IndexT cols[8];
    ValueT entries[8];
    double gathers[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) {
      const OffsetT k = base + u * 32 + lane;
      cols[u] = k < end ? __ldcs(col_indices + k) : kNoColumn;
      entries[u] = k < end ? __ldcs(values + k) : ValueT(0);
    }
#pragma unroll
    for (int u = 0; u < 8; ++u) gathers[u] = gathered(cols[u], x);
#pragma unroll
    for (int u = 0; u < 8; ++u) add_tile_product(double(entries[u]), gathers[u], sums + u % 2);
  }
  const bool has_row = lane == lane_of_tile_row(lane / 4);
  return group_sum<32>(has_row ? tile_row_sum(sums[0]) + tile_row_sum(sums[1]) : 0.0, kAllLanes);
}

// The sum of partial sums, which other warps have written, in a fixed order; every lane returns it.
__device__ __forceinline__ double sum_of_parts(const double* part_sums, uint32_t num_parts) {
  double sums[8] = {};
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
                                             const OffsetT* __restrict__ part_ends, double* part_sums,
                                             uint32_t* finished_parts, const IndexT* __restrict__ col_indices,
                                             const ValueT* __restrict__ values, const XT* __restrict__ x,
                                             YT* __restrict__ y, AccumT alpha, AccumT beta) {
  const uint32_t i = __ldg(part_rows + part);
  const OffsetT begin = __ldg(part_ends + 2 * part);
  const OffsetT end = skips_product(alpha) ? begin : __ldg(part_ends + 2 * part + 1);
  const uint32_t first = __ldg(first_parts + i);
  const uint32_t num_parts = __ldg(first_parts + i + 1) - first;
  const uint32_t row = __ldg(long_rows + i);
  double sum = part_product(begin, end, col_indices, values, x);
  if (num_parts > 1) {
    uint32_t finished = 0;
    if (threadIdx.x % 32 == 0) {
      part_sums[part] = sum;
      finished = arrive(finished_parts + i);
    }
    if (__shfl_sync(kAllLanes, finished, 0) != num_parts - 1) return;
    __threadfence();
    sum = sum_of_parts(part_sums + first, num_parts);
    if (threadIdx.x % 32 == 0) finished_parts[i] = 0;
  }
  if (threadIdx.x % 32 == 0) store_scaled(y, row, AccumT(sum), alpha, beta);
}

// The rows of one length that a thread computes: about eight nonzeros are in flight together.
__device__ __forceinline__ constexpr uint32_t short_rows_per_thread(int length) {
  return length > 2 ? 2 : length == 2 ? 4 : 8;
}

// Where the rows of one length are, and which block of theirs this one is.
struct ShortRows {
  uint32_t block;
  const uint32_t* rows;
  const IndexT* cols;
  const ValueT* values;
};

// Computes the block's rows of kLength entries. False where the block belongs to shorter rows: `at` then says where
// these are.
template <int kLength>
__device__ __forceinline__ bool computes_short(uint32_t num_rows, ShortRows* at, const XT* __restrict__ x,
                                               YT* __restrict__ y, AccumT alpha, AccumT beta) {
  constexpr uint32_t kRows = short_rows_per_thread(kLength);
  constexpr uint32_t kRowsPerBlock = kRows * kThreadsPerBlock;
  const uint32_t num_blocks = (num_rows + kRowsPerBlock - 1) / kRowsPerBlock;
  if (at->block >= num_blocks) {
    at->block -= num_blocks;
    at->rows += num_rows;
    at->cols += uint64_t(kLength) * num_rows;
    at->values += uint64_t(kLength) * num_rows;
    return false;
  }
  const bool skips = skips_product(alpha);
  uint32_t rows[kRows];
  IndexT cols[kRows][kLength + 1];
  ValueT values[kRows][kLength + 1];
#pragma unroll
  for (int u = 0; u < kRows; ++u) {
    const uint32_t place = at->block * kRowsPerBlock + u * kThreadsPerBlock + threadIdx.x;
    if (place < num_rows) rows[u] = __ldcs(at->rows + place);
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      const bool loads = place < num_rows && !skips;
      cols[u][k] = loads ? __ldcs(at->cols + uint64_t(k) * num_rows + place) : kNoColumn;
      values[u][k] = loads ? __ldcs(at->values + uint64_t(k) * num_rows + place) : ValueT(0);
    }
  }
  double sums[kRows] = {};
#pragma unroll
  for (int u = 0; u < kRows; ++u) {
#pragma unroll
    for (int k = 0; k < kLength; ++k) sums[u] = multiply_add(double(values[u][k]), gathered(cols[u][k], x), sums[u]);
  }
#pragma unroll
  for (int u = 0; u < kRows; ++u) {
    const uint32_t place = at->block * kRowsPerBlock + u * kThreadsPerBlock + threadIdx.x;
    if (place < num_rows) store_scaled(y, rows[u], AccumT(sums[u]), alpha, beta);
  }
  return true;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kResidentBlocks)
spmv_dasp(const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values, const XT* __restrict__ x,
          YT* __restrict__ y, AccumT alpha, AccumT beta, const uint32_t* __restrict__ row_order, uint32_t num_parts,
          const uint32_t* __restrict__ first_parts, const uint32_t* __restrict__ part_rows,
          const OffsetT* __restrict__ part_ends, double* part_sums, uint32_t* finished_parts, uint32_t num_long,
          uint32_t num_wide, uint32_t num_narrow, const uint32_t* __restrict__ first_columns,
          const IndexT* __restrict__ tile_cols, const ValueT* __restrict__ tile_values, uint64_t short_begin,
          uint32_t rows_4, uint32_t rows_3, uint32_t rows_2, uint32_t rows_1, uint32_t rows_0) {
  uint32_t block = blockIdx.x;
  const uint32_t warp = threadIdx.x / 32;
  const uint32_t part_blocks = (num_parts + kWarps - 1) / kWarps;
  if (block < part_blocks) {
    const uint32_t part = block * kWarps + warp;
    if (part >= num_parts) return;
    compute_part(part, row_order, first_parts, part_rows, part_ends, part_sums, finished_parts, col_indices, values, x,
                 y, alpha, beta);
    return;
  }
  block -= part_blocks;
  row_order += num_long;
  const uint32_t num_medium = num_wide + num_narrow;
  const uint32_t wide_slices = (num_wide + 31) / 32;
  const uint32_t wide_blocks = (4 * wide_slices + kWarps - 1) / kWarps;
  if (block < wide_blocks) {
    const uint32_t group = block * kWarps + warp;
    if (group >= 4 * wide_slices) return;
    compute_slice<true>(group / 4, group % 4, num_medium, row_order, first_columns, tile_cols, tile_values, x, y, alpha,
                        beta);
    return;
  }
  block -= wide_blocks;
  // The last wide slice takes narrow rows too, so there may be one slice fewer than blocks are for.
  const uint32_t narrow_blocks = ((num_narrow + 31) / 32 + kWarps - 1) / kWarps;
  if (block < narrow_blocks) {
    const uint32_t slice = wide_slices + block * kWarps + warp;
    if (slice >= (num_medium + 31) / 32) return;
    compute_slice<false>(slice, 0, num_medium, row_order, first_columns, tile_cols, tile_values, x, y, alpha, beta);
    return;
  }
  ShortRows at = {block - narrow_blocks, row_order + num_medium, tile_cols + short_begin, tile_values + short_begin};
  if (computes_short<4>(rows_4, &at, x, y, alpha, beta)) return;
  if (computes_short<3>(rows_3, &at, x, y, alpha, beta)) return;
  if (computes_short<2>(rows_2, &at, x, y, alpha, beta)) return;
  if (computes_short<1>(rows_1, &at, x, y, alpha, beta)) return;
  computes_short<0>(rows_0, &at, x, y, alpha, beta);
}
