// csr_scalar: a thread computes a row.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Bell and Garland 2009 (scalar kernel); Hiranandani, IV.A; Messa, OneThreadPerRow (unrolled, launch bounds, grid stride); Mazzucchi, thread-per-row
// Suits:     short rows of nearly equal length, up to about 8 nonzeros: stencils, road networks
// Suffers:   long rows (neighbouring threads read far apart) and uneven rows (a warp waits for its longest)
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once; short rows reuse lines through L1
// Guarantee: bit-reproducible; a row of n nonzeros is summed in min(unroll, n) chains of ceil(n / unroll) terms
// Launch:    a thread a row, grid stride; no shared memory, no workspace, one pass
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kUnroll = 4;
constexpr int kMinBlocks = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kMinBlocks)
spmv_csr_scalar(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                BetaT beta) {
  await_stream();
  const uint32_t num_threads = gridDim.x * kThreadsPerBlock;
  for (uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x; row < num_rows; row += num_threads) {
    const OffsetT begin = __ldg(row_offsets + row), next = __ldg(row_offsets + row + 1);
    const OffsetT end = skips_product(alpha) ? begin : next;
    AccumT sums[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) sums[u] = kIdentity;
    for (OffsetT j = begin; j < end; j += kUnroll) {
      // Guarded, not peeled: all loads of a step are in flight together, in a row's last step too.
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (j + u < end) {
          const IndexT col = __ldg(col_indices + j + u);
          sums[u] = combine_reduce(AccumT(__ldg(values + j + u)), AccumT(__ldg(x + col)), col, sums[u]);
        }
      }
    }
#pragma unroll
    for (int width = kUnroll / 2; width > 0; width /= 2) {
#pragma unroll
      for (int u = 0; u < width; ++u) sums[u] = reduce(sums[u], sums[u + width]);
    }
    store_scaled(y, row, sums[0], alpha, beta);
  }
}
