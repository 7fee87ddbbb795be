// sym_dia: the product with a symmetric, skew-symmetric or Hermitian matrix from diagonals of its lower triangle; a thread two rows, four of values of 1 or 2 bytes.
//
// Formula:   y[r] <- alpha * sum over d of (diagonals[d][r] * x[r - distances[d]] + mirror(diagonals[d][r + distances[d]]) * x[r + distances[d]]) + beta * y[r], the main diagonal once, mirror(a) = a where A is symmetric, -a where it is skew-symmetric, conj(a) where it is Hermitian
// Paper:     none; the diagonals of Bell and Garland 2009 (DIA kernel), of which those below the main one are read a second time as those above
// Suits:     few diagonals, nearly full, larger than the L2 cache: stencils, tridiagonal and banded matrices, finite elements on regular grids
// Suffers:   entries on many diagonals: each is stored as long as A has rows, which is refused from 8 slots a nonzero on; rows whose columns are not in rising order (converting takes a counter a slot); values that change (they are copied when a plan is made)
// Bytes:     slots * value + rows * y + x once, where slots are the rows, rounded up to 256, times the diagonals of the lower triangle; values take 4 or 1 where they are encoded; 8 a diagonal, which stay in L1; a slot's second load is the cache's to serve, of L1 where the mirror image is in rows of the same block, else of L2, and none where threads walk along its diagonal; keeps its own values
// Guarantee: bit-reproducible; of a row what is below the diagonal and what is above are a chain each, in the order of the diagonals; fill never meets x
// Launch:    a thread two or four rows, a warp apart or pairs of neighbours; where the farthest diagonal lies alone, two rows of each step of a walk along it, `walk` blocks for each that is resident; one pass; diagonals are found, counted and filled on the device by eleven passes, once, of which one runs only where a row's columns do not rise; two more look at values that may be encoded
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kUnroll = 2;
constexpr int kEncoding = 0;
constexpr int kWalk = 1;
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

// Adds a slot as it is given to a sum of what is stored, or of what mirrors it.
__device__ __forceinline__ void add_slot(GivenSlots::SlotT slot, XT entry, AccumT& sum) {
  if (slot != 0) sum = multiply_add(AccumT(GivenSlots::value(slot, nullptr)), AccumT(entry), sum);
}
__device__ __forceinline__ void add_mirrored(GivenSlots::SlotT slot, XT entry, AccumT& sum) {
  if (slot != 0) sum = multiply_add(mirrored(AccumT(GivenSlots::value(slot, nullptr))), AccumT(entry), sum);
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

// Threads walk where up to so many other diagonals are below the main one; rows of a thread in a step, a warp apart.
constexpr uint32_t kMostBeside = 2;
constexpr int kWalkRows = 2;
constexpr uint32_t kWalkBlockRows = kThreadsPerBlock * kWalkRows;

// Steps of a stretch, at least: what a thread reads before the first is then a small part.
constexpr uint32_t kFewestSteps = 4;

// walks[0] <- how far the farthest diagonal is from the main one, where it lies alone, every position is stored once and blocks
// find rows enough; 0 elsewhere. walks[1] <- blocks that a step of as many rows takes. walks[2] <- blocks of all rows, each with the
// fewest steps.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_dia_walks(uint32_t num_rows, uint32_t num_diagonals, uint32_t num_disordered, const int64_t* __restrict__ offsets,
                   uint64_t* walks) {
  await_stream();
  if (threadIdx.x != 0 || num_disordered > 0 || num_diagonals == 0) return;
  const uint32_t main = num_diagonals - (__ldg(offsets + num_diagonals - 1) == 0);
  if (main == 0 || main > 1 + kMostBeside) return;
  const uint64_t distance = -__ldg(offsets);
  const uint64_t next = main > 1 ? -__ldg(offsets + 1) : 0;
  if (distance < kThreadsPerBlock || 2 * next > distance || num_rows > (1u << 30)) return;
  const uint64_t side = (distance + kWalkBlockRows - 1) / kWalkBlockRows;
  const uint64_t num_steps = (num_rows + distance - 1) / distance;
  walks[0] = distance;
  walks[1] = side;
  walks[2] = (num_steps + kFewestSteps - 1) / kFewestSteps * side;
}

// Slots and entries of x for the diagonals beside the main one, and for what mirrors them, of a thread's rows in a step.
template <int kBeside>
struct StepLoaded {
  using SlotT = GivenSlots::SlotT;
  static constexpr int kCount = kBeside == 0 ? 1 : kBeside;
  SlotT next[kWalkRows], own[kWalkRows], lower[kCount][kWalkRows], upper[kCount][kWalkRows];
  XT next_entries[kWalkRows], lower_entries[kCount][kWalkRows], upper_entries[kCount][kWalkRows];

  // The rows from this one on; inside, all of them are there, and all that are as far below and above.
  template <bool kIsInside>
  __device__ __forceinline__ void load(uint32_t row, uint32_t num_own, uint32_t distance, uint32_t num_rows, bool has_main,
                                       uint64_t stride, const uint32_t (&beside)[kCount], const SlotT* __restrict__ slots,
                                       const XT* __restrict__ x) {
    const SlotT* const row_slots = slots + row;
    const XT* const entries = x + row;
#pragma unroll
    for (int r = 0; r < kWalkRows; ++r) {
      const uint32_t apart = 32 * r;
      const bool is_there = kIsInside || (apart < num_own && row + apart < num_rows);
      const bool is_next_there = kIsInside || (is_there && row + apart + distance < num_rows);
      next[r] = is_next_there ? __ldcs(row_slots + (distance + apart)) : SlotT(0);
      next_entries[r] = is_next_there ? __ldg(entries + (distance + apart)) : XT(0);
#pragma unroll
      for (int s = 0; s < kBeside; ++s) {
        const SlotT* const diagonal = row_slots + (1 + s) * stride;
        const bool is_below_there = kIsInside || (is_there && row + apart + beside[s] < num_rows);
        upper[s][r] = is_below_there ? load_slot(diagonal + (beside[s] + apart)) : SlotT(0);
        upper_entries[s][r] = is_below_there ? __ldg(entries + (beside[s] + apart)) : XT(0);
        const bool is_above_there = kIsInside || (is_there && row + apart >= beside[s]);
        lower[s][r] = is_above_there ? load_slot(diagonal + apart) : SlotT(0);
        lower_entries[s][r] = is_above_there ? __ldg(entries + apart - beside[s]) : XT(0);
      }
      own[r] = has_main && is_there ? __ldcs(row_slots + (1 + kBeside) * stride + apart) : SlotT(0);
    }
  }
};

// What a thread has of the step before.
struct Walked {
  GivenSlots::SlotT slots[kWalkRows];
  XT before[kWalkRows], here[kWalkRows];

  // Adds up the rows from this one on, of which so many are the thread's own, and stores them; goes on to those of the next step.
  template <int kBeside>
  __device__ __forceinline__ void add(const StepLoaded<kBeside>& loaded, uint32_t row, uint32_t num_own, uint32_t num_rows,
                                      YT* __restrict__ y, AlphaT alpha, BetaT beta) {
#pragma unroll
    for (int r = 0; r < kWalkRows; ++r) {
      AccumT lower_sum = {}, upper_sum = {};
      if (!skips_product(alpha)) {
        add_slot(loaded.own[r], here[r], lower_sum);
        add_slot(slots[r], before[r], lower_sum);
        add_mirrored(loaded.next[r], loaded.next_entries[r], upper_sum);
#pragma unroll
        for (int s = 0; s < kBeside; ++s) {
          add_slot(loaded.lower[s][r], loaded.lower_entries[s][r], lower_sum);
          add_mirrored(loaded.upper[s][r], loaded.upper_entries[s][r], upper_sum);
        }
      }
      if (32 * r < num_own && row + 32 * r < num_rows) {
        store_scaled(y, row + 32 * r, both_halves(lower_sum, upper_sum), alpha, beta);
      }
      slots[r] = loaded.next[r];
      before[r] = here[r];
      here[r] = loaded.next_entries[r];
    }
  }
};

// A thread goes from row to row along the farthest diagonal: the slot that mirrors a row's own is that of the next, and of x
// it has what lies before and behind a row. Sums are those of `multiply`, in the same order.
template <int kBeside>
__device__ __forceinline__ void walk(uint32_t num_rows, bool has_main, uint64_t stride, const int64_t* __restrict__ offsets,
                                     const GivenSlots::SlotT* __restrict__ slots, const XT* __restrict__ x,
                                     YT* __restrict__ y, AlphaT alpha, BetaT beta, uint32_t distance, uint32_t side) {
  using SlotT = GivenSlots::SlotT;
  using Loaded = StepLoaded<kBeside>;
  // Blocks share out the steps of all rows among as many stretches as there are blocks for.
  const uint32_t num_stretches = gridDim.x / side, stretch = blockIdx.x / side;
  const uint32_t num_steps = (num_rows + distance - 1) / distance;
  const uint32_t begin = uint64_t(num_steps) * stretch / num_stretches;
  const uint32_t end = uint64_t(num_steps) * (stretch + 1) / num_stretches;
  if (stretch >= num_stretches || begin >= end) return;
  const uint32_t warp_place = blockIdx.x % side * kWalkBlockRows + threadIdx.x / 32 * (32 * kWalkRows);
  if (warp_place >= distance) return;
  const uint32_t place = warp_place + threadIdx.x % 32;
  const uint32_t num_own = place < distance ? distance - place : 0;
  uint32_t beside[Loaded::kCount] = {}, farthest = 0;
#pragma unroll
  for (int s = 0; s < kBeside; ++s) {
    beside[s] = uint32_t(-__ldg(offsets + 1 + s));
    farthest = max(farthest, beside[s]);
  }
  uint32_t row = begin * distance + place;
  Walked walked;
#pragma unroll
  for (int r = 0; r < kWalkRows; ++r) {
    const bool is_there = 32 * r < num_own && row + 32 * r < num_rows;
    walked.slots[r] = is_there ? __ldcs(slots + row + 32 * r) : SlotT(0);
    walked.before[r] = is_there && row + 32 * r >= distance ? __ldg(x + (row + 32 * r - distance)) : XT(0);
    walked.here[r] = is_there ? __ldg(x + row + 32 * r) : XT(0);
  }
  // Of the steps those in the middle are inside: nobody asks what is there.
  const uint32_t inside_begin = begin + (begin * distance + warp_place < farthest);
  const uint32_t reach = warp_place + 32 * kWalkRows + distance;
  const uint32_t inside_end = num_rows >= reach ? min(end, (num_rows - reach) / distance + 1) : 0;
  const auto at_the_edge = [&](uint32_t to, uint32_t& step) {
    for (; step < to; ++step, row += distance) {
      Loaded loaded;
      loaded.template load<false>(row, num_own, distance, num_rows, has_main, stride, beside, slots, x);
      walked.add(loaded, row, num_own, num_rows, y, alpha, beta);
    }
  };
  uint32_t step = begin;
  at_the_edge(min(inside_begin, end), step);
#pragma unroll 1
  for (; step < inside_end; ++step, row += distance) {
    Loaded loaded;
    loaded.template load<true>(row, num_own, distance, num_rows, has_main, stride, beside, slots, x);
    walked.add(loaded, row, num_own, num_rows, y, alpha, beta);
  }
  at_the_edge(end, step);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_dia_walk(uint32_t num_rows, uint64_t, uint32_t num_diagonals, uint64_t stride, const int64_t* __restrict__ offsets,
                  const GivenSlots::SlotT* __restrict__ slots, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                  BetaT beta, uint32_t distance, uint32_t side) {
  await_stream();
  if constexpr (kWalk > 0 && GivenSlots::kPack == 1) {
    const bool has_main = __ldg(offsets + num_diagonals - 1) == 0;
    const uint32_t num_beside = num_diagonals - has_main - 1;
    if (num_beside == 0) walk<0>(num_rows, has_main, stride, offsets, slots, x, y, alpha, beta, distance, side);
    if (num_beside == 1) walk<1>(num_rows, has_main, stride, offsets, slots, x, y, alpha, beta, distance, side);
    if (num_beside == 2) walk<2>(num_rows, has_main, stride, offsets, slots, x, y, alpha, beta, distance, side);
  }
}
