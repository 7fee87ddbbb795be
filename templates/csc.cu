// csc: compressed sparse columns; a group of lanes takes a column and adds each product to y by an atomic.
//
// Formula:   y[r] <- alpha * sum over j with row_indices[j] = r of values[j] * x[column of j] + beta * y[r]
// Paper:     Bell and Garland 2009 (Implementing sparse matrix-vector multiplication on throughput-oriented processors: the formats that it weighs); the scatter is that of naive_t, over columns
// Suits:     a matrix that is there by columns and is multiplied seldom; columns of several entries in rows that no others share
// Suffers:   nearly everything: an atomic a nonzero, rows with many entries (their atomics wait for each other), long columns (a group each); any algorithm by rows is faster; values that change (they are copied when a plan is made)
// Bytes:     nnz * (value + index) + (cols + 1) * offset + cols * x + 2 * rows * y, and an atomic a nonzero; keeps its own rows and values
// Guarantee: not bit-reproducible: products are added in the order in which they come
// Launch:    y <- beta * y first, a thread a row; then threads_per_vector threads a column; no shared memory; columns are sorted out on the device, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kThreadsPerVector = 4;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/transposed.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#include "prelude/search.cuh"
#include "prelude/transposed_copy.cuh"
#endif

// Entries of a lane whose loads are in flight together.
constexpr int kSteps = 4;

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csc_scale(uint32_t num_rows, YT* __restrict__ y, BetaT beta) {
  await_stream();
  scale_y(num_rows, y, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csc(uint32_t num_cols, const OffsetT* __restrict__ col_offsets, const IndexT* __restrict__ row_indices,
         const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha) {
  await_stream();
  if (skips_product(alpha)) return;
  const uint32_t col = blockIdx.x * (kThreadsPerBlock / kThreadsPerVector) + threadIdx.x / kThreadsPerVector;
  if (col >= num_cols) return;
  const OffsetT begin = __ldg(col_offsets + col), end = __ldg(col_offsets + col + 1);
  if (begin == end) return;
  const AccumT entry = AccumT(__ldg(x + col));
  for (OffsetT first = begin + threadIdx.x % kThreadsPerVector; first < end; first += kSteps * kThreadsPerVector) {
    IndexT rows[kSteps];
    ValueT factors[kSteps];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      if (end - first > OffsetT(s * kThreadsPerVector)) {
        rows[s] = __ldcs(row_indices + first + s * kThreadsPerVector);
        factors[s] = __ldcs(values + first + s * kThreadsPerVector);
      }
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      if (end - first > OffsetT(s * kThreadsPerVector)) add_scaled(y, rows[s], AccumT(factors[s]) * entry, alpha);
    }
  }
}
