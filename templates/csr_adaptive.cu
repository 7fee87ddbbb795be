// csr_adaptive: a block computes many short rows through shared memory, a row with each warp or a group of 16, eight or four lanes, one long row, or a part of a very long one.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Greathouse and Daga 2014, 2015 (CSR-Stream, CSR-Vector, CSR-VectorL); Hiranandani, IV.C
// Suits:     rows of uneven length, giants too: blocks have about equally many nonzeros
// Suffers:   matrices so small that there are fewer blocks than multiprocessors
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once, and (4 + offset + 2 * sum) a block of about 3/4 nnz_per_block nonzeros or threads_per_block / 32 rows, or 2 * rows_per_half_warp times as many, kept by the plan
// Guarantee: bit-reproducible; how a row is summed follows from the lengths of all rows, parts of a row are summed in a fixed order
// Launch:    row blocks are found by four passes once for a structure; where all rows are about as long as their neighbours, 32 nonzeros and more, and have 64 on average, half a warp a row, rows_per_half_warp a half; where they have 8 and more and 16 on average, or with fewest_lanes = 4 have 2 on average and are alike or have 16 at most, fewest_lanes lanes a row; else a block a row block, nnz_per_block sums of shared memory, or half a warp a row where rows_per_half_warp * threads_per_block / 16 neighbours have 64 to 512 nonzeros, or a warp a row where threads_per_block / 32 have 128 and more; a row over 4 * nnz_per_block nonzeros is finished by the block that brings its last part
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kNnzPerBlock = 1024;
constexpr int kRowsPerHalfWarp = 1;
constexpr int kFewestLanes = 8;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/group_rows.cuh"
#include "prelude/spanning_row.cuh"
#include "prelude/block.cuh"
#include "prelude/row_part.cuh"
#include "prelude/row_blocks.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#endif

// Rows that share a block are no longer; with the windows of the others this keeps a block within its buffer.
constexpr uint32_t kLongestShared = kNnzPerBlock / 4;
constexpr uint32_t kWindow = kNnzPerBlock - kLongestShared;
constexpr uint32_t kNnzPerPart = 4 * kNnzPerBlock;
// Products that a lane adds one by one; a row of more is left to a warp.
constexpr uint32_t kLongestChain = 16;
constexpr uint32_t kMaxLeft = kNnzPerBlock / kLongestChain;

// Rows that a block computes with a warp each, or kRowsPerHalfWarp with each half of one, and how many nonzeros a row then
// has on average at least: they fill a step of these lanes, so shared memory would save nothing and cost a barrier.
constexpr uint32_t kWarps = kThreadsPerBlock / 32;
constexpr uint32_t kShortestForWarp = 128;
constexpr uint32_t kRowsForHalves = 2 * kWarps * kRowsPerHalfWarp;
constexpr uint32_t kShortestForHalf = 64;
// Half a warp would take many steps for rows of this average, and few blocks would have much each.
constexpr uint32_t kTooLongForHalf = 512;

// Where all rows are about as long as their neighbours and of this average, the fewest lanes have each: they read most in a
// step, and where they read each in a step, rows need not be alike.
constexpr uint32_t kShortestForFewest = kFewestLanes == 4 ? 2 : 16;
constexpr uint32_t kTooLongForFewest = 128;
constexpr uint32_t kStepOfFewest = 4 * kFewestLanes;

// How many blocks begin with this row: a long row has its own.
struct BlocksBegun {
  const OffsetT* row_offsets;
  uint64_t num_rows;
  __device__ __forceinline__ OffsetT length(uint32_t row) const { return row_offsets[row + 1] - row_offsets[row]; }
  __device__ __forceinline__ OffsetT longest(uint32_t rows, uint32_t first) const {
    OffsetT longest = 0;
#pragma unroll 4
    for (uint32_t i = 0; i < rows; ++i) longest = max(longest, length(first + i));
    return longest;
  }
  // Whether so many rows from this one on are on average long enough, not too long, and about equally long.
  __device__ __forceinline__ bool are_alike(uint32_t rows, uint32_t first, OffsetT shortest, OffsetT too_long) const {
    if (uint64_t(first) + rows > num_rows) return false;
    const OffsetT nnz = row_offsets[first + rows] - row_offsets[first];
    if (nnz < rows * shortest || nnz / rows >= too_long) return false;
    return longest(rows, first) <= min(OffsetT(kNnzPerPart), 2 * (nnz / rows));
  }
  __device__ __forceinline__ bool is_for_halves(uint32_t first) const {
    return are_alike(kRowsForHalves, first, kShortestForHalf, kTooLongForHalf);
  }
  // Whether groups of so many lanes may have these rows where all of the matrix are theirs: a little shorter ones, and the few at
  // the end.
  __device__ __forceinline__ bool may_be_for(uint32_t lanes, uint32_t first) const {
    const OffsetT too_long = lanes == 16 ? kTooLongForHalf : kTooLongForFewest;
    const uint32_t rest = uint32_t(num_rows) - first;
    if (rest < kRowsForHalves) return longest(rest, first) < 2 * too_long;
    if (lanes < 16 && longest(kRowsForHalves, first) <= kStepOfFewest) return true;
    return are_alike(kRowsForHalves, first, (lanes == 16 ? kShortestForHalf : kShortestForFewest) / 2, too_long);
  }
  __device__ __forceinline__ bool is_for_warps(uint32_t first) const {
    return are_alike(kWarps, first, kShortestForWarp, ~OffsetT(0));
  }
  __device__ __forceinline__ uint32_t operator()(uint64_t i) const {
    const uint32_t row = uint32_t(i);
    const uint32_t first_of_halves = row - row % kRowsForHalves, first = row - row % kWarps;
    if (is_for_halves(first_of_halves)) return row == first_of_halves;
    if (is_for_warps(first)) return row == first;
    if (length(row) > kLongestShared) return (length(row) + kNnzPerPart - 1) / kNnzPerPart;
    if (begins_row_block<kWindow, kNnzPerBlock>(row, row_offsets)) return 1;
    if (length(row - 1) > kLongestShared) return 1;
    if (row == first_of_halves && is_for_halves(row - kRowsForHalves)) return 1;
    return row == first && is_for_warps(first - kWarps);
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csr_adaptive_sum_chunk(uint64_t num_rows, const OffsetT* row_offsets, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(num_rows, partials, BlocksBegun{row_offsets, num_rows});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csr_adaptive_partials(uint32_t num_partials, uint64_t num_rows, uint64_t* partials, uint32_t* first_blocks,
                           uint64_t* num_blocks) {
  await_stream();
  scan_partials(num_partials, num_rows, partials, first_blocks, num_blocks);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csr_adaptive_chunk(uint64_t num_rows, const OffsetT* row_offsets, const uint64_t* partials,
                        uint32_t* first_blocks) {
  await_stream();
  scan_chunk(num_rows, partials, first_blocks, BlocksBegun{row_offsets, num_rows});
}

// A flag that many set: reading is cheaper.
__device__ __forceinline__ void set_once(uint64_t* flag) {
  if (*static_cast<volatile uint64_t*>(flag) == 0) atomicMax(flag, uint64_t(1));
}

// The first row and the first nonzero of every block, the end behind the last; others[0] <- 1 unless half warps may have all
// rows, others[1] <- 1 unless the fewest lanes each may.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csr_adaptive_blocks(uint32_t num_blocks, uint32_t num_rows, const OffsetT* row_offsets,
                         const uint32_t* first_blocks, uint32_t* block_rows, OffsetT* block_offsets,
                         uint64_t* others) {
  await_stream();
  const uint32_t block = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (block > num_blocks) return;
  const BlocksBegun begun{row_offsets, num_rows};
  const OffsetT nnz = row_offsets[num_rows];
  const auto has_on_average = [&](uint32_t shortest) { return num_rows >= kRowsForHalves && nnz / shortest >= num_rows; };
  const uint32_t lanes = has_on_average(kShortestForHalf) ? 16 : has_on_average(kShortestForFewest) ? kFewestLanes : 0;
  bool all_alike = lanes > 0;
  for (uint64_t first = uint64_t(block) * kRowsForHalves; all_alike && first < num_rows;
       first += (num_blocks + uint64_t(1)) * kRowsForHalves) {
    all_alike = begun.may_be_for(lanes, uint32_t(first));
  }
  if (lanes != 16 || !all_alike) set_once(others);
  if (lanes != kFewestLanes || !all_alike) set_once(others + 1);
  if (block == num_blocks) {
    block_rows[block] = num_rows;
    block_offsets[block] = row_offsets[num_rows];
    return;
  }
  const uint32_t row = first_row_of_block(block, num_rows, first_blocks);
  const uint32_t part = block - first_blocks[row];
  block_rows[block] = row;
  block_offsets[block] = row_offsets[row] + OffsetT(part) * kNnzPerPart;
}

// One unused entry in 32 banks' worth of products: rows of equal length begin in different banks.
__device__ __forceinline__ constexpr uint32_t padded(uint32_t i) { return i + i / uint32_t(128 / sizeof(AccumT)); }

// products[i] <- values * x of the block's i-th nonzero; the loads of a step are in flight together. None of them is
// predicated: a thread that has no nonzero left loads the last one again.
__device__ __forceinline__ void stage_products(AccumT* products, uint32_t nnz, const IndexT* __restrict__ cols,
                                               const ValueT* __restrict__ values, const XT* __restrict__ x) {
  constexpr int kPerThread = kNnzPerBlock / kThreadsPerBlock;
  constexpr int kAtOnce = kPerThread < 1 ? 1 : kPerThread < 8 ? kPerThread : 8;
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < nnz; i += kAtOnce * kThreadsPerBlock) {
    IndexT step_cols[kAtOnce];
    ValueT factors[kAtOnce];
    XT entries[kAtOnce];
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) step_cols[u] = __ldcs(cols + min(i + u * kThreadsPerBlock, nnz - 1));
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) factors[u] = __ldcs(values + min(i + u * kThreadsPerBlock, nnz - 1));
    uint32_t bits = 0;
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) bits |= bits_of(factors[u]);
    const XT* const entries_of = sizeof(AccumT) == 4 ? x_behind(bits, x) : x;
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) entries[u] = __ldg(entries_of + step_cols[u]);
#pragma unroll
    for (int u = 0; u < kAtOnce; ++u) {
      const uint32_t k = i + u * kThreadsPerBlock;
      if (k < nnz) products[padded(k)] = combine(AccumT(factors[u]), AccumT(entries[u]), step_cols[u]);
    }
  }
}

constexpr bool kIsNarrow = sizeof(AccumT) == 4;

// Computes rows of the block, each with kWidth lanes, whose steps begin at lines where sums are narrow: for wide ones that
// takes registers from what stages products.
template <int kWidth>
__device__ __forceinline__ void multiply_block_rows(uint32_t first, uint32_t rows, const OffsetT* __restrict__ row_offsets,
                                                    const IndexT* __restrict__ col_indices,
                                                    const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                    YT* __restrict__ y, AccumT alpha, BetaT beta) {
#pragma unroll 1
  for (uint32_t i = threadIdx.x / kWidth; i < rows; i += kThreadsPerBlock / kWidth) {
    const OffsetT begin = __ldg(row_offsets + first + i), end = __ldg(row_offsets + first + i + 1);
    const AccumT sum = group_row_product<kWidth, 4, kIsNarrow, kIsNarrow>(begin, end, col_indices, values, x, group_mask<kWidth>());
    if (threadIdx.x % kWidth == 0) store_scaled(y, first + i, sum, alpha, beta);
  }
}

// The product by half warps alone, where they may have all rows: no load says first where a block begins, and caches have the
// shared memory.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kGroupBlocks)
spmv_csr_adaptive_halves(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                         const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                         BetaT beta) {
  await_stream();
  multiply_rows_by_groups<16, 4, true, kRowsPerHalfWarp == 1>(num_rows, row_offsets, col_indices, values, x, y, alpha, beta);
}

// The product by groups of the fewest lanes alone, where they may have all rows.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kGroupBlocks)
spmv_csr_adaptive_fewest(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                         const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                         BetaT beta) {
  await_stream();
  multiply_rows_by_groups<kFewestLanes, 4, false>(num_rows, row_offsets, col_indices, values, x, y, alpha, beta);
}

// Narrow sums are computed by as many threads as a multiprocessor holds; for wide ones the compiler does better unasked.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, sizeof(AccumT) == 4 ? 2048 / kThreadsPerBlock : 0)
spmv_csr_adaptive(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                  const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                  BetaT beta, const uint32_t* __restrict__ block_rows, const OffsetT* __restrict__ block_offsets,
                  AccumT* pieces, PieceWordT* meetings) {
  await_stream();
  __shared__ AccumT products[padded(kNnzPerBlock)];
  __shared__ uint32_t left[kMaxLeft];
  __shared__ uint32_t num_left;
  const uint32_t first = __ldg(block_rows + blockIdx.x);
  const uint32_t rows = __ldg(block_rows + blockIdx.x + 1) - first;
  const OffsetT begin = __ldg(block_offsets + blockIdx.x), next = __ldg(block_offsets + blockIdx.x + 1);
  const OffsetT end = skips_product(alpha) ? begin : next;
  if (rows <= 1) {
    add_row_part<kNnzPerPart>({pieces, pieces, meetings}, row_offsets, first, begin, end, col_indices, values, x, y, alpha,
                              beta);
    return;
  }
  if (rows <= kRowsForHalves && end - begin >= OffsetT(rows * kShortestForHalf)) {
    if (rows > kWarps) {
      multiply_block_rows<16>(first, rows, row_offsets, col_indices, values, x, y, alpha, beta);
      return;
    }
    if (end - begin >= OffsetT(rows * kShortestForWarp)) {
      multiply_block_rows<32>(first, rows, row_offsets, col_indices, values, x, y, alpha, beta);
      return;
    }
  }
  // As many lanes a row, a power of two, as there are threads for; rows that are long for these are left to warps.
  const int lanes_log2 = rows >= kThreadsPerBlock ? 0 : min(5, 31 - __clz(kThreadsPerBlock / rows));
  const uint32_t lanes = 1u << lanes_log2;
  const uint32_t lane = threadIdx.x & (lanes - 1);
  if (threadIdx.x == 0) num_left = 0;
  // Where the thread's first row lies is asked for before the products are; mostly it has no other.
  const uint32_t thread_row = first + min(threadIdx.x >> lanes_log2, rows - 1);
  OffsetT row_begin = __ldg(row_offsets + thread_row);
  OffsetT row_end = __ldg(row_offsets + thread_row + 1);
  stage_products(products, uint32_t(end - begin), col_indices + begin, values + begin, x);
  __syncthreads();
  for (uint32_t base = 0; base < rows; base += kThreadsPerBlock >> lanes_log2) {
    const uint32_t row = base + (threadIdx.x >> lanes_log2);
    AccumT sum = kIdentity;
    bool stores = row < rows && lane == 0;
    if (row < rows && !skips_product(alpha)) {
      if (base > 0) {
        row_begin = __ldg(row_offsets + first + row);
        row_end = __ldg(row_offsets + first + row + 1);
      }
      const uint32_t stop = uint32_t(row_end - begin);
      uint32_t i = uint32_t(row_begin - begin);
      if (lanes < 32 && stop - i > kLongestChain << lanes_log2) {
        if (stores) left[atomicAdd(&num_left, 1u)] = row;
        stores = false;
      } else {
        for (i += lane; i < stop; i += lanes) sum = reduce(sum, products[padded(i)]);
      }
    }
    for (uint32_t offset = lanes / 2; offset > 0; offset /= 2) {
      sum = reduce(sum, __shfl_xor_sync(0xffffffffu, sum, offset));
    }
    if (stores) store_scaled(y, first + row, sum, alpha, beta);
  }
  __syncthreads();
  for (uint32_t k = threadIdx.x / 32; k < num_left; k += kThreadsPerBlock / 32) {
    const uint32_t row = first + left[k];
    const uint32_t stop = uint32_t(__ldg(row_offsets + row + 1) - begin);
    AccumT sum = kIdentity;
    for (uint32_t i = uint32_t(__ldg(row_offsets + row) - begin) + threadIdx.x % 32; i < stop; i += 32) {
      sum = reduce(sum, products[padded(i)]);
    }
    sum = group_sum<32>(sum, 0xffffffffu);
    if (threadIdx.x % 32 == 0) store_scaled(y, row, sum, alpha, beta);
  }
}
