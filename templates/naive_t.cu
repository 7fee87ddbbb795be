// naive_t: the transposed product: a thread takes a row and adds each product to y by an atomic.
//
// Formula:   y[c] <- alpha * sum over j with col_indices[j] = c of values[j] * x[row of j] + beta * y[c]
// Paper:     Steinberger, Zayer and Seidel 2017 (Globally homogeneous, locally adaptive SpMV on the GPU), 3.4 (the naive transpose)
// Suits:     short rows of nearly equal length, with columns that no others share
// Suffers:   long and uneven rows (a warp waits for its longest), columns with many entries (their atomics wait for each other)
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * x + cols * y, and an atomic a nonzero
// Guarantee: not bit-reproducible: products are added in the order in which they come
// Launch:    y <- beta * y first, a thread a column; then a thread a row, grid stride; no shared memory, no workspace
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/transposed.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_naive_t_scale(uint32_t num_cols, YT* __restrict__ y, BetaT beta) {
  await_stream();
  scale_y(num_cols, y, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_naive_t(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
             const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha) {
  await_stream();
  if (skips_product(alpha)) return;
  const uint32_t num_threads = gridDim.x * kThreadsPerBlock;
  for (uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x; row < num_rows; row += num_threads) {
    const OffsetT begin = __ldg(row_offsets + row), end = __ldg(row_offsets + row + 1);
    if (begin == end) continue;
    const AccumT entry = AccumT(__ldg(x + row));
    for (OffsetT j = begin; j < end; ++j) {
      add_scaled(y, __ldg(col_indices + j), AccumT(__ldg(values + j)) * entry, alpha);
    }
  }
}
