// merge_path: a thread takes items_per_thread steps of the merge of row ends with nonzeros, however long the rows are.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Merrill and Garland 2016 (merge-based; tiles of 128 x 7 for f32, 64 x 6 for f64); peer in Steinberger et al., Hola
// Suits:     any distribution of row lengths, giant and empty rows included: every thread has the same work
// Suffers:   short regular rows, where a thread a row needs no shared memory and no barriers
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once, and about 24 a tile
// Guarantee: bit-reproducible; a thread adds its steps in order, fixed trees add threads, warps and the tiles of a row
// Launch:    a block a tile of threads_per_block * items_per_thread steps; tile coordinates from a pass of their own, once or in every product
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kItemsPerThread = 7;
constexpr int kPrepared = 1;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/segmented.cuh"
#include "prelude/spanning_row.cuh"
#endif

constexpr uint32_t kTileItems = kThreadsPerBlock * kItemsPerThread;
constexpr int kWarps = kThreadsPerBlock / 32;

static_assert(kItemsPerThread <= 32, "a thread's row ends are bits of a word");

// Where rows end in a tile: bits for the steps of each thread, and how many are set for a warp. They take fewer
// instructions than searching the tile for what is before a thread.
struct RowEnds {
  uint32_t of_threads[kThreadsPerBlock], of_warps[kWarps];
  __device__ __forceinline__ void clear() {
    of_threads[threadIdx.x] = 0;
    if (threadIdx.x < kWarps) of_warps[threadIdx.x] = 0;
  }
  __device__ __forceinline__ void add(uint32_t step) {
    const uint32_t thread = step / kItemsPerThread;
    atomicOr(of_threads + thread, 1u << (step - thread * kItemsPerThread));
    atomicAdd(of_warps + thread / 32, 1u);
  }
  // Those before the calling thread's steps, of which `own` are ends; all lanes of the warp call this.
  __device__ __forceinline__ uint32_t before(uint32_t own) const {
    uint32_t sum = own;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const uint32_t left = __shfl_up_sync(0xffffffffu, sum, offset);
      if (threadIdx.x % 32 >= offset) sum += left;
    }
#pragma unroll
    for (int warp = 0; warp < kWarps - 1; ++warp) {
      if (warp < threadIdx.x / 32) sum += of_warps[warp];
    }
    return sum - own;
  }
};

static_assert(kTileItems * sizeof(AccumT) + sizeof(RowEnds) + kWarps * (sizeof(AccumT) + 4) <= 48 * 1024,
              "a tile is too large");

// Row r ends at step row_offsets[r + 1] + r of the merge, so the rows that end before a step are found by bisection.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_merge_path_search(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets, uint32_t num_tiles,
                       uint32_t* __restrict__ tile_rows) {
  await_stream();
  const uint64_t tile = blockIdx.x * uint64_t(kThreadsPerBlock) + threadIdx.x;
  if (tile > num_tiles) return;
  const uint64_t step = min(tile * kTileItems, uint64_t(num_rows) + nnz);
  uint32_t row = step > nnz ? uint32_t(step - nnz) : 0;
  uint32_t last = uint32_t(min(step, uint64_t(num_rows)));
  while (row < last) {
    const uint32_t middle = row + (last - row) / 2;
    if (uint64_t(__ldg(row_offsets + middle + 1)) + middle < step) {
      row = middle + 1;
    } else {
      last = middle;
    }
  }
  tile_rows[tile] = row;
}

// A column, or behind the columns the low half of a row end: one load of either where both are words.
template <typename ColT>
__device__ __forceinline__ uint32_t load_item(uint32_t slot, uint32_t tile_nnz, const ColT* __restrict__ tile_cols,
                                              const uint32_t* __restrict__ row_ends) {
  constexpr uint32_t kWords = sizeof(OffsetT) / 4;
  if constexpr (sizeof(ColT) == sizeof(uint32_t)) {
    return __ldcs(slot < tile_nnz ? tile_cols + slot : row_ends + (slot - tile_nnz) * kWords);
  } else {
    return slot < tile_nnz ? __ldcs(tile_cols + slot) : __ldcs(row_ends + (slot - tile_nnz) * kWords);
  }
}

// Slots of a thread that the nonzeros of most tiles fill.
constexpr int kFilled = kItemsPerThread * 3 / 4;

// Products of the tile and its row ends, in this order. Nothing is predicated: slots that have no use for a load repeat
// one, so that all loads of a thread are in flight before the first is used. Where kAreFilled, the first kFilled slots of
// a thread are nonzeros, which need neither bounds nor a choice. Of a row end the low half is enough.
template <bool kAreFilled>
__device__ __forceinline__ void stage_tile(AccumT* products, RowEnds& ends, uint32_t tile_nnz, uint32_t items, uint32_t first_nnz,
                                           const uint32_t* __restrict__ row_ends,
                                           const IndexT* __restrict__ tile_cols,
                                           const ValueT* __restrict__ tile_values, const XT* __restrict__ x) {
  constexpr int kSure = kAreFilled ? kFilled : 0;
  const IndexT* __restrict__ const thread_cols = tile_cols + threadIdx.x;
  const ValueT* __restrict__ const thread_values = tile_values + threadIdx.x;
  uint32_t loaded[kItemsPerThread];
  ValueT values[kItemsPerThread];
  XT entries[kItemsPerThread];
#pragma unroll
  for (int k = 0; k < kItemsPerThread; ++k) {
    const uint32_t slot = min(threadIdx.x + k * kThreadsPerBlock, items - 1);
    loaded[k] = k < kSure ? __ldcs(thread_cols + k * kThreadsPerBlock) : load_item(slot, tile_nnz, tile_cols, row_ends);
  }
#pragma unroll
  for (int k = 0; k < kItemsPerThread; ++k) {
    const uint32_t slot = min(threadIdx.x + k * kThreadsPerBlock, tile_nnz - 1);
    values[k] = __ldcs(k < kSure ? thread_values + k * kThreadsPerBlock : tile_values + slot);
  }
#pragma unroll
  for (int k = 0; k < kItemsPerThread; ++k) {
    const bool is_nonzero = k < kSure || threadIdx.x + k * kThreadsPerBlock < tile_nnz;
    entries[k] = __ldg(x + (is_nonzero ? loaded[k] : 0));
  }
#pragma unroll
  for (int k = 0; k < kItemsPerThread; ++k) {
    const uint32_t slot = threadIdx.x + k * kThreadsPerBlock;
    if (k < kSure || slot < tile_nnz) {
      products[slot] = combine(AccumT(values[k]), AccumT(entries[k]), loaded[k]);
    } else if (slot < items) {
      ends.add(loaded[k] - first_nnz + (slot - tile_nnz));
    }
  }
}

// The same where there is nothing to multiply.
__device__ __forceinline__ void stage_row_ends(AccumT* products, RowEnds& ends, uint32_t tile_nnz, uint32_t items,
                                               OffsetT first_nnz, const OffsetT* __restrict__ row_ends) {
#pragma unroll 1
  for (uint32_t slot = threadIdx.x; slot < tile_nnz; slot += kThreadsPerBlock) products[slot] = kIdentity;
#pragma unroll 1
  for (uint32_t slot = tile_nnz + threadIdx.x; slot < items; slot += kThreadsPerBlock) {
    ends.add(uint32_t(__ldg(row_ends + (slot - tile_nnz)) - first_nnz) + (slot - tile_nnz));
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_merge_path(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                BetaT beta, OffsetT nnz, const uint32_t* __restrict__ tile_rows, AccumT* tails, AccumT* heads,
                PieceWordT* meetings) {
  await_stream();
  // Products, and in the end sums of rows.
  __shared__ AccumT slots[kTileItems];
  __shared__ RowEnds row_ends;
  row_ends.clear();
  const uint32_t tile = blockIdx.x;
  const uint64_t first_step = uint64_t(tile) * kTileItems;
  const uint64_t last_step = min(first_step + kTileItems, uint64_t(num_rows) + nnz);
  const uint32_t first_row = __ldg(tile_rows + tile);
  const uint32_t last_row = __ldg(tile_rows + tile + 1);
  const OffsetT first_nnz = OffsetT(first_step - first_row);
  const uint32_t rows = last_row - first_row;
  const uint32_t items = uint32_t(last_step - first_step);
  const uint32_t tile_nnz = items - rows;
  const OffsetT* ends_at = row_offsets + first_row + 1;
  __syncthreads();
  if (tile_nnz >= kFilled * kThreadsPerBlock && !skips_product(alpha)) {
    stage_tile<true>(slots, row_ends, tile_nnz, items, uint32_t(first_nnz),
                     reinterpret_cast<const uint32_t*>(ends_at), col_indices + first_nnz, values + first_nnz, x);
  } else if (tile_nnz > 0 && !skips_product(alpha)) {
    stage_tile<false>(slots, row_ends, tile_nnz, items, uint32_t(first_nnz),
                      reinterpret_cast<const uint32_t*>(ends_at), col_indices + first_nnz, values + first_nnz, x);
  } else {
    stage_row_ends(slots, row_ends, tile_nnz, items, first_nnz, ends_at);
  }
  __syncthreads();

  // The thread's steps: where rows end among them, then the walk.
  const uint32_t step = threadIdx.x * kItemsPerThread;
  const uint32_t ends = row_ends.of_threads[threadIdx.x];
  uint32_t row = row_ends.before(__popc(ends));
  AccumT sums[kItemsPerThread];
  AccumT sum = kIdentity;
  uint32_t nonzero = step - row;
#pragma unroll
  for (int k = 0; k < kItemsPerThread; ++k) {
    const bool is_end = ends >> k & 1;
    sums[k] = sum;
    if (is_end) sum = kIdentity;
    if (!is_end && nonzero < tile_nnz) sum = reduce(sum, slots[nonzero]);
    nonzero += !is_end;
  }

  // `carry` is what earlier threads leave of the row that is open where this thread begins.
  AccumT carry = block_segmented_carry(sum, ends != 0);
#pragma unroll
  for (int k = 0; k < kItemsPerThread; ++k) {
    if (ends >> k & 1) {
      slots[row++] = reduce(carry, sums[k]);
      carry = kIdentity;
    }
  }
  __syncthreads();

  const OffsetT head_begin = rows > 0 ? __ldg(row_offsets + first_row) : first_nnz;
  const bool has_head = head_begin < first_nnz;
  for (uint32_t r = threadIdx.x + has_head; r < rows; r += kThreadsPerBlock) {
    store_scaled(y, first_row + r, slots[r], alpha, beta);
  }
  const SpanningRows spanning = {tails, heads, meetings};
  if (threadIdx.x < 32 && has_head) {
    const uint32_t first_tile = uint32_t((head_begin + first_row) / kTileItems);
    add_piece(spanning, first_row, first_tile, tile, tile, slots[0], y, alpha, beta);
  }
  if (threadIdx.x / 32 != kWarps - 1 || last_row == num_rows) return;
  const OffsetT tail_begin = __ldg(row_offsets + last_row);
  if (tail_begin < first_nnz + tile_nnz) {
    const uint32_t first_tile = uint32_t((tail_begin + last_row) / kTileItems);
    const uint32_t last_tile = uint32_t((__ldg(row_offsets + last_row + 1) + last_row) / kTileItems);
    const AccumT tail = __shfl_sync(0xffffffffu, sum, 31);
    add_piece(spanning, last_row, first_tile, last_tile, tile, tail, y, alpha, beta);
  }
}
