// pcsr: one kernel stores all products, another sums them row by row through shared memory (PCSR).
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     He and Gao 2016 (PCSR); Hiranandani, IV.D
// Suits:     comparing: it shows what a round trip of the products through memory costs
// Suffers:   everywhere; long rows most (a thread sums each)
// Bytes:     nnz * (value + index + 2 * sum) + (rows + 1) * offset + rows * y + x once; the plan keeps nnz sums
// Guarantee: bit-reproducible; the products of a row are added one after the other
// Launch:    a thread a nonzero, then a thread a row; products_per_step sums and threads_per_block + 1 offsets of shared memory; two passes
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kProductsPerStep = 1024;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pcsr_products(uint64_t nnz, const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                   const XT* __restrict__ x, AlphaT alpha, AccumT* __restrict__ products) {
  await_stream();
  if (skips_product(alpha)) return;
  const uint64_t num_threads = gridDim.x * uint64_t(kThreadsPerBlock);
  for (uint64_t j = blockIdx.x * uint64_t(kThreadsPerBlock) + threadIdx.x; j < nnz; j += num_threads) {
    const IndexT col = __ldcs(col_indices + j);
    products[j] = combine(AccumT(__ldcs(values + j)), AccumT(__ldg(x + col)), col);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pcsr(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const AccumT* __restrict__ products,
          YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  await_stream();
  __shared__ OffsetT offsets[kThreadsPerBlock + 1];
  __shared__ AccumT staged[kProductsPerStep];
  const uint32_t first_row = blockIdx.x * kThreadsPerBlock;
  const uint32_t row = first_row + threadIdx.x;
  offsets[threadIdx.x] = row_offsets[min(row, num_rows)];
  if (threadIdx.x == 0) offsets[kThreadsPerBlock] = row_offsets[min(first_row + kThreadsPerBlock, num_rows)];
  __syncthreads();
  const OffsetT end = skips_product(alpha) ? offsets[0] : offsets[kThreadsPerBlock];
  AccumT sum = kIdentity;
  for (OffsetT step = offsets[0]; step < end; step += kProductsPerStep) {
    const OffsetT step_end = min(end, step + kProductsPerStep);
    for (OffsetT j = step + threadIdx.x; j < step_end; j += kThreadsPerBlock) staged[j - step] = __ldcs(products + j);
    __syncthreads();
    const OffsetT row_end = min(offsets[threadIdx.x + 1], step_end);
    for (OffsetT j = max(offsets[threadIdx.x], step); j < row_end; ++j) sum = reduce(sum, staged[j - step]);
    __syncthreads();
  }
  if (row < num_rows) store_scaled(y, row, sum, alpha, beta);
}
