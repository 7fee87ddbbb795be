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
#include "prelude/jagged_diagonals.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jds(uint32_t num_rows, uint32_t width, const uint32_t* __restrict__ permutation,
         const OffsetT* __restrict__ diagonal_offsets, const IndexT* __restrict__ slot_cols,
         const ValueT* __restrict__ slot_values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
         BetaT beta) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (place >= num_rows) return;
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
