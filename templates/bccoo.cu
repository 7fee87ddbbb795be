// bccoo: a warp takes 256 small dense blocks, a lane eight neighbours, with 16 bits for a column and a bit for the end of a row.
//
// Formula:   y[r] <- alpha * sum over blocks b in row r / block_rows, over c of block_values[b][r % block_rows][c] * x[block_cols * cols[b] + c] + beta * y[r]
// Paper:     Yan, Li, Zhang and Zhou 2014 (yaSpMV: BCCOO; a carry in place of waiting for the neighbour); peer in Steinberger et al., Hola
// Suits:     entries that come in small dense blocks, as in finite elements with several unknowns a node; any distribution of row lengths
// Suffers:   scattered entries: a block that holds one entry is stored whole, which is refused from 8 slots a nonzero on; values that change (they are copied when a plan is made)
// Bytes:     blocks * (block_rows * block_cols * value + 2 + 1/8) + 4 a row of blocks + 4 a column more than 32,767 blocks from the one before + rows * y + x once, about 24 for 256 blocks; keeps its own values and columns
// Guarantee: bit-reproducible; a lane's blocks are a chain, lanes are summed in fixed trees, and a row of several tiles by the warp that brings its last piece; fill multiplies x, so that x must be finite wherever a stored block lies
// Launch:    a warp 256 blocks, a thread a row of an empty row of blocks; one pass; blocks are found by two radix sorts, counted, filled and described on the device, once; at most 2^31 - 1 nonzeros
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kBlockRows = 2;
constexpr int kBlockCols = 2;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/stream.cuh"
#include "prelude/x_packets.cuh"
#include "prelude/segmented.cuh"
#include "prelude/spanning_row.cuh"
#include "prelude/search.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#endif

constexpr int kPlaces = kBlockRows * kBlockCols;
// Blocks of a lane, neighbours; a tile is those of a warp. Blocks lie where the lanes' first ones are side by side, then their
// second ones and so on.
constexpr int kSteps = 8;
constexpr uint32_t kTileBlocks = 32 * kSteps;
constexpr int kWarps = kThreadsPerBlock / 32;
// Blocks of a lane whose loads are in flight together: 64 bytes.
constexpr int kBlocksInFlight = 64 / (kPlaces * int(sizeof(AccumT)));
// Threads of a multiprocessor that the registers must do for; unasked, the compiler spills some.
constexpr int kResidentThreads = sizeof(AccumT) == 4 ? 1024 : 768;
constexpr int kChunk = kBlocksInFlight >= kSteps ? kSteps : kBlocksInFlight > 1 ? kBlocksInFlight : 1;

// The difference of a block's column from that of the block before; the escape stands for a column that is listed.
using DeltaT = short;
constexpr DeltaT kEscape = -32768;

// Where the values of a block lie.
__device__ __forceinline__ uint64_t place_of(uint32_t block) {
  return block / kTileBlocks * uint64_t(kTileBlocks) + block % kSteps * 32 + block % kTileBlocks / kSteps;
}

// A place in the grid of blocks.
struct Block {
  uint32_t row, col;
};

// A thread a nonzero: its column and number.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_entries(uint32_t nnz, const IndexT* __restrict__ col_indices, SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < nnz) pairs[i] = {uint32_t(col_indices[i]), i};
}

// A thread a pair: the row of blocks for the column.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_rows(uint32_t num_rows, uint32_t nnz, const OffsetT* __restrict__ row_offsets, SortPair* pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const uint32_t source = pairs[i].y;
  pairs[i].x = first_that(num_rows, [=](uint32_t row) { return row_offsets[row + 1] > source; }) / kBlockRows;
}

// The nonzeros by row of blocks, column, row and their order in the row: those of a block come together, and in it those
// of a place.
struct SortedEntries {
  uint32_t num_rows;
  const OffsetT* row_offsets;
  const IndexT* col_indices;
  const SortPair* pairs;

  struct Entry {
    Block block;
    uint32_t place;
  };

  __device__ __forceinline__ Entry operator()(uint32_t i) const {
    const SortPair pair = pairs[i];
    uint32_t row = 0;
#pragma unroll
    for (uint32_t r = 1; r < kBlockRows; ++r) {
      const uint32_t later = pair.x * kBlockRows + r;
      if (later < num_rows && __ldg(row_offsets + later) <= pair.y) row = r;
    }
    const IndexT col = __ldg(col_indices + pair.y);
    return {{pair.x, uint32_t(col) / kBlockCols}, row * kBlockCols + uint32_t(col) % kBlockCols};
  }

  // The first entry of those up to `i` that `is_alike` says yes to, in steps that double: most are near.
  template <typename IsAlike>
  __device__ __forceinline__ uint32_t first_alike(uint32_t i, IsAlike is_alike) const {
    uint32_t step = 1;
    for (; step <= i && is_alike((*this)(i - step)); step *= 2) i -= step;
    const uint32_t low = step <= i ? i - step + 1 : 0;
    return low + first_that(i - low, [=](uint32_t j) { return is_alike((*this)(low + j)); });
  }
  __device__ __forceinline__ uint32_t first_of_block(uint32_t i, Block block) const {
    return first_alike(i, [=](const Entry& other) { return other.block.row == block.row && other.block.col == block.col; });
  }
  __device__ __forceinline__ uint32_t first_of_place(uint32_t i, const Entry& entry) const {
    return first_alike(i, [=](const Entry& other) {
      return other.block.row == entry.block.row && other.block.col == entry.block.col && other.place == entry.place;
    });
  }
};

// A thread an entry: a block is stored as often as there are entries at a place of it; its first entry counts them.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_layers(uint32_t num_rows, uint32_t nnz, const OffsetT* __restrict__ row_offsets,
                  const IndexT* __restrict__ col_indices, const SortPair* __restrict__ pairs, uint32_t* layers) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const SortedEntries entries = {num_rows, row_offsets, col_indices, pairs};
  const SortedEntries::Entry entry = entries(i);
  const uint32_t layer = i - entries.first_of_place(i, entry);
  atomicMax(layers + entries.first_of_block(i, entry.block), layer + 1);
}

// A thread an entry: its value, and from the first of a block where it lies.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_fill(uint32_t num_rows, uint32_t nnz, const OffsetT* __restrict__ row_offsets,
                const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                const SortPair* __restrict__ pairs, const uint32_t* __restrict__ blocks_before,
                Block* __restrict__ blocks, ValueT* __restrict__ block_values) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const SortedEntries entries = {num_rows, row_offsets, col_indices, pairs};
  const SortedEntries::Entry entry = entries(i);
  const uint32_t layer = i - entries.first_of_place(i, entry);
  const uint32_t first = entries.first_of_block(i, entry.block);
  const uint32_t block = blocks_before[first] + layer;
  block_values[place_of(block) * kPlaces + entry.place] = values[pairs[i].y];
  if (first != i) return;
  for (uint32_t b = blocks_before[i]; b < blocks_before[i + 1]; ++b) blocks[b] = entry.block;
}

// A thread a block, and one for each that fills up the last tile: 0 where it is the last of its row, else 1.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_flags(uint32_t num_tiles, uint32_t num_blocks, const Block* __restrict__ blocks,
                 uint32_t* __restrict__ bit_flags) {
  await_stream();
  const uint32_t b = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (b / kTileBlocks >= num_tiles) return;
  const bool is_last = b < num_blocks && (b + 1 == num_blocks || blocks[b].row != blocks[b + 1].row);
  const uint32_t flags = __ballot_sync(0xffffffffu, !is_last);
  if (threadIdx.x % 32 == 0) bit_flags[b / 32] = flags;
}

struct EndsRow {
  const uint32_t* bit_flags;
  __device__ __forceinline__ uint32_t operator()(uint64_t block) const { return ~bit_flags[block / 32] >> block % 32 & 1; }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_ranks_sum_chunk(uint64_t length, const uint32_t* bit_flags, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, EndsRow{bit_flags});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_ranks_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, uint32_t* ranks, uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, ranks, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_ranks_chunk(uint64_t length, const uint32_t* bit_flags, const uint64_t* partials, uint32_t* ranks) {
  await_stream();
  scan_chunk(length, partials, ranks, EndsRow{bit_flags});
}

// A tile: in which tile the row begins that its first block belongs to, and in which the row of its last block ends.
struct TileSpan {
  uint32_t begin, end;
};

// A warp a tile: its columns and how many are listed, the rows that end in it, where it begins and what it shares with
// other tiles. ranks[b] is how many rows end before block b.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_describe(uint32_t num_tiles, uint32_t num_blocks, const Block* __restrict__ blocks,
                    const uint32_t* __restrict__ ranks, uint32_t* __restrict__ block_rows,
                    uint32_t* __restrict__ tile_rows, uint32_t* __restrict__ tile_cols, TileSpan* __restrict__ tile_spans,
                    DeltaT* __restrict__ col_deltas, uint32_t* __restrict__ num_escapes) {
  await_stream();
  const uint32_t tile = blockIdx.x * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (tile >= num_tiles) return;
  const uint32_t first = tile * kTileBlocks, last = min(first + kTileBlocks, num_blocks) - 1;
  uint32_t escapes = 0;
  for (uint32_t b = first + lane; b < first + kTileBlocks; b += 32) {
    int64_t delta = 0;
    if (b <= last) {
      if (b != first) delta = int64_t(blocks[b].col) - int64_t(blocks[b - 1].col);
      if (ranks[b] != ranks[b + 1]) block_rows[ranks[b]] = blocks[b].row;
    }
    const bool is_escape = delta != DeltaT(delta) || delta == kEscape;
    col_deltas[b] = is_escape ? kEscape : DeltaT(delta);
    escapes += __popc(__ballot_sync(0xffffffffu, is_escape));
  }
  if (lane != 0) return;
  tile_rows[tile] = ranks[first];
  tile_cols[tile] = blocks[first].col;
  num_escapes[tile] = escapes;
  const uint32_t begin = first_that(num_blocks, [=](uint32_t b) { return ranks[b] >= ranks[first]; });
  const uint32_t end = first_that(num_blocks, [=](uint32_t b) { return ranks[b] > ranks[last]; });
  tile_spans[tile] = {begin / kTileBlocks, (end - 1) / kTileBlocks};
}

// A warp a tile: lists the columns that are no difference.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_escapes(uint32_t num_tiles, const Block* __restrict__ blocks, const DeltaT* __restrict__ col_deltas,
                   const uint32_t* __restrict__ escape_offsets, uint32_t* __restrict__ escaped_cols) {
  await_stream();
  const uint32_t tile = blockIdx.x * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (tile >= num_tiles) return;
  uint32_t next = escape_offsets[tile];
  if (next == escape_offsets[tile + 1]) return;
  for (int k = 0; k < kSteps; ++k) {
    const uint32_t b = tile * kTileBlocks + k * 32 + lane;
    const bool is_escape = col_deltas[b] == kEscape;
    const uint32_t escapes = __ballot_sync(0xffffffffu, is_escape);
    if (is_escape) escaped_cols[next + __popc(escapes & ((1u << lane) - 1))] = blocks[b].col;
    next += __popc(escapes);
  }
}

// A thread a row of blocks: lists those without entries, in any order.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_bccoo_list_empty(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint64_t* num_listed,
                      uint32_t* __restrict__ empty_rows) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (uint64_t(row) * kBlockRows >= num_rows) return;
  const uint32_t first = row * kBlockRows, end = min(first + kBlockRows, num_rows);
  if (row_offsets[first] == row_offsets[end]) empty_rows[atomicAdd(num_listed, uint64_t(1))] = row;
}

// The sum of the lane's integer and those of so many lanes before it.
__device__ __forceinline__ uint32_t sum_to_lane(uint32_t value, int lanes_before) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const uint32_t left = __shfl_up_sync(0xffffffffu, value, offset);
    if (offset <= lanes_before) value += left;
  }
  return value;
}

// The columns of a lane's blocks. It adds up the differences of its neighbours; a column that is listed begins anew.
__device__ __forceinline__ void decode_cols(uint32_t tile, const uint32_t* __restrict__ tile_cols,
                                            const DeltaT* __restrict__ col_deltas,
                                            const uint32_t* __restrict__ escape_offsets,
                                            const uint32_t* __restrict__ escaped_cols, uint32_t (&cols)[kSteps]) {
  const int lane = threadIdx.x % 32;
  const uint32_t first_escape = __ldg(escape_offsets + tile), end_escape = __ldg(escape_offsets + tile + 1);
  const uint32_t tile_col = __ldg(tile_cols + tile);
  DeltaT deltas[kSteps];
  load_streaming<kSteps>(deltas, col_deltas + tile * uint64_t(kTileBlocks) + lane * kSteps);
  // Which of the lane's columns lie behind one that is listed.
  uint32_t absolute = 0;
  uint32_t sum = 0;
  if (first_escape == end_escape) {
#pragma unroll
    for (int k = 0; k < kSteps; ++k) cols[k] = sum += int32_t(deltas[k]);
  } else {
    uint32_t count = 0;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) count += deltas[k] == kEscape;
    uint32_t next = first_escape + sum_to_lane(count, lane) - count;
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      const bool is_escape = deltas[k] == kEscape;
      if (is_escape) absolute |= 0xffu << k;
      cols[k] = sum = is_escape ? __ldg(escaped_cols + next++) : sum + int32_t(deltas[k]);
    }
  }
  const uint32_t heads = __ballot_sync(0xffffffffu, absolute != 0);
  if (lane == 0 && absolute == 0) sum += tile_col;
  sum = sum_to_lane(sum, lanes_before_in_segment(heads));
  uint32_t before = __shfl_up_sync(0xffffffffu, sum, 1);
  if (lane == 0) before = tile_col;
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    if ((absolute >> k & 1) == 0) cols[k] += before;
  }
}

// The entries of x for a block; behind the last column of A there are none.
__device__ __forceinline__ void load_entries(const XT* __restrict__ x, uint64_t num_cols, uint32_t block_col,
                                             bool in_packets, XT (&entries)[kBlockCols]) {
  const uint32_t first = block_col * kBlockCols;
  const uint64_t left = num_cols - first;
  if (in_packets && left >= kBlockCols) {
    load_x<kBlockCols, true>(entries, x + first);
  } else {
#pragma unroll
    for (int c = 0; c < kBlockCols; ++c) entries[c] = c < left ? __ldg(x + first + c) : XT(0);
  }
}

// The rows of a row of blocks.
__device__ __forceinline__ void store_rows(YT* __restrict__ y, uint32_t num_rows, uint32_t block_row,
                                           const AccumT (&sums)[kBlockRows], AccumT alpha, BetaT beta) {
#pragma unroll
  for (int r = 0; r < kBlockRows; ++r) {
    const uint32_t row = block_row * kBlockRows + r;
    if (row < num_rows) store_scaled(y, row, sums[r], alpha, beta);
  }
}

// add_piece for the rows of a row of blocks, each of which has its own tails, heads and meetings. In the usual case of two
// tiles a lane takes a row.
__device__ __forceinline__ void add_pieces(const SpanningRows& spanning, uint32_t num_tiles, uint32_t num_rows,
                                           uint32_t block_row, uint32_t first, uint32_t last, uint32_t tile,
                                           const AccumT (&pieces)[kBlockRows], YT* __restrict__ y, AccumT alpha,
                                           BetaT beta) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t first_row = block_row * kBlockRows;
  if (PieceWord<AccumT>::kTravels && last - first == 1) {
    AccumT piece = pieces[0];
#pragma unroll
    for (int r = 1; r < kBlockRows; ++r) {
      if (lane == r) piece = pieces[r];
    }
    if (lane >= kBlockRows || first_row + lane >= num_rows) return;
    PieceWordT* meeting = spanning.meetings + lane * uint64_t(num_tiles) + first;
    const PieceWordT other = atomicExch(meeting, PieceWord<AccumT>::of(piece));
    if (other == 0) return;
    *meeting = 0;
    store_scaled(y, first_row + lane, piece + PieceWord<AccumT>::piece(other), alpha, beta);
    return;
  }
#pragma unroll
  for (int r = 0; r < kBlockRows; ++r) {
    const uint64_t skipped = r * uint64_t(num_tiles);
    const SpanningRows of_row = {spanning.tails + skipped, spanning.heads + skipped, spanning.meetings + skipped};
    if (first_row + r < num_rows) add_piece(of_row, first_row + r, first, last, tile, pieces[r], y, alpha, beta);
  }
}

// The arrays of the layout.
struct Layout {
  uint32_t num_tiles, num_blocks;
  const uint32_t* bit_flags;
  const uint32_t* block_rows;
  const uint32_t* tile_rows;
  const TileSpan* tile_spans;
  const ValueT* block_values;
};

// The product of a tile's blocks, of those of a lane with these columns.
__device__ __forceinline__ void multiply_tile(const Layout& layout, uint32_t tile, const uint32_t (&cols)[kSteps],
                                              uint32_t num_rows, uint64_t num_cols, const XT* __restrict__ x,
                                              YT* __restrict__ y, AlphaT alpha, BetaT beta,
                                              const SpanningRows& spanning) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t first_block = tile * kTileBlocks + lane * kSteps;
  const bool in_packets = is_in_packets<kBlockCols>(x);
  const uint32_t first_rank = __ldg(layout.tile_rows + tile);
  const TileSpan span = {__ldg(&layout.tile_spans[tile].begin), __ldg(&layout.tile_spans[tile].end)};
  const uint32_t four_flags = __ldg(layout.bit_flags + tile * uint64_t(kSteps) + lane / 4);
  const uint32_t ends = ~(four_flags >> lane % 4 * 8) & 0xffu;
  const uint32_t num_ends = __popc(ends), num_ends_up_to = sum_to_lane(num_ends, lane);
  const uint32_t lane_rank = first_rank + num_ends_up_to - num_ends;
  const ValueT* tile_values = layout.block_values + (tile * uint64_t(kTileBlocks) + lane) * kPlaces;
  // What the lane has of the row that it begins in, where that ends in it; of the row that is open.
  AccumT front[kBlockRows] = {}, sums[kBlockRows] = {};
#pragma unroll
  for (int step = 0; step < kSteps; step += kChunk) {
    ValueT values[kChunk][kPlaces];
    XT entries[kChunk][kBlockCols];
#pragma unroll
    for (int u = 0; u < kChunk; ++u) {
      const bool is_there = first_block + step + u < layout.num_blocks;
      load_streaming<kPlaces>(values[u], tile_values + (step + u) * (32 * kPlaces));
      load_entries(x, is_there ? num_cols : 0, is_there ? cols[step + u] : 0, in_packets, entries[u]);
    }
#pragma unroll
    for (int u = 0; u < kChunk; ++u) {
#pragma unroll
      for (int r = 0; r < kBlockRows; ++r) {
#pragma unroll
        for (int c = 0; c < kBlockCols; ++c) {
          sums[r] = multiply_add(AccumT(values[u][r * kBlockCols + c]), AccumT(entries[u][c]), sums[r]);
        }
      }
      if ((ends >> (step + u) & 1) == 0) continue;
      const uint32_t ended = __popc(ends & ((1u << (step + u)) - 1));
      if (ended > 0) store_rows(y, num_rows, __ldg(layout.block_rows + lane_rank + ended), sums, alpha, beta);
#pragma unroll
      for (int r = 0; r < kBlockRows; ++r) {
        if (ended == 0) front[r] = sums[r];
        sums[r] = AccumT(0);
      }
    }
  }
  // What other lanes have of these rows; the sums of the row that came from the tile before.
  const int lanes_before = lanes_before_in_segment(__ballot_sync(0xffffffffu, ends != 0));
  AccumT open[kBlockRows], head[kBlockRows];
#pragma unroll
  for (int r = 0; r < kBlockRows; ++r) {
    const AccumT sum = warp_segmented_sum(sums[r], lanes_before);
    const AccumT before = __shfl_up_sync(0xffffffffu, sum, 1);
    open[r] = __shfl_sync(0xffffffffu, sum, 31);
    head[r] = lane == 0 ? front[r] : before + front[r];
  }
  const bool has_head = ends != 0 && lane_rank == first_rank && span.begin < tile;
  if (ends != 0 && !has_head) store_rows(y, num_rows, __ldg(layout.block_rows + lane_rank), head, alpha, beta);
  const uint32_t holders = __ballot_sync(0xffffffffu, has_head);
  if (holders != 0) {
#pragma unroll
    for (int r = 0; r < kBlockRows; ++r) head[r] = __shfl_sync(0xffffffffu, head[r], __ffs(holders) - 1);
    const uint32_t block_row = __ldg(layout.block_rows + first_rank);
    add_pieces(spanning, layout.num_tiles, num_rows, block_row, span.begin, tile, tile, head, y, alpha, beta);
  }
  if (span.end > tile) {
    const uint32_t rank = __shfl_sync(0xffffffffu, first_rank + num_ends_up_to, 31);
    const uint32_t begin = rank == first_rank ? span.begin : tile;
    const uint32_t block_row = __ldg(layout.block_rows + rank);
    add_pieces(spanning, layout.num_tiles, num_rows, block_row, begin, span.end, tile, open, y, alpha, beta);
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kResidentThreads / kThreadsPerBlock)
spmv_bccoo(uint32_t num_rows, uint64_t num_cols, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
           BetaT beta, uint32_t num_tiles, uint32_t num_blocks, uint32_t num_empty_rows,
           const uint32_t* __restrict__ bit_flags, const uint32_t* __restrict__ block_rows,
           const uint32_t* __restrict__ tile_rows, const uint32_t* __restrict__ tile_cols,
           const TileSpan* __restrict__ tile_spans, const DeltaT* __restrict__ col_deltas,
           const uint32_t* __restrict__ escape_offsets, const uint32_t* __restrict__ escaped_cols,
           const ValueT* __restrict__ block_values, const uint32_t* __restrict__ empty_rows, AccumT* tails,
           AccumT* heads, PieceWordT* meetings) {
  await_stream();
  if (skips_product(alpha)) {
    const uint64_t num_threads = uint64_t(gridDim.x) * kThreadsPerBlock;
    for (uint64_t row = uint64_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x; row < num_rows; row += num_threads) {
      store_scaled(y, row, AccumT(0), alpha, beta);
    }
    return;
  }
  const uint32_t tile_blocks = (num_tiles + kWarps - 1) / kWarps;
  if (blockIdx.x >= tile_blocks) {
    const uint64_t i = (blockIdx.x - tile_blocks) * uint64_t(kThreadsPerBlock) + threadIdx.x;
    if (i / kBlockRows >= num_empty_rows) return;
    const uint32_t row = __ldg(empty_rows + i / kBlockRows) * kBlockRows + i % kBlockRows;
    if (row < num_rows) store_scaled(y, row, AccumT(0), alpha, beta);
    return;
  }
  const uint32_t tile = blockIdx.x * kWarps + threadIdx.x / 32;
  if (tile >= num_tiles) return;
  uint32_t cols[kSteps];
  decode_cols(tile, tile_cols, col_deltas, escape_offsets, escaped_cols, cols);
  const Layout layout = {num_tiles, num_blocks, bit_flags, block_rows, tile_rows, tile_spans, block_values};
  multiply_tile(layout, tile, cols, num_rows, num_cols, x, y, alpha, beta, {tails, heads, meetings});
}
