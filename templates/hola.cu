// hola: equal shares of nonzeros for blocks and threads, rows found by a scatter, sums meet in shared memory.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Steinberger, Zayer and Seidel 2017 (Globally homogeneous, locally adaptive SpMV on the GPU), algorithms 2 to 6
// Suits:     rows of any length, giants and empty ones among them: every thread has the same number of nonzeros
// Suffers:   short regular rows, where finding the rows costs more than it evens out
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once; extra: 4 a block of threads_per_block * nnz_per_thread nonzeros (0.002 a nonzero for 256 * 8); prepared = 1 adds a sum and a counter (0.006 together for f32), so that rows are assigned once and y is written once; prepared = 0 reads the row offsets twice
// Guarantee: not bit-reproducible: sums meet by atomics in shared memory and, for rows that blocks share, in global memory
// Launch:    prepared = 1: rows are assigned once for a structure, one pass a product; prepared = 0: assigned in every product, two passes, as in the paper
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kNnzPerThread = 8;
constexpr int kPrepared = 1;
constexpr int kSortColumns = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/group.cuh"
#endif

constexpr int kWarps = kThreadsPerBlock / 32;
constexpr int kNnzPerBlock = kThreadsPerBlock * kNnzPerThread;
// Entries that one 16-byte load of values brings, and how many such loads a thread makes.
constexpr int kVectorSize = 16 / sizeof(ValueT) < kNnzPerThread ? 16 / sizeof(ValueT) : kNnzPerThread;
constexpr int kVectors = kNnzPerThread / kVectorSize;
constexpr uint32_t kAllLanes = 0xffffffffu;
// With fewer row ends than this in a warp, sums are combined by shuffles before they meet in shared memory.
constexpr int kRowEndsForAtomics = 16;

// AssignRowsGlobal (algorithm 2): block_rows[b] is the row of the block's first nonzero; the first block begins at
// row 0, and one entry more names the end. Where products do this themselves, rows that blocks share become beta * y.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hola_assign_rows(uint32_t num_rows, uint32_t num_blocks, const OffsetT* __restrict__ row_offsets,
                      uint32_t* __restrict__ block_rows, YT* __restrict__ y, AccumT beta) {
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  uint32_t first = 1, last = 0;
  if (row < num_rows) {
    const OffsetT begin = __ldg(row_offsets + row), end = __ldg(row_offsets + row + 1);
    if (begin < end) {
      first = max(uint32_t((begin + kNnzPerBlock - 1) / kNnzPerBlock), 1u);
      last = uint32_t((end - 1) / kNnzPerBlock);
      if constexpr (!kPrepared) {
        if (begin / kNnzPerBlock != last) store_scaled(y, row, AccumT(0), AccumT(0), beta);
      }
    }
    if (row == 0) {
      block_rows[0] = 0;
      block_rows[num_blocks] = num_rows;
    }
  }
  // A row over many blocks is the whole warp's.
  const bool is_long = first + 4 <= last;
  for (uint32_t block = first; !is_long && block <= last; ++block) block_rows[block] = row;
  for (uint32_t longs = __ballot_sync(kAllLanes, is_long); longs != 0; longs &= longs - 1) {
    const int source = __ffs(longs) - 1;
    const uint32_t to = __shfl_sync(kAllLanes, last, source), of = __shfl_sync(kAllLanes, row, source);
    uint32_t block = __shfl_sync(kAllLanes, first, source) + (threadIdx.x & 31);
    for (; block <= to; block += 32) block_rows[block] = of;
  }
}

// What a block knows of its share.
struct Share {
  OffsetT begin;       // its first nonzero
  int nnz;             // how many it has
  uint32_t first_row;  // the row of the first
  uint32_t num_rows;   // rows that it writes or shares
};

// Batcher's odd-even merge sort of the keys, which the companions follow; the compiler knows all indices.
template <typename Key, typename Companion>
__device__ __forceinline__ void sort_thread(Key (&keys)[kNnzPerThread], Companion (&companions)[kNnzPerThread]) {
#pragma unroll
  for (int p = 1; p < kNnzPerThread; p *= 2) {
#pragma unroll
    for (int k = p; k >= 1; k /= 2) {
#pragma unroll
      for (int low = k % p; low + k < kNnzPerThread; ++low) {
        const bool compared = (low - k % p) / k % 2 == 0 && low / (2 * p) == (low + k) / (2 * p);
        if (compared && keys[low] > keys[low + k]) {
          const Key key = keys[low];
          const Companion companion = companions[low];
          keys[low] = keys[low + k], companions[low] = companions[low + k];
          keys[low + k] = key, companions[low + k] = companion;
        }
      }
    }
  }
}

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
  IndexT cols[kNnzPerThread];
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
        cols[i * kVectorSize + j] = inside ? __ldcs(col_indices + share.begin + at + j) : IndexT(-1);
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
    gathered[i] = kFull || cols[i] != IndexT(-1) ? AccumT(__ldg(x + cols[i])) : AccumT(0);
  }
  if constexpr (kSortColumns) sort_thread(order, gathered);
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) products[i] = AccumT(entries[i]) * gathered[i];
}

// A row's sum, or the block's part of it, goes to y.
struct Output {
  YT* y;
  AccumT alpha, beta;
  AccumT* carries;
  uint32_t* arrivals;

  __device__ __forceinline__ void whole(uint32_t row, AccumT sum) const { store_scaled(y, row, sum, alpha, beta); }

  // Of a row that blocks may share. Parts meet by atomics: in y, which holds beta * y already, or in the sum of the
  // row's first block, from where the part that comes last takes it to y and leaves zeros for the next product.
  __device__ __forceinline__ void part(uint32_t row, OffsetT begin, OffsetT end, AccumT sum) const {
    const OffsetT first = begin / kNnzPerBlock, last = (end - 1) / kNnzPerBlock;
    if (begin >= end || first == last) return whole(row, sum);
    if constexpr (kPrepared) {
      atomicAdd(carries + first, sum);
      __threadfence();
      const uint32_t others = uint32_t(last - first);
      if (atomicInc(arrivals + first, others) != others) return;
      __threadfence();
      const AccumT total = *static_cast<volatile AccumT*>(carries + first);
      carries[first] = AccumT(0);
      whole(row, total);
    } else {
      if constexpr (kAlpha == Coefficient::kAny) sum = alpha * sum;
      if constexpr (kAlpha == Coefficient::kMinusOne) sum = -sum;
      atomicAdd(y + row, YT(sum));
    }
  }
};

// One row has every nonzero of the block.
__device__ __forceinline__ void single_row(const Share& share, const AccumT (&products)[kNnzPerThread],
                                           const OffsetT* __restrict__ row_offsets, AccumT* sums, const Output& out) {
  AccumT sum = products[0];
#pragma unroll
  for (int i = 1; i < kNnzPerThread; ++i) sum += products[i];
  sum = group_sum<32>(sum, kAllLanes);
  if ((threadIdx.x & 31) == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kWarps; ++warp) sum += sums[warp];
  out.part(share.first_row, __ldg(row_offsets + share.first_row), __ldg(row_offsets + share.first_row + 1), sum);
}

// More rows than the output buffer holds, most of them empty: nonzeros learn where their row begins in the block,
// and sums meet there.
__device__ __forceinline__ void many_rows(const Share& share, const AccumT (&products)[kNnzPerThread],
                                          const OffsetT* __restrict__ row_offsets, uint16_t* starts, AccumT* sums,
                                          const Output& out) {
  for (int i = threadIdx.x; i < kNnzPerBlock; i += kThreadsPerBlock) sums[i] = 0;
  for (uint32_t r = threadIdx.x; r < share.num_rows; r += kThreadsPerBlock) {
    const OffsetT begin = __ldg(row_offsets + share.first_row + r), end = __ldg(row_offsets + share.first_row + r + 1);
    if (begin == end) {
      out.whole(share.first_row + r, AccumT(0));
      continue;
    }
    const int from = begin > share.begin ? int(begin - share.begin) : 0;
    const int to = end - share.begin < OffsetT(share.nnz) ? int(end - share.begin) : share.nnz;
    for (int i = from; i < to; ++i) starts[i] = uint16_t(from);
  }
  __syncthreads();
  const int first = threadIdx.x * kNnzPerThread;
  AccumT sum = 0;
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    if (first + i >= share.nnz) break;
    sum += products[i];
    const bool last = i + 1 == kNnzPerThread || first + i + 1 >= share.nnz;
    if (last || starts[first + i + 1] != starts[first + i]) {
      atomicAdd(sums + starts[first + i], sum);
      sum = 0;
    }
  }
  __syncthreads();
  for (uint32_t r = threadIdx.x; r < share.num_rows; r += kThreadsPerBlock) {
    const OffsetT begin = __ldg(row_offsets + share.first_row + r), end = __ldg(row_offsets + share.first_row + r + 1);
    if (begin == end) continue;
    out.part(share.first_row + r, begin, end, sums[begin > share.begin ? int(begin - share.begin) : 0]);
  }
}

// AssignRowsLocal (algorithm 4): the row in which each thread's nonzeros begin, a bit for every nonzero that ends a
// row, a flag for every warp that meets empty rows; and zeros for those rows.
__device__ __forceinline__ void assign_rows_local(const Share& share, const OffsetT* __restrict__ row_offsets,
                                                  uint32_t* thread_rows, uint32_t* row_ends, uint32_t* has_empty,
                                                  AccumT* sums) {
  for (uint32_t base = threadIdx.x & ~31; base < share.num_rows; base += kThreadsPerBlock) {
    const uint32_t r = base + (threadIdx.x & 31);
    int first = 1, last = 0;
    if (r < share.num_rows) {
      const OffsetT begin = __ldg(row_offsets + share.first_row + r);
      const OffsetT end = __ldg(row_offsets + share.first_row + r + 1);
      const int from = begin > share.begin ? int(begin - share.begin) : 0;
      const int to = end - share.begin < OffsetT(share.nnz) ? int(end - share.begin) : share.nnz;
      if (begin == end) {
        if (from < kNnzPerBlock) atomicOr(has_empty + from / (32 * kNnzPerThread), 1u);
        sums[r] = 0;
      } else {
        first = (from + kNnzPerThread - 1) / kNnzPerThread;
        last = (to - 1) / kNnzPerThread;
        atomicOr(row_ends + last, 1u << (to - 1 - last * kNnzPerThread));
      }
    }
    // A row over many threads is the whole warp's.
    const bool is_long = first + 4 <= last;
    for (int thread = first; !is_long && thread <= last; ++thread) thread_rows[thread] = r;
    for (uint32_t longs = __ballot_sync(kAllLanes, is_long); longs != 0; longs &= longs - 1) {
      const int source = __ffs(longs) - 1;
      const int to = __shfl_sync(kAllLanes, last, source);
      int thread = __shfl_sync(kAllLanes, first, source) + (threadIdx.x & 31);
      for (; thread <= to; thread += 32) thread_rows[thread] = base + source;
    }
  }
}

// Sums along the thread's nonzeros: a row that ends here is written. What is left belongs to `row`, which ends in
// another thread; the return value.
__device__ __forceinline__ AccumT sum_thread(const Share& share, const AccumT (&products)[kNnzPerThread],
                                             const OffsetT* __restrict__ row_offsets, bool has_empty,
                                             uint32_t ends, uint32_t& row, AccumT* sums) {
  AccumT sum = 0;
#pragma unroll
  for (int i = 0; i < kNnzPerThread; ++i) {
    sum += products[i];
    if (ends >> i & 1) {
      sums[row] = sum;
      sum = 0;
      ++row;
      if (has_empty && i + 1 < kNnzPerThread) {
        const OffsetT next = share.begin + threadIdx.x * kNnzPerThread + i + 1;
        while (row < share.num_rows && __ldg(row_offsets + share.first_row + row + 1) <= next) ++row;
      }
    }
  }
  return sum;
}

// Parts of rows that threads share, adaptively: with few row ends in the warp, neighbours with parts of one row are
// combined first (algorithm 6).
__device__ __forceinline__ void add_shared_rows(AccumT sum, uint32_t row, bool ends_row, AccumT* sums) {
  const int lane = threadIdx.x & 31;
  bool adds = true;
  if (__popc(__ballot_sync(kAllLanes, ends_row)) < kRowEndsForAtomics) {
    const uint32_t before = __shfl_up_sync(kAllLanes, row, 1);
    adds = lane == 0 || before != row;
    const uint32_t later = __ballot_sync(kAllLanes, adds) & ~((2u << lane) - 1);
    const int next = later == 0 ? 32 : __ffs(later) - 1;
#pragma unroll
    for (int offset = 1; offset < 32; offset *= 2) {
      const AccumT other = __shfl_down_sync(kAllLanes, sum, offset);
      if (lane + offset < next) sum += other;
    }
  }
  if (adds && sum != AccumT(0)) atomicAdd(sums + row, sum);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hola(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets,
          const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values, const XT* __restrict__ x,
          YT* __restrict__ y, AccumT alpha, AccumT beta, const uint32_t* __restrict__ block_rows, AccumT* carries,
          uint32_t* arrivals) {
  __shared__ AccumT sums[kNnzPerBlock];
  __shared__ uint32_t assignment[kNnzPerBlock / 2];
  __shared__ uint32_t has_empty[kWarps];
  uint32_t* const thread_rows = assignment;
  uint32_t* const row_ends = assignment + kThreadsPerBlock;
  const Output out{y, alpha, beta, carries, arrivals};

  Share share;
  share.begin = OffsetT(blockIdx.x) * kNnzPerBlock;
  share.nnz = nnz - share.begin < OffsetT(kNnzPerBlock) ? int(nnz - share.begin) : kNnzPerBlock;
  share.first_row = __ldg(block_rows + blockIdx.x);
  const uint32_t next_row = __ldg(block_rows + blockIdx.x + 1);

  AccumT products[kNnzPerThread] = {};
  if (!skips_product(alpha)) {
    if (share.nnz == kNnzPerBlock) {
      load_and_premultiply<true>(products, share, col_indices, values, x);
    } else {
      load_and_premultiply<false>(products, share, col_indices, values, x);
    }
  }
  if (next_row == share.first_row) return single_row(share, products, row_offsets, sums, out);

  // The row where the next block begins counts here too if it begins here.
  share.num_rows = next_row - share.first_row;
  if (next_row < num_rows && __ldg(row_offsets + next_row) < share.begin + share.nnz) ++share.num_rows;
  to_matrix_order(products);
  if (share.num_rows > kNnzPerBlock) {
    return many_rows(share, products, row_offsets, reinterpret_cast<uint16_t*>(assignment), sums, out);
  }

  row_ends[threadIdx.x] = 0;
  if (threadIdx.x < kWarps) has_empty[threadIdx.x] = 0;
  __syncthreads();
  assign_rows_local(share, row_offsets, thread_rows, row_ends, has_empty, sums);
  __syncthreads();
  const bool any = threadIdx.x * kNnzPerThread < share.nnz;
  uint32_t row = any ? thread_rows[threadIdx.x] : 0;
  const uint32_t ends = row_ends[threadIdx.x];
  const AccumT rest = sum_thread(share, products, row_offsets, has_empty[threadIdx.x / 32] != 0, ends, row, sums);
  __syncthreads();
  add_shared_rows(rest, row, ends != 0, sums);
  __syncthreads();

  // Whole lines of y at a time; the first and the last row may be shared with other blocks.
  for (int64_t r = int64_t(threadIdx.x) - share.first_row % 32; r < share.num_rows; r += kThreadsPerBlock) {
    if (r < 0) continue;
    const uint32_t at = share.first_row + uint32_t(r);
    if (r == 0 || r + 1 == share.num_rows) {
      out.part(at, __ldg(row_offsets + at), __ldg(row_offsets + at + 1), sums[r]);
    } else {
      out.whole(at, sums[r]);
    }
  }
}
