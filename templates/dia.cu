// dia: diagonals that hold an entry are stored whole, without columns; a thread two rows, four of values of 1 or 2 bytes.
//
// Formula:   y[r] <- alpha * sum over d of diagonals[d][r] * x[r + offsets[d]] + beta * y[r], over the diagonals that meet row r within A
// Paper:     Bell and Garland 2009 (DIA kernel)
// Suits:     few diagonals, nearly full: stencils, tridiagonal and banded matrices
// Suffers:   entries on many diagonals: each is stored as long as A has rows, which is refused from 8 slots a nonzero on; rows whose columns are not in rising order (converting takes a counter a slot); values that change (they are copied when a plan is made)
// Bytes:     slots * value + rows * y + x once, where slots are the rows, rounded up to 32 (64 of values of 2 bytes, 128 of 1), times the diagonals; values take 4 or 1 where they are encoded; 8 a diagonal, which stay in L1; keeps its own values
// Guarantee: bit-reproducible; a row is one chain in the order of the diagonals; fill never meets x
// Launch:    a thread two or four rows, a warp apart; one pass; diagonals are found, counted and filled on the device by ten passes, once, of which one runs only where a row's columns do not rise; two more look at values that may be encoded
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kEncoding = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/unsigned.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/value_encoding.cuh"
#include "primitives/value_table_kernels.cuh"
#include "prelude/diagonals.cuh"
#endif

template <typename In>
__device__ __forceinline__ void multiply(uint32_t num_rows, uint64_t num_cols, uint32_t num_diagonals,
                                         const int64_t* __restrict__ offsets,
                                         const typename In::SlotT* __restrict__ slots, const ValueT* table,
                                         const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  const uint32_t thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint32_t warp_row = thread / 32 * In::kWarpRows;
  if (warp_row >= num_rows) return;
  const WarpRows rows = {num_rows, warp_row, thread % 32, num_cols, warp_row + In::kWarpRows <= num_rows};
  const uint64_t stride = diagonal_stride(num_rows);
  // Of many diagonals, those that meet the warp's rows within A.
  const bool are_many = num_diagonals > kFewDiagonals;
  const int64_t lowest = -int64_t(warp_row + In::kWarpRows - 1);
  const int64_t beyond = int64_t(num_cols) - int64_t(warp_row);
  uint32_t d = are_many ? first_diagonal(num_diagonals, offsets, lowest) : 0;
  uint32_t end = are_many ? first_diagonal(num_diagonals, offsets, beyond) : num_diagonals;
  if (skips_product(alpha)) end = d;
  AccumT sums[In::kPack * In::kPacks] = {};
  for (; d + In::kSteps <= end; d += In::kSteps) {
    add_diagonals<In, In::kSteps>(rows, offsets + d, slots + d * stride, stride, table, x, sums);
  }
  add_last<In, In::kSteps - 1>(end - d, rows, offsets + d, slots + d * stride, stride, table, x, sums);
#pragma unroll
  for (int r = 0; r < In::kPack * In::kPacks; ++r) {
    if (rows.row(r) < num_rows) store_scaled(y, rows.row(r), sums[r], alpha, beta);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dia(uint32_t num_rows, uint64_t num_cols, uint32_t num_diagonals, const int64_t* __restrict__ offsets,
         const GivenSlots::SlotT* __restrict__ slots, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
         BetaT beta) {
  await_stream();
  multiply<GivenSlots>(num_rows, num_cols, num_diagonals, offsets, slots, nullptr, x, y, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dia_encoded(uint32_t num_rows, uint64_t num_cols, uint32_t num_diagonals, const int64_t* __restrict__ offsets,
                 const EncodedSlots::SlotT* __restrict__ slots, const XT* __restrict__ x, YT* __restrict__ y,
                 AlphaT alpha, BetaT beta, uint32_t num_distinct, const uint64_t* __restrict__ table) {
  await_stream();
  __shared__ ValueT shared_table[kTableEntries];
  read_table(shared_table + (kEncoding == 2 ? 1 : 0), num_distinct, table);
  if constexpr (kIsEncoded) {
    multiply<EncodedSlots>(num_rows, num_cols, num_diagonals, offsets, slots, shared_table, x, y, alpha, beta);
  }
}
