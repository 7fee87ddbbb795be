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

// The entries of a lane as they are stored. Behind the last nonzero its row goes on.
struct LaneEntries {
  uint32_t rows[kRuns][kRun];
  IndexT cols[kRuns][kRun];
  ValueT factors[kRuns][kRun];

  static __device__ __forceinline__ OffsetT place(OffsetT first, int i) {
    return first + (i * 32 + threadIdx.x % 32) * kRun;
  }
  // Packets of the matrix are loaded where they begin at multiples of 16 bytes, as they do in memory that was allocated for
  // them.
  __device__ __forceinline__ LaneEntries(OffsetT first, OffsetT nnz, const uint32_t* __restrict__ row_indices,
                                         const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values) {
    if (first + kTileNnz <= nnz) {
#pragma unroll
      for (int i = 0; i < kRuns; ++i) {
        load_streaming<kRun>(rows[i], row_indices + place(first, i));
        load_streaming<kRun>(cols[i], col_indices + place(first, i));
        load_streaming<kRun>(factors[i], values + place(first, i));
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
#pragma unroll
      for (int k = 0; k < kRun; ++k) {
        const OffsetT there = min(place(first, i) + k, nnz - 1);
        rows[i][k] = __ldcs(row_indices + there);
        cols[i][k] = __ldcs(col_indices + there);
        factors[i][k] = __ldcs(values + there);
      }
    }
  }
  // Behind the last nonzero there is nothing.
  __device__ __forceinline__ void multiply(OffsetT first, OffsetT nnz, const XT* __restrict__ x,
                                           AccumT (&products)[kRuns][kRun]) const {
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
#pragma unroll
      for (int k = 0; k < kRun; ++k) products[i][k] = AccumT(factors[i][k]) * AccumT(__ldg(x + cols[i][k]));
    }
    if (first + kTileNnz <= nnz) return;
#pragma unroll
    for (int i = 0; i < kRuns; ++i) {
#pragma unroll
      for (int k = 0; k < kRun; ++k) {
        if (place(first, i) + k >= nnz) products[i][k] = AccumT(0);
      }
    }
  }
};

// No row has this number.
constexpr uint32_t kNoRow = ~0u;

// Sums up the products of a warp's lanes, kRun neighbours a lane, each with those before it that are of its row.
__device__ __forceinline__ void sum_up(const uint32_t (&rows)[kRun], AccumT (&products)[kRun]) {
  const int lane = threadIdx.x % 32;
  const uint32_t left = __shfl_up_sync(0xffffffffu, rows[kRun - 1], 1);
#pragma unroll
  for (int k = 1; k < kRun; ++k) {
    if (rows[k] == rows[k - 1]) products[k] = products[k - 1] + products[k];
  }
  const bool is_head = lane == 0 || left != rows[0];
  const uint32_t heads = __ballot_sync(0xffffffffu, is_head || rows[kRun - 1] != rows[0]);
  const AccumT sum = warp_segmented_sum(products[kRun - 1], lanes_before_in_segment(heads));
  const AccumT before = __shfl_up_sync(0xffffffffu, sum, 1);
  if (is_head) return;
#pragma unroll
  for (int k = 0; k < kRun; ++k) {
    if (rows[k] == rows[0]) products[k] = before + products[k];
  }
}

// ended <- the rows of those of a warp's entries that are the last of their row; no row for others. `behind` is the row, in
// lane 0, of what follows on the entries of all lanes.
__device__ __forceinline__ void find_ended(const uint32_t (&rows)[kRun], uint32_t behind, uint32_t (&ended)[kRun]) {
  const int lane = threadIdx.x % 32;
  const uint32_t right = __shfl_sync(0xffffffffu, lane == 0 ? behind : rows[0], (lane + 1) % 32);
#pragma unroll
  for (int k = 0; k < kRun; ++k) ended[k] = rows[k] != (k + 1 < kRun ? rows[k + 1] : right) ? rows[k] : kNoRow;
}

// Sums of a warp that neighbouring lanes take to rows beside each other: as many as there is room for.
__device__ constexpr int stageable(int sums) {
  return sums * kWarps * int(4 + sizeof(AccumT)) <= 40 << 10 ? sums : stageable(sums / 2);
}
struct alignas(16) Stage {
  enum : int { kSums = stageable(32 * kRun) };
  AccumT sums[kSums];
  uint32_t rows[kSums];
};

template <int kCount, typename T>
__device__ __forceinline__ void store_together(T* to, const T (&from)[kCount]) {
  using Together = PacketOf<kCount, T>;
#pragma unroll
  for (int i = 0; i < kCount; i += Together::kEntries) {
    Together stored;
#pragma unroll
    for (int j = 0; j < Together::kEntries; ++j) stored.entries[j] = from[i + j];
    *reinterpret_cast<typename Together::Type*>(to + i) = stored.packet;
  }
}

// Calls close(row, sum) for the sums of a warp's lanes whose rows are rows, kRun neighbours a lane.
template <typename Close>
__device__ __forceinline__ void close_rows(Stage& stage, const uint32_t (&rows)[kRun], const AccumT (&sums)[kRun],
                                           Close close) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int begin = 0; begin < 32 * kRun; begin += Stage::kSums) {
    const int place = lane * kRun - begin;
    if (Stage::kSums == 32 * kRun || (place >= 0 && place < Stage::kSums)) {
      store_together(stage.sums + place, sums);
      store_together(stage.rows + place, rows);
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < Stage::kSums; i += 32) {
      const uint32_t row = stage.rows[i + lane];
      if (row != kNoRow) close(row, stage.sums[i + lane]);
    }
    __syncwarp();
  }
}

// The sum of the row of a warp's last entry goes on in its next entries, where they are of that row.
__device__ __forceinline__ void carry_on(const uint32_t (&rows)[kRun], const uint32_t (&next_rows)[kRun], AccumT open,
                                         AccumT (&next_products)[kRun]) {
  const uint32_t open_row = __shfl_sync(0xffffffffu, rows[kRun - 1], 31);
  if (threadIdx.x % 32 == 0 && next_rows[0] == open_row) next_products[0] = open + next_products[0];
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coo(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets,
         const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values, const XT* __restrict__ x,
         YT* __restrict__ y, AlphaT alpha, BetaT beta, uint32_t num_tiles, const uint32_t* __restrict__ row_indices,
         uint32_t num_empty_rows, const uint32_t* __restrict__ empty_rows, AccumT* tails, AccumT* heads,
         PieceWordT* meetings) {
  await_stream();
  __shared__ Stage stages[kWarps];
  if (skips_product(alpha)) {
    const uint32_t num_threads = gridDim.x * kThreadsPerBlock;
    for (uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x; row < num_rows; row += num_threads) {
      store_scaled(y, row, AccumT(0), alpha, beta);
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
  const uint32_t row_before = first > 0 ? __ldg(row_indices + first - 1) : kNoRow;
  const uint32_t row_behind = nnz - first > kTileNnz ? __ldg(row_indices + first + kTileNnz) : kNoRow;
  const LaneEntries entries(first, nnz, row_indices, col_indices, values);
  // The row that comes from the tile before, and that which the tile leaves open.
  const uint32_t first_row = __shfl_sync(0xffffffffu, entries.rows[0][0], 0);
  const uint32_t open_row = __shfl_sync(0xffffffffu, entries.rows[kRuns - 1][kRun - 1], 31);
  const bool continues = row_before == first_row;
  uint32_t first_tile = tile, last_tile = tile;
  if (continues) first_tile = uint32_t(__ldg(row_offsets + first_row) / kTileNnz);
  if (row_behind == open_row) last_tile = uint32_t((__ldg(row_offsets + open_row + 1) - 1) / kTileNnz);
  AccumT sums[kRuns][kRun];
  entries.multiply(first, nnz, x, sums);

  Stage& stage = stages[threadIdx.x / 32];
  const auto close = [&](uint32_t row, AccumT sum) { store_scaled(y, row, sum, alpha, beta); };
  AccumT open = 0, head = 0;
  bool has_head = false;
#pragma unroll
  for (int i = 0; i < kRuns; ++i) {
    const uint32_t(&rows)[kRun] = entries.rows[i];
    sum_up(rows, sums[i]);
    uint32_t ended[kRun];
    find_ended(rows, i + 1 < kRuns ? entries.rows[i + 1][0] : open_row, ended);
#pragma unroll
    for (int k = 0; k < kRun; ++k) {
      if (!continues || ended[k] != first_row) continue;
      head = sums[i][k];
      has_head = true;
      ended[k] = kNoRow;
    }
    close_rows(stage, ended, sums[i], close);
    open = __shfl_sync(0xffffffffu, sums[i][kRun - 1], 31);
    if (i + 1 < kRuns) carry_on(rows, entries.rows[i + 1], open, sums[i + 1]);
  }

  const SpanningRows spanning = {tails, heads, meetings};
  const uint32_t holders = __ballot_sync(0xffffffffu, has_head);
  if (holders != 0) {
    const AccumT piece = __shfl_sync(0xffffffffu, head, __ffs(holders) - 1);
    add_piece<kWarps>(spanning, first_row, first_tile, tile, tile, piece, y, alpha, beta);
    first_tile = tile;
  }
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
  if constexpr (kAlpha == Coefficient::kAny) sum = alpha * sum;
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
  __shared__ Stage stages[kWarps];
  const LaneEntries entries(first, nnz, row_indices, col_indices, values);
  AccumT sums[kRuns][kRun];
  entries.multiply(first, nnz, x, sums);
  const auto add = [&](uint32_t row, AccumT sum) { add_scaled<kReduction == 1>(y, row, sum, alpha); };
#pragma unroll
  for (int i = 0; i < kRuns; ++i) {
    if (first + i * (32 * kRun) >= nnz) return;
    sum_up(entries.rows[i], sums[i]);
    uint32_t ended[kRun];
    find_ended(entries.rows[i], kNoRow, ended);
    close_rows(stages[threadIdx.x / 32], ended, sums[i], add);
  }
}
