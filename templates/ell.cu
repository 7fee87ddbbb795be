// ell: ELLPACK; rows of one length, stored column by column, a thread a few neighbouring rows.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Bell and Garland 2009 (ELL kernel); Hiranandani, III (structure x format)
// Suits:     rows of nearly one length: stencils, banded matrices
// Suffers:   one row much longer than the others: every row is stored as long as that one, which is refused from 8 slots a nonzero on; values that change (they are copied when a plan is made)
// Bytes:     slots * (value + index) + rows * y + x once, where slots are the rows, rounded up to 32, times the longest row; of fill, a thread reads no more than a step; keeps its own values and columns
// Guarantee: bit-reproducible; a row is one chain in the order of the matrix; fill touches no x
// Launch:    a thread a few neighbouring rows, so that a load brings up to 16 bytes; one pass; the width is found and the matrix converted on the device by two passes, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/slots.cuh"
#include "prelude/ell.cuh"
#endif

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_ell_width(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint64_t* width) {
  await_stream();
  find_longest_row(num_rows, row_offsets, width);
}

// A thread a row, and one for each of the rows that fill up the last warp.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_ell_convert(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                 const ValueT* __restrict__ values, uint32_t width, IndexT* __restrict__ slot_cols,
                 ValueT* __restrict__ slot_values) {
  await_stream();
  const uint64_t stride = ell_stride(num_rows);
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= stride) return;
  const OffsetT begin = row < num_rows ? __ldg(row_offsets + row) : 0;
  const OffsetT end = row < num_rows ? __ldg(row_offsets + row + 1) : 0;
  fill_slots(begin, uint32_t(end - begin), width, col_indices, values, stride, slot_cols + row, slot_values + row);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_ell(uint32_t num_rows, uint32_t width, const IndexT* __restrict__ slot_cols,
         const ValueT* __restrict__ slot_values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
         BetaT beta) {
  await_stream();
  const uint32_t row = (blockIdx.x * kThreadsPerBlock + threadIdx.x) * kEllRows;
  if (row >= num_rows) return;
  AccumT sums[kEllRows];
#pragma unroll
  for (int r = 0; r < kEllRows; ++r) sums[r] = kIdentity;
  add_ell_rows(num_rows, row, skips_product(alpha) ? 0 : width, slot_cols, slot_values, x, sums);
#pragma unroll
  for (int r = 0; r < kEllRows; ++r) {
    if (row + r < num_rows) store_scaled(y, row + r, sums[r], alpha, beta);
  }
}
