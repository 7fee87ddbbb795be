// light_warp: warps take rows for all their groups of threads_per_vector lanes from a global counter (LightSpMV, warp level).
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Liu and Schmidt 2015 (LightSpMV, warp-level dynamic row distribution); Hiranandani, IV.E
// Suits:     rows of uneven length; neighbouring rows side by side
// Suffers:   giant rows, on each of which one block works, or with rows_per_fetch one group
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once, and an atomic every threads_per_block / threads_per_vector rows, up to four times as many where there are many rows, or 32 / threads_per_vector * rows_per_fetch; none with resident = 0
// Guarantee: bit-reproducible: how a row is summed depends on its length alone, with aligned = 1 also on where it begins
// Launch:    as many blocks as are resident; a block draws up to four rows for each of its groups by one atomic two turns ahead, their row offsets come to shared memory one turn ahead, and all of it computes rows of more than 16 * threads_per_block nonzeros, or with rows_per_fetch a warp that many rounds of neighbouring rows, the next while short rows are computed, or after long ones; a workspace of one counter, which returns to zero by itself; with resident = 0 a block, or with rows_per_fetch a warp, for every turn, and nothing is drawn; one pass
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kThreadsPerVector = 8;
constexpr int kRowsPerFetch = 0;
constexpr int kUnroll = 4;
constexpr int kAligned = 0;
constexpr int kResident = 1;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/block.cuh"
#include "prelude/group_rows.cuh"
#include "prelude/stream.cuh"
#include "prelude/async_copy.cuh"
#include "prelude/fetch.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kResidentBlocks)
spmv_light_warp(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                BetaT beta, uint32_t* next_ticket) {
  await_stream();
  multiply_fetched_rows<true>(num_rows, row_offsets, col_indices, values, x, y, alpha, beta, next_ticket);
}
