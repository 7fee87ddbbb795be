// dia: diagonals that hold an entry are stored whole, without columns; a thread two rows, four of values of 1 or 2 bytes, eight where x has 2 bytes as well.
//
// Formula:   y[r] <- alpha * sum over d of diagonals[d][r] * x[r + offsets[d]] + beta * y[r], over the diagonals that meet row r within A
// Paper:     Bell and Garland 2009 (DIA kernel)
// Suits:     few diagonals, nearly full: stencils, tridiagonal and banded matrices
// Suffers:   entries on many diagonals: each is stored as long as A has rows, which is refused from 8 slots a nonzero on; rows whose columns are not in rising order (converting takes a counter a slot); values that change (they are copied when a plan is made)
// Bytes:     slots * value + rows * y + x once, where slots are the rows, rounded up to 256, times the diagonals; values take 4 or 1 where they are encoded; 8 a diagonal, which stay in L1; keeps its own values
// Guarantee: bit-reproducible; a row is one chain in the order of the diagonals; fill never meets x
// Launch:    a thread two, four or eight rows, a warp apart or pairs of neighbours; one pass; diagonals are found, counted and filled on the device by ten passes, once, of which one runs only where a row's columns do not rise; two more look at values that may be encoded
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

using GivenSlots = Slots<ValueT, 4>;
using EncodedSlots = Slots<EncodedT, 4>;

// Threads that a multiprocessor holds at least, where the compiler would give them more registers than the loads under way
// are worth.
template <typename In>
constexpr int kResidentThreads = In::kPacks == 1 && sizeof(AccumT) <= 8   ? 1024
                                 : In::kBytes == 4 && sizeof(AccumT) <= 8 ? 1536
                                 : In::kBytes == 8 && sizeof(AccumT) == 8 ? 1280
                                                                          : kThreadsPerBlock;

// Whether rows are stored by themselves: not by what the user says of a row, which is told which one it is.
template <typename T>
constexpr bool kIsFactor = false;
template <>
constexpr bool kIsFactor<AccumT> = true;

// Stores what a thread's rows have become: neighbours together where nothing stands in the way.
template <typename In>
__device__ __forceinline__ void store_rows(const WarpRows<In>& rows, const AccumT (&sums)[In::kRows], YT* __restrict__ y,
                                           AlphaT alpha, BetaT beta) {
  if constexpr (In::kAreNeighbours && sizeof(YT) == 2 && kBeta == Coefficient::kZero && kIsFactor<BetaT>) {
    if (rows.are_all() && reinterpret_cast<uint64_t>(y) % 4 == 0) {
#pragma unroll
      for (int r = 0; r < In::kRows; r += 2) {
        alignas(2 * sizeof(YT)) YT pair[2];
        store_scaled(pair, 0, sums[r], alpha, beta);
        store_scaled(pair, 1, sums[r + 1], alpha, beta);
        *reinterpret_cast<uint32_t*>(y + rows.row(r)) = *reinterpret_cast<uint32_t*>(pair);
      }
      return;
    }
  }
#pragma unroll
  for (int r = 0; r < In::kRows; ++r) {
    if (rows.row(r) < rows.num_rows) store_scaled(y, rows.row(r), sums[r], alpha, beta);
  }
}

template <typename In>
__device__ __forceinline__ void multiply(uint32_t num_rows, uint64_t num_cols, uint32_t num_diagonals, uint64_t stride,
                                         const int64_t* __restrict__ offsets,
                                         const typename In::SlotT* __restrict__ slots, const ValueT* table,
                                         const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  const WarpRows<In> rows(num_rows, uint32_t(num_cols), blockIdx.x * kThreadsPerBlock + threadIdx.x);
  if (rows.warp_row >= num_rows) return;
  // Of many diagonals, those that meet the warp's rows within A.
  const bool are_many = num_diagonals > kFewDiagonals;
  const int64_t lowest = -int64_t(rows.warp_row + In::kWarpRows - 1);
  const int64_t beyond = int64_t(num_cols) - int64_t(rows.warp_row);
  const uint32_t first = are_many ? first_diagonal(num_diagonals, offsets, lowest) : 0;
  uint32_t count = (are_many ? first_diagonal(num_diagonals, offsets, beyond) : num_diagonals) - first;
  if (skips_product(alpha)) count = 0;
  AccumT sums[In::kRows] = {};
  const Place<In> place(rows, slots + first * stride, stride, x);
  add_each<In, In::kSteps>(count, rows, offsets + first, place, table, sums);
  store_rows(rows, sums, y, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kResidentThreads<GivenSlots> / kThreadsPerBlock)
spmv_dia(uint32_t num_rows, uint64_t num_cols, uint32_t num_diagonals, uint64_t stride, const int64_t* __restrict__ offsets,
         const GivenSlots::SlotT* __restrict__ slots, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
         BetaT beta) {
  await_stream();
  multiply<GivenSlots>(num_rows, num_cols, num_diagonals, stride, offsets, slots, nullptr, x, y, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kResidentThreads<EncodedSlots> / kThreadsPerBlock)
spmv_dia_encoded(uint32_t num_rows, uint64_t num_cols, uint32_t num_diagonals, uint64_t stride, const int64_t* __restrict__ offsets,
                 const EncodedSlots::SlotT* __restrict__ slots, const XT* __restrict__ x, YT* __restrict__ y,
                 AlphaT alpha, BetaT beta, uint32_t num_distinct, const uint64_t* __restrict__ table) {
  await_stream();
  __shared__ ValueT shared_table[kTableEntries];
  read_table(shared_table + (kEncoding == 2 ? 1 : 0), num_distinct, table);
  if constexpr (kIsEncoded) {
    multiply<EncodedSlots>(num_rows, num_cols, num_diagonals, stride, offsets, slots, shared_table, x, y, alpha, beta);
  }
}
