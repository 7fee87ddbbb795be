// tjds: transposed jagged diagonals; columns sorted by falling length, then all first entries, all second entries, and so on.
//
// Formula:   y[r] <- alpha * sum over j with row_indices[j] = r of values[j] * x[column of j] + beta * y[r]
// Paper:     Montagne and Ekambaram 2004 (An optimal storage format for sparse matrices: TJDS); what ECE 408 2025, lecture 17, calls JDS_T is jds with transposed = 1
// Suits:     columns of many different lengths, none of them giant, whose entries lie in rows that no others share
// Suffers:   nearly everything: an atomic a nonzero, rows with many entries (their atomics wait for each other), giant columns, one thread each; jds is faster; values that change (they are copied when a plan is made)
// Bytes:     nnz * (value + index) + 4 a column + cols * x + 2 * rows * y, an atomic a nonzero, and the diagonal offsets, which stay in L1; no fill; keeps its own rows and values
// Guarantee: not bit-reproducible: products are added in the order in which they come
// Launch:    y <- beta * y first, a thread a row; then a thread a column, whose entry of x it keeps; columns are sorted out, sorted by length and converted on the device, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/slots.cuh"
#include "prelude/transposed.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#include "prelude/search.cuh"
#include "prelude/transposed_copy.cuh"
#include "prelude/jagged_diagonals.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_tjds_scale(uint32_t num_rows, YT* __restrict__ y, BetaT beta) {
  await_stream();
  scale_y(num_rows, y, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_tjds(uint32_t num_cols, uint32_t width, const uint32_t* __restrict__ permutation,
           const OffsetT* __restrict__ diagonal_offsets, const IndexT* __restrict__ slot_rows,
           const ValueT* __restrict__ slot_values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (place >= num_cols || skips_product(alpha)) return;
  IndexT rows[kDiagonalSteps];
  ValueT values[kDiagonalSteps];
  XT entry = XT(0);
  for (uint32_t k = 0; k < width; k += kDiagonalSteps) {
    load_diagonals(rows, values, k, width, place, diagonal_offsets, slot_rows, slot_values);
    // A column without entries touches no x.
    if (rows[0] == kNoColumn) return;
    if (k == 0) entry = __ldg(x + __ldg(permutation + place));
#pragma unroll
    for (int s = 0; s < kDiagonalSteps; ++s) {
      if (rows[s] != kNoColumn) add_scaled(y, rows[s], AccumT(values[s]) * AccumT(entry), alpha);
    }
  }
}
