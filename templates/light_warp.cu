// light_warp: warps take rows for all their groups of threads_per_vector lanes from a global counter (LightSpMV, warp level).
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Liu and Schmidt 2015 (LightSpMV, warp-level dynamic row distribution); Hiranandani, IV.E
// Suits:     rows of uneven length without giants; fewer atomics than light_vector, and neighbouring rows side by side
// Suffers:   giant rows (one group works on each, and the groups beside it wait)
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once, and an atomic every 64 / threads_per_vector * rows_per_fetch rows
// Guarantee: bit-reproducible: which group computes a row does not change how the row is summed
// Launch:    as many blocks as are resident; half of the rows are dealt out (to groups of 16 and 32 lanes only the first), the rest fetched; a workspace of two counters, which the last block to finish resets; one pass
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kThreadsPerVector = 8;
constexpr int kRowsPerFetch = 1;
constexpr int kUnroll = 4;
constexpr int kAligned = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/fetch.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_light_warp(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AccumT alpha,
                AccumT beta, uint32_t* next_chunk, uint32_t* finished_blocks) {
  constexpr uint32_t kGroups = 32 / kThreadsPerVector;
  constexpr uint32_t kRowsPerChunk = kGroups * kRowsPerFetch;
  const uint32_t mask = group_mask<kThreadsPerVector>();
  const uint32_t num_chunks = (num_rows + kRowsPerChunk - 1) / kRowsPerChunk;
  for_fetched_chunks<32>(num_chunks, next_chunk, finished_blocks, [&](uint32_t chunk) {
    const uint32_t last_row = min((chunk + 1) * kRowsPerChunk, num_rows);
    for (uint32_t row = chunk * kRowsPerChunk + threadIdx.x % 32 / kThreadsPerVector; row < last_row; row += kGroups) {
      const OffsetT begin = __ldg(row_offsets + row);
      const OffsetT end = skips_product(alpha) ? begin : __ldg(row_offsets + row + 1);
      const AccumT sum = group_row_product<kThreadsPerVector, kUnroll, kAligned>(begin, end, col_indices, values, x, mask);
      if (threadIdx.x % kThreadsPerVector == 0) store_scaled(y, row, sum, alpha, beta);
    }
  });
}
