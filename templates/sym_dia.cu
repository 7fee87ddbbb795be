// sym_dia: the product with a symmetric, skew-symmetric or Hermitian matrix from diagonals of its lower triangle; a thread two rows, four of values of 1 or 2 bytes.
//
// Formula:   y[r] <- alpha * sum over d of (diagonals[d][r] * x[r - distances[d]] + mirror(diagonals[d][r + distances[d]]) * x[r + distances[d]]) + beta * y[r], the main diagonal once, mirror(a) = a where A is symmetric, -a where it is skew-symmetric, conj(a) where it is Hermitian
// Paper:     none; the diagonals of Bell and Garland 2009 (DIA kernel), of which those below the main one are read a second time as those above
// Suits:     few diagonals, nearly full, larger than the L2 cache: stencils, tridiagonal and banded matrices, finite elements on regular grids
// Suffers:   entries on many diagonals: each is stored as long as A has rows, which is refused from 8 slots a nonzero on; rows whose columns are not in rising order (converting takes a counter a slot); values that change (they are copied when a plan is made)
// Bytes:     slots * value + rows * y + x once, where slots are the rows, rounded up to 256, times the diagonals of the lower triangle; values take 4 or 1 where they are encoded; 8 a diagonal, which stay in L1; a slot's second load is the cache's to serve, of L1 where the mirror image is in rows of the same block, else of L2; keeps its own values
// Guarantee: bit-reproducible; of a row what is below the diagonal and what is above are a chain each, in the order of the diagonals; fill never meets x
// Launch:    a thread two or four rows, a warp apart; one pass; diagonals are found, counted and filled on the device by ten passes, once, of which one runs only where a row's columns do not rise; two more look at values that may be encoded
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kUnroll = 2;
constexpr int kEncoding = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/unsigned.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/value_encoding.cuh"
#include "primitives/value_table_kernels.cuh"
#include "prelude/diagonals.cuh"
#include "prelude/mirror.cuh"
#endif

// A slot that is needed again.
template <typename SlotT>
__device__ __forceinline__ SlotT load_slot(const SlotT* from) {
  return __ldg(from);
}
template <>
__device__ __forceinline__ WideSlot load_slot(const WideSlot* from) {
  const ulonglong2 words = __ldg(reinterpret_cast<const ulonglong2*>(from));
  return WideSlot(words.x, words.y);
}

using GivenSlots = Slots<ValueT, 2>;
using EncodedSlots = Slots<EncodedT, 2>;

// Adds a diagonal's slots to the sums of a thread's rows.
template <typename In>
__device__ __forceinline__ void add_packs(const typename In::PackT (&packs)[In::kPacks], const XT (&entries)[In::kRows],
                                          const ValueT* table, AccumT (&sums)[In::kRows]) {
#pragma unroll
  for (int r = 0; r < In::kRows; ++r) {
    const typename In::SlotT slot = In::in(packs[r / In::kPack], r % In::kPack);
    if (slot != 0) sums[r] = multiply_add(AccumT(In::value(slot, table)), AccumT(entries[r]), sums[r]);
  }
}

// Slots and entries of x for kCount diagonals below the main one, and for what mirrors them. A slot is read first by the row
// above that mirrors it, so this load leaves it in the caches, and then by its own, after which nobody needs it.
template <typename In, int kCount>
struct BothLoaded {
  typename In::PackT lower[kCount][In::kPacks];
  typename In::SlotT upper[kCount][In::kRows];
  XT lower_entries[kCount][In::kRows], upper_entries[kCount][In::kRows];

  // Every row is looked at, whether it and those as far below and above are there.
  __device__ __forceinline__ void load(const WarpRows<In>& rows, const int64_t* __restrict__ offsets,
                                       const typename In::SlotT* __restrict__ slots, uint64_t stride,
                                       const XT* __restrict__ x) {
    const Place<In> place(rows, slots, stride, x);
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
      const uint32_t distance = uint32_t(-__ldg(offsets + s));
#pragma unroll
      for (int p = 0; p < In::kPacks; ++p) lower[s][p] = __ldcs(place.packs + s * place.stride + 32 * p);
#pragma unroll
      for (int r = 0; r < In::kRows; ++r) {
        const uint32_t row = rows.row(r);
        const bool is_below_there = row < rows.num_rows && row + distance < rows.num_rows;
        upper[s][r] = is_below_there ? load_slot(slots + s * stride + In::place(row + distance)) : typename In::SlotT(0);
        upper_entries[s][r] = is_below_there ? __ldg(x + (row + distance)) : XT(0);
        const bool is_above_there = row < rows.num_rows && row >= distance;
        lower_entries[s][r] = is_above_there ? __ldg(x + (row - distance)) : XT(0);
      }
    }
  }

  // All rows of the warp are there, and all that are as far below and above; `place` is the thread's on the first diagonal.
  __device__ __forceinline__ void load(const WarpRows<In>& rows, const int64_t* __restrict__ offsets, const Place<In>& place) {
    const typename In::PackT* packs = place.packs;
    uint32_t distances[kCount];
#pragma unroll
    for (int s = 0; s < kCount; ++s) distances[s] = uint32_t(-__ldg(offsets + s));
#pragma unroll
    for (int s = 0; s < kCount; ++s, packs += place.stride) {
      const typename In::SlotT* diagonal = reinterpret_cast<const typename In::SlotT*>(packs);
      const typename In::SlotT* first = diagonal - (rows.warp_row + rows.lane * In::kPack);
      const XT* below = place.x + distances[s];
      const XT* above = place.x - distances[s];
#pragma unroll
      for (int r = 0; r < In::kRows; ++r) {
        const typename In::SlotT* mirrored_slot = diagonal + distances[s] + In::apart(r);
        if (In::kPack > In::kEntries) mirrored_slot = first + In::place(rows.row(r) + distances[s]);
        upper[s][r] = load_slot(mirrored_slot);
        upper_entries[s][r] = __ldg(below + In::apart(r));
        lower_entries[s][r] = __ldg(above + In::apart(r));
      }
#pragma unroll
      for (int p = 0; p < In::kPacks; ++p) lower[s][p] = __ldcs(packs + 32 * p);
    }
  }

  __device__ __forceinline__ void add(const ValueT* table, AccumT (&lower_sums)[In::kRows], AccumT (&upper_sums)[In::kRows]) const {
#pragma unroll
    for (int s = 0; s < kCount; ++s) add_packs<In>(lower[s], lower_entries[s], table, lower_sums);
#pragma unroll
    for (int r = 0; r < In::kRows; ++r) {
#pragma unroll
      for (int s = 0; s < kCount; ++s) {
        if (upper[s][r] == 0) continue;
        const AccumT value = mirrored(AccumT(In::value(upper[s][r], table)));
        upper_sums[r] = multiply_add(value, AccumT(upper_entries[s][r]), upper_sums[r]);
      }
    }
  }
};

// Adds kCount diagonals below the main one, and what mirrors them, that are inside or are not.
template <typename In, int kCount, bool kAreInside>
__device__ __forceinline__ void add_both(const WarpRows<In>& rows, const int64_t* __restrict__ offsets,
                                         const typename In::SlotT* __restrict__ slots, uint64_t stride,
                                         const ValueT* table, const XT* __restrict__ x, AccumT (&lower_sums)[In::kRows],
                                         AccumT (&upper_sums)[In::kRows]) {
  BothLoaded<In, kCount> loaded;
  if constexpr (kAreInside) {
    loaded.load(rows, offsets, Place<In>(rows, slots, stride, x));
  } else {
    loaded.load(rows, offsets, slots, stride, x);
  }
  loaded.add(table, lower_sums, upper_sums);
}

// Adds the diagonals from d to the end, and what mirrors them.
template <typename In, bool kAreInside, int kCount>
__device__ __forceinline__ void add_both_to(uint32_t end, uint32_t d, const WarpRows<In>& rows,
                                            const int64_t* __restrict__ offsets,
                                            const typename In::SlotT* __restrict__ slots, uint64_t stride,
                                            const ValueT* table, const XT* __restrict__ x, AccumT (&lower_sums)[In::kRows],
                                            AccumT (&upper_sums)[In::kRows]) {
  for (; d + kCount <= end; d += kCount) {
    add_both<In, kCount, kAreInside>(rows, offsets + d, slots + d * stride, stride, table, x, lower_sums, upper_sums);
  }
  if constexpr (kCount > 1) {
    add_both_to<In, kAreInside, kCount - 1>(end, d, rows, offsets, slots, stride, table, x, lower_sums, upper_sums);
  }
}

template <typename In>
__device__ __forceinline__ void multiply(uint32_t num_rows, uint32_t num_diagonals, uint64_t stride,
                                         const int64_t* __restrict__ offsets,
                                         const typename In::SlotT* __restrict__ slots, const ValueT* table,
                                         const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  // The main diagonal is the last, several times where positions are stored several times.
  uint32_t main = num_diagonals;
  while (main > 0 && __ldg(offsets + main - 1) == 0) --main;
  const WarpRows<In> rows(num_rows, num_rows, blockIdx.x * kThreadsPerBlock + threadIdx.x);
  const uint32_t warp_row = rows.warp_row;
  if (warp_row >= num_rows) return;
  AccumT lower_sums[In::kRows] = {}, upper_sums[In::kRows] = {};
  if (!skips_product(alpha)) {
    // Of many diagonals, those that have an entry in the warp's rows or are mirrored there.
    const int64_t farthest = max(int64_t(warp_row) + In::kWarpRows, int64_t(num_rows) - warp_row) - 1;
    uint32_t d = num_diagonals > kFewDiagonals ? min(first_diagonal(num_diagonals, offsets, -farthest), main) : 0;
    for (uint32_t m = main; m < num_diagonals; ++m) {
      const Place<In> place(rows, slots + m * stride, stride, x);
      add_diagonals<In, 1>(rows, offsets + m, place, table, lower_sums);
    }
    // From some diagonal on all rows of the warp are there, and all that are as far below and above: mostly from the first on.
    uint32_t inside = main;
    if (rows.are_all() && d < main) {
      const int64_t reach = min(warp_row, num_rows - warp_row - In::kWarpRows);
      inside = __ldg(offsets + d) >= -reach ? d : max(d, first_diagonal(main, offsets, -reach));
    }
    add_both_to<In, false, kUnroll>(inside, d, rows, offsets, slots, stride, table, x, lower_sums, upper_sums);
    add_both_to<In, true, kUnroll>(main, inside, rows, offsets, slots, stride, table, x, lower_sums, upper_sums);
  }
#pragma unroll
  for (int r = 0; r < In::kRows; ++r) {
    if (rows.row(r) < num_rows) store_scaled(y, rows.row(r), both_halves(lower_sums[r], upper_sums[r]), alpha, beta);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_dia(uint32_t num_rows, uint64_t, uint32_t num_diagonals, uint64_t stride, const int64_t* __restrict__ offsets,
             const GivenSlots::SlotT* __restrict__ slots, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
             BetaT beta) {
  await_stream();
  multiply<GivenSlots>(num_rows, num_diagonals, stride, offsets, slots, nullptr, x, y, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_dia_encoded(uint32_t num_rows, uint64_t, uint32_t num_diagonals, uint64_t stride, const int64_t* __restrict__ offsets,
                     const EncodedSlots::SlotT* __restrict__ slots, const XT* __restrict__ x, YT* __restrict__ y,
                     AlphaT alpha, BetaT beta, uint32_t num_distinct, const uint64_t* __restrict__ table) {
  await_stream();
  __shared__ ValueT shared_table[kTableEntries];
  read_table(shared_table + (kEncoding == 2 ? 1 : 0), num_distinct, table);
  if constexpr (kIsEncoded) {
    multiply<EncodedSlots>(num_rows, num_diagonals, stride, offsets, slots, shared_table, x, y, alpha, beta);
  }
}
