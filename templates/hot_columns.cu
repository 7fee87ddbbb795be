// hot_columns: x of the columns with most entries lies in shared memory, warps sum equal shares of the entries.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     none; hub vertices kept in a cache as in Zhang, Kiriansky, Mendis, Amarasinghe and Zaharia 2017 (Cagra), and sums of equal shares as in Merrill and Garland 2016, without moving rows, columns or values
// Suits:     power laws, and whatever has few columns: most loads of x end in shared memory and not in L2
// Suffers:   columns that are all alike, where a load of x costs what it costs elsewhere
// Bytes:     nnz * (value + 4.2) + rows * (y + 4) + x once; from L2 the hot part of x for every block, and a sector for every entry in another column; keeps its own columns, and values of 4 or 1 where they are encoded
// Guarantee: bit-reproducible; a row is summed in a fixed tree; nothing but stored entries touches y
// Launch:    a thread a hot column; a block of up to 1,024 threads a multiprocessor, whose warps take equal shares of the entries in turn; a thread a share for the row that began before it; planned on the device by a sort of the columns
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kSharedKib = 96;
constexpr int kEncoding = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/loaded.cuh"
#include "prelude/unsigned.cuh"
#include "prelude/stage.cuh"
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

// Fewer where entries and sums are wide: as many registers are left for the others.
constexpr uint32_t kTileThreads = sizeof(ValueT) + sizeof(AccumT) > 8 ? 768 : 1024;
// Columns whose x a block has in shared memory.
constexpr uint32_t kHotCols = kSharedKib * 1024 / sizeof(XT);
// Of a word: the rest is the column's place in shared memory, not its number.
constexpr uint32_t kIsHot = 0x80000000u;
// Entries that a warp sums at once, and of those a lane's.
constexpr int kPerLane = 4;
constexpr uint32_t kStep = 32 * kPerLane;
// Steps of a share at most, and shares below which none has more than one.
constexpr uint32_t kMostSteps = 8;
constexpr uint32_t kFewShares = 32768;
// Steps whose loads are in flight.
constexpr int kStepsAhead = sizeof(ValueT) + sizeof(AccumT) > 16 ? 1 : 2;
// With more entries, columns are equally hot.
constexpr uint32_t kMostDegree = 65535;

// ---- The plan: columns ----

// degrees[col] <- its entries.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_degrees(uint64_t nnz, const IndexT* __restrict__ col_indices, uint32_t* degrees) {
  await_stream();
  const uint64_t i = uint64_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
  if (i < nnz) atomicAdd(degrees + col_indices[i], 1u);
}

// pairs <- columns, the hottest first when they are sorted; col_words[col] <- the word of a column that is not hot.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_cols(uint32_t num_cols, const uint32_t* __restrict__ degrees, SortPair* __restrict__ pairs,
                      uint32_t* __restrict__ col_words) {
  await_stream();
  const uint32_t col = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (col >= num_cols) return;
  pairs[col] = {kMostDegree - min(degrees[col], kMostDegree), col};
  col_words[col] = col;
}

// hot_cols[place] <- the column there.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_list_hot(uint32_t num_hot, const SortPair* __restrict__ pairs, uint32_t* __restrict__ hot_cols,
                          uint32_t* __restrict__ col_words) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (place >= num_hot) return;
  hot_cols[place] = pairs[place].y;
  col_words[pairs[place].y] = kIsHot | place;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_words(uint64_t nnz, const IndexT* __restrict__ col_indices, const uint32_t* __restrict__ col_words,
                       uint32_t* __restrict__ words) {
  await_stream();
  const uint64_t i = uint64_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
  if (i < nnz) words[i] = col_words[col_indices[i]];
}

// ---- The plan: rows ----

// marks[row] <- whether it has entries.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_mark_rows(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row < num_rows) marks[row] = row_offsets[row] != row_offsets[row + 1];
}

// row_order <- the rows with entries, then the others; step_ends <- of which entries of a step a row ends with.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_order_rows(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                            const uint32_t* __restrict__ ranks, uint32_t* __restrict__ row_order,
                            uint32_t* __restrict__ step_ends) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const uint32_t rank = ranks[row];
  if (rank == ranks[row + 1]) {
    row_order[ranks[num_rows] + row - rank] = row;
  } else {
    row_order[rank] = row;
    const uint64_t last = uint64_t(row_offsets[row + 1]) - 1;
    const uint32_t lane = uint32_t(last % kStep / kPerLane);
    atomicOr(step_ends + last / kStep * kPerLane + last % kPerLane, 1u << lane);
  }
}

// step_ranks[step] <- how many rows with entries there are before that of its first entry.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_step_ranks(uint32_t num_steps, uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                            const uint32_t* __restrict__ ranks, uint32_t* __restrict__ step_ranks) {
  await_stream();
  const uint32_t step = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (step >= num_steps) return;
  const uint64_t entry = uint64_t(step) * kStep;
  step_ranks[step] = ranks[first_that(num_rows, [=](uint32_t r) { return row_offsets[r + 1] > entry; })];
}

// ---- The plan: values ----

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_encode(uint64_t nnz, const ValueT* __restrict__ values, EncodedT* __restrict__ encoded_values) {
  await_stream();
  const uint64_t i = uint64_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
  if (kIsEncoded && i < nnz) encoded_values[i] = EncodingT::stored(values[i], 0, nullptr);
}

// ---- The product ----

// hot_x <- x of the hot columns.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_gather(uint32_t num_hot, AlphaT alpha, const uint32_t* __restrict__ hot_cols,
                        const XT* __restrict__ x, XT* __restrict__ hot_x) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (place < num_hot && !skips_product(alpha)) hot_x[place] = __ldg(x + hot_cols[place]);
}

// The steps of a share: few where there are few, so that every warp has some.
__device__ __forceinline__ uint32_t steps_per_share(uint32_t num_steps) {
  return max(min((num_steps + kFewShares - 1) / kFewShares, kMostSteps), 1u);
}

// A lane's part of a step, with values as they are stored.
template <typename StoredT>
struct Step {
  uint32_t words[kPerLane];
  Loaded<kPerLane, StoredT> values;
  // The lanes whose entry here is the last of a row.
  uint32_t ends[kPerLane];
  // Rows with entries before that of the step's first entry.
  uint32_t rank;
};

template <typename StoredT>
__device__ __forceinline__ void load_step(Step<StoredT>* step, uint32_t number, uint64_t nnz,
                                          const uint32_t* __restrict__ words, const StoredT* __restrict__ values,
                                          const uint32_t* __restrict__ step_ends,
                                          const uint32_t* __restrict__ step_ranks) {
  const uint64_t first = uint64_t(number) * kStep + threadIdx.x % 32 * kPerLane;
  if (first + kPerLane <= nnz) {
    load_streaming<kPerLane>(step->words, words + first);
    step->values.load(values + first);
  } else {
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      if (first + i < nnz) step->words[i] = words[first + i], step->values.entry(i) = values[first + i];
    }
  }
  load_streaming<kPerLane>(step->ends, step_ends + uint64_t(number) * kPerLane);
  step->rank = __ldcs(step_ranks + number);
}

// What a share has of its first row that ends, and of the row after its last that ends.
struct ShareSums {
  AccumT first;
  AccumT tail;
  bool has_ends;
};

// Adds a step to what the share has, and stores rows that end, but for the share's first. A row_order of null is none.
template <typename StoredT>
__device__ __forceinline__ void add_step(const Step<StoredT>& step, uint32_t num_entries,
                                         const uint32_t* __restrict__ hot_cols, const XT* __restrict__ x, const XT* hot_x,
                                         const uint32_t* __restrict__ row_order, YT* y, AlphaT alpha, BetaT beta,
                                         ShareSums* share) {
  const uint32_t lane = threadIdx.x % 32, lanes_before = (1u << lane) - 1;
  const auto is_there = [&](int i) { return lane * kPerLane + i < num_entries; };
  const auto ends_row = [&](int i) { return (step.ends[i] >> lane & 1) != 0; };
  uint32_t heads = 0, rank = step.rank;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    heads |= step.ends[i];
    rank += __popc(step.ends[i] & lanes_before);
  }
  // All loads that depend on others, together.
  XT x_entries[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    if (is_there(i)) {
      const uint32_t place = step.words[i] & ~kIsHot;
      x_entries[i] = step.words[i] & kIsHot ? hot_x[place] : __ldg(x + place);
    }
  }
  uint32_t rows[kPerLane];
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    rows[i] = row_order != nullptr && ends_row(i) ? __ldg(row_order + rank) : rank;
    rank += ends_row(i);
  }
  AccumT first = kIdentity, sum = kIdentity;
  uint32_t first_row = 0;
  bool ends_any = false;
#pragma unroll
  for (int i = 0; i < kPerLane; ++i) {
    if (is_there(i)) {
      const uint32_t place = step.words[i] & ~kIsHot;
      const uint32_t col = step.words[i] & kIsHot ? __ldg(hot_cols + place) : place;
      sum = combine_reduce(AccumT(decode(step.values[i], nullptr)), AccumT(x_entries[i]), col, sum);
    }
    if (ends_row(i)) {
      if (ends_any) {
        store_scaled(y, rows[i], sum, alpha, beta);
      } else {
        first = sum;
        first_row = rows[i];
      }
      ends_any = true;
      sum = kIdentity;
    }
  }
  const AccumT carried = warp_segmented_sum(sum, lanes_before_in_segment(heads));
  AccumT carry = __shfl_up_sync(0xffffffffu, carried, 1);
  if (lane == 0) carry = kIdentity;
  const bool began_before = (heads & lanes_before) == 0;
  if (began_before) carry = reduce(share->tail, carry);
  if (ends_any) {
    first = reduce(carry, first);
    if (began_before && !share->has_ends) {
      share->first = first;
    } else {
      store_scaled(y, first_row, first, alpha, beta);
    }
  }
  const AccumT tail = __shfl_sync(0xffffffffu, carried, 31);
  share->tail = heads != 0 ? tail : reduce(share->tail, tail);
  if (heads != 0 && !share->has_ends) {
    share->first = __shfl_sync(0xffffffffu, share->first, __ffs(heads) - 1);
    share->has_ends = true;
  }
}

template <typename StoredT>
__device__ __forceinline__ void multiply(uint64_t nnz, uint32_t num_rows, uint32_t num_filled, uint32_t num_steps,
                                         uint32_t num_hot, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                                         const uint32_t* __restrict__ words, const StoredT* __restrict__ values,
                                         const uint32_t* __restrict__ step_ends,
                                         const uint32_t* __restrict__ step_ranks,
                                         const uint32_t* __restrict__ row_order, const uint32_t* __restrict__ hot_cols,
                                         const XT* __restrict__ x, const XT* __restrict__ hot_x,
                                         AccumT* __restrict__ share_firsts, AccumT* __restrict__ share_tails,
                                         uint32_t* __restrict__ share_ends) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  XT* staged = reinterpret_cast<XT*>(shared_bytes);
  // Rows of which nothing is added up.
  const bool skips = skips_product(alpha);
  const uint32_t threads = gridDim.x * kTileThreads;
  for (uint32_t i = (skips ? 0 : num_filled) + blockIdx.x * kTileThreads + threadIdx.x; i < num_rows; i += threads) {
    store_scaled(y, row_order[i], kIdentity, alpha, beta);
  }
  if (skips) return;
  // A warp's steps: those of its shares, one behind the other. What neighbours in the matrix cost is much the same, so
  // that shares are dealt out to the blocks first.
  const uint32_t of_share = steps_per_share(num_steps), num_shares = (num_steps + of_share - 1) / of_share;
  const uint32_t stride = threads / 32;
  uint32_t share_number = threadIdx.x / 32 * gridDim.x + blockIdx.x, in_share = 0;
  const auto advance = [=](uint32_t* share, uint32_t* step) {
    if (++*step == of_share) *step = 0, *share += stride;
  };
  const auto is_step = [=](uint32_t share, uint32_t step) {
    return share < num_shares && share * of_share + step < num_steps;
  };
  Step<StoredT> steps[kStepsAhead];
  uint32_t next_share = share_number, next_in_share = 0;
  const auto load_next = [&](Step<StoredT>* step) {
    if (is_step(next_share, next_in_share)) {
      load_step(step, next_share * of_share + next_in_share, nnz, words, values, step_ends, step_ranks);
    }
    advance(&next_share, &next_in_share);
  };
#pragma unroll
  for (int u = 0; u < kStepsAhead; ++u) load_next(steps + u);
  stage<kTileThreads>(num_hot, hot_x, staged);
  __syncthreads();
  const uint32_t* order = num_filled == num_rows ? nullptr : row_order;
  ShareSums share = {kIdentity, kIdentity, false};
#pragma unroll 1
  while (is_step(share_number, in_share)) {
#pragma unroll
    for (int u = 0; u < kStepsAhead; ++u) {
      if (is_step(share_number, in_share)) {
        const uint32_t number = share_number * of_share + in_share;
        const uint64_t left = nnz - uint64_t(number) * kStep;
        const auto add = [&](uint32_t num_entries) {
          add_step(steps[u], num_entries, hot_cols, x, staged, order, y, alpha, beta, &share);
        };
        if (left >= kStep) {
          add(kStep);
        } else {
          add(uint32_t(left));
        }
        if (in_share + 1 == of_share || number + 1 == num_steps) {
          if (threadIdx.x % 32 == 0) {
            share_firsts[share_number] = share.first;
            share_tails[share_number] = share.tail;
            share_ends[share_number] = share.has_ends;
          }
          share = {kIdentity, kIdentity, false};
        }
        advance(&share_number, &in_share);
      }
      load_next(steps + u);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kTileThreads)
spmv_hot_columns(uint64_t nnz, uint32_t num_rows, uint32_t num_filled, uint32_t num_steps, uint32_t num_hot,
                 YT* __restrict__ y, AlphaT alpha, BetaT beta, const uint32_t* __restrict__ words,
                 const ValueT* __restrict__ values, const uint32_t* __restrict__ step_ends,
                 const uint32_t* __restrict__ step_ranks, const uint32_t* __restrict__ row_order,
                 const uint32_t* __restrict__ hot_cols, const XT* __restrict__ x, const XT* __restrict__ hot_x,
                 AccumT* __restrict__ share_firsts, AccumT* __restrict__ share_tails,
                 uint32_t* __restrict__ share_ends) {
  await_stream();
  multiply(nnz, num_rows, num_filled, num_steps, num_hot, y, alpha, beta, words, values, step_ends, step_ranks, row_order,
           hot_cols, x, hot_x, share_firsts, share_tails, share_ends);
}

extern "C" __global__ void __launch_bounds__(kTileThreads)
spmv_hot_columns_encoded(uint64_t nnz, uint32_t num_rows, uint32_t num_filled, uint32_t num_steps, uint32_t num_hot,
                         YT* __restrict__ y, AlphaT alpha, BetaT beta, const uint32_t* __restrict__ words,
                         const EncodedT* __restrict__ values, const uint32_t* __restrict__ step_ends,
                         const uint32_t* __restrict__ step_ranks, const uint32_t* __restrict__ row_order,
                         const uint32_t* __restrict__ hot_cols, const XT* __restrict__ x, const XT* __restrict__ hot_x,
                         AccumT* __restrict__ share_firsts, AccumT* __restrict__ share_tails,
                         uint32_t* __restrict__ share_ends) {
  await_stream();
  if constexpr (kIsEncoded) {
    multiply(nnz, num_rows, num_filled, num_steps, num_hot, y, alpha, beta, words, values, step_ends, step_ranks,
             row_order, hot_cols, x, hot_x, share_firsts, share_tails, share_ends);
  }
}

// A thread a share: where a row ends in it, its first with what earlier shares have of it.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hot_columns_first_rows(uint32_t num_steps, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                            const uint32_t* __restrict__ step_ranks, const uint32_t* __restrict__ row_order,
                            const AccumT* __restrict__ share_firsts, const AccumT* __restrict__ share_tails,
                            const uint32_t* __restrict__ share_ends) {
  await_stream();
  if (skips_product(alpha)) return;
  const uint32_t of_share = steps_per_share(num_steps), num_shares = (num_steps + of_share - 1) / of_share;
  const uint32_t share = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const bool is_share = share < num_shares, has_ends = is_share && share_ends[share] != 0;
  AccumT tail = is_share ? share_tails[share] : kIdentity;
  AccumT before = kIdentity;
  if (threadIdx.x < 32) before = sum_of_tails(min(blockIdx.x * kThreadsPerBlock, num_shares), share_tails, share_ends);
  if (threadIdx.x == 0 && !has_ends) tail = reduce(before, tail);
  const AccumT carry = block_segmented_carry(tail, has_ends);
  if (has_ends) {
    const AccumT sum = reduce(threadIdx.x == 0 ? before : carry, share_firsts[share]);
    store_scaled(y, row_order[step_ranks[share * of_share]], sum, alpha, beta);
  }
}
