// jds: rows sorted by falling length; jagged diagonals, all first entries, then all second and so on, or a row after the other.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Saad 1989 (jagged diagonals); ECE 408 2025, lecture 17 (JDS, sorted against divergence: transposed = 0; JDS_T, transposed for coalescing: transposed = 1)
// Suits:     rows of many different lengths, none of them giant: triangular matrices
// Suffers:   giant rows, one thread each; rows that sorting takes far from their neighbours, which read x and write y in other sectors each; with transposed = 0, long rows, as neighbours read entries that lie far apart; values that change (they are copied when a plan is made)
// Bytes:     nnz * (value + index) + 4 a row + rows * y + x once, and the diagonal offsets, which stay in L1, or with transposed = 0 an offset a row; no fill; keeps its own values and columns
// Guarantee: bit-reproducible; a row is one chain in the order of the matrix
// Launch:    a thread a row; one pass; rows are sorted by a radix sort and converted on the device, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kTransposed = 1;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/slots.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#include "prelude/jagged_diagonals.cuh"
#endif

// ---- Rows one after the other: kernels that are not launched return at once, and take no time to compile ----

struct SortedLength {
  const SortPair* pairs;
  uint32_t width;

  __device__ __forceinline__ OffsetT operator()(uint64_t place) const { return width - pairs[place].x; }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_offsets_sum_chunk(uint64_t length, const SortPair* pairs, uint32_t num_rows, uint32_t width,
                           uint64_t* partials) {
  await_stream();
  if constexpr (kTransposed == 0) scan_sum_chunk(length, partials, SortedLength{pairs, width});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_offsets_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, OffsetT* sorted_offsets,
                          uint64_t* total) {
  await_stream();
  if constexpr (kTransposed == 0) scan_partials(num_partials, length, partials, sorted_offsets, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_offsets_chunk(uint64_t length, const SortPair* pairs, uint32_t num_rows, uint32_t width,
                       const uint64_t* partials, OffsetT* sorted_offsets) {
  await_stream();
  if constexpr (kTransposed == 0) scan_chunk(length, partials, sorted_offsets, SortedLength{pairs, width});
}

// A thread a row, in the sorted order.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_copy(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
              const ValueT* __restrict__ values, const SortPair* __restrict__ pairs,
              const OffsetT* __restrict__ sorted_offsets, uint32_t* __restrict__ permutation,
              IndexT* __restrict__ slot_cols, ValueT* __restrict__ slot_values) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (kTransposed != 0 || place >= num_rows) return;
  const uint32_t row = pairs[place].y;
  permutation[place] = row;
  const OffsetT begin = __ldg(row_offsets + row), first = __ldg(sorted_offsets + place);
  const uint32_t length = uint32_t(__ldg(row_offsets + row + 1) - begin);
#pragma unroll 4
  for (uint32_t k = 0; k < length; ++k) {
    slot_cols[first + k] = __ldg(col_indices + begin + k);
    slot_values[first + k] = __ldg(values + begin + k);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds_rows(uint32_t num_rows, uint32_t width, const uint32_t* __restrict__ permutation,
              const OffsetT* __restrict__ sorted_offsets, const IndexT* __restrict__ slot_cols,
              const ValueT* __restrict__ slot_values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
              BetaT beta) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (kTransposed != 0 || place >= num_rows) return;
  const OffsetT begin = __ldg(sorted_offsets + place), next = __ldg(sorted_offsets + place + 1);
  const OffsetT end = skips_product(alpha) ? begin : next;
  AccumT sum = kIdentity;
#pragma unroll 4
  for (OffsetT slot = begin; slot < end; ++slot) {
    const IndexT col = __ldg(slot_cols + slot);
    sum = combine_reduce(AccumT(__ldg(slot_values + slot)), AccumT(__ldg(x + col)), col, sum);
  }
  store_scaled(y, __ldcs(permutation + place), sum, alpha, beta);
}

// ---- Jagged diagonals ----

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds(uint32_t num_rows, uint32_t width, const uint32_t* __restrict__ permutation,
         const OffsetT* __restrict__ diagonal_offsets, const IndexT* __restrict__ slot_cols,
         const ValueT* __restrict__ slot_values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
         BetaT beta) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (kTransposed == 0 || place >= num_rows) return;
  const uint32_t row = __ldcs(permutation + place);
  const uint32_t num_steps = skips_product(alpha) ? 0 : width;
  AccumT sum = kIdentity;
  for (uint32_t k = 0; k < num_steps; k += kDiagonalSteps) {
    IndexT cols[kDiagonalSteps];
    ValueT values[kDiagonalSteps];
    XT entries[kDiagonalSteps];
    load_diagonals(cols, values, k, num_steps, place, diagonal_offsets, slot_cols, slot_values);
#pragma unroll
    for (int s = 0; s < kDiagonalSteps; ++s) entries[s] = slot_entry(x, cols[s]);
#pragma unroll
    for (int s = 0; s < kDiagonalSteps; ++s) sum = add_slot(cols[s], values[s], entries[s], sum);
    if (cols[kDiagonalSteps - 1] == kNoColumn) break;
  }
  store_scaled(y, row, sum, alpha, beta);
}
