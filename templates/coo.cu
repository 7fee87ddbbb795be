// coo: a warp takes 256 entries with their rows, a lane four neighbours at a time, and sums them segment by segment.
//
// Formula:   y[r] <- alpha * sum over j with row_indices[j] = r of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Bell and Garland 2009 (COO kernel: segmented reduction); Hiranandani, III (structure x format)
// Suits:     comparing; matrices with few entries and many empty rows, where work must not depend on rows
// Suffers:   everywhere else: it reads a row with every nonzero, and a segmented sum takes five steps for 128 nonzeros
// Bytes:     nnz * (value + index + 4) + rows * y + x once, 4 an empty row, about 28 for 256 nonzeros; keeps the rows of the nonzeros
// Guarantee: bit-reproducible with reduction = 0: segments are summed in fixed trees, and a row of several tiles by the warp that brings its last piece; not with reduction = 1, where segments of 128 nonzeros are added to y as they come
// Launch:    a warp 256 nonzeros, a thread an empty row; one pass, two with reduction = 1, the first for beta * y; the rows of the nonzeros are found by three passes, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kReduction = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/block.cuh"
#include "prelude/segmented.cuh"
#include "prelude/spanning_row.cuh"
#include "prelude/stream.cuh"
#endif

// Neighbouring nonzeros of a lane, and how many times it has so many; all their loads are in flight together.
constexpr int kRun = 4;
constexpr int kRuns = 2;
constexpr uint32_t kTileNnz = 32 * kRun * kRuns;
constexpr int kWarps = kThreadsPerBlock / 32;

// A thread a row: counts[0] <- how many rows have no entries.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coo_count_empty(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint64_t* counts) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const bool is_empty = row < num_rows && row_offsets[row] == row_offsets[row + 1];
  const uint32_t empty = __ballot_sync(0xffffffffu, is_empty);
  if (threadIdx.x % 32 == 0 && empty != 0) atomicAdd(counts, uint64_t(__popc(empty)));
}

// A thread a row: lists the rows without entries, in any order. counts[1] is the end of the list so far.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coo_list_empty(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint64_t* counts,
                    uint32_t* __restrict__ empty_rows) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint32_t lane = threadIdx.x % 32;
  const bool is_empty = row < num_rows && row_offsets[row] == row_offsets[row + 1];
  const uint32_t empty = __ballot_sync(0xffffffffu, is_empty);
  uint32_t first = 0;
  if (lane == 0 && empty != 0) first = uint32_t(atomicAdd(counts + 1, uint64_t(__popc(empty))));
  first = __shfl_sync(0xffffffffu, first, 0);
  if (is_empty) empty_rows[first + __popc(empty & ((1u << lane) - 1))] = row;
}

// A thread a nonzero: finds its row.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coo_rows(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets,
              uint32_t* __restrict__ row_indices) {
  await_stream();
  const OffsetT j = blockIdx.x * OffsetT(kThreadsPerBlock) + threadIdx.x;
  if (j >= nnz) return;
  uint32_t low = 0, high = num_rows - 1;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (__ldg(row_offsets + middle + 1) > j) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  row_indices[j] = low;
}

// The entries of a lane. Behind the last nonzero its row goes on, with nothing.
template <bool kFull>
__device__ __forceinline__ void load_entries(OffsetT first, OffsetT nnz, const uint32_t* __restrict__ row_indices,
                                             const IndexT* __restrict__ col_indices,
                                             const ValueT* __restrict__ values, const XT* __restrict__ x,
                                             uint32_t (&rows)[kRuns][kRun], AccumT (&products)[kRuns][kRun]) {
  IndexT cols[kRuns][kRun];
  ValueT factors[kRuns][kRun];
#pragma unroll
  for (int i = 0; i < kRuns; ++i) {
    const OffsetT begin = first + (i * 32 + threadIdx.x % 32) * kRun;
    if constexpr (kFull) {
      load_streaming<kRun>(cols[i], col_indices + begin);
      load_streaming<kRun>(factors[i], values + begin);
      load_streaming<kRun>(rows[i], row_indices + begin);
    } else {
#pragma unroll
      for (int k = 0; k < kRun; ++k) {
        const OffsetT there = min(begin + k, nnz - 1);
        rows[i][k] = __ldcs(row_indices + there);
        cols[i][k] = __ldcs(col_indices + there);
        factors[i][k] = __ldcs(values + there);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < kRuns; ++i) {
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      const bool is_there = kFull || first + (i * 32 + threadIdx.x % 32) * kRun + k < nnz;
      products[i][k] = is_there ? AccumT(factors[i][k]) * AccumT(__ldg(x + cols[i][k])) : AccumT(0);
    }
  }
}

// Packets of the matrix are loaded where they begin at multiples of 16 bytes, as they do in memory that was allocated for them.
__device__ __forceinline__ void load_entries(OffsetT first, OffsetT nnz, const uint32_t* __restrict__ row_indices,
                                             const IndexT* __restrict__ col_indices,
                                             const ValueT* __restrict__ values, const XT* __restrict__ x,
                                             uint32_t (&rows)[kRuns][kRun], AccumT (&products)[kRuns][kRun]) {
  if (first + kTileNnz <= nnz) {
    load_entries<true>(first, nnz, row_indices, col_indices, values, x, rows, products);
  } else {
    load_entries<false>(first, nnz, row_indices, col_indices, values, x, rows, products);
  }
}

// Sums the entries of a warp's lanes by row, kRun neighbours a lane. Calls close(row, sum) for every row that ends before the
// last entry of the last lane, in the lane in which it ends; returns the sum of the row that the lane's last entry is of, up to it.
template <typename Close>
__device__ __forceinline__ AccumT sum_rows(const uint32_t (&rows)[kRun], const AccumT (&products)[kRun], Close close) {
  const int lane = threadIdx.x % 32;
  const uint32_t left = __shfl_up_sync(0xffffffffu, rows[kRun - 1], 1);
  const uint32_t right = __shfl_down_sync(0xffffffffu, rows[0], 1);
  // What the lane has of the row that it begins in, where another follows; of the row that it ends in.
  AccumT front = 0, back = products[0];
  bool begins = false;
#pragma unroll
  for (int k = 1; k < kRun; ++k) {
    if (rows[k] == rows[k - 1]) {
      back = back + products[k];
      continue;
    }
    if (begins) {
      close(rows[k - 1], back);
    } else {
      front = back;
    }
    begins = true;
    back = products[k];
  }
  const bool is_head = lane > 0 && left != rows[0];
  const uint32_t heads = __ballot_sync(0xffffffffu, begins || is_head);
  const AccumT sum = warp_segmented_sum(back, lanes_before_in_segment(heads));
  const AccumT before = __shfl_up_sync(0xffffffffu, sum, 1);
  if (begins) close(rows[0], lane == 0 || is_head ? front : before + front);
  if (lane < 31 && right != rows[kRun - 1]) close(rows[kRun - 1], sum);
  return sum;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coo(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets,
         const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values, const XT* __restrict__ x,
         YT* __restrict__ y, AlphaT alpha, BetaT beta, uint32_t num_tiles, const uint32_t* __restrict__ row_indices,
         uint32_t num_empty_rows, const uint32_t* __restrict__ empty_rows, AccumT* tails, AccumT* heads,
         PieceWordT* meetings) {
  await_stream();
  if (skips_product(alpha)) {
    const uint64_t num_threads = gridDim.x * uint64_t(kThreadsPerBlock);
    for (uint64_t row = blockIdx.x * uint64_t(kThreadsPerBlock) + threadIdx.x; row < num_rows; row += num_threads) {
      store_scaled(y, uint32_t(row), AccumT(0), alpha, beta);
    }
    return;
  }
  const uint32_t tile_blocks = (num_tiles + kWarps - 1) / kWarps;
  if (blockIdx.x >= tile_blocks) {
    const uint32_t i = (blockIdx.x - tile_blocks) * kThreadsPerBlock + threadIdx.x;
    if (i < num_empty_rows) store_scaled(y, __ldg(empty_rows + i), AccumT(0), alpha, beta);
    return;
  }
  const uint32_t tile = blockIdx.x * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (tile >= num_tiles) return;
  const OffsetT first = tile * OffsetT(kTileNnz);
  uint32_t rows[kRuns][kRun];
  AccumT products[kRuns][kRun];
  load_entries(first, nnz, row_indices, col_indices, values, x, rows, products);
  const uint32_t first_row = __shfl_sync(0xffffffffu, rows[0][0], 0);
  const bool continues = first > 0 && __ldg(row_indices + first - 1) == first_row;

  // The row that is open after a run of all lanes, with its sum so far; the sum of the row that came from the tile before.
  uint32_t open_row = first_row;
  AccumT open = 0, head = 0;
  bool has_head = false;
  const auto close = [&](uint32_t row, AccumT sum) {
    if (continues && row == first_row) {
      head = sum;
      has_head = true;
    } else {
      store_scaled(y, row, sum, alpha, beta);
    }
  };
#pragma unroll
  for (int i = 0; i < kRuns; ++i) {
    if (lane == 0) {
      if (rows[i][0] == open_row) {
        products[i][0] = open + products[i][0];
      } else {
        close(open_row, open);
      }
    }
    const AccumT sum = sum_rows(rows[i], products[i], close);
    open_row = __shfl_sync(0xffffffffu, rows[i][kRun - 1], 31);
    open = __shfl_sync(0xffffffffu, sum, 31);
  }

  const SpanningRows spanning = {tails, heads, meetings};
  const uint32_t holders = __ballot_sync(0xffffffffu, has_head);
  if (holders != 0) {
    const AccumT piece = __shfl_sync(0xffffffffu, head, __ffs(holders) - 1);
    const uint32_t first_tile = uint32_t(__ldg(row_offsets + first_row) / kTileNnz);
    add_piece<kWarps>(spanning, first_row, first_tile, tile, tile, piece, y, alpha, beta);
  }
  const uint32_t first_tile = uint32_t(__ldg(row_offsets + open_row) / kTileNnz);
  const uint32_t last_tile = uint32_t((__ldg(row_offsets + open_row + 1) - 1) / kTileNnz);
  if (first_tile / kWarps < blockIdx.x && blockIdx.x < last_tile / kWarps) {
    open = block_sum(lane == 0 ? open : AccumT(0));
    if (threadIdx.x >= 32) return;
    open = __shfl_sync(0xffffffffu, open, 0);
  }
  if (first_tile != last_tile) {
    add_piece<kWarps>(spanning, open_row, first_tile, last_tile, tile, open, y, alpha, beta);
  } else if (lane == 0) {
    store_scaled(y, open_row, open, alpha, beta);
  }
}

// A thread a row: y <- beta * y.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coo_scale(uint32_t num_rows, YT* __restrict__ y, BetaT beta) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row < num_rows) store_scaled(y, row, AccumT(0), AccumT(1), beta);
}

// y[row] += alpha * sum. y of a narrower type than sums has no such kernel.
template <bool kAtomic, typename T>
__device__ __forceinline__ void add_scaled(T* y, uint32_t row, AccumT sum, AccumT alpha) {
  if constexpr (kAlpha == Coefficient::kAny) sum = scaled(alpha, sum);
  if constexpr (kAlpha == Coefficient::kMinusOne) sum = -sum;
  if constexpr (kAtomic) atomicAdd(y + row, T(sum));
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coo_add(OffsetT nnz, const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
             const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, const uint32_t* __restrict__ row_indices) {
  await_stream();
  if (skips_product(alpha)) return;
  const OffsetT first = (blockIdx.x * OffsetT(kWarps) + threadIdx.x / 32) * kTileNnz;
  if (first >= nnz) return;
  uint32_t rows[kRuns][kRun];
  AccumT products[kRuns][kRun];
  load_entries(first, nnz, row_indices, col_indices, values, x, rows, products);
  const auto add = [&](uint32_t row, AccumT sum) { add_scaled<kReduction == 1>(y, row, sum, alpha); };
#pragma unroll
  for (int i = 0; i < kRuns; ++i) {
    if (first + i * (32 * kRun) >= nnz) return;
    const AccumT sum = sum_rows(rows[i], products[i], add);
    if (threadIdx.x % 32 == 31) add(rows[i][kRun - 1], sum);
  }
}
