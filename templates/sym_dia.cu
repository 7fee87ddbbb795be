// sym_dia: the product with a symmetric, skew-symmetric or Hermitian matrix from diagonals of its lower triangle; a thread two rows, four of values of 1 or 2 bytes.
//
// Formula:   y[r] <- alpha * sum over d of (diagonals[d][r] * x[r - distances[d]] + mirror(diagonals[d][r + distances[d]]) * x[r + distances[d]]) + beta * y[r], the main diagonal once, mirror(a) = a where A is symmetric, -a where it is skew-symmetric, conj(a) where it is Hermitian
// Paper:     none; the diagonals of Bell and Garland 2009 (DIA kernel), of which those below the main one are read a second time as those above
// Suits:     few diagonals, nearly full, larger than the L2 cache: stencils, tridiagonal and banded matrices, finite elements on regular grids
// Suffers:   entries on many diagonals: each is stored as long as A has rows, which is refused from 8 slots a nonzero on; rows whose columns are not in rising order (converting takes a counter a slot); values that change (they are copied when a plan is made)
// Bytes:     slots * value + rows * y + x once, where slots are the rows, rounded up to 256, times the diagonals of the lower triangle; values take 4 or 1 where they are encoded; 8 a diagonal, which stay in L1; a slot's second load is the cache's to serve, of L1 where the mirror image is in rows of the same block, else of L2, and none where threads walk along its diagonal, with stages or without; keeps its own values
// Guarantee: bit-reproducible; of a row what is below the diagonal and what is above are a chain each, in the order of the diagonals; fill never meets x
// Launch:    a thread two or four rows, a warp apart or pairs of neighbours; where the farthest diagonal lies alone, two rows of each step of a walk along it, `walk` blocks for each that is resident; where far ones lie together, from compute capability 9.0 on and with `stage_kib`, half as many threads a block again and a warp that copies, as many blocks as are resident; one pass; diagonals are found, counted and filled on the device by eleven passes, once, with `stage_kib` by one more, of which one runs only where a row's columns do not rise; two more look at values that may be encoded
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kUnroll = 2;
constexpr int kEncoding = 0;
constexpr int kWalk = 1;
constexpr int kStageKib = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/unsigned.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/value_encoding.cuh"
#include "primitives/value_table_kernels.cuh"
#include "prelude/diagonals.cuh"
#include "prelude/mirror.cuh"
#include "prelude/bulk_copy.cuh"
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

// Walks whose slots and entries of x come to shared memory by bulk copies, once, some steps ahead: where the farthest diagonals
// lie together, a block walks along the middle of them with a tile of rows, and the slots that mirror a row's own are those of
// the next step. From compute capability 9.0 on.

constexpr bool kCanStage = kStageKib > 0 && GivenSlots::kPack == 1;
// Steps whose far slots are there, or under way: the step's own, those that mirror them, and two more at least.
constexpr uint32_t kFewestStages = 4, kMostStages = 6;
constexpr uint32_t kMostCopies = 32;
// Threads of a block that multiply, half as many again as in other blocks, beside a warp that copies.
constexpr uint32_t kStagedThreads = kThreadsPerBlock < 1024 ? kThreadsPerBlock * 3 / 2 / 32 * 32 + 32 : 1024;
constexpr uint32_t kConsumers = kStagedThreads - 32;
constexpr uint32_t kMostStagedRows = GivenSlots::kBytes < 16 ? 4 : 2;  // of a thread in a step
constexpr uint32_t kFewestStagedSteps = 8;
// Entries that a block multiplies while it begins a step.
constexpr uint32_t kStepEntries = 12 * kConsumers;
// Slots and entries of x in 16 bytes, of which a copy has whole ones.
constexpr uint32_t kSlotsAligned = 16 / GivenSlots::kBytes;
constexpr uint32_t kEntriesAligned = sizeof(XT) < 16 ? 16 / sizeof(XT) : 1;

// Where things are in a stage, in bytes but for `copies`: of a diagonal a row's own slot, the one that mirrors it, and the
// entries of x below and above; of a copy the entries behind which its rows begin, how many it has, and where they lie.
struct StagePlaces {
  uint4 stages;  // bytes of a stage of far diagonals, of others and of x; stages of the far, one less of others, one more of x
  uint4 reads[kMostCopies];
  uint4 copies[kMostCopies];
};

__device__ __forceinline__ uint32_t round_up_to(uint32_t number, uint32_t unit) { return (number + unit - 1) / unit * unit; }

// How far a diagonal below the main one is away.
__device__ __forceinline__ uint32_t distance_of(const int64_t* __restrict__ offsets, uint32_t d) {
  return uint32_t(-__ldg(offsets + d));
}

// staged[0] <- rows of a tile where blocks walk with one and its stages fit, else 0. staged[1] <- how far a step is. staged[2] <-
// tiles of a step. staged[3] <- far diagonals. staged[4] <- blocks of all rows, each with the fewest steps.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_dia_stages(uint32_t num_rows, uint32_t num_diagonals, uint32_t num_disordered, const int64_t* __restrict__ offsets,
                    uint64_t* staged, StagePlaces* places, uint32_t num_resident) {
  await_stream();
#if __CUDA_ARCH__ >= 900
  if (!kCanStage || threadIdx.x != 0 || num_disordered > 0 || num_diagonals == 0) return;
  const uint32_t num_below = num_diagonals - (__ldg(offsets + num_diagonals - 1) == 0);
  if (num_below == 0 || num_diagonals + 1 > kMostCopies || num_rows > (1u << 29)) return;
  // The far ones lie before the widest gap.
  uint32_t num_far = 1, widest = 0;
  for (uint32_t d = 0; d < num_below; ++d) {
    const uint32_t gap = distance_of(offsets, d) - (d + 1 < num_below ? distance_of(offsets, d + 1) : 0);
    if (gap > widest) num_far = d + 1;
    widest = max(widest, gap);
  }
  const uint32_t farthest = distance_of(offsets, 0), nearest_far = distance_of(offsets, num_far - 1);
  const uint32_t distance = nearest_far + (farthest - nearest_far) / 2;
  const uint32_t next = num_far < num_below ? distance_of(offsets, num_far) : 0;
  const uint32_t reach = max(farthest - distance, max(distance - nearest_far, next));
  // Of a diagonal that lies alone a thread keeps what mirrors its slots where it walks.
  if (num_far == 1 && kWalk > 0) return;
  if (distance < kThreadsPerBlock || 2 * reach > distance || uint64_t(reach) * sizeof(XT) >= kStageKib * 1024u) return;
  constexpr uint32_t kSlotBytes = GivenSlots::kBytes, kEntryBytes = sizeof(XT);
  const uint32_t before = round_up_to(reach, kEntriesAligned);
  // What copies have beside the rows of a tile: where each diagonal's begins and, as if there were none, where its stage ends.
  const auto back_of = [&](uint32_t d) {
    const uint32_t away = d < num_below ? distance_of(offsets, d) : 0;
    return d < num_far && away < distance ? round_up_to(distance - away, kSlotsAligned) : 0;
  };
  const auto beside_of = [&](uint32_t d) {
    const uint32_t away = d < num_below ? distance_of(offsets, d) : 0;
    const uint32_t ahead = d >= num_far ? away : away > distance ? away - distance : 0;
    return back_of(d) + kSlotsAligned + round_up_to(ahead, kSlotsAligned);
  };
  uint32_t beside[2] = {};
  for (uint32_t d = 0; d < num_diagonals; ++d) beside[d >= num_far] += beside_of(d);
  const uint32_t x_beside = 2 * before + kEntriesAligned, num_near = num_diagonals - num_far;
  const auto bytes_of = [](uint32_t num_far_slots, uint32_t num_near_slots, uint32_t num_entries) {
    const uint32_t num_slots = kFewestStages * num_far_slots + (kFewestStages - 1) * num_near_slots;
    return num_slots * kSlotBytes + (kFewestStages + 1) * num_entries * kEntryBytes;
  };
  const uint32_t bytes_beside = bytes_of(beside[0], beside[1], x_beside), row_bytes = bytes_of(num_far, num_near, 1);
  if (bytes_beside >= kStageKib * 1024u) return;
  const uint32_t most_rows = min(kMostStagedRows * kConsumers, (kStageKib * 1024u - bytes_beside) / row_bytes / 32 * 32);
  if (most_rows == 0) return;
  // As many tiles a step as give the block with the most steps the least to copy.
  const uint32_t num_steps = (num_rows + distance - 1) / distance, fewest = (distance + most_rows - 1) / most_rows;
  const uint32_t most_stretches = (num_steps + kFewestStagedSteps - 1) / kFewestStagedSteps;
  uint32_t tile = 0;
  uint64_t least = ~uint64_t(0);
  for (uint32_t side = fewest; side <= 2 * fewest && side < fewest + 512; ++side) {
    const uint32_t rows = round_up_to((distance + side - 1) / side, 32);
    const uint32_t num_stretches = min(max(1u, num_resident / side), most_stretches);
    const uint32_t num_turns = (side * num_stretches + num_resident - 1) / num_resident;
    const uint64_t num_copied = beside[0] + beside[1] + x_beside + uint64_t(num_diagonals + 1) * rows;
    const uint64_t num_own_steps = (num_steps + num_stretches - 1) / num_stretches + 1;
    const uint64_t work = num_turns * num_own_steps * (num_copied + kStepEntries);
    if (work < least) tile = rows;
    least = min(least, work);
  }
  // Where much of a copy is for the tiles beside it, L2 serves as much as without.
  if (beside[0] + beside[1] + x_beside > uint64_t(num_diagonals + 1) * tile / 2) return;
  uint32_t stages[2] = {};
  for (uint32_t d = 0; d < num_diagonals; ++d) {
    const bool is_far = d < num_far;
    const uint32_t away = d < num_below ? distance_of(offsets, d) : 0, back = back_of(d), length = beside_of(d) + tile;
    const uint32_t at = stages[!is_far], own = at + back * kSlotBytes;
    // A far diagonal's place in the next step, to which x and what mirrors its slots are as much farther.
    const uint32_t apart = is_far ? away - distance : away;
    places->reads[d] = {own, own + apart * kSlotBytes, (before - apart) * kEntryBytes, (before + apart) * kEntryBytes};
    places->copies[d] = {back, length, at, 0};
    stages[!is_far] += length * kSlotBytes;
  }
  places->copies[num_diagonals] = {before, x_beside + tile, 0, 0};
  const uint32_t x_stage = (x_beside + tile) * kEntryBytes;
  const uint32_t num_stages = (kStageKib * 1024 + stages[1] - x_stage) / (stages[0] + stages[1] + x_stage);
  places->stages = {stages[0], stages[1], x_stage, min(num_stages, kMostStages)};
  const uint64_t side = (distance + tile - 1) / tile;
  staged[0] = tile;
  staged[1] = distance;
  staged[2] = side;
  staged[3] = num_far;
  staged[4] = most_stretches * side;
#endif
}

// What a thread needs to know of a step: how many diagonals there are, its first row, and from that one on how many are the
// tile's. Where things are in shared memory: `reads` and distances; of the first row the main diagonal and x for it, and stages, of
// far diagonals the step's own and those of the next, of the others, and of x a step before, of the step and a step behind.
struct StagedStep {
  uint32_t num_rows, num_below, num_far;
  bool has_main;
  uint32_t row, num_own;
  uint32_t reads, distances, main, main_entry, own, mirror, beside, below, here, above;
};

// Rows of a thread in a step, kConsumers apart, and their sums.
template <int kRows, bool kIsInside>
struct StagedRows {
  using SlotT = GivenSlots::SlotT;
  StagedStep step;
  AccumT lower_sums[kRows], upper_sums[kRows];

  __device__ __forceinline__ uint32_t row(int r) const { return step.row + r * kConsumers; }
  __device__ __forceinline__ bool is_there(int r) const { return kIsInside || row(r) < step.num_rows; }

  // Adds the diagonals from d to the end, and what mirrors them, so many at a time. Inside, the rows are there, and all that are
  // as far below and above.
  template <int kCount>
  __device__ __forceinline__ void add(uint32_t d, uint32_t end, uint32_t own, uint32_t mirror, uint32_t below, uint32_t above) {
    uint4 at[kCount];
    const auto look = [&]() {
#pragma unroll
      for (int s = 0; s < kCount; ++s) at[s] = load_shared<uint4>(step.reads + (d + s) * sizeof(uint4));
    };
    if (d + kCount <= end) look();
#pragma unroll 1
    while (d + kCount <= end) {
      SlotT lower[kCount][kRows], upper[kCount][kRows];
      XT lower_entries[kCount][kRows], upper_entries[kCount][kRows];
#pragma unroll
      for (int s = 0; s < kCount; ++s) {
        const uint32_t distance = kIsInside ? 0 : load_shared<uint32_t>(step.distances + (d + s) * sizeof(uint32_t));
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          const uint32_t slot = r * kConsumers * GivenSlots::kBytes, entry = r * kConsumers * sizeof(XT);
          const bool is_above_there = kIsInside || (row(r) >= distance && row(r) < step.num_rows);
          const bool is_below_there = kIsInside || row(r) + distance < step.num_rows;
          lower[s][r] = is_above_there ? load_shared<SlotT>(own + at[s].x + slot) : SlotT(0);
          lower_entries[s][r] = is_above_there ? load_shared<XT>(below + at[s].z + entry) : XT(0);
          upper[s][r] = is_below_there ? load_shared<SlotT>(mirror + at[s].y + slot) : SlotT(0);
          upper_entries[s][r] = is_below_there ? load_shared<XT>(above + at[s].w + entry) : XT(0);
        }
      }
      d += kCount;
      look();
#pragma unroll
      for (int s = 0; s < kCount; ++s) {
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
          add_slot(lower[s][r], lower_entries[s][r], lower_sums[r]);
          add_mirrored(upper[s][r], upper_entries[s][r], upper_sums[r]);
        }
      }
    }
    if constexpr (kCount > 1) add<kCount - 1>(d, end, own, mirror, below, above);
  }

  __device__ __forceinline__ void add_main() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint32_t slot = r * kConsumers * GivenSlots::kBytes, entry = r * kConsumers * sizeof(XT);
      const SlotT own = is_there(r) ? load_shared<SlotT>(step.main + slot) : SlotT(0);
      const XT own_entry = is_there(r) ? load_shared<XT>(step.main_entry + entry) : XT(0);
      add_slot(own, own_entry, lower_sums[r]);
    }
  }
};

// Adds up a thread's rows of a step, and stores those of the tile. Sums are those of `multiply`, in the same order.
template <int kRows, bool kIsInside>
__device__ __forceinline__ void multiply_staged(const StagedStep& step, YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  StagedRows<kRows, kIsInside> rows = {step, {}, {}};
  if (!skips_product(alpha)) {
    if (step.has_main) rows.add_main();
    constexpr int kCount = kIsInside ? kUnroll : 1;
    rows.template add<kCount>(0, step.num_far, step.own, step.mirror, step.below, step.above);
    rows.template add<kCount>(step.num_far, step.num_below, step.beside, step.beside, step.here, step.here);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (r * kConsumers >= step.num_own || !rows.is_there(r)) continue;
    store_scaled(y, rows.row(r), both_halves(rows.lower_sums[r], rows.upper_sums[r]), alpha, beta);
  }
}

// The same where the threads of a warp have so many rows, at most kRows.
template <int kRows>
__device__ __forceinline__ void multiply_staged(uint32_t warp_rows, bool is_inside, const StagedStep& step,
                                                YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  if (warp_rows == kRows && is_inside) {
    multiply_staged<kRows, true>(step, y, alpha, beta);
  } else if (warp_rows == kRows) {
    multiply_staged<kRows, false>(step, y, alpha, beta);
  } else if constexpr (kRows > 1) {
    multiply_staged<kRows - 1>(warp_rows, is_inside, step, y, alpha, beta);
  }
}

// What a lane of the warp that copies brings to each stage: rows of a diagonal, or of x.
struct StageCopy {
  const unsigned char* from;  // a multiple of 16, `misaligned` entries before the first
  uint32_t to;                // its first stage, in shared memory
  uint32_t bytes_each, aligned, misaligned, num_entries, back, length, stage_bytes;

  // Begins the copy for the tile that begins with this row, which may be before the first, and says of how many bytes.
  __device__ __forceinline__ uint32_t begin(int32_t row, uint32_t place, uint32_t barrier) const {
    const int32_t first = ((row + int32_t(misaligned)) & -int32_t(aligned)) - int32_t(back);
    const int32_t lowest = misaligned, highest = misaligned + num_entries, last = first + int32_t(length);
    const uint32_t stage = to + place * stage_bytes;
    if (first < lowest || last > highest) return begin_cut(first, max(first, lowest), min(last, highest), stage, barrier);
    copy_bulk(stage, from + int64_t(first) * bytes_each, length * bytes_each, barrier);
    return length * bytes_each;
  }

  // Of a copy that reaches beyond what there is, what makes whole 16 bytes; the thread stores the entries of x beside it.
  __device__ __forceinline__ uint32_t begin_cut(int32_t first, int32_t low, int32_t high, uint32_t stage,
                                                uint32_t barrier) const {
    const int32_t begin = (low + int32_t(aligned) - 1) & -int32_t(aligned), end = high & -int32_t(aligned);
    const auto store = [&](int32_t from_entry, int32_t to_entry) {
#pragma unroll 1
      for (int32_t e = from_entry; e < to_entry; ++e) {
        void* const entry = __cvta_shared_to_generic(stage + (e - first) * sizeof(XT));
        *static_cast<XT*>(entry) = __ldg(reinterpret_cast<const XT*>(from) + e);
      }
    };
    if (low < begin || end < high) {
      store(low, min(begin, high));
      store(max(end, min(begin, high)), high);
      order_before_copies();
    }
    if (begin >= end) return 0;
    const uint32_t num_bytes = uint32_t(end - begin) * bytes_each;
    copy_bulk(stage + (begin - first) * bytes_each, from + int64_t(begin) * bytes_each, num_bytes, barrier);
    return num_bytes;
  }
};

extern "C" __global__ void __launch_bounds__(kStagedThreads, kStageKib > 0 ? 224 / kStageKib : 1)
spmv_sym_dia_staged(uint32_t num_rows, uint64_t, uint32_t num_diagonals, uint64_t stride, const int64_t* __restrict__ offsets,
                    const GivenSlots::SlotT* __restrict__ slots, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                    BetaT beta, uint32_t tile, uint32_t distance, uint32_t side, uint32_t num_far,
                    const StagePlaces* __restrict__ places) {
  await_stream();
#if __CUDA_ARCH__ >= 900
  if constexpr (kCanStage) {
    extern __shared__ __align__(16) unsigned char staged_bytes[];
    __shared__ uint64_t full[kMostStages], empty[kMostStages];
    // Those of the next diagonals are looked at before the last ones' are used.
    __shared__ uint4 reads[kMostCopies + kUnroll];
    __shared__ uint32_t distances[kMostCopies];
    const uint32_t num_stretches = gridDim.x / side, stretch = blockIdx.x / side;
    const uint32_t num_steps = (num_rows + distance - 1) / distance;
    const uint32_t begin = uint64_t(num_steps) * stretch / num_stretches;
    const uint32_t end = uint64_t(num_steps) * (stretch + 1) / num_stretches;
    if (stretch >= num_stretches || begin >= end) return;
    const uint32_t first_place = blockIdx.x % side * tile;
    const bool has_main = __ldg(offsets + num_diagonals - 1) == 0;
    const uint32_t num_below = num_diagonals - has_main;
    const uint32_t lane = threadIdx.x % 32;
    const bool copies = threadIdx.x >= kConsumers && lane <= num_diagonals;
    const uint4 stages = __ldg(&places->stages);
    const uint4 own_copy = copies ? __ldg(places->copies + lane) : uint4{0, 0, 0, 0};
    for (uint32_t d = threadIdx.x; d < kMostCopies + kUnroll; d += kStagedThreads) {
      reads[d] = d < num_diagonals ? __ldg(places->reads + d) : uint4{0, 0, 0, 0};
      if (d < num_diagonals) distances[d] = distance_of(offsets, d);
    }
    const uint32_t far_stages = shared_address(staged_bytes), full_at = shared_address(full), empty_at = shared_address(empty);
    const uint32_t reads_at = shared_address(reads), distances_at = shared_address(distances);
    if (threadIdx.x < kMostStages) {
      begin_barrier(full_at + 8 * threadIdx.x, 1);
      begin_barrier(empty_at + 8 * threadIdx.x, kConsumers / 32);
    }
    publish_barriers();
    const uint32_t num_stages = stages.w;
    const uint32_t beside_stages = far_stages + num_stages * stages.x, x_stages = beside_stages + (num_stages - 1) * stages.y;
    const uint32_t misaligned = uint32_t(reinterpret_cast<uint64_t>(x) % 16 / sizeof(XT));
    if (threadIdx.x >= kConsumers) {
      const bool is_x = lane == num_diagonals, is_far = lane < num_far;
      StageCopy copy;
      copy.bytes_each = is_x ? sizeof(XT) : GivenSlots::kBytes;
      copy.aligned = is_x ? kEntriesAligned : kSlotsAligned;
      copy.misaligned = is_x ? misaligned : 0;
      copy.num_entries = is_x ? num_rows : uint32_t(stride);
      copy.from = is_x ? reinterpret_cast<const unsigned char*>(x - misaligned)
                       : reinterpret_cast<const unsigned char*>(slots + lane * stride);
      copy.back = own_copy.x;
      copy.length = own_copy.y;
      copy.to = (is_x ? x_stages : is_far ? far_stages : beside_stages) + own_copy.z;
      copy.stage_bytes = is_x ? stages.z : is_far ? stages.x : stages.y;
      // Diagonals beside the main one come a step later, of the step before.
      const bool is_late = copies && !is_x && !is_far;
      const uint32_t num_places = is_x ? num_stages + 1 : is_far ? num_stages : num_stages - 1;
      uint32_t place = 0, stage = 0, parity = 1;
      int32_t row = int32_t(begin * distance + first_place) - int32_t(is_late ? distance : 0);
      for (uint32_t step = begin; step <= end; ++step, row += distance) {
        if (step - begin >= num_stages) await_phase(empty_at + 8 * stage, parity);
        uint32_t num_bytes = 0;
        // With the first step x comes of the one before, too.
        if (is_x && step == begin) num_bytes += copy.begin(row - distance, num_stages, full_at + 8 * stage);
        if (copies && !(is_late && step == begin)) {
          num_bytes += copy.begin(row, place, full_at + 8 * stage);
          place = place + 1 == num_places ? 0 : place + 1;
        }
        // The phase waits for what the warp expects, however much of it is there, and for the entries that lanes stored.
        num_bytes = __reduce_add_sync(~0u, num_bytes);
        __syncwarp();
        if (lane == 0) arrive_expecting(full_at + 8 * stage, num_bytes);
        stage = stage + 1 == num_stages ? 0 : stage + 1;
        if (stage == 0) parity ^= 1;
      }
      return;
    }
    constexpr uint32_t kSlotBytes = GivenSlots::kBytes, kEntryBytes = sizeof(XT);
    const uint32_t farthest = distances[0];
    const uint4 main_at = reads[num_below];
    // Rows of the thread's from its first on that are the tile's.
    const uint32_t left = min(tile, distance - first_place), num_own = left > threadIdx.x ? left - threadIdx.x : 0;
    const uint32_t warp_first = threadIdx.x - lane;
    const uint32_t warp_rows = left > warp_first ? (left - warp_first + kConsumers - 1) / kConsumers : 0;
    uint32_t stage = 0, parity = 0, beside = 0, x_before = num_stages, x_here = 0, tile_row = begin * distance + first_place;
    const auto slot_at = [&](uint32_t row) { return row % kSlotsAligned * kSlotBytes; };
    const auto entry_at = [&](uint32_t row) { return (row + misaligned) % kEntriesAligned * kEntryBytes; };
    await_phase(full_at, 0);
#pragma unroll 1
    for (uint32_t step = begin; step < end; ++step, tile_row += distance) {
      const uint32_t next = stage + 1 == num_stages ? 0 : stage + 1, x_above = x_here == num_stages ? 0 : x_here + 1;
      if (next == 0) parity ^= 1;
      await_phase(full_at + 8 * next, parity);
      const bool is_inside = tile_row >= farthest && tile_row + tile + farthest <= num_rows;
      const uint32_t slot = threadIdx.x * kSlotBytes, entry = threadIdx.x * kEntryBytes;
      const StagedStep at = {
          num_rows,
          num_below,
          num_far,
          has_main,
          tile_row + threadIdx.x,
          num_own,
          reads_at,
          distances_at,
          beside_stages + beside * stages.y + slot_at(tile_row) + slot + main_at.x,
          x_stages + x_here * stages.z + entry_at(tile_row) + entry + main_at.z,
          far_stages + stage * stages.x + slot_at(tile_row) + slot,
          far_stages + next * stages.x + slot_at(tile_row + distance) + slot,
          beside_stages + beside * stages.y + slot_at(tile_row) + slot,
          x_stages + x_before * stages.z + entry_at(tile_row - distance) + entry,
          x_stages + x_here * stages.z + entry_at(tile_row) + entry,
          x_stages + x_above * stages.z + entry_at(tile_row + distance) + entry,
      };
      multiply_staged<kMostStagedRows>(warp_rows, is_inside, at, y, alpha, beta);
      __syncwarp();
      if (lane == 0) arrive(empty_at + 8 * stage);
      stage = next;
      beside = beside + 1 == num_stages - 1 ? 0 : beside + 1;
      x_before = x_here;
      x_here = x_above;
    }
  }
#endif
}
