// csr_vector: a group of threads_per_vector lanes computes a row.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Bell and Garland 2009 (vector kernel); Hiranandani, IV.B; Messa, OneWarpPerRow; Mazzucchi, warp-per-row
// Suits:     rows of nearly equal length, with threads_per_vector near the mean row length
// Suffers:   rows much shorter than threads_per_vector (idle lanes) and a few very long rows (their groups finish last)
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once
// Guarantee: bit-reproducible; a lane adds up every threads_per_vector-th term, unroll of them at a time, a fixed tree adds the lanes
// Launch:    threads_per_vector threads a row; no shared memory, no workspace, one pass
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kThreadsPerVector = 8;
constexpr int kUnroll = 4;
constexpr int kAligned = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/group_rows.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kGroupBlocks)
spmv_csr_vector(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                BetaT beta) {
  await_stream();
  multiply_rows_by_groups<kThreadsPerVector, kUnroll, kAligned>(num_rows, row_offsets, col_indices, values, x, y, alpha, beta);
}
