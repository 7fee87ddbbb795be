// bsr: dense blocks, compressed by rows of blocks; a group of lanes a row of blocks, a lane some values of a row or a column of a block.
//
// Formula:   y[r] <- alpha * sum over the blocks b of row r's row of blocks, over its columns c, of b[r % block_rows][c] * x[first column of b + c] + beta * y[r]
// Paper:     Choi, Singh and Vuduc 2010 (Model-driven autotuning of sparse matrix-vector multiply on GPUs: blocked CSR)
// Suits:     several unknowns a node: finite elements, fluids, circuits in blocks, block_rows the unknowns
// Suffers:   entries that do not come in blocks: each brings a block, which is refused from 8 slots a nonzero on; one row of blocks much longer than the others (a warp or less takes it); values that change (they are copied when a plan is made)
// Bytes:     slots * value + blocks * index + rows of blocks * offset + rows * y + x once, where slots are the blocks times their places; keeps its own values and columns
// Guarantee: bit-reproducible; a row is one chain a lane and a fixed tree over lanes; fill within A multiplies x, so that x must be finite wherever a stored block passes
// Launch:    groups take equal shares of the rows of blocks, a row after the other; a group is a warp, or about 8 lanes where rows of blocks have few blocks on average; one pass; entries are sorted, blocks found, counted and filled on the device, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kBlockRows = 3;
constexpr int kBlockCols = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/x_packets.cuh"
#include "prelude/slots.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#include "prelude/search.cuh"
#endif

constexpr int kCols = kBlockCols == 0 ? kBlockRows : kBlockCols;
constexpr int kPlaces = kBlockRows * kCols;
// No load brings several values of a row of a block whose columns are odd in number. The values of a row of blocks then lie
// by rows of the matrix, in each by blocks: a lane takes a column of a block, with a load for each of its rows and one of x,
// and what lanes load lies together.
constexpr bool kByRows = kCols % 2 == 1;

// ---- The conversion ----

// pairs <- column and place of every nonzero.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_entries(uint32_t nnz, const IndexT* __restrict__ col_indices, SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < nnz) pairs[i] = {uint32_t(col_indices[i]), i};
}

// The columns of pairs <- rows of blocks.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_rows(uint32_t num_rows, uint32_t nnz, const OffsetT* __restrict__ row_offsets, SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const uint32_t place = pairs[i].y;
  pairs[i].x = first_that(num_rows, [=](uint32_t row) { return row_offsets[row + 1] > place; }) / kBlockRows;
}

// The nonzeros by rows of blocks, in each by column, in each as they are in A: those of a block lie together, and so do
// those of a position.
struct SortedEntries {
  const OffsetT* row_offsets;
  const IndexT* col_indices;
  const SortPair* pairs;  // row of blocks and place in A

  __device__ __forceinline__ uint32_t col(uint32_t i) const { return __ldg(col_indices + pairs[i].y); }
  // Where the row of blocks of entry i begins.
  __device__ __forceinline__ uint32_t begin(uint32_t i) const { return __ldg(row_offsets + pairs[i].x * kBlockRows); }
  __device__ __forceinline__ bool is_head(uint32_t i) const {
    return i == begin(i) || col(i - 1) / kCols != col(i) / kCols;
  }
  __device__ __forceinline__ uint32_t row(uint32_t i) const {
    uint32_t row = pairs[i].x * kBlockRows;
    while (__ldg(row_offsets + row + 1) <= pairs[i].y) ++row;
    return row;
  }
  // Entries of the same position before entry i, which is in this row.
  __device__ __forceinline__ uint32_t layer(uint32_t i, uint32_t row) const {
    const uint32_t first = begin(i), row_begin = __ldg(row_offsets + row), of_col = col(i);
    const auto is_of_position = [=](uint32_t k) { return col(k) == of_col && pairs[k].y >= row_begin; };
    if (i == first || !is_of_position(i - 1)) return 0;
    return i - first - first_that(i - first, [=](uint32_t k) { return col(first + k) > of_col || is_of_position(first + k); });
  }
};

struct BlockHeads {
  SortedEntries entries;
  __device__ __forceinline__ uint32_t operator()(uint64_t i) const { return entries.is_head(uint32_t(i)); }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_heads_sum_chunk(uint64_t length, const OffsetT* row_offsets, const IndexT* col_indices, const SortPair* pairs,
                         uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, BlockHeads{{row_offsets, col_indices, pairs}});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_heads_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, uint32_t* ranks, uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, ranks, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_heads_chunk(uint64_t length, const OffsetT* row_offsets, const IndexT* col_indices, const SortPair* pairs,
                     const uint64_t* partials, uint32_t* ranks) {
  await_stream();
  scan_chunk(length, partials, ranks, BlockHeads{{row_offsets, col_indices, pairs}});
}

// Entry i lies in block number ranks[i + 1] - 1 of those that hold an entry: ranks counts the heads before i.
// more_layers <- how often each of these is stored again.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_layers(uint32_t nnz, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                const SortPair* __restrict__ pairs, const uint32_t* __restrict__ ranks, uint32_t* more_layers) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const SortedEntries entries = {row_offsets, col_indices, pairs};
  const uint32_t layer = entries.layer(i, entries.row(i));
  if (layer > 0) atomicMax(more_layers + ranks[i + 1] - 1, layer);
}

struct LayersOf {
  const uint32_t* more_layers;
  __device__ __forceinline__ uint32_t operator()(uint64_t rank) const { return 1 + more_layers[rank]; }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_blocks_sum_chunk(uint64_t length, const uint32_t* more_layers, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, LayersOf{more_layers});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_blocks_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, uint32_t* first_blocks,
                         uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, first_blocks, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_blocks_chunk(uint64_t length, const uint32_t* more_layers, const uint64_t* partials, uint32_t* first_blocks) {
  await_stream();
  scan_chunk(length, partials, first_blocks, LayersOf{more_layers});
}

// block_offsets <- the first block of each row of blocks, and the end.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_offsets(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const uint32_t* __restrict__ ranks,
                 const uint32_t* __restrict__ first_blocks, OffsetT* __restrict__ block_offsets) {
  await_stream();
  const uint32_t block_row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (block_row > (num_rows + kBlockRows - 1) / kBlockRows) return;
  block_offsets[block_row] = first_blocks[ranks[row_offsets[min(block_row * kBlockRows, num_rows)]]];
}

// A thread a nonzero; the first of a block writes its column, for every layer.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bsr_convert(uint32_t nnz, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                 const ValueT* __restrict__ values, const SortPair* __restrict__ pairs,
                 const uint32_t* __restrict__ ranks, const uint32_t* __restrict__ first_blocks,
                 const OffsetT* __restrict__ block_offsets, IndexT* __restrict__ block_cols,
                 ValueT* __restrict__ block_values) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const SortedEntries entries = {row_offsets, col_indices, pairs};
  const uint32_t rank = ranks[i + 1] - 1, col = entries.col(i), row = entries.row(i);
  if (rank == ranks[i]) {
    for (uint32_t block = first_blocks[rank]; block < first_blocks[rank + 1]; ++block) {
      block_cols[block] = col / kCols;
    }
  }
  const uint64_t block = first_blocks[rank] + entries.layer(i, row);
  uint64_t row_place = block * kBlockRows + row % kBlockRows;
  if constexpr (kByRows) {
    const uint64_t begin = block_offsets[row / kBlockRows], end = block_offsets[row / kBlockRows + 1];
    row_place = begin * kBlockRows + (end - begin) * (row % kBlockRows) + (block - begin);
  }
  block_values[row_place * kCols + col % kCols] = values[pairs[i].y];
}

// ---- The product ----

__device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }
__device__ constexpr int larger(int a, int b) { return a < b ? b : a; }
__device__ constexpr int power_of_two_in(int n) { return n & -n; }
// Lanes of a warp that have work where so many share a block.
__device__ constexpr int lanes_used(int lanes) { return 32 / lanes * lanes; }

// Values of a load. A lane has those of one load, so that neighbours read what lies together, unless that leaves many
// lanes idle; then it has those of a row of the block.
constexpr int kPerLoad = smaller(power_of_two_in(kCols), 16 / sizeof(ValueT));
constexpr int kPerLane = kByRows || lanes_used(kPlaces / kPerLoad) >= 27 ? kPerLoad : kCols;
constexpr int kLanesPerRow = kCols / kPerLane;
constexpr int kLanesPerBlock = kByRows ? kCols : kBlockRows * kLanesPerRow;
// Blocks that a group reads at a time: a group is a warp where rows of blocks are long, else about 8 lanes.
constexpr int kLongBlocks = 32 / kLanesPerBlock;
constexpr int kShortBlocks = larger(1, 8 / kLanesPerBlock);
// Values that a lane has under way, and as many entries of x: at most so many, or of so many bytes; fewer where the part of a
// lane is 16 bytes, one load or two, as measured.
constexpr int kAhead = 16;
constexpr int kBytesAhead = kPerLane * sizeof(ValueT) == 16 ? 64 : 96;

// ---- Blocks with an even number of columns ----

// The part of a lane in the product of a row of blocks; kWhole: x is in packets and all columns of all blocks are there. The
// loads of kSteps blocks are in flight together.
template <int kBlocks, int kSteps, bool kWhole>
__device__ __forceinline__ AccumT lane_product(OffsetT begin, OffsetT end, uint32_t lane,
                                               const IndexT* __restrict__ block_cols,
                                               const ValueT* __restrict__ block_values, const XT* __restrict__ x,
                                               uint64_t num_cols) {
  const uint32_t place = lane % kLanesPerBlock * kPerLane;
  const uint32_t first_col = place % kCols;
  AccumT sum = 0;
  for (OffsetT block = begin + lane / kLanesPerBlock; block < end; block += kSteps * kBlocks) {
    const ValueT* from = block_values + uint64_t(block) * kPlaces + place;
    // What is behind the last block is tested anew where it matters: kept tests would take registers.
    IndexT cols[kSteps];
    ValueT values[kSteps][kPerLane] = {};
    XT entries[kSteps][kPerLane] = {};
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      cols[s] = end - block > OffsetT(s * kBlocks) ? __ldcs(block_cols + block + s * kBlocks) : kNoColumn;
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int i = 0; i < kPerLane; i += kPerLoad) {
        if (end - block > OffsetT(s * kBlocks)) {
          load_streaming<kPerLoad>(values[s] + i, from + s * kBlocks * kPlaces + i);
        }
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      if (cols[s] == kNoColumn) continue;
      const uint64_t first = uint64_t(cols[s]) * kCols + first_col;
      if constexpr (kWhole) {
        load_x<kPerLane, true>(entries[s], x + first);
      } else {
#pragma unroll
        for (int i = 0; i < kPerLane; ++i) entries[s][i] = first + i < num_cols ? __ldg(x + first + i) : XT(0);
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        sum = multiply_add(AccumT(values[s][i]), AccumT(entries[s][i]), sum);
      }
    }
  }
  return sum;
}

// The sum of kCount lanes that lie kStride apart, in the first of them: a fixed tree. `index` is the lane's among them.
template <int kCount, int kStride>
__device__ __forceinline__ AccumT strided_sum(AccumT sum, uint32_t index, uint32_t mask) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    if (offset >= kCount) continue;
    const bool has_other = index + offset < kCount;
    const AccumT other = __shfl_sync(mask, sum, threadIdx.x % 32 + (has_other ? offset * kStride : 0));
    if (has_other) sum += other;
  }
  return sum;
}

// Groups that read kBlocks blocks at a time; one has the loads of about kBlocksAhead blocks under way.
template <int kBlocks, int kBlocksAhead>
__device__ __forceinline__ void multiply_block_rows(uint32_t num_rows, uint64_t num_cols,
                                                    const OffsetT* __restrict__ block_offsets,
                                                    const IndexT* __restrict__ block_cols,
                                                    const ValueT* __restrict__ block_values, const XT* __restrict__ x,
                                                    YT* __restrict__ y, AccumT alpha, BetaT beta) {
  constexpr uint32_t kLanes = kBlocks * kLanesPerBlock, kGroups = 32 / kLanes;
  constexpr int kLaneAhead = smaller(kAhead, kBytesAhead / larger(sizeof(ValueT), sizeof(XT)));
  constexpr int kSteps = larger(1, smaller(kLaneAhead / kPerLane, kBlocksAhead / kBlocks));
  const uint32_t warp = (blockIdx.x * kThreadsPerBlock + threadIdx.x) / 32;
  const uint32_t group = threadIdx.x % 32 / kLanes, lane = threadIdx.x % 32 % kLanes;
  if (group >= kGroups) return;
  const uint32_t mask = (0xffffffffu >> (32 - kLanes)) << (group * kLanes);
  const uint32_t num_block_rows = (num_rows + kBlockRows - 1) / kBlockRows;
  const bool is_whole = num_cols % kCols == 0 && is_in_packets<kPerLane>(x);
  // Groups take equal shares of the rows of blocks.
  const uint32_t num_groups = gridDim.x * (kThreadsPerBlock / 32) * kGroups;
  const uint32_t rows_per_group = (num_block_rows + num_groups - 1) / num_groups;
  const uint32_t first = min((warp * kGroups + group) * rows_per_group, num_block_rows);
  const uint32_t last = min(first + rows_per_group, num_block_rows);
  OffsetT begin = __ldg(block_offsets + first), next = __ldg(block_offsets + min(first + 1, num_block_rows));
#pragma unroll 1
  for (uint32_t block_row = first; block_row < last; ++block_row) {
    // On its way while this row is multiplied.
    const OffsetT after_next = __ldg(block_offsets + min(block_row + 2, num_block_rows));
    const OffsetT end = skips_product(alpha) ? begin : next;
    AccumT sum = is_whole
                     ? lane_product<kBlocks, kSteps, true>(begin, end, lane, block_cols, block_values, x, num_cols)
                     : lane_product<kBlocks, kSteps, false>(begin, end, lane, block_cols, block_values, x, num_cols);
    __syncwarp(mask);
    sum = strided_sum<kBlocks, kLanesPerBlock>(sum, lane / kLanesPerBlock, mask);
    sum = strided_sum<kLanesPerRow, 1>(sum, lane % kLanesPerRow, mask);
    const uint32_t row = block_row * kBlockRows + lane / kLanesPerRow;
    if (lane < kLanesPerBlock && lane % kLanesPerRow == 0 && row < num_rows) store_scaled(y, row, sum, alpha, beta);
    begin = next;
    next = after_next;
  }
}

// ---- Blocks with an odd number of columns ----

// Bounds of their own: the compiler saves registers otherwise, and waits for loads before it begins others.
constexpr int kMinBlocks = kByRows ? 1 : 0;

// What a lane reads of a row of blocks: the column of its first block, and the values of its own column there.
struct LaneColumn {
  const IndexT* __restrict__ cols;
  const ValueT* __restrict__ values;
  uint32_t row_stride;  // values of a row

  __device__ __forceinline__ void advance(int blocks) {
    cols += blocks;
    values += blocks * kCols;
  }
};

// x for a lane; beyond its last entry, where only fill is, that one.
struct LaneEntries {
  const XT* __restrict__ x;  // from the lane's column of the first block on
  const XT* last;            // the lane's in the last block
  uint32_t last_block_col;

  __device__ __forceinline__ LaneEntries(const XT* x, uint64_t num_cols, uint32_t col) : x(x + col) {
    last_block_col = uint32_t((num_cols - 1) / kCols);
    const uint64_t of_last = uint64_t(last_block_col) * kCols + col;
    last = x + (of_last < num_cols ? of_last : num_cols - 1);
  }
  // kWhole: all columns of all blocks are there.
  template <bool kWhole>
  __device__ __forceinline__ XT of_block(IndexT block_col) const {
    const char* entry = reinterpret_cast<const char*>(x) + uint64_t(block_col) * (kCols * sizeof(XT));
    return __ldg(kWhole || block_col != last_block_col ? reinterpret_cast<const XT*>(entry) : last);
  }
};

// Adds the products of a lane's columns of kSteps blocks, kBlocks apart, to the sums of their rows. The first kSure blocks
// are there, the others as far as `left` says, from the lane's first on. All loads are in flight together.
template <int kBlocks, int kSteps, int kSure, bool kWhole>
__device__ __forceinline__ void add_columns(AccumT (&sums)[kBlockRows], const LaneColumn& from, int left,
                                            const LaneEntries& x) {
  const auto is_there = [=](int s) { return s < kSure || left > s * kBlocks; };
  IndexT cols[kSteps];
  ValueT values[kSteps][kBlockRows];
  XT entries[kSteps];
  // Cleared: kept from turn to turn, they would take registers.
#pragma unroll
  for (int s = kSure; s < kSteps; ++s) {
    entries[s] = XT(0);
#pragma unroll
    for (int r = 0; r < kBlockRows; ++r) values[s][r] = ValueT(0);
  }
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    if (is_there(s)) cols[s] = __ldcs(from.cols + s * kBlocks);
  }
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
#pragma unroll
    for (int r = 0; r < kBlockRows; ++r) {
      const ValueT* __restrict__ row = from.values + uint64_t(from.row_stride) * r;
      if (is_there(s)) values[s][r] = __ldcs(row + s * kBlocks * kCols);
    }
  }
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
    if (is_there(s)) entries[s] = x.of_block<kWhole>(cols[s]);
  }
#pragma unroll
  for (int s = 0; s < kSteps; ++s) {
#pragma unroll
    for (int r = 0; r < kBlockRows; ++r) {
      sums[r] = multiply_add(AccumT(values[s][r]), AccumT(entries[s]), sums[r]);
    }
  }
}

// What is left of at most kSteps steps of a warp, of which the last may have fewer blocks: of no other is it asked what is
// there.
template <int kBlocks, int kSteps, bool kWhole>
__device__ __forceinline__ void add_last_columns(AccumT (&sums)[kBlockRows], const LaneColumn& from,
                                                 uint32_t left_of_warp, int left, const LaneEntries& x) {
  if constexpr (kSteps > 0) {
    if (left_of_warp > (kSteps - 1) * kBlocks) {
      add_columns<kBlocks, kSteps, kSteps - 1, kWhole>(sums, from, left, x);
    } else {
      add_last_columns<kBlocks, kSteps - 1, kWhole>(sums, from, left_of_warp, left, x);
    }
  }
}

// What lane `col` of a block hands on: its sum of the row, from `first` on, that the lane kAhead columns before it is to have.
template <int kAhead>
__device__ __forceinline__ AccumT sum_for(const AccumT (&sums)[kBlockRows], int first, uint32_t col) {
  AccumT sum = 0;
#pragma unroll
  for (int c = 0; c < kCols; ++c) {
    const int row = first + (c + kCols - kAhead) % kCols;
    if (c == 0 || col == c) sum = row < kBlockRows ? sums[row] : AccumT(0);
  }
  return sum;
}

// Over the lanes of a group, in the lanes of its first block: the sum of row first + col, in a fixed order.
template <int kBlocks>
__device__ __forceinline__ AccumT row_sum(const AccumT (&sums)[kBlockRows], int first, uint32_t in_group, uint32_t col) {
  static_assert(kCols == 1 || kCols == 3, "lanes of a block hand their sums to two others");
  AccumT sum = sum_for<0>(sums, first, col);
  if constexpr (kCols == 3) {
    const uint32_t next = threadIdx.x + (col == 2 ? -2 : 1), last = threadIdx.x + (col == 0 ? 2 : -1);
    sum += __shfl_sync(0xffffffffu, sum_for<1>(sums, first, col), next % 32);
    sum += __shfl_sync(0xffffffffu, sum_for<2>(sums, first, col), last % 32);
  }
  // What other lanes add up is of no use to anyone.
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    if (offset >= kBlocks) continue;
    const AccumT other = __shfl_down_sync(0xffffffffu, sum, offset * kCols);
    if (2 * offset <= kBlocks || in_group + offset < kBlocks) sum += other;
  }
  return sum;
}

// Groups that read kBlocks blocks at a time: a lane has a column of each, and a sum for each of their rows.
template <int kBlocks, bool kWhole>
__device__ __forceinline__ void multiply_columns(uint32_t num_rows, uint64_t num_cols,
                                                 const OffsetT* __restrict__ block_offsets,
                                                 const IndexT* __restrict__ block_cols,
                                                 const ValueT* __restrict__ block_values, const XT* __restrict__ x,
                                                 YT* __restrict__ y, AccumT alpha, BetaT beta) {
  constexpr uint32_t kLanes = kBlocks * kCols, kGroups = 32 / kLanes, kUsed = kGroups * kLanes;
  constexpr bool kIsWarp = kGroups == 1;
  // More steps make the compiler wait for some of a warp's loads before it begins others.
  constexpr int kLaneAhead = smaller(kAhead, kBytesAhead / larger(sizeof(ValueT), sizeof(XT)));
  constexpr int kSteps = larger(1, smaller(kIsWarp ? 3 : 4, kLaneAhead / kBlockRows));
  // Lanes that are left over do what others do, and store nothing.
  const uint32_t place = threadIdx.x % 32 < kUsed ? threadIdx.x % 32 : threadIdx.x % 32 - kCols;
  const uint32_t group = place / kLanes;
  uint32_t in_group = place % kLanes / kCols, col = place % kCols;
  const bool stores = in_group == 0 && place == threadIdx.x % 32;
  // Groups take equal shares of the rows of blocks; those of a warp go on until the first has no more.
  const uint32_t warp = (blockIdx.x * kThreadsPerBlock + threadIdx.x) / 32;
  const uint32_t num_block_rows = (num_rows + kBlockRows - 1) / kBlockRows;
  const uint32_t num_groups = gridDim.x * (kThreadsPerBlock / 32) * kGroups;
  const uint32_t share = (num_block_rows + num_groups - 1) / num_groups;
  const uint32_t first_of_warp = min(warp * kGroups * share, num_block_rows);
  const uint32_t first = min(first_of_warp + group * share, num_block_rows);
  const uint32_t last = min(first + share, num_block_rows);
  const uint32_t beyond = first + min(share, num_block_rows - first_of_warp);
  LaneEntries entries(x, num_cols, col);
  block_cols += in_group;
  block_values += in_group * kCols + col;
  // Kept, not computed anew for every row of blocks.
  asm volatile("" : "+r"(in_group), "+r"(col), "+l"(entries.x), "+l"(block_cols), "+l"(block_values));
  OffsetT begin = __ldg(block_offsets + first), next = __ldg(block_offsets + min(first + 1, last));
#pragma unroll 1
  for (uint32_t block_row = first; block_row < beyond; ++block_row) {
    // On its way while this row is multiplied.
    const OffsetT after_next = __ldg(block_offsets + min(block_row + 2, last));
    const uint32_t length = skips_product(alpha) ? 0 : next - begin;
    LaneColumn from = {block_cols + begin, block_values + uint64_t(begin) * kPlaces, length * kCols};
    int left = int(length - in_group);
    AccumT sums[kBlockRows] = {};
    if constexpr (kIsWarp) {
      uint32_t left_of_warp = length;
#pragma unroll 1
      for (; left_of_warp > kSteps * kBlocks; left_of_warp -= kSteps * kBlocks) {
        add_columns<kBlocks, kSteps, kSteps, kWhole>(sums, from, left, entries);
        from.advance(kSteps * kBlocks);
        left -= kSteps * kBlocks;
      }
      if (left_of_warp > 0) add_last_columns<kBlocks, kSteps, kWhole>(sums, from, left_of_warp, left, entries);
    } else {
#pragma unroll 1
      for (; left > 0; left -= kSteps * kBlocks) {
        add_columns<kBlocks, kSteps, 1, kWhole>(sums, from, left, entries);
        from.advance(kSteps * kBlocks);
      }
      __syncwarp();
    }
#pragma unroll
    for (int r = 0; r < kBlockRows; r += kCols) {
      const AccumT sum = row_sum<kBlocks>(sums, r, in_group, col);
      const uint32_t row = block_row * kBlockRows + r + col;
      const bool is_mine = stores && r + col < kBlockRows && (kIsWarp || block_row < last);
      if (is_mine && row < num_rows) store_scaled(y, row, sum, alpha, beta);
    }
    begin = next;
    next = after_next;
  }
}

// ---- Both ----

template <int kBlocks>
__device__ __forceinline__ void multiply(uint32_t num_rows, uint64_t num_cols,
                                         const OffsetT* __restrict__ block_offsets,
                                         const IndexT* __restrict__ block_cols,
                                         const ValueT* __restrict__ block_values, const XT* __restrict__ x,
                                         YT* __restrict__ y, AccumT alpha, BetaT beta) {
  if constexpr (!kByRows) {
    multiply_block_rows<kBlocks, 32>(num_rows, num_cols, block_offsets, block_cols, block_values, x, y, alpha, beta);
  } else if (num_cols % kCols == 0) {
    multiply_columns<kBlocks, true>(num_rows, num_cols, block_offsets, block_cols, block_values, x, y, alpha, beta);
  } else {
    multiply_columns<kBlocks, false>(num_rows, num_cols, block_offsets, block_cols, block_values, x, y, alpha, beta);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kMinBlocks)
spmv_bsr(uint32_t num_rows, uint64_t num_cols, const OffsetT* __restrict__ block_offsets,
         const IndexT* __restrict__ block_cols, const ValueT* __restrict__ block_values, const XT* __restrict__ x,
         YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  await_stream();
  multiply<kLongBlocks>(num_rows, num_cols, block_offsets, block_cols, block_values, x, y, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kMinBlocks)
spmv_bsr_short(uint32_t num_rows, uint64_t num_cols, const OffsetT* __restrict__ block_offsets,
               const IndexT* __restrict__ block_cols, const ValueT* __restrict__ block_values,
               const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  await_stream();
  multiply<kShortBlocks>(num_rows, num_cols, block_offsets, block_cols, block_values, x, y, alpha, beta);
}
