// jds: jagged diagonals; rows sorted by falling length, then all first entries, all second entries, and so on.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Saad 1989 (jagged diagonals); ECE 408 2025, lecture 17 (JDS with transposition: sorted against divergence, transposed for coalescing)
// Suits:     rows of many different lengths, none of them giant: triangular matrices
// Suffers:   giant rows, one thread each; rows that sorting takes far from their neighbours, which read x and write y in other sectors each; values that change (they are copied when a plan is made)
// Bytes:     nnz * (value + index) + 4 a row + rows * y + x once, and the diagonal offsets, which stay in L1; no fill; keeps its own values and columns
// Guarantee: bit-reproducible; a row is one chain in the order of the matrix
// Launch:    a thread a row; one pass; rows are sorted by a radix sort and converted on the device, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/slots.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#endif

// Diagonals whose loads are in flight together.
constexpr int kSteps = 8;

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_width(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint64_t* width) {
  find_longest_row(num_rows, row_offsets, width);
}

// pairs <- how much shorter than the longest every row is, and the row.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_rows(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t width, SortPair* __restrict__ pairs) {
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row < num_rows) pairs[row] = {width - uint32_t(row_offsets[row + 1] - row_offsets[row]), row};
}

// Entries of a diagonal: the rows that are longer than its number, which are the first of the sorted ones.
struct DiagonalLength {
  const SortPair* pairs;
  uint32_t num_rows, width;

  __device__ __forceinline__ OffsetT operator()(uint64_t diagonal) const {
    const uint32_t too_short = width - uint32_t(diagonal);
    uint32_t low = 0, high = num_rows;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (pairs[middle].x < too_short) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_diagonals_sum_chunk(uint64_t length, const SortPair* pairs, uint32_t num_rows, uint32_t width,
                             OffsetT* partials) {
  scan_sum_chunk(length, partials, DiagonalLength{pairs, num_rows, width});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_diagonals_partials(uint32_t num_partials, uint64_t length, OffsetT* partials, OffsetT* diagonal_offsets,
                            uint64_t* total) {
  scan_partials(num_partials, length, partials, diagonal_offsets, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_diagonals_chunk(uint64_t length, const SortPair* pairs, uint32_t num_rows, uint32_t width,
                         const OffsetT* partials, OffsetT* diagonal_offsets) {
  scan_chunk(length, partials, diagonal_offsets, DiagonalLength{pairs, num_rows, width});
}

// A thread a row, in the sorted order.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_convert(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                 const ValueT* __restrict__ values, const SortPair* __restrict__ pairs,
                 const OffsetT* __restrict__ diagonal_offsets, uint32_t* __restrict__ permutation,
                 IndexT* __restrict__ slot_cols, ValueT* __restrict__ slot_values) {
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (place >= num_rows) return;
  const uint32_t row = pairs[place].y;
  permutation[place] = row;
  const OffsetT begin = __ldg(row_offsets + row);
  const uint32_t length = uint32_t(__ldg(row_offsets + row + 1) - begin);
#pragma unroll 4
  for (uint32_t k = 0; k < length; ++k) {
    const OffsetT slot = __ldg(diagonal_offsets + k) + place;
    slot_cols[slot] = __ldg(col_indices + begin + k);
    slot_values[slot] = __ldg(values + begin + k);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds(uint32_t num_rows, uint32_t width, const uint32_t* __restrict__ permutation,
         const OffsetT* __restrict__ diagonal_offsets, const IndexT* __restrict__ slot_cols,
         const ValueT* __restrict__ slot_values, const XT* __restrict__ x, YT* __restrict__ y, AccumT alpha,
         AccumT beta) {
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (place >= num_rows) return;
  const uint32_t row = __ldcs(permutation + place);
  const uint32_t num_steps = skips_product(alpha) ? 0 : width;
  AccumT sum = kIdentity;
  for (uint32_t k = 0; k < num_steps; k += kSteps) {
    IndexT cols[kSteps];
    ValueT values[kSteps];
    XT entries[kSteps];
    OffsetT first = __ldg(diagonal_offsets + k);
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      const OffsetT next = __ldg(diagonal_offsets + min(k + s + 1, num_steps));
      const bool is_entry = k + s < num_steps && place < next - first;
      cols[s] = is_entry ? __ldcs(slot_cols + first + place) : kNoColumn;
      values[s] = is_entry ? __ldcs(slot_values + first + place) : ValueT(0);
      first = next;
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) entries[s] = slot_entry(x, cols[s]);
#pragma unroll
    for (int s = 0; s < kSteps; ++s) sum = add_slot(cols[s], values[s], entries[s], sum);
    if (cols[kSteps - 1] == kNoColumn) break;
  }
  store_scaled(y, row, sum, alpha, beta);
}
