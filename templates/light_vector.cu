// light_vector: groups of threads_per_vector lanes take rows from a global counter (LightSpMV, vector level).
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Liu and Schmidt 2015 (LightSpMV, vector-level dynamic row distribution); Hiranandani, IV.E
// Suits:     rows of uneven length without giants: whoever is free takes the next row
// Suffers:   very short rows (one atomic a fetch) and giant rows (one group works on each)
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once, and an atomic every rows_per_fetch rows
// Guarantee: bit-reproducible: which group computes a row does not change how the row is summed
// Launch:    as many blocks as are resident; a workspace of two counters, which the last block to finish resets; one pass
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kThreadsPerVector = 8;
constexpr int kRowsPerFetch = 1;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_light_vector(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                  const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AccumT alpha,
                  AccumT beta, uint32_t* next_row, uint32_t* finished_blocks) {
  const uint32_t mask = group_mask<kThreadsPerVector>();
  const int lane = threadIdx.x % kThreadsPerVector;
  for (;;) {
    uint32_t first_row = 0;
    if (lane == 0) first_row = atomicAdd(next_row, kRowsPerFetch);
    first_row = __shfl_sync(mask, first_row, 0, kThreadsPerVector);
    if (first_row >= num_rows) break;
    const uint32_t last_row = min(first_row + kRowsPerFetch, num_rows);
    for (uint32_t row = first_row; row < last_row; ++row) {
      const OffsetT begin = __ldg(row_offsets + row);
      const OffsetT end = skips_product(alpha) ? begin : __ldg(row_offsets + row + 1);
      const AccumT sum = group_row_product<kThreadsPerVector>(begin, end, col_indices, values, x, mask);
      if (lane == 0) store_scaled(y, row, sum, alpha, beta);
    }
  }
  // The block that finishes last leaves both counters at zero for the next product: nobody fetches any more.
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(finished_blocks, 1u) == gridDim.x - 1) {
      *next_row = 0;
      *finished_blocks = 0;
    }
  }
}
