// special: slices of rows packed for one matrix; rows, columns and values each stored the way that moves the fewest bytes.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Kreutzer et al. 2014 (sliced rows); Kourtis, Goumas and Koziris 2008 (index and value compression); Buluc et al. 2009 (blocks with narrow columns)
// Suits:     what is larger than L2 and reads x in order: finite elements, bands, long rows, rows of few near entries
// Suffers:   entries whose x comes from far away (gathers decide, not bytes); matrices in L2; values that change (they are copied when a plan is made)
// Bytes:     slots * (value + 2) + 4 a step + 4 a slice + rows * y + x once, 2 more a slot of a step that spans 65,535 columns or more, 2 a row where sorting moved any, 4 where rows are cut; values take 4 or 1 where they are encoded; keeps its own values and columns
// Guarantee: bit-reproducible; a row is a chain for every lane and piece, and a fixed tree over them; fill touches no x
// Launch:    a warp a slice, or one after the other of its block's stretch of slices; a lane entries of one or several rows in a step; the loads of several steps are in flight together; one pass, and one more where rows are cut; packed on the device, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kBlock = 1;
constexpr int kLanesPerRow = 1;
constexpr int kRowsPerLane = 1;
constexpr int kEntriesPerStep = 2;
constexpr int kSigma = 1;
constexpr int kPiece = 128;
constexpr int kColBits = 16;
constexpr int kEncoding = 0;
constexpr int kUnroll = 4;
constexpr int kResident = 0;
constexpr int kXKib = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/slots.cuh"
#include "prelude/stream.cuh"
#include "prelude/loaded.cuh"
#include "prelude/unsigned.cuh"
#include "prelude/async_copy.cuh"
#include "prelude/stage_async.cuh"
#include "prelude/x_packets.cuh"
#include "prelude/held.cuh"
#include "prelude/group.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/value_encoding.cuh"
#include "primitives/value_table_kernels.cuh"
#endif

// Slots of a lane in a step, and values of a slot: an entry, or a dense block by rows.
constexpr int kSlots = kRowsPerLane * kEntriesPerStep;
constexpr int kSlotValues = kBlock * kBlock;
constexpr uint32_t kRowsPerSlice = 32 / kLanesPerRow * kRowsPerLane;
// Entries of a row in a step.
constexpr uint32_t kStepEntries = kLanesPerRow * kEntriesPerStep;
constexpr uint32_t kWarps = kThreadsPerBlock / 32;
// Entries from which on a row is cut; rows of blocks are not.
constexpr int kCut = kBlock > 1 ? 0 : kPiece;
// Steps whose loads are in flight together: fewer where a lane would hold many values.
constexpr int kMostValues = 64 / (kSlots * kSlotValues) > 1 ? 64 / (kSlots * kSlotValues) : 1;
constexpr int kSteps = kUnroll < kMostValues ? kUnroll : kMostValues;

// Below this many columns apart, a step has 16-bit columns; 0xffff is fill. Others have the upper halves apart, and their
// base says where.
constexpr uint32_t kNarrowSpan = 0xffff;
constexpr uint32_t kIsWide = 0x80000000u;
using ColT = Packet<kColBits / 8>::Type;

// ---- Where things are ----

// A warp's step of packets: what a lane loads at once, up to 16 bytes, lies beside what the other lanes do.
template <typename T, int kCount>
struct Planes {
  static constexpr int kFits = 16 / int(sizeof(T));
  static constexpr int kTwos = (kCount & -kCount);
  static constexpr int kPerLoad = kTwos < kFits ? kTwos : kFits;

  static __device__ __forceinline__ uint64_t place(uint64_t step, int lane, int i) {
    return ((step * (kCount / kPerLoad) + i / kPerLoad) * 32 + lane) * kPerLoad + i % kPerLoad;
  }
  // What a lane takes in a step.
  struct Step {
    Loaded<kPerLoad, T> parts[kCount / kPerLoad];

    __device__ __forceinline__ T operator[](int i) const { return parts[i / kPerLoad][i % kPerLoad]; }
    // As a word, also where it is half of one: nothing of 16 bits is computed with.
    __device__ __forceinline__ uint32_t word(int i) const {
      if constexpr (sizeof(T) != 2 || kPerLoad == 1) return uint32_t((*this)[i]);
      const uint32_t both = reinterpret_cast<const uint32_t*>(&parts[i / kPerLoad])[i % kPerLoad / 2];
      return i % 2 == 0 ? both & 0xffff : both >> 16;
    }
    // That of the step so many behind this one.
    __device__ __forceinline__ void load(const T* __restrict__ from, uint64_t step, int lane, int behind = 0) {
      from += place(step, lane, 0);
#pragma unroll
      for (int i = 0; i < kCount / kPerLoad; ++i) parts[i].load(from + (behind * (kCount / kPerLoad) + i) * 32 * kPerLoad);
    }
  };
};
using Cols = Planes<ColT, kSlots>;

// The place, in the order in which rows are stored, of a lane's row of a slice.
__device__ __forceinline__ uint32_t lane_place(uint32_t slice, int lane, int r) {
  return slice * kRowsPerSlice + lane / kLanesPerRow + 32 / kLanesPerRow * r;
}
// The entry of its row that is in a lane's slot.
__device__ __forceinline__ uint32_t slot_entry_number(uint32_t step, int lane, int i) {
  return step * kStepEntries + i % kEntriesPerStep * kLanesPerRow + lane % kLanesPerRow;
}
__device__ __forceinline__ uint32_t warp_number() { return blockIdx.x * kWarps + threadIdx.x / 32; }

// ---- What is stored: rows, rows of blocks, or pieces of rows ----

struct Piece {
  OffsetT begin;
  uint32_t length;  // in entries or blocks
};

struct Pieces {
  uint32_t number;
  const OffsetT* row_offsets;
  const uint32_t* piece_offsets;  // of every row, where rows are cut
  const uint32_t* piece_rows;

  __device__ __forceinline__ uint32_t row(uint32_t piece) const { return kCut > 0 ? piece_rows[piece] : piece; }
  __device__ __forceinline__ Piece operator[](uint32_t piece) const {
    const uint32_t row = this->row(piece);
    const OffsetT begin = __ldg(row_offsets + uint64_t(row) * kBlock);
    const uint32_t length = uint32_t((__ldg(row_offsets + uint64_t(row) * kBlock + 1) - begin) / kBlock);
    if constexpr (kCut == 0) return {begin, length};
    const uint32_t first = (piece - piece_offsets[row]) * kCut;
    return {begin + first, min(length - first, uint32_t(kCut))};
  }
};

// Rows sorted in windows: the piece at a place, which is in the same window.
__device__ __forceinline__ uint32_t piece_at(uint32_t place, uint32_t num_moved,
                                             const uint16_t* __restrict__ permutation) {
  return num_moved == 0 ? place : place / kSigma * kSigma + __ldcs(permutation + place);
}

// Kernels that the layout does not launch return at once: what follows takes no time to compile then.

// ---- Whether the matrix is what the layout is for ----

// A thread a row of blocks: whether its rows have the same columns, which are whole blocks in order of entries.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_blocks(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                    uint64_t* num_misfits) {
  await_stream();
  if constexpr (kBlock == 1) return;
  const uint32_t block_row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint64_t first_row = uint64_t(block_row) * kBlock;
  if (first_row >= num_rows) return;
  bool fits = first_row + kBlock <= num_rows;
  const OffsetT begin = row_offsets[first_row];
  const OffsetT length = row_offsets[first_row + 1] - begin;
  for (int r = 0; r < kBlock && fits; ++r) {
    const OffsetT row_begin = row_offsets[first_row + r];
    fits = row_offsets[first_row + r + 1] - row_begin == length && length % kBlock == 0;
#pragma unroll 4
    for (OffsetT k = 0; fits && k < length; ++k) {
      const IndexT col = __ldg(col_indices + row_begin + k);
      fits = col % kBlock == k % kBlock && col - col % kBlock == __ldg(col_indices + begin + k - k % kBlock);
    }
  }
  if (!fits) atomicAdd(num_misfits, uint64_t(1));
}

// ---- Rows are cut and sorted ----

// A thread a row: how many pieces it has, and whether it is cut, for scans to follow.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_pieces(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t* __restrict__ piece_offsets,
                    uint32_t* __restrict__ cut_ranks) {
  await_stream();
  constexpr uint32_t kMost = kCut > 0 ? kCut : 1;
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const OffsetT length = row_offsets[row + 1] - row_offsets[row];
  const uint32_t pieces = length == 0 ? 1 : uint32_t((length + kMost - 1) / kMost);
  piece_offsets[row] = pieces;
  cut_ranks[row] = pieces > 1;
}

// The sum of a piece goes to its row, or where the pieces of its row are added: as many places as there are pieces of cut
// rows.
constexpr uint32_t kIsPart = 0x80000000u;

// A thread a row: the row of each of its pieces; of rows that are cut, where their parts begin.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_cut(uint32_t num_rows, const uint32_t* __restrict__ piece_offsets, const uint32_t* __restrict__ cut_ranks,
                 uint32_t* __restrict__ piece_rows, uint2* __restrict__ cut_rows) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const uint32_t begin = piece_offsets[row], end = piece_offsets[row + 1];
  for (uint32_t piece = begin; piece < end; ++piece) piece_rows[piece] = row;
  if (end - begin > 1) cut_rows[cut_ranks[row]] = {row, begin - (row - cut_ranks[row])};
}

// A block a window: its pieces by falling length, those of one length in their order, as bitonic sorting of length and
// place leaves them. num_moved <- how many are not where they were.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_sort(uint32_t num_pieces, const OffsetT* __restrict__ row_offsets,
                  const uint32_t* __restrict__ piece_offsets, const uint32_t* __restrict__ piece_rows,
                  uint16_t* __restrict__ permutation, uint64_t* num_moved) {
  await_stream();
  if constexpr (kSigma == 1) return;
  const Pieces pieces = {num_pieces, row_offsets, piece_offsets, piece_rows};
  __shared__ uint64_t keys[kSigma];
  const uint64_t first = uint64_t(blockIdx.x) * kSigma;
  for (uint32_t i = threadIdx.x; i < kSigma; i += kThreadsPerBlock) {
    const bool is_there = first + i < num_pieces;
    keys[i] = is_there ? uint64_t(~pieces[uint32_t(first + i)].length) << 32 | i : ~uint64_t(0);
  }
  for (uint32_t size = 2; size <= kSigma; size *= 2) {
    for (uint32_t distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (uint32_t pair = threadIdx.x; 2 * pair < kSigma; pair += kThreadsPerBlock) {
        const uint32_t low = pair / distance * (2 * distance) + pair % distance;
        const uint32_t high = low + distance;
        const uint64_t a = keys[low], b = keys[high];
        if ((a > b) == ((low & size) == 0)) {
          keys[low] = b;
          keys[high] = a;
        }
      }
    }
  }
  __syncthreads();
  uint32_t moved = 0;
  for (uint32_t i = threadIdx.x; i < kSigma && first + i < num_pieces; i += kThreadsPerBlock) {
    permutation[first + i] = uint16_t(keys[i]);
    moved += uint32_t(keys[i]) != i;
  }
  if (moved > 0) atomicAdd(num_moved, uint64_t(moved));
}

// ---- Slices are measured and packed ----

// What a lane holds of a slice.
struct LanePieces {
  uint32_t pieces[kRowsPerLane];
  OffsetT begins[kRowsPerLane];
  uint32_t lengths[kRowsPerLane];

  __device__ __forceinline__ LanePieces(uint32_t slice, int lane, const Pieces& all, uint32_t num_moved,
                                        const uint16_t* permutation) {
#pragma unroll
    for (int r = 0; r < kRowsPerLane; ++r) {
      const uint32_t place = lane_place(slice, lane, r);
      const bool is_there = place < all.number;
      pieces[r] = is_there ? piece_at(place, num_moved, permutation) : all.number;
      const Piece piece = is_there ? all[pieces[r]] : Piece{0, 0};
      begins[r] = piece.begin;
      lengths[r] = piece.length;
    }
  }
  // The column of a slot, in blocks; kNoColumn is fill.
  __device__ __forceinline__ IndexT col(uint32_t step, int lane, int i, const IndexT* __restrict__ col_indices) const {
    const uint32_t k = slot_entry_number(step, lane, i);
    const int r = i / kEntriesPerStep;
    return k < lengths[r] ? __ldg(col_indices + begins[r] + OffsetT(k) * kBlock) / kBlock : kNoColumn;
  }
};

__device__ __forceinline__ uint32_t warp_max(uint32_t value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value = max(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

// A warp a slice: step_offsets[slice] <- the steps of its longest piece, for a scan to follow.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_widths(uint32_t num_pieces, const OffsetT* __restrict__ row_offsets,
                    const uint32_t* __restrict__ piece_offsets, const uint32_t* __restrict__ piece_rows,
                    uint32_t num_slices, uint32_t num_moved, const uint16_t* __restrict__ permutation,
                    uint32_t* __restrict__ step_offsets) {
  await_stream();
  const uint32_t slice = warp_number();
  const int lane = threadIdx.x % 32;
  if (slice >= num_slices) return;
  const LanePieces held(slice, lane, {num_pieces, row_offsets, piece_offsets, piece_rows}, num_moved, permutation);
  uint32_t longest = 0;
#pragma unroll
  for (int r = 0; r < kRowsPerLane; ++r) longest = max(longest, held.lengths[r]);
  longest = warp_max(longest);
  if (lane == 0) step_offsets[slice] = (longest + kStepEntries - 1) / kStepEntries;
}

// A warp a slice: bases[step] <- the first column of the step; wide_ranks[step] <- whether it reaches too far, for a
// scan to follow.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_bases(uint32_t num_pieces, const OffsetT* __restrict__ row_offsets,
                   const uint32_t* __restrict__ piece_offsets, const uint32_t* __restrict__ piece_rows,
                   const IndexT* __restrict__ col_indices, uint32_t num_slices, uint32_t num_moved,
                   const uint16_t* __restrict__ permutation, const uint32_t* __restrict__ step_offsets,
                   uint32_t* __restrict__ bases, uint32_t* __restrict__ wide_ranks) {
  await_stream();
  const uint32_t slice = warp_number();
  const int lane = threadIdx.x % 32;
  if (slice >= num_slices) return;
  const LanePieces held(slice, lane, {num_pieces, row_offsets, piece_offsets, piece_rows}, num_moved, permutation);
  const uint32_t first = step_offsets[slice], width = step_offsets[slice + 1] - first;
  for (uint32_t step = 0; step < width; ++step) {
    uint32_t highest = 0, lowest = ~0u;
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      const IndexT col = held.col(step, lane, i, col_indices);
      if (col != kNoColumn) {
        highest = max(highest, uint32_t(col));
        lowest = min(lowest, uint32_t(col));
      }
    }
    highest = warp_max(highest);
    lowest = ~warp_max(~lowest);
    const bool is_wide = highest - lowest >= kNarrowSpan;
    if (lane == 0) bases[first + step] = is_wide ? kIsWide : lowest;
    if (lane == 0) wide_ranks[first + step] = is_wide;
  }
}

// A warp a slice.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_convert(uint32_t num_pieces, const OffsetT* __restrict__ row_offsets,
                     const uint32_t* __restrict__ piece_offsets, const uint32_t* __restrict__ piece_rows,
                     const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values, uint32_t num_slices,
                     uint32_t num_moved, const uint16_t* __restrict__ permutation,
                     const uint32_t* __restrict__ step_offsets, const uint32_t* __restrict__ wide_ranks,
                     uint32_t* __restrict__ bases, ColT* __restrict__ cols, uint16_t* __restrict__ upper_cols,
                     uint32_t is_encoded, uint32_t num_distinct, const uint64_t* __restrict__ table,
                     ValueT* __restrict__ slot_values, EncodedT* __restrict__ encoded_values) {
  await_stream();
  const uint32_t slice = warp_number();
  const int lane = threadIdx.x % 32;
  if (slice >= num_slices) return;
  const LanePieces held(slice, lane, {num_pieces, row_offsets, piece_offsets, piece_rows}, num_moved, permutation);
  const uint32_t first = step_offsets[slice], width = step_offsets[slice + 1] - first;
  for (uint32_t step = 0; step < width; ++step) {
    const uint32_t base = kColBits == 16 ? bases[first + step] : 0;
    const uint32_t rank = kColBits == 16 ? wide_ranks[first + step] : 0;
#pragma unroll
    for (int i = 0; i < kSlots; ++i) {
      const IndexT col = held.col(step, lane, i, col_indices);
      const bool is_wide = kColBits == 32 || (base & kIsWide) != 0;
      const uint32_t stored = is_wide || col == kNoColumn ? uint32_t(col) : uint32_t(col) - base;
      cols[Cols::place(first + step, lane, i)] = ColT(stored);
      if (kColBits == 16 && is_wide) upper_cols[Cols::place(rank, lane, i)] = uint16_t(stored >> 16);
#pragma unroll
      for (int v = 0; v < kSlotValues; ++v) {
        const int r = i / kEntriesPerStep;
        // Rows of a block are as far apart as the first one is long.
        const OffsetT in_row = OffsetT(slot_entry_number(step, lane, i)) * kBlock + v % kBlock;
        const OffsetT from = held.begins[r] + OffsetT(v / kBlock) * held.lengths[r] * kBlock + in_row;
        const ValueT value = col == kNoColumn ? ValueT(0) : __ldg(values + from);
        if (is_encoded != 0) {
          encoded_values[Planes<EncodedT, kSlots * kSlotValues>::place(first + step, lane, i * kSlotValues + v)] =
              col == kNoColumn ? EncodedT(0) : EncodingT::stored(value, num_distinct, table);
        } else {
          slot_values[Planes<ValueT, kSlots * kSlotValues>::place(first + step, lane, i * kSlotValues + v)] = value;
        }
      }
    }
    __syncwarp();
    if (kColBits == 16 && (base & kIsWide) != 0 && lane == 0) bases[first + step] = kIsWide | rank;
  }
}

// Where rows are cut: the targets of places.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_targets(uint32_t num_pieces, const uint32_t* __restrict__ piece_offsets,
                     const uint32_t* __restrict__ piece_rows, const uint32_t* __restrict__ cut_ranks,
                     uint32_t num_moved, const uint16_t* __restrict__ permutation, uint32_t* __restrict__ targets) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (place >= num_pieces) return;
  const uint32_t piece = piece_at(place, num_moved, permutation);
  const uint32_t row = piece_rows[piece];
  const bool is_cut = piece_offsets[row + 1] - piece_offsets[row] > 1;
  targets[place] = is_cut ? kIsPart | (piece - (row - cut_ranks[row])) : row;
}

// ---- The product ----

// Columns whose x a block has in shared memory: where lanes read it from anywhere, more reads a clock come from there than from
// L1, which would have to keep them beside what passes through.
constexpr uint32_t kWindow = kBlock > 1 ? 0 : kXKib * 1024 / sizeof(XT);

__device__ __forceinline__ XT* window() {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  return reinterpret_cast<XT*>(shared_bytes);
}

// x, and the first of the columns that are in the window.
struct Entries {
  const XT* __restrict__ x;
  uint32_t first;

  __device__ __forceinline__ bool is_in_window(uint32_t col) const { return col - first < kWindow; }
  // Those of a block of columns, or nothing where they are not in the window; kInPackets: x is in packets.
  template <bool kInPackets>
  __device__ __forceinline__ void load(Held<XT>* to, uint32_t block_col) const {
    if constexpr (kWindow > 0) {
      if (is_in_window(block_col)) to[0] = window()[block_col - first];
    } else {
      load_x<kBlock, kInPackets>(to, x + uint64_t(block_col) * kBlock);
    }
  }
};

// Copies the window of a block with slices from `begin` to `end`, where it has any. Of its first 32 slices the one that begins
// last says where: in a band they begin close together, and an entry far before the others does not count. An eighth of the
// window lies before that.
__device__ __forceinline__ Entries copy_window(uint32_t begin, uint32_t end, uint32_t num_cols,
                                               const uint32_t* __restrict__ step_offsets,
                                               const uint32_t* __restrict__ bases, const ColT* __restrict__ cols,
                                               const XT* __restrict__ x) {
  uint32_t first = 0;
  if (kWindow == 0 || begin >= end) return {x, first};
  const uint32_t slice = begin + threadIdx.x % 32;
  if (slice < end && num_cols > kWindow) {
    const uint32_t step = __ldg(step_offsets + slice);
    if (step < __ldg(step_offsets + slice + 1)) {
      // Of columns without bases the first entry's, where there is one.
      const uint32_t base = kColBits == 16 ? __ldg(bases + step) : __ldg(cols + Cols::place(step, 0, 0));
      if ((base & kIsWide) == 0) first = base;
    }
  }
  const uint32_t count = min(kWindow, num_cols);
  constexpr uint32_t kBefore = kWindow / 8, kAligned = 16;
  first = warp_max(first);
  first = min(first - min(first, kBefore), num_cols - count) / kAligned * kAligned;
  stage_async<kThreadsPerBlock>(count, x, x + first, window());
  end_copies();
  await_copies<0>();
  __syncthreads();
  return {x, first};
}

// The value that is stored so; of fill, which may be any.
template <typename StoredT>
__device__ __forceinline__ ValueT slot_value(StoredT stored, bool is_fill, const ValueT* table) {
  return sizeof(StoredT) == 1 && is_fill ? ValueT(0) : decode(stored, table);
}

// What a lane takes in kCount steps, as it is stored, with values as StoredT.
template <int kCount, typename StoredT>
struct Turn {
  using Values = Planes<StoredT, kSlots * kSlotValues>;
  uint32_t bases[kCount];
  Cols::Step cols[kCount];
  typename Values::Step values[kCount];

  __device__ __forceinline__ void load(uint32_t step, int lane, const uint32_t* __restrict__ from_bases,
                                       const ColT* __restrict__ from_cols, const StoredT* __restrict__ from_values) {
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
      bases[s] = kColBits == 16 ? __ldg(from_bases + step + s) : 0;
      cols[s].load(from_cols, step, lane, s);
    }
#pragma unroll
    for (int s = 0; s < kCount; ++s) values[s].load(from_values, step, lane, s);
  }

  // Whether no step has upper halves of columns.
  __device__ __forceinline__ bool is_narrow() const {
    uint32_t any = 0;
#pragma unroll
    for (int s = 0; s < kCount; ++s) any |= bases[s];
    return kColBits == 32 || (any & kIsWide) == 0;
  }

  // Adds the products to the sums of a lane's rows; kIsNarrow: is_narrow(); kInPackets: x is in packets.
  template <bool kIsNarrow, bool kInPackets>
  __device__ __forceinline__ void add(int lane, const uint16_t* __restrict__ upper_cols, const ValueT* table,
                                      const Entries& x, AccumT (&sums)[kRowsPerLane][kBlock]) const {
    // Of blocks; of fill they are none.
    uint32_t step_cols[kCount][kSlots];
    bool are_fill[kCount][kSlots];
    Held<XT> entries[kCount][kSlots][kBlock];
    bool misses_any = false;
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
      typename Planes<uint16_t, kSlots>::Step uppers;
      const bool is_wide = kColBits == 16 && !kIsNarrow && (bases[s] & kIsWide) != 0;
      if (is_wide) uppers.load(upper_cols, bases[s] & ~kIsWide, lane);
#pragma unroll
      for (int i = 0; i < kSlots; ++i) {
        const uint32_t stored = cols[s].word(i);
        const uint32_t col = kColBits == 32 ? stored : is_wide ? uppers.word(i) << 16 | stored : bases[s] + stored;
        const bool is_fill = kColBits == 32 || is_wide ? col == uint32_t(kNoColumn) : stored == kNarrowSpan;
        step_cols[s][i] = col;
        are_fill[s][i] = is_fill;
#pragma unroll
        for (int c = 0; c < kBlock; ++c) entries[s][i][c].empty();
        if (!is_fill) x.template load<kInPackets>(entries[s][i], col);
        if (kWindow > 0) misses_any |= !is_fill && !x.is_in_window(col);
      }
    }
    // Apart, so that nobody waits in turn for one memory and the other.
    if (kWindow > 0 && __any_sync(0xffffffffu, misses_any)) {
#pragma unroll
      for (int i = 0; i < kCount * kSlots; ++i) {
        const uint32_t col = step_cols[i / kSlots][i % kSlots];
        const bool misses = !are_fill[i / kSlots][i % kSlots] && !x.is_in_window(col);
        if (misses) entries[i / kSlots][i % kSlots][0] = __ldg(x.x + col);
      }
    }
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
#pragma unroll
      for (int v = 0; v < kSlots * kSlotValues; ++v) {
        const int i = v / kSlotValues, r = v % kSlotValues / kBlock, c = v % kBlock;
        AccumT& sum = sums[i / kEntriesPerStep][r];
        const ValueT value = slot_value(values[s][v], are_fill[s][i], table);
        const AccumT added =
            combine_reduce(AccumT(value), AccumT(entries[s][i][c].entry()), step_cols[s][i] * kBlock + c, sum);
        sum = kZerosAddNothing || !are_fill[s][i] ? added : sum;
      }
    }
  }
};

// Adds the products of steps to a lane's sums, kCount at a time, and of those that are left.
template <int kCount, bool kInPackets, typename StoredT>
__device__ __forceinline__ void add_steps(AccumT (&sums)[kRowsPerLane][kBlock], uint32_t step, uint32_t end, int lane,
                                          const uint32_t* __restrict__ bases, const ColT* __restrict__ cols,
                                          const uint16_t* __restrict__ upper_cols, const StoredT* __restrict__ values,
                                          const ValueT* table, const Entries& x) {
#pragma unroll 1
  for (; step + kCount <= end; step += kCount) {
    Turn<kCount, StoredT> turn;
    turn.load(step, lane, bases, cols, values);
    if (turn.is_narrow()) {
      turn.template add<true, kInPackets>(lane, upper_cols, table, x, sums);
    } else if constexpr (kCount == kSteps || kCount == 1) {
      turn.template add<false, kInPackets>(lane, upper_cols, table, x, sums);
    } else {
      break;
    }
  }
  if constexpr (kCount > 1) {
    add_steps<kCount / 2, kInPackets>(sums, step, end, lane, bases, cols, upper_cols, values, table, x);
  }
}

// A block has slices that follow one another, and its warps take them in turn: what a multiprocessor reads of x at a time
// lies close together where its blocks have many.
template <typename StoredT>
__device__ __forceinline__ void multiply(uint32_t num_pieces, uint32_t num_parts, uint32_t num_slices,
                                         uint32_t num_moved, const uint16_t* __restrict__ permutation,
                                         const uint32_t* __restrict__ targets,
                                         const uint32_t* __restrict__ step_offsets,
                                         const uint32_t* __restrict__ bases, const ColT* __restrict__ cols,
                                         const uint16_t* __restrict__ upper_cols,
                                         const StoredT* __restrict__ values, const ValueT* table,
                                         AccumT* __restrict__ parts, uint32_t num_cols, const XT* __restrict__ x_all,
                                         YT* __restrict__ y, AccumT alpha, BetaT beta) {
  const int lane = threadIdx.x % 32;
  const uint32_t share = (num_slices + gridDim.x - 1) / gridDim.x;
  const uint32_t beyond = min(num_slices, (blockIdx.x + 1) * share);
  uint32_t slice = blockIdx.x * share + threadIdx.x / 32;
  const bool in_packets = is_in_packets<kBlock>(x_all);
  uint32_t next[2] = {};
  if (slice < beyond) {
    next[0] = __ldg(step_offsets + slice);
    next[1] = __ldg(step_offsets + slice + 1);
  }
  const uint32_t reads_from = skips_product(alpha) ? beyond : blockIdx.x * share;
  const Entries x = copy_window(reads_from, beyond, num_cols, step_offsets, bases, cols, x_all);
#pragma unroll 1
  for (; slice < beyond; slice += kWarps) {
    const uint32_t begin = next[0], end = skips_product(alpha) ? begin : next[1];
    if (slice + kWarps < beyond) {
      next[0] = __ldg(step_offsets + slice + kWarps);
      next[1] = __ldg(step_offsets + slice + kWarps + 1);
    }
    uint32_t to[kRowsPerLane];
#pragma unroll
    for (int r = 0; r < kRowsPerLane; ++r) {
      const uint32_t place = lane_place(slice, lane, r);
      to[r] = place;
      if (place < num_pieces) to[r] = num_parts > 0 ? __ldcs(targets + place) : piece_at(place, num_moved, permutation);
    }
    AccumT sums[kRowsPerLane][kBlock];
#pragma unroll
    for (int r = 0; r < kRowsPerLane * kBlock; ++r) sums[r / kBlock][r % kBlock] = kIdentity;
    // What is known here is not compiled twice.
    if constexpr (kXPacket<kBlock> == 1) {
      add_steps<kSteps, true>(sums, begin, end, lane, bases, cols, upper_cols, values, table, x);
    } else if (in_packets) {
      add_steps<kSteps, true>(sums, begin, end, lane, bases, cols, upper_cols, values, table, x);
    } else {
      add_steps<kSteps, false>(sums, begin, end, lane, bases, cols, upper_cols, values, table, x);
    }
#pragma unroll
    for (int r = 0; r < kRowsPerLane * kBlock; ++r) {
      const AccumT sum = group_sum<kLanesPerRow>(sums[r / kBlock][r % kBlock], 0xffffffffu);
      const uint32_t target = to[r / kBlock];
      if (lane % kLanesPerRow != 0 || lane_place(slice, lane, r / kBlock) >= num_pieces) continue;
      if (num_parts > 0 && (target & kIsPart) != 0) {
        parts[target & ~kIsPart] = sum;
      } else {
        store_scaled(y, target * kBlock + r % kBlock, sum, alpha, beta);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special(uint32_t num_pieces, uint32_t num_parts, uint32_t num_slices, uint32_t num_moved,
             const uint16_t* __restrict__ permutation, const uint32_t* __restrict__ targets,
             const uint32_t* __restrict__ step_offsets, const uint32_t* __restrict__ bases,
             const ColT* __restrict__ cols, const uint16_t* __restrict__ upper_cols, const ValueT* __restrict__ values,
             AccumT* __restrict__ parts, uint32_t num_cols, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
             BetaT beta) {
  await_stream();
  multiply(num_pieces, kCut > 0 ? num_parts : 0, num_slices, num_moved, permutation, targets, step_offsets, bases, cols,
           upper_cols, values, nullptr, parts, num_cols, x, y, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_encoded(uint32_t num_pieces, uint32_t num_parts, uint32_t num_slices, uint32_t num_moved,
                     const uint16_t* __restrict__ permutation, const uint32_t* __restrict__ targets,
                     const uint32_t* __restrict__ step_offsets, const uint32_t* __restrict__ bases,
                     const ColT* __restrict__ cols, const uint16_t* __restrict__ upper_cols,
                     const EncodedT* __restrict__ values, AccumT* __restrict__ parts, uint32_t num_cols,
                     const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta, uint32_t num_distinct,
                     const uint64_t* __restrict__ table) {
  await_stream();
  __shared__ ValueT shared_table[kTableEntries];
  read_table(shared_table, num_distinct, table);
  if constexpr (kIsEncoded) {
    multiply(num_pieces, kCut > 0 ? num_parts : 0, num_slices, num_moved, permutation, targets, step_offsets, bases,
             cols, upper_cols, values, shared_table, parts, num_cols, x, y, alpha, beta);
  }
}

// A block a row that was cut: its parts, always in the same order.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_special_add_parts(uint32_t num_cut, uint32_t num_parts, const uint2* __restrict__ cut_rows,
                       const AccumT* __restrict__ parts, YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  await_stream();
  __shared__ AccumT warp_sums[kWarps];
  const uint2 cut = cut_rows[blockIdx.x];
  const uint32_t end = blockIdx.x + 1 < num_cut ? cut_rows[blockIdx.x + 1].y : num_parts;
  AccumT sum = kIdentity;
#pragma unroll 4
  for (uint32_t part = cut.y + threadIdx.x; part < end; part += kThreadsPerBlock) sum = reduce(sum, parts[part]);
  sum = group_sum<32>(sum, 0xffffffffu);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  sum = kIdentity;
  for (uint32_t warp = 0; warp < kWarps; ++warp) sum = reduce(sum, warp_sums[warp]);
  store_scaled(y, cut.x, sum, alpha, beta);
}
