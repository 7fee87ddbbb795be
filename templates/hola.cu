// hola: equal shares of nonzeros for blocks and threads, rows found by a scatter, sums meet in shared memory.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Steinberger, Zayer and Seidel 2017 (Globally homogeneous, locally adaptive SpMV on the GPU), algorithms 2 to 6
// Suits:     rows of any length, giants and empty ones among them: every thread has the same number of nonzeros
// Suffers:   short regular rows, where finding the rows costs more than it evens out
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once; extra: 4 a block of threads_per_block * nnz_per_thread nonzeros (0.002 a nonzero for 256 * 8) with prepared = 0; prepared = 1 has three sums more (0.008 for f32), where parts of a row meet
// Guarantee: not bit-reproducible: sums of rows that threads share meet by atomics in shared memory
// Launch:    prepared = 1: rows are assigned once for a structure, one pass a product; prepared = 0: assigned in every product, two passes, parts of rows that blocks share added to y by atomics, as in the paper

// A row's sum waits in shared memory at the place of the row's last nonzero in the block, not at its number as in the
// paper; a block then needs neither a flag nor a second mode for empty rows, however many there are.
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kNnzPerThread = 8;
constexpr int kPrepared = 1;
constexpr int kSortColumns = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/group.cuh"
#include "prelude/spanning_row.cuh"
#include "prelude/shares.cuh"
#include "prelude/thread_sort.cuh"
#endif

constexpr int kWarps = kThreadsPerBlock / 32;
constexpr uint32_t kNoColumn = 0xffffffffu;
// Entries that one 16-byte load of values brings, and how many such loads a thread makes.
constexpr int kVectorSize = 16 / sizeof(ValueT) < kNnzPerThread ? 16 / sizeof(ValueT) : kNnzPerThread;
constexpr int kVectors = kNnzPerThread / kVectorSize;
// With fewer row ends than this in a warp, sums are combined by shuffles before they meet in shared memory.
constexpr int kRowEndsForAtomics = 16;

// AssignRowsGlobal (algorithm 2). Where products do this themselves, rows that blocks share become beta * y.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hola_assign_rows(uint32_t num_rows, uint32_t num_blocks, const OffsetT* __restrict__ row_offsets,
                      uint32_t* __restrict__ block_rows, YT* __restrict__ y, BetaT beta) {
  await_stream();
  assign_rows(num_rows, num_blocks, row_offsets, block_rows, [&](uint32_t row) {
    if constexpr (!kPrepared) store_scaled(y, row, AccumT(0), AccumT(0), beta);
  });
}

// Where the sum of the row waits whose last nonzero in the block is this one: lanes that end rows do not meet in a
// bank.
__device__ __forceinline__ int sum_place(int nonzero) { return nonzero + nonzero / int(128 / sizeof(AccumT)); }

// Rotates the thread's vectors: vector i takes the place of vector i - by.
template <bool kRight>
__device__ __forceinline__ void rotate(AccumT (&entries)[kNnzPerThread], int by) {
#pragma unroll
  for (int step = 1; step < kVectors; step *= 2) {
    const bool moves = by & step;
    AccumT moved[kNnzPerThread];
#pragma unroll
    for (int i = 0; i < kNnzPerThread; ++i) {
      const int shift = (kRight ? kVectors - step : step) * kVectorSize;
      moved[i] = moves ? entries[(i + shift) % kNnzPerThread] : entries[i];
    }
#pragma unroll
    for (int i = 0; i < kNnzPerThread; ++i) entries[i] = moved[i];
  }
}

// From vectors dealt to the lanes in turn to kNnzPerThread consecutive entries a lane (algorithm 5, lines 11 to 25):
// vectors move onto diagonals, every shuffle takes one vector from every lane, and the order is restored.
__device__ __forceinline__ void to_matrix_order(AccumT (&entries)[kNnzPerThread]) {
  if constexpr (kVectors == 1) return;
  const int lane = threadIdx.x & 31;
  rotate<true>(entries, lane % kVectors);
  const int slot = lane / (32 / kVectors);
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int source = (lane * kVectors + ((i - slot) & (kVectors - 1))) & 31;
#pragma unroll
    for (int j = 0; j < kVectorSize; ++j) {
      AccumT& entry = entries[i * kVectorSize + j];
      entry = __shfl_sync(kAllLanes, entry, source);
    }
  }
  rotate<false>(entries, slot);
}

// LoadAndPremultiply (algorithm 5), before entries are brought into the order of the matrix. Nonzeros past the end
// of the share count as 0 and touch nothing.
template <bool kFull>
__device__ __forceinline__ void load_and_premultiply(AccumT (&products)[kNnzPerThread], const Share& share,
                                                     const IndexT* __restrict__ col_indices,
                                                     const ValueT* __restrict__ values, const XT* __restrict__ x) {
  const int first = (threadIdx.x & ~31) * kNnzPerThread + (threadIdx.x & 31) * kVectorSize;
  ValueT entries[kNnzPerThread];
  // Of 32 bits, because every narrow index is a column.
  uint32_t cols[kNnzPerThread];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const int at = first + i * 32 * kVectorSize;
    if (kFull) {
      load_streaming<kVectorSize>(entries + i * kVectorSize, values + share.begin + at);
      load_streaming<kVectorSize>(cols + i * kVectorSize, col_indices + share.begin + at);
    } else {
#pragma unroll
      for (int j = 0; j < kVectorSize; ++j) {
        const bool inside = at + j < share.nnz;
        entries[i * kVectorSize + j] = inside ? __ldcs(values + share.begin + at + j) : ValueT(0);
        cols[i * kVectorSize + j] = inside ? __ldcs(col_indices + share.begin + at + j) : kNoColumn;
      }
    }
  }
  int order[kNnzPerThread];
  AccumT gathered[kNnzPerThread];
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) order[i] = i;
  if constexpr (kSortColumns) sort_thread(cols, order);
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    gathered[i] = kFull || cols[i] != kNoColumn ? AccumT(__ldg(x + cols[i])) : AccumT(0);
  }
  if constexpr (kSortColumns) sort_thread(order, gathered);
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) products[i] = AccumT(entries[i]) * gathered[i];
}

// The sum of all the thread's products in the block, for thread 0.
__device__ __forceinline__ AccumT block_sum(const AccumT (&products)[kNnzPerThread], AccumT* sums) {
  AccumT sum = products[0];
#pragma unroll
  for (int i = 1; i < kNnzPerThread; ++i) sum += products[i];
  sum = group_sum<32>(sum, kAllLanes);
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  for (int warp = 1; threadIdx.x < 32 && warp < kWarps; ++warp) sum += sums[warp];
  return sum;
}

// y[row] += alpha * sum, where y has the type of sums.
__device__ __forceinline__ void add_scaled(YT* y, uint32_t row, AccumT sum, AccumT alpha) {
  if constexpr (kAlpha == Coefficient::kAny) sum = scaled(alpha, sum);
  if constexpr (kAlpha == Coefficient::kMinusOne) sum = -sum;
  atomicAdd(reinterpret_cast<AccumT*>(y) + row, sum);
}

// Of a row that blocks share, this block's part; called by the first warp. It is added to y, which holds beta * y
// already, or meets the other parts in the order of the blocks.
__device__ __forceinline__ void write_part(const Share& share, uint32_t row, const OffsetT* __restrict__ row_offsets,
                                           AccumT sum, YT* y, AccumT alpha, BetaT beta, const SpanningRows& spanning) {
  if constexpr (kPrepared) {
    const uint32_t first = uint32_t(__ldg(row_offsets + row) / kNnzPerBlock);
    const uint32_t last = uint32_t((__ldg(row_offsets + row + 1) - 1) / kNnzPerBlock);
    add_piece(spanning, row, first, last, blockIdx.x, sum, y, alpha, beta);
  } else if (threadIdx.x == 0) {
    add_scaled(y, row, sum, alpha);
  }
}

// Calls body(row, begin, end, counts) for rows first, first + kThreadsPerBlock, … up to stop, the warp's lanes together;
// `counts` says whether there is such a row. The offsets of several rows are under way at once: where most rows are
// empty a block has thousands.
template <typename Body>
__device__ __forceinline__ void for_rows(uint32_t first, uint32_t stop, const OffsetT* __restrict__ row_offsets,
                                         Body body) {
  constexpr int kAtOnce = 4;
  const uint32_t lane = threadIdx.x & 31;
#pragma unroll 1
  for (uint32_t base = first - lane; base <= stop; base += kAtOnce * kThreadsPerBlock) {
    OffsetT begins[kAtOnce], ends[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const uint32_t row = base + i * kThreadsPerBlock + lane;
      begins[i] = row <= stop ? __ldg(row_offsets + row) : 0;
      ends[i] = row <= stop ? __ldg(row_offsets + row + 1) : 0;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const uint32_t start = base + i * kThreadsPerBlock;
      if (start > stop) break;
      body(start + lane, begins[i], ends[i], start + lane <= stop);
    }
  }
}

// AssignRowsLocal (algorithm 4): a bit for every nonzero that ends a row in the block, and for every thread where the
// row ends in which its nonzeros begin.
__device__ __forceinline__ void assign_rows_local(const Share& share, uint32_t stop,
                                                  const OffsetT* __restrict__ row_offsets, uint32_t* row_ends,
                                                  int* thread_ends) {
  for_rows(share.first_row + threadIdx.x, stop, row_offsets, [&](uint32_t, OffsetT begin, OffsetT row_end, bool counts) {
    const int from = share.from(begin), end = share.to(row_end) - 1;
    int first = 1, last = 0;
    if (counts && from <= end) {
      first = (from + kNnzPerThread - 1) / kNnzPerThread;
      last = end / kNnzPerThread;
      atomicOr(row_ends + last, 1u << end % kNnzPerThread);
    }
    // A row over many threads is the whole warp's.
    const bool is_long = first + 32 <= last;
#pragma unroll 1
    for (int thread = first; !is_long && thread <= last; ++thread) thread_ends[thread] = end;
    for (uint32_t longs = __ballot_sync(kAllLanes, is_long); longs != 0; longs &= longs - 1) {
      const int source = __ffs(longs) - 1;
      const int to = __shfl_sync(kAllLanes, last, source), place = __shfl_sync(kAllLanes, end, source);
      int thread = __shfl_sync(kAllLanes, first, source) + (threadIdx.x & 31);
      for (; thread <= to; thread += 32) thread_ends[thread] = place;
    }
  });
}

// Parts of rows that end in other threads, adaptively: with few row ends in the warp, neighbours with parts of one
// row are combined first (algorithm 6).
__device__ __forceinline__ void add_shared_rows(AccumT sum, int end, bool ends_row, AccumT* sums) {
  const int lane = threadIdx.x & 31;
  bool adds = true;
  if (__popc(__ballot_sync(kAllLanes, ends_row)) < kRowEndsForAtomics) {
    const int before = __shfl_up_sync(kAllLanes, end, 1);
    adds = lane == 0 || before != end;
    const uint32_t later = __ballot_sync(kAllLanes, adds) & ~((2u << lane) - 1);
    const int next = later == 0 ? 32 : __ffs(later) - 1;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const AccumT other = __shfl_down_sync(kAllLanes, sum, offset);
      if (lane + offset < next) sum += other;
    }
  }
  if (adds && sum != AccumT(0)) atomicAdd(sums + sum_place(end), sum);
}

// Whole lines of y at a time (WriteBufferInnerCoalesced), of the rows that lie in this block alone.
__device__ __forceinline__ void write_rows(const Share& share, uint32_t stop, const OffsetT* __restrict__ row_offsets,
                                           const AccumT* sums, YT* y, AccumT alpha, BetaT beta) {
  const OffsetT share_end = share.begin + share.nnz;
  const uint32_t first = (share.first_row & ~31) + threadIdx.x;
  for_rows(first, stop, row_offsets, [&](uint32_t row, OffsetT begin, OffsetT end, bool counts) {
    if (!counts || row < share.first_row || begin < share.begin || end > share_end) return;
    // The next block's first row is its own; an empty row before it belongs here.
    if (row == share.next_row) return;
    store_scaled(y, row, begin == end ? AccumT(0) : sums[sum_place(share.to(end) - 1)], alpha, beta);
  });
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hola(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets,
          const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values, const XT* __restrict__ x,
          YT* __restrict__ y, AlphaT alpha, BetaT beta, const uint32_t* __restrict__ block_rows, AccumT* tails,
          AccumT* heads, PieceWordT* meetings) {
  await_stream();
  __shared__ AccumT sums[kNnzPerBlock + kNnzPerBlock * sizeof(AccumT) / 128];
  __shared__ uint32_t row_ends[kThreadsPerBlock];
  __shared__ int thread_ends[kThreadsPerBlock];
  const SpanningRows spanning{tails, heads, meetings};

  const Share share = load_share(nnz, block_rows);
  row_ends[threadIdx.x] = 0;

  AccumT products[kNnzPerThread] = {};
  if (!skips_product(alpha)) {
    if (share.nnz == kNnzPerBlock) {
      load_and_premultiply<true>(products, share, col_indices, values, x);
    } else {
      load_and_premultiply<false>(products, share, col_indices, values, x);
    }
  }
  if (share.next_row == share.first_row) {
    const AccumT sum = block_sum(products, sums);
    if (threadIdx.x < 32) write_part(share, share.first_row, row_offsets, sum, y, alpha, beta, spanning);
    return;
  }
  __syncthreads();
  const uint32_t stop = min(share.next_row, num_rows - 1);
  assign_rows_local(share, stop, row_offsets, row_ends, thread_ends);
  to_matrix_order(products);
  __syncthreads();

  // Sums along the thread's nonzeros; what is left belongs to the row in which the next thread begins.
  const uint32_t ends = row_ends[threadIdx.x];
  AccumT sum = 0;
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    sum += products[i];
    if (ends >> i & 1) {
      sums[sum_place(threadIdx.x * kNnzPerThread + i)] = sum;
      sum = 0;
    }
  }
  const int next = (threadIdx.x + 1) * kNnzPerThread;
  const int end = next < share.nnz ? thread_ends[threadIdx.x + 1] : -1;
  __syncthreads();
  add_shared_rows(sum, end, ends != 0, sums);
  __syncthreads();

  // The first warp brings the parts of rows that began before or go on after; the others write meanwhile.
  if (threadIdx.x < 32) {
    if (__ldg(row_offsets + share.first_row) < share.begin) {
      const AccumT part = sums[sum_place(share.to(__ldg(row_offsets + share.first_row + 1)) - 1)];
      write_part(share, share.first_row, row_offsets, part, y, alpha, beta, spanning);
    }
    if (share.next_row < num_rows && __ldg(row_offsets + share.next_row) < share.begin + share.nnz) {
      const AccumT part = sums[sum_place(share.nnz - 1)];
      write_part(share, share.next_row, row_offsets, part, y, alpha, beta, spanning);
    }
  }
  write_rows(share, stop, row_offsets, sums, y, alpha, beta);
}
