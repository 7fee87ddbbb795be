// hola_t: the transposed product: equal shares of nonzeros for blocks and threads, x loaded once a row, atomics to y.
//
// Formula:   y[c] <- alpha * sum over j with col_indices[j] = c of values[j] * x[row of j] + beta * y[c]
// Paper:     Steinberger, Zayer and Seidel 2017 (Globally homogeneous, locally adaptive SpMV on the GPU), 3.4 (combine = 0; combine = 1 is ours)
// Suits:     rows of any length, giants and empty ones among them; combine = 1: nonzeros of neighbouring rows in few narrow windows of columns (stencils, FEM, banded), a column with a large part of all
// Suffers:   columns all over the matrix, with an atomic a nonzero; several columns with very many entries each, whose atomics wait for each other
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * x + cols * y, and atomics; extra: 4 a block of threads_per_block * nnz_per_thread nonzeros, with combine = 1 12 (0.006 a nonzero for 256 * 8)
// Guarantee: not bit-reproducible: products are added in the order in which they come
// Launch:    rows are assigned to blocks, and with combine = 1 ways to add, once for a structure; then y <- beta * y, a thread a column, and a pass with a block a share
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kNnzPerThread = 8;
constexpr int kCombine = 1;
constexpr int kSortColumns = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/group.cuh"
#include "prelude/shares.cuh"
#include "prelude/thread_sort.cuh"
#include "prelude/column_sums.cuh"
#include "prelude/transposed.cuh"
#endif

constexpr int kWords = kNnzPerBlock / 32;
// A column that so many of 32 neighbouring nonzeros share is summed apart: atomics to one address wait for each other.
constexpr uint32_t kHotLanes = 4;

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hola_t_assign_rows(uint32_t num_rows, uint32_t num_blocks, const OffsetT* __restrict__ row_offsets,
                        uint32_t* __restrict__ block_rows) {
  await_stream();
  assign_rows(num_rows, num_blocks, row_offsets, block_rows, [](uint32_t) {});
}

// How a block adds its products to y, and the column, if any, that many of them share.
constexpr uint32_t kAcross = 0;   // neighbouring nonzeros by neighbouring lanes
constexpr uint32_t kByRows = 1;   // neighbouring rows by neighbouring lanes
constexpr uint32_t kByRuns = 2;   // summed in shared memory first
constexpr uint32_t kNoColumn = 0xffffffffu;
struct Way {
  uint32_t order;
  uint32_t hot;
};

// Sectors of y that a warp's step touches, at most: where a lane's is not that of the lane before it.
__device__ __forceinline__ uint32_t sectors(uint32_t col, bool counts) {
  const uint32_t sector = col / (32 / sizeof(YT));
  const uint32_t before = __shfl_up_sync(kAllLanes, sector, 1);
  return __popc(__ballot_sync(kAllLanes, counts && ((threadIdx.x & 31) == 0 || before != sector)));
}

// What it would take to add by rows, a lane a row: sectors, steps of lanes.
__device__ __forceinline__ uint2 rows_cost(const Share& share, uint32_t stop, const OffsetT* __restrict__ row_offsets,
                                           const IndexT* __restrict__ col_indices) {
  constexpr int kLongest = 64;
  uint2 cost = {0, 0};
  for (uint32_t base = share.first_row + (threadIdx.x & ~31); base <= stop; base += kThreadsPerBlock) {
    const uint32_t row = base + (threadIdx.x & 31);
    const int from = row <= stop ? share.from(__ldg(row_offsets + row)) : 0;
    const int count = row <= stop ? share.to(__ldg(row_offsets + row + 1)) - from : 0;
    for (int k = 0; __ballot_sync(kAllLanes, k < count) != 0; ++k) {
      if (k == kLongest) return {1u << 24, 0};
      cost.x += sectors(k < count ? __ldg(col_indices + share.begin + from + k) : kNoColumn, k < count);
      cost.y += 32;
    }
  }
  return cost;
}

// Chooses a way for every block by what was measured on an H200, in half picoseconds of the whole device: 22 a sector,
// 9 (f32) and 13 (f64) a nonzero in shared memory, and for lanes that read their own rows the more the longer those are.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hola_t_choose_ways(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets,
                        const IndexT* __restrict__ col_indices, const uint32_t* __restrict__ block_rows, Way* ways) {
  await_stream();
  __shared__ RunTable table;
  __shared__ uint32_t most_equal, hot, across, by_rows, lane_steps;
  const Share share = load_share(nnz, block_rows);
  const uint32_t stop = min(share.next_row, num_rows - 1), rows = stop - share.first_row + 1;
  clear(table);
  if (threadIdx.x == 0) most_equal = hot = across = by_rows = lane_steps = 0;
  __syncthreads();
  uint32_t cols[kNnzPerThread], equal[kNnzPerThread];
  int failed = 0;
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    const int at = (threadIdx.x & ~31) * kNnzPerThread + i * 32 + (threadIdx.x & 31);
    cols[i] = at < share.nnz ? __ldg(col_indices + share.begin + at) : kNoColumn;
    const uint32_t peers = __match_any_sync(kAllLanes, cols[i]);
    equal[i] = cols[i] != kNoColumn ? __popc(peers) : 0;
    const uint32_t touched = sectors(cols[i], cols[i] != kNoColumn);
    if ((threadIdx.x & 31) == 0) atomicAdd(&across, touched);
    atomicMax(&most_equal, equal[i]);
    if (cols[i] != kNoColumn && !failed) failed = place_of(table, cols[i] / kRunCols) < 0;
  }
  failed = __syncthreads_or(failed);
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    if (cols[i] != kNoColumn && equal[i] == most_equal) atomicMax(&hot, cols[i]);
  }
  const uint2 cost = rows_cost(share, stop, row_offsets, col_indices);
  if ((threadIdx.x & 31) == 0) {
    atomicAdd(&by_rows, cost.x);
    atomicAdd(&lane_steps, cost.y);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  const uint32_t across_cost = 22 * across + 2 * share.nnz;
  const uint32_t rows_cost = 22 * by_rows + 2 * lane_steps + lane_steps / 4 * (share.nnz / rows);
  const uint32_t runs_cost = failed || table.count > kMostRuns ? ~0u : (sizeof(AccumT) > 4 ? 13 : 9) * share.nnz;
  Way way = {kAcross, most_equal >= kHotLanes ? hot : kNoColumn};
  if (rows_cost < across_cost && rows_cost < runs_cost) {
    way.order = kByRows;
  } else if (runs_cost < across_cost) {
    way.order = kByRuns;
  }
  ways[blockIdx.x] = way;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hola_t_scale(uint32_t num_cols, YT* __restrict__ y, BetaT beta) {
  await_stream();
  scale_y(num_cols, y, beta);
}

// A bit for every nonzero with which a row begins in the block, and there the row's entry of x.
__device__ __forceinline__ void find_rows(const Share& share, uint32_t stop, const OffsetT* __restrict__ row_offsets,
                                          const XT* __restrict__ x, uint32_t* starts, AccumT* entries) {
  constexpr int kAtOnce = 4;
#pragma unroll 1
  for (uint32_t base = share.first_row + threadIdx.x; base <= stop; base += kAtOnce * kThreadsPerBlock) {
    OffsetT begins[kAtOnce], ends[kAtOnce];
    XT loaded[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const uint32_t row = base + i * kThreadsPerBlock;
      begins[i] = row <= stop ? __ldg(row_offsets + row) : 0;
      ends[i] = row <= stop ? __ldg(row_offsets + row + 1) : 0;
      loaded[i] = row <= stop ? __ldg(x + row) : XT(0);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int from = share.from(begins[i]);
      if (base + i * kThreadsPerBlock > stop || from >= share.to(ends[i])) continue;
      atomicOr(starts + from / 32, 1u << from % 32);
      entries[from] = AccumT(loaded[i]);
    }
  }
}

// The last row that begins before a word. Word 0 always has one. Called by whole warps.
__device__ __forceinline__ int start_before(const uint32_t* starts, int word) {
  int found = 0;
#pragma unroll
  for (int base = 0; base < kWords; base += 32) {
    const int at = base + (threadIdx.x & 31);
    const uint32_t some = __ballot_sync(kAllLanes, at < kWords && starts[at] != 0);
    const int bits = word - base;
    const uint32_t below = bits >= 32 ? some : bits > 0 ? some & ((1u << bits) - 1) : 0;
    if (below != 0) found = base + 31 - __clz(below);
  }
  return found * 32 + 31 - __clz(starts[found]);
}

// Neighbouring nonzeros for the lanes of a warp, so that neighbouring columns meet in one request.
__device__ __forceinline__ void add_across(const Share& share, const uint32_t* starts, const AccumT* entries,
                                           const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                                           YT* y, AccumT alpha, uint32_t hot) {
  const int lane = threadIdx.x & 31, first = (threadIdx.x & ~31) * kNnzPerThread;
  uint32_t cols[kNnzPerThread];
  ValueT loaded[kNnzPerThread];
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    const int at = first + i * 32 + lane;
    cols[i] = at < share.nnz ? __ldcs(col_indices + share.begin + at) : kNoColumn;
    loaded[i] = at < share.nnz ? __ldcs(values + share.begin + at) : ValueT(0);
  }
  __syncthreads();
  int before = start_before(starts, first / 32);
  AccumT hot_sum = 0;
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    const uint32_t word = starts[first / 32 + i], mine = word & ((2u << lane) - 1);
    const int start = mine != 0 ? first + i * 32 + 31 - __clz(mine) : before;
    if (word != 0) before = first + i * 32 + 31 - __clz(word);
    if (cols[i] == kNoColumn) continue;
    const AccumT product = AccumT(loaded[i]) * entries[start];
    if (cols[i] == hot) {
      hot_sum += product;
    } else {
      add_scaled(y, cols[i], product, alpha);
    }
  }
  if (hot == kNoColumn) return;
  hot_sum = group_sum<32>(hot_sum, kAllLanes);
  if (lane == 0 && hot_sum != AccumT(0)) add_scaled(y, hot, hot_sum, alpha);
}

// Neighbouring rows for the lanes of a warp: where these are alike but for a shift, so are their columns.
__device__ __forceinline__ void add_by_rows(const Share& share, uint32_t stop, const OffsetT* __restrict__ row_offsets,
                                            const IndexT* __restrict__ col_indices,
                                            const ValueT* __restrict__ values, const XT* __restrict__ x, YT* y,
                                            AccumT alpha) {
  for (uint32_t row = share.first_row + threadIdx.x; row <= stop; row += kThreadsPerBlock) {
    const OffsetT begin = share.begin + share.from(__ldg(row_offsets + row));
    const OffsetT end = share.begin + share.to(__ldg(row_offsets + row + 1));
    if (begin >= end) continue;
    const AccumT entry = AccumT(__ldg(x + row));
    for (OffsetT j = begin; j < end; ++j) {
      add_scaled(y, __ldg(col_indices + j), AccumT(__ldg(values + j)) * entry, alpha);
    }
  }
}

// kNnzPerThread consecutive nonzeros a thread, multiplied; columns past the end of the share are kNoColumn.
__device__ __forceinline__ void multiply_along(const Share& share, const uint32_t* starts, const AccumT* entries,
                                               const IndexT* __restrict__ col_indices,
                                               const ValueT* __restrict__ values, uint32_t (&cols)[kNnzPerThread],
                                               AccumT (&products)[kNnzPerThread]) {
  const int first = threadIdx.x * kNnzPerThread;
  ValueT loaded[kNnzPerThread];
  if (share.nnz == kNnzPerBlock) {
    load_streaming<kNnzPerThread>(cols, col_indices + share.begin + first);
    load_streaming<kNnzPerThread, true>(loaded, values + share.begin + first);
  } else {
#pragma unroll
    for (int i = 0; i < kNnzPerThread; ++i) {
      const bool inside = first + i < share.nnz;
      cols[i] = inside ? __ldcs(col_indices + share.begin + first + i) : kNoColumn;
      loaded[i] = inside ? __ldcs(values + share.begin + first + i) : ValueT(0);
    }
  }
  __syncthreads();
  const uint32_t word = starts[first / 32], mine = word & ((2u << first % 32) - 1);
  const int before = start_before(starts, first / 32);
  AccumT entry = entries[mine != 0 ? (first & ~31) + 31 - __clz(mine) : before];
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    if (i > 0 && (word >> (first % 32 + i) & 1)) entry = entries[first + i];
    products[i] = AccumT(loaded[i]) * entry;
  }
}

// Equal columns of a thread are added before the atomic.
__device__ __forceinline__ void add_along(uint32_t (&cols)[kNnzPerThread], AccumT (&products)[kNnzPerThread], YT* y,
                                          AccumT alpha) {
  if constexpr (kSortColumns) sort_thread(cols, products);
  AccumT sum = 0;
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    sum += products[i];
    if (i + 1 < kNnzPerThread && cols[i] == cols[i + 1]) continue;
    if (cols[i] != kNoColumn) add_scaled(y, cols[i], sum, alpha);
    sum = 0;
  }
}

// Columns are summed in shared memory; then eight lanes bring a run of them.
__device__ __forceinline__ void add_by_runs(const uint32_t (&cols)[kNnzPerThread],
                                            const AccumT (&products)[kNnzPerThread], RunTable& table, AccumT* sums,
                                            YT* y, AccumT alpha) {
  for (int i = threadIdx.x; i < kRuns * kRunCols; i += kThreadsPerBlock) sums[i] = 0;
  __syncthreads();
  uint32_t run = kNoRun;
  int place = -1;
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    if (cols[i] == kNoColumn) continue;
    if (cols[i] / kRunCols != run) {
      run = cols[i] / kRunCols;
      place = place_of(table, run);
    }
    if (place >= 0) {
      atomicAdd(sums + place * kRunCols + cols[i] % kRunCols, products[i]);
    } else {
      add_scaled(y, cols[i], products[i], alpha);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x / kRunCols; i < table.count; i += kThreadsPerBlock / kRunCols) {
    const int at = table.places[i];
    const AccumT sum = sums[at * kRunCols + threadIdx.x % kRunCols];
    if (sum != AccumT(0)) add_scaled(y, table.tags[at] * kRunCols + threadIdx.x % kRunCols, sum, alpha);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hola_t(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets,
            const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values, const XT* __restrict__ x,
            YT* __restrict__ y, AlphaT alpha, const uint32_t* __restrict__ block_rows,
            const Way* __restrict__ ways) {
  await_stream();
  if (skips_product(alpha)) return;
  // Entries of x at first, then sums of columns.
  __shared__ AccumT room[kCombine ? kRuns * kRunCols : kNnzPerBlock];
  __shared__ uint32_t starts[kWords];
  __shared__ RunTable table;
  const Share share = load_share(nnz, block_rows);
  const uint32_t stop = min(share.next_row, num_rows - 1);
  const Way way = kCombine ? ways[blockIdx.x] : Way{kAcross, kNoColumn};
  if (way.order == kByRows) return add_by_rows(share, stop, row_offsets, col_indices, values, x, y, alpha);
  if (threadIdx.x < kWords) starts[threadIdx.x] = 0;
  if (way.order == kByRuns) clear(table);
  __syncthreads();
  find_rows(share, stop, row_offsets, x, starts, room);

  if (kCombine && way.order == kAcross) {
    return add_across(share, starts, room, col_indices, values, y, alpha, way.hot);
  }
  uint32_t cols[kNnzPerThread];
  AccumT products[kNnzPerThread];
  multiply_along(share, starts, room, col_indices, values, cols, products);
  if constexpr (kCombine) {
    __syncthreads();
    add_by_runs(cols, products, table, room, y, alpha);
  } else {
    add_along(cols, products, y, alpha);
  }
}
