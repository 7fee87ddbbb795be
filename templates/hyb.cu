// hyb: the first entries of the rows in ELLPACK, as wide as a third of the rows is long, the others as coordinates.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Bell and Garland 2009 (HYB: the width that at least a third of the rows fill); Hiranandani, III (structure x format)
// Suits:     rows of nearly one length with a few longer ones, giants among them
// Suffers:   row lengths that vary everywhere: many entries are coordinates, of 4 more bytes each; values that change (they are copied when a plan is made)
// Bytes:     ELLPACK slots * (value + index) + coordinates * (value + index + 4) + rows * y + x once, and where there are coordinates 8 every 32 rows; keeps its own values and columns
// Guarantee: bit-reproducible; a row is a chain of its ELLPACK entries, then lanes and tiles of its coordinates in a fixed order; fill touches no x
// Launch:    a thread two rows of the ELLPACK part; then a warp a tile of 256 coordinates, which takes up what the first pass left of their rows; the width is selected, the parts are counted and converted on the device, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/stream.cuh"
#include "prelude/slots.cuh"
#include "prelude/ell.cuh"
#include "prelude/segmented.cuh"
#include "prelude/spanning_row.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#endif

// Coordinates of a lane, and of a warp.
constexpr int kLaneNnz = 8;
constexpr uint32_t kTileNnz = 32 * kLaneNnz;

__device__ __forceinline__ uint32_t row_length(const OffsetT* __restrict__ row_offsets, uint32_t row) {
  return uint32_t(row_offsets[row + 1] - row_offsets[row]);
}

// What is known of the width: its digits above `shift`, and its rank among the rows that have them.
struct Selection {
  uint32_t prefix, rank;
};

// How many rows whose length begins with the prefix have each next digit, of 8 bits.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_histogram(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t shift,
                   const Selection* __restrict__ selection, uint32_t* histogram) {
  await_stream();
  __shared__ uint32_t counts[256];
  for (int digit = threadIdx.x; digit < 256; digit += kThreadsPerBlock) counts[digit] = 0;
  __syncthreads();
  const uint32_t prefix = shift == 24 ? 0 : selection->prefix;
  const uint32_t num_threads = gridDim.x * kThreadsPerBlock;
  for (uint32_t first = blockIdx.x * kThreadsPerBlock; first < num_rows; first += num_threads) {
    const uint32_t row = first + threadIdx.x;
    uint32_t digit = 256;
    if (row < num_rows) {
      const uint32_t length = row_length(row_offsets, row);
      if (shift == 24 || length >> shift >> 8 == prefix) digit = length >> shift & 255;
    }
    const uint32_t peers = __match_any_sync(0xffffffffu, digit);
    if (digit < 256 && threadIdx.x % 32 == __ffs(peers) - 1) atomicAdd(&counts[digit], uint32_t(__popc(peers)));
  }
  __syncthreads();
  for (int digit = threadIdx.x; digit < 256; digit += kThreadsPerBlock) {
    if (counts[digit] > 0) atomicAdd(histogram + digit, counts[digit]);
  }
}

// The next digit of the width, with which at least a third of all rows, and one, are as long; the last makes it known.
// One block; leaves the histogram zero.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_select(uint32_t num_rows, uint32_t shift, Selection* selection, uint32_t* histogram, uint64_t* width) {
  await_stream();
  __shared__ uint32_t counts[256];
  for (int digit = threadIdx.x; digit < 256; digit += kThreadsPerBlock) {
    counts[digit] = histogram[digit];
    histogram[digit] = 0;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  Selection found = {0, max(num_rows / 3, 1u)};
  if (shift < 24) found = *selection;
  uint32_t digit = 255;
  for (; digit > 0 && counts[digit] < found.rank; --digit) found.rank -= counts[digit];
  found.prefix = found.prefix << 8 | digit;
  *selection = found;
  if (shift == 0) *width = found.prefix;
}

struct TailNnz {
  const OffsetT* row_offsets;
  uint32_t width;
  __device__ __forceinline__ OffsetT operator()(uint64_t row) const {
    const OffsetT length = row_offsets[row + 1] - row_offsets[row];
    return length > width ? length - width : 0;
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_tails_sum_chunk(uint64_t length, const OffsetT* row_offsets, uint32_t width, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, TailNnz{row_offsets, width});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_tails_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, OffsetT* tail_begins,
                        uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, tail_begins, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_tails_chunk(uint64_t length, const OffsetT* row_offsets, uint32_t width, const uint64_t* partials,
                     OffsetT* tail_begins) {
  await_stream();
  scan_chunk(length, partials, tail_begins, TailNnz{row_offsets, width});
}

struct HasTail {
  const OffsetT* row_offsets;
  uint32_t width;
  __device__ __forceinline__ uint32_t operator()(uint64_t row) const {
    return row_offsets[row + 1] - row_offsets[row] > width;
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_ranks_sum_chunk(uint64_t length, const OffsetT* row_offsets, uint32_t width, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, HasTail{row_offsets, width});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_ranks_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, uint32_t* ranks,
                        uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, ranks, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_ranks_chunk(uint64_t length, const OffsetT* row_offsets, uint32_t width, const uint64_t* partials,
                     uint32_t* ranks) {
  await_stream();
  scan_chunk(length, partials, ranks, HasTail{row_offsets, width});
}

// Which rows have coordinates: a bit a row, 32 in a word, and how many before the word have.
struct TailRows {
  const uint2* words;

  __device__ __forceinline__ bool has(uint32_t row) const { return __ldg(words + row / 32).x >> row % 32 & 1; }
  __device__ __forceinline__ uint32_t rank(uint32_t row) const {
    const uint2 word = __ldg(words + row / 32);
    return word.y + __popc(word.x & ((1u << row % 32) - 1));
  }
};

// A thread a row, and one for each of the rows that fill up the last warp: the ELLPACK part, and which rows have more.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_convert(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                 const ValueT* __restrict__ values, uint32_t width, OffsetT num_coordinates,
                 const OffsetT* __restrict__ tail_begins, const uint32_t* __restrict__ ranks,
                 uint2* __restrict__ tail_words, OffsetT* __restrict__ tail_offsets, uint32_t* __restrict__ tail_rows,
                 IndexT* __restrict__ slot_cols, ValueT* __restrict__ slot_values) {
  await_stream();
  const uint64_t stride = ell_stride(num_rows);
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= stride) return;
  const OffsetT begin = row < num_rows ? __ldg(row_offsets + row) : 0;
  const OffsetT length = row < num_rows ? __ldg(row_offsets + row + 1) - begin : 0;
  const uint32_t tails = __ballot_sync(0xffffffffu, length > width);
  if (row % 32 == 0) tail_words[row / 32] = make_uint2(tails, ranks[row]);
  if (length > width) {
    tail_offsets[ranks[row]] = tail_begins[row];
    tail_rows[ranks[row]] = row;
  }
  if (row == 0) tail_offsets[ranks[num_rows]] = num_coordinates;
  fill_slots(begin, uint32_t(min(length, OffsetT(width))), width, col_indices, values, stride, slot_cols + row,
             slot_values + row);
}

// A thread a coordinate, and one for each that fills up the last tile, which names the last row and no column.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_coordinates(OffsetT num_coordinates, uint32_t num_tail_rows, uint32_t width,
                     const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                     const ValueT* __restrict__ values, const OffsetT* __restrict__ tail_offsets,
                     const uint32_t* __restrict__ tail_rows, uint32_t* __restrict__ row_indices,
                     IndexT* __restrict__ tail_cols, ValueT* __restrict__ tail_values) {
  await_stream();
  const OffsetT i = blockIdx.x * OffsetT(kThreadsPerBlock) + threadIdx.x;
  if (i >= (num_coordinates + kTileNnz - 1) / kTileNnz * kTileNnz) return;
  uint32_t rank = 0;
  for (uint32_t end = num_tail_rows; end - rank > 1;) {
    const uint32_t middle = rank + (end - rank) / 2;
    if (__ldg(tail_offsets + middle) <= i) {
      rank = middle;
    } else {
      end = middle;
    }
  }
  const uint32_t row = tail_rows[rank];
  const OffsetT from = row_offsets[row] + width + (i - tail_offsets[rank]);
  row_indices[i] = row;
  tail_cols[i] = i < num_coordinates ? col_indices[from] : kNoColumn;
  tail_values[i] = i < num_coordinates ? values[from] : ValueT(0);
}

// The ELLPACK part. Sums of rows that have coordinates are left for the second pass.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb(uint32_t num_rows, uint32_t width, const IndexT* __restrict__ slot_cols,
         const ValueT* __restrict__ slot_values, uint32_t num_tail_rows, const uint2* __restrict__ tail_words,
         AccumT* __restrict__ ell_sums, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  await_stream();
  const uint32_t row = (blockIdx.x * kThreadsPerBlock + threadIdx.x) * kEllRows;
  if (row >= num_rows) return;
  const bool skips = skips_product(alpha);
  AccumT sums[kEllRows] = {};
  add_ell_rows(num_rows, row, skips ? 0 : width, slot_cols, slot_values, x, sums);
  const TailRows tails = {tail_words};
#pragma unroll
  for (int r = 0; r < kEllRows; ++r) {
    if (row + r >= num_rows) return;
    if (num_tail_rows > 0 && !skips && tails.has(row + r)) {
      ell_sums[tails.rank(row + r)] = sums[r];
    } else {
      store_scaled(y, row + r, sums[r], alpha, beta);
    }
  }
}

// A lane's coordinates: rows that begin and end in the lane are stored; `head` is what belongs to the row that was open
// before, the result what belongs to the row that stays open. A bit of `flags` is set where a row begins.
__device__ __forceinline__ AccumT lane_sum(const uint32_t* rows, uint32_t flags, const IndexT* __restrict__ tail_cols,
                                           const ValueT* __restrict__ tail_values, const AccumT* starts,
                                           const XT* __restrict__ x, AccumT& head, YT* y, AccumT alpha, BetaT beta) {
  IndexT cols[kLaneNnz];
  ValueT values[kLaneNnz];
  XT entries[kLaneNnz];
  load_streaming<kLaneNnz>(cols, tail_cols);
  load_streaming<kLaneNnz>(values, tail_values);
#pragma unroll
  for (int k = 0; k < kLaneNnz; ++k) entries[k] = slot_entry(x, cols[k]);
  AccumT sum = 0;
  bool is_head = true;
#pragma unroll
  for (int k = 0; k < kLaneNnz; ++k) {
    if (flags >> k & 1) {
      if (is_head) {
        head = sum;
      } else {
        store_scaled(y, rows[k > 0 ? k - 1 : 0], sum, alpha, beta);
      }
      is_head = false;
      sum = starts[k];
    }
    sum = multiply_add(AccumT(values[k]), AccumT(entries[k]), sum);
  }
  return sum;
}

// The coordinates: a row begins with what the first pass left of it.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hyb_tail(uint32_t num_tiles, const uint32_t* __restrict__ row_indices, const IndexT* __restrict__ tail_cols,
              const ValueT* __restrict__ tail_values, const uint2* __restrict__ tail_words,
              const OffsetT* __restrict__ tail_offsets, const AccumT* __restrict__ ell_sums,
              const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta, AccumT* pieces_at_end,
              AccumT* pieces_at_begin, PieceWordT* meetings) {
  await_stream();
  const uint32_t tile = (blockIdx.x * kThreadsPerBlock + threadIdx.x) / 32;
  if (tile >= num_tiles || skips_product(alpha)) return;
  const int lane = threadIdx.x % 32;
  const OffsetT first = tile * OffsetT(kTileNnz) + lane * kLaneNnz;
  const TailRows tails = {tail_words};
  uint32_t rows[kLaneNnz];
  load_streaming<kLaneNnz>(rows, row_indices + first);
  uint32_t before = __shfl_up_sync(0xffffffffu, rows[kLaneNnz - 1], 1);
  if (lane == 0) before = tile == 0 ? ~0u : __ldg(row_indices + first - 1);
  uint32_t flags = 0;
  AccumT starts[kLaneNnz];
#pragma unroll
  for (int k = 0; k < kLaneNnz; ++k) {
    const bool begins = rows[k] != (k > 0 ? rows[k > 0 ? k - 1 : 0] : before);
    starts[k] = begins ? ell_sums[tails.rank(rows[k])] : AccumT(0);
    flags |= uint32_t(begins) << k;
  }
  AccumT head = 0;
  AccumT sum = lane_sum(rows, flags, tail_cols + first, tail_values + first, starts, x, head, y, alpha, beta);
  const uint32_t lanes = __ballot_sync(0xffffffffu, flags != 0);
  sum = warp_segmented_sum(sum, lanes_before_in_segment(lanes));
  const AccumT carry = __shfl_up_sync(0xffffffffu, sum, 1);
  if (lane != 0) head = carry + head;
  const uint32_t head_row = flags & 1 ? before : rows[0];
  if (flags != 0 && (lanes & ((1u << lane) - 1)) != 0) store_scaled(y, head_row, head, alpha, beta);

  // The rows that are open at the tile's beginning and at its end.
  const SpanningRows spanning = {pieces_at_end, pieces_at_begin, meetings};
  const bool begins_row = __shfl_sync(0xffffffffu, flags, 0) & 1;
  if (lanes != 0 && !begins_row) {
    const int source = __ffs(lanes) - 1;
    const uint32_t row = __shfl_sync(0xffffffffu, head_row, source);
    const uint32_t first_tile = uint32_t(__ldg(tail_offsets + tails.rank(row)) / kTileNnz);
    add_piece(spanning, row, first_tile, tile, tile, __shfl_sync(0xffffffffu, head, source), y, alpha, beta);
  }
  const uint32_t last_row = __shfl_sync(0xffffffffu, rows[kLaneNnz - 1], 31);
  const uint32_t rank = tails.rank(last_row);
  const uint32_t first_tile = uint32_t(__ldg(tail_offsets + rank) / kTileNnz);
  const uint32_t last_tile = uint32_t((__ldg(tail_offsets + rank + 1) - 1) / kTileNnz);
  const AccumT piece = __shfl_sync(0xffffffffu, sum, 31);
  if (first_tile != last_tile) {
    add_piece(spanning, last_row, first_tile, last_tile, tile, piece, y, alpha, beta);
  } else if (lane == 0) {
    store_scaled(y, last_row, piece, alpha, beta);
  }
}
