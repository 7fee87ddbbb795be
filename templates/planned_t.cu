// planned_t: the transposed product in a fixed order: tiles of nonzeros sum by column, tiles of these sums by column.
//
// Formula:   y[c] <- alpha * sum over j with col_indices[j] = c of values[j] * x[row of j] + beta * y[c]
// Paper:     none; two phases as in propagation blocking (Beamer, Asanovic and Patterson 2017) with a plan for a structure
// Suits:     any structure; best where a column's nonzeros lie near each other (stencils, finite elements, bands), so that few sums leave a tile
// Suffers:   columns that meet no row twice in a tile (uniform random): every product is written and read again
// Bytes:     nnz * (value + 2.25) + sums * (2 * accumulator + 4 + accumulator / 8) + 6 a column + rows * x + cols * y, where sums is the number of different columns in the tiles together: 0.1 nnz for finite elements, nnz for uniform random; the plan keeps all but values, x and y of this and one accumulator a sum
// Guarantee: bit-reproducible; values may change under a plan
// Launch:    tiles of tile_kib KiB of sums, 16 threads a KiB and 1,024 at most; then the same for the sums; columns with several sums left, and empty ones, have a pass of their own where there are any

// A plan is made of ranks. Nonzeros lie in tiles of kTile in the order of the matrix; a tile orders its products by
// column in shared memory, adds neighbours of a column and writes the sums. Sums are numbered by column, then tile, and
// lie in second tiles of kTile of these numbers; a second tile orders its sums and adds them likewise. From first tile
// to second tile goes a segment: consecutive sums, padded to whole sectors of memory, because a sector that is written
// in part must be read first.
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kTileKib = 32;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/group.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#endif

// Sums that a tile holds, and the threads that work on it.
constexpr uint32_t kTile = kTileKib * 1024 / sizeof(AccumT);
constexpr int kTileThreads = kTileKib < 64 ? kTileKib * 16 : 1024;
// Blocks of tiles that a multiprocessor works on at a time, as far as its threads go.
#if __CUDA_ARCH__ == 750
constexpr int kTilesAtOnce = 1024 / kTileThreads;
#elif __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870 || __CUDA_ARCH__ == 890 || __CUDA_ARCH__ >= 1200
constexpr int kTilesAtOnce = 1536 / kTileThreads;
#else
constexpr int kTilesAtOnce = 2048 / kTileThreads;
#endif
// Sums in a sector of memory.
constexpr uint32_t kSector = 32 / sizeof(AccumT);
// No sum has twice as many terms: longer ones are cut.
constexpr uint32_t kCut = 32;
constexpr uint16_t kPadding = 0xffff;
// In piece_cols: the column has other pieces.
constexpr uint32_t kIsPart = 0x80000000u;
// In row_words: the rows of the word's nonzeros are in the list, because there are empty ones between them.
constexpr uint32_t kIsListed = 0x80000000u;
// The most empty columns that are stored with the next column that is not.
constexpr uint32_t kGap = 64;
// Pieces of a column after which a warp adds them.
constexpr uint32_t kManyPieces = 256;
constexpr uint32_t kAllLanes = 0xffffffffu;

// ---- The plan: rows ----

// marks[row] <- whether it has nonzeros.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_rows(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row < num_rows) marks[row] = row_offsets[row] < row_offsets[row + 1];
}

// A bit for every nonzero that begins a row; the list of rows with nonzeros, where there are others too.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_row_begins(uint32_t num_rows, uint32_t num_listed, const OffsetT* __restrict__ row_offsets,
                          const uint32_t* __restrict__ ranks, uint32_t* row_begins, uint32_t* __restrict__ rows) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const OffsetT begin = row_offsets[row];
  if (begin == row_offsets[row + 1]) return;
  atomicOr(row_begins + begin / 32, 1u << begin % 32);
  if (num_listed < num_rows) rows[ranks[row]] = row;
}

// marks[w] <- how many rows begin in the word.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_words(uint32_t num_words, const uint32_t* __restrict__ words, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < num_words) marks[i] = __popc(words[i]);
}

// row_words[w] <- the bits of 32 nonzeros, and their first row less the first bit, so that a nonzero's row is this and
// the bits up to its own, less one; or the same of the list.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_row_words(uint32_t num_words, uint32_t num_rows, uint32_t num_listed,
                         const uint32_t* __restrict__ row_begins, const uint32_t* __restrict__ before,
                         const uint32_t* __restrict__ rows, uint2* __restrict__ row_words) {
  await_stream();
  const uint32_t word = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (word >= num_words) return;
  const uint32_t bits = row_begins[word], base = before[word];
  uint32_t first_row = base;
  if (num_listed < num_rows) {
    const uint32_t first = base - (~bits & 1), last = base + __popc(bits) - 1;
    const bool is_gapless = rows[last] - rows[first] == last - first;
    first_row = is_gapless ? rows[last] + 1 - __popc(bits) : base | kIsListed;
  }
  row_words[word] = {bits, first_row};
}

// ---- The plan: sums ----

// pairs <- column and place of every nonzero.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_entries(uint32_t nnz, const IndexT* __restrict__ col_indices, SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < nnz) pairs[i] = {uint32_t(col_indices[i]), i};
}

// Of nonzeros by column: where another column or another tile begins, and where a sum is cut.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_sums(uint32_t nnz, const SortPair* __restrict__ pairs, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const auto together = [=](uint32_t j) { return pairs[i].x == pairs[j].x && pairs[i].y / kTile == pairs[j].y / kTile; };
  marks[i] = i == 0 || !together(i - 1) || (i % kCut == 0 && i >= kCut && together(i - kCut));
}

// sum_of[place of a nonzero] <- the number of its sum; sum_cols[sum] <- the column; pairs <- tile and place, still in
// the order of the columns.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_number_sums(uint32_t nnz, const uint32_t* __restrict__ ranks, SortPair* __restrict__ pairs,
                           uint32_t* __restrict__ sum_of, uint32_t* __restrict__ sum_cols) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const SortPair pair = pairs[i];
  const uint32_t before = ranks[i], through = ranks[i + 1];
  sum_of[pair.y] = through - 1;
  if (before != through) sum_cols[before] = pair.x;
  pairs[i] = {pair.y / kTile, pair.y};
}

// Of nonzeros by tile and then column: where another sum begins.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_tile_sums(uint32_t nnz, const SortPair* __restrict__ pairs, const uint32_t* __restrict__ sum_of,
                              uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < nnz) marks[i] = i % kTile == 0 || sum_of[pairs[i].y] != sum_of[pairs[i - 1].y];
}

// product_places[place of a nonzero] <- its place in its tile by column. Of sums by tile and then column: begins <- the
// place of the first product, numbers <- the sum's number; tile_sums[tile] <- the tile's first.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_place_products(uint32_t nnz, const SortPair* __restrict__ pairs, const uint32_t* __restrict__ sum_of,
                              const uint32_t* __restrict__ ranks, uint16_t* __restrict__ product_places,
                              uint16_t* __restrict__ begins, uint32_t* __restrict__ numbers,
                              uint32_t* __restrict__ tile_sums) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const uint32_t place = pairs[i].y, before = ranks[i];
  product_places[place] = uint16_t(i % kTile);
  if (i % kTile == 0) tile_sums[i / kTile] = before;
  if (before == ranks[i + 1]) return;
  begins[before] = uint16_t(i % kTile);
  numbers[before] = sum_of[place];
}

// ---- The plan: segments ----

// Of sums by tile and then column: where another first tile or another second tile begins.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_segments(uint32_t num_sums, const uint16_t* __restrict__ begins, const uint32_t* __restrict__ numbers,
                             uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < num_sums) marks[i] = begins[i] == 0 || numbers[i] / kTile != numbers[i - 1] / kTile;
}

// firsts[segment] <- its first sum, firsts[num_segments] <- num_sums; pairs <- second tile and segment.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_list_segments(uint32_t num_sums, const uint32_t* __restrict__ ranks,
                             const uint32_t* __restrict__ numbers, uint32_t* __restrict__ firsts,
                             SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_sums) return;
  const uint32_t segment = ranks[i], through = ranks[i + 1];
  if (i + 1 == num_sums) firsts[through] = num_sums;
  if (segment == through) return;
  firsts[segment] = i;
  pairs[segment] = {numbers[i] / kTile, segment};
}

// Sectors that a segment fills.
__device__ __forceinline__ uint32_t num_sectors(const uint32_t* __restrict__ firsts, uint32_t segment) {
  return (firsts[segment + 1] - firsts[segment] + kSector - 1) / kSector;
}

// marks[segment] <- the sectors that it fills.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_sectors(uint32_t num_segments, const uint32_t* __restrict__ firsts, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < num_segments) marks[i] = num_sectors(firsts, i);
}

// The same in the order of the second tiles.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_sorted_sectors(uint32_t num_segments, const uint32_t* __restrict__ firsts, const SortPair* __restrict__ pairs,
                                   uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < num_segments) marks[i] = num_sectors(firsts, pairs[i].y);
}

// targets[segment] <- its first sector in the second tiles; second_tiles[tile] <- the tile's first.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_place_segments(uint32_t num_segments, const SortPair* __restrict__ pairs,
                              const uint32_t* __restrict__ before, uint32_t* __restrict__ targets,
                              uint32_t* __restrict__ second_tiles) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_segments) return;
  const SortPair pair = pairs[i];
  targets[pair.y] = before[i];
  if (i == 0 || pairs[i - 1].x != pair.x) second_tiles[pair.x] = before[i];
  if (i + 1 == num_segments) second_tiles[pair.x + 1] = before[num_segments];
}

// first_tiles[tile] <- the tile's first sector.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_place_tiles(uint32_t num_tiles, uint32_t num_sectors, const uint32_t* __restrict__ tile_sums,
                           const uint32_t* __restrict__ segment_ranks, const uint32_t* __restrict__ sectors,
                           uint32_t* __restrict__ first_tiles) {
  await_stream();
  const uint32_t tile = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (tile < num_tiles) first_tiles[tile] = sectors[segment_ranks[tile_sums[tile]]];
  if (tile == num_tiles) first_tiles[tile] = num_sectors;
}

// What the first tiles write: begin_places[slot] <- the place of the sum's first product, sector_targets[sector] <- the
// sector in the second tiles. What these read: sum_places[slot] <- the place by column. Padding has no product and no
// place.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_place_sums(uint32_t num_sums, uint32_t nnz, const uint32_t* __restrict__ segment_ranks,
                          const uint32_t* __restrict__ firsts, const uint32_t* __restrict__ sectors,
                          const uint32_t* __restrict__ targets, const uint16_t* __restrict__ begins,
                          const uint32_t* __restrict__ numbers, uint16_t* __restrict__ begin_places,
                          uint16_t* __restrict__ sum_places, uint32_t* __restrict__ sector_targets) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_sums) return;
  const uint32_t segment = segment_ranks[i + 1] - 1, rank = i - firsts[segment];
  const uint64_t slot = uint64_t(sectors[segment]) * kSector + rank;
  const uint64_t target = uint64_t(targets[segment]) * kSector + rank;
  begin_places[slot] = begins[i];
  sum_places[target] = uint16_t(numbers[i] % kTile);
  if (rank % kSector == 0) sector_targets[slot / kSector] = uint32_t(target / kSector);
  if (i + 1 < firsts[segment + 1]) return;
  uint32_t end = i + 1 < num_sums ? begins[i + 1] : 0;
  if (end == 0) end = i + 1 < num_sums ? kTile : nnz - (nnz - 1) / kTile * kTile;
  for (uint32_t padding = 1; (rank + padding) % kSector != 0; ++padding) {
    begin_places[slot + padding] = uint16_t(end);
    sum_places[target + padding] = kPadding;
  }
}

// ---- The plan: columns ----

// Of sums by column: where another column begins.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_cols(uint32_t num_sums, const uint32_t* __restrict__ sum_cols, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < num_sums) marks[i] = i == 0 || sum_cols[i] != sum_cols[i - 1];
}

// Of sums by column and then tile: where another column or another second tile begins, and where a piece is cut.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_pieces(uint32_t num_sums, const uint32_t* __restrict__ sum_cols, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_sums) return;
  marks[i] = i % kTile == 0 || sum_cols[i] != sum_cols[i - 1] || (i % kCut == 0 && sum_cols[i] == sum_cols[i - kCut]);
}

// The first of the empty columns that are stored with a column; `before` is the last column before it that is not empty.
__device__ __forceinline__ uint32_t first_stored_with(uint32_t col, uint32_t before) {
  return col - before - 1 <= kGap ? before + 1 : col;
}

// piece_begins[piece] <- the place of its first sum, cols[piece] <- its column; tile_pieces[tile] <- the tile's first;
// a bit of col_bits for every column, and for the empty ones that are stored with it.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_list_pieces(uint32_t num_sums, const uint32_t* __restrict__ sum_cols, const uint32_t* __restrict__ ranks,
                           uint16_t* __restrict__ piece_begins, uint32_t* __restrict__ cols,
                           uint32_t* __restrict__ tile_pieces, uint32_t* col_bits) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_sums) return;
  const uint32_t piece = ranks[i], through = ranks[i + 1];
  if (i + 1 == num_sums) tile_pieces[i / kTile + 1] = through;
  if (i % kTile == 0) tile_pieces[i / kTile] = piece;
  if (piece == through) return;
  const uint32_t col = sum_cols[i];
  piece_begins[piece] = uint16_t(i % kTile);
  cols[piece] = col;
  const uint32_t before_col = i == 0 ? uint32_t(-1) : sum_cols[i - 1];
  if (before_col == col) return;
  for (uint32_t c = first_stored_with(col, before_col); c <= col; ++c) atomicOr(col_bits + c / 32, 1u << c % 32);
}

// Of pieces: whether it is the first of several of a column.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_long(uint32_t num_pieces, const uint32_t* __restrict__ cols, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_pieces) return;
  marks[i] = i + 1 < num_pieces && cols[i + 1] == cols[i] && (i == 0 || cols[i - 1] != cols[i]);
}

// piece_cols[piece] <- its column, marked where it has others; long_pieces <- the first and the end of those.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_list_long(uint32_t num_pieces, const uint32_t* __restrict__ cols, const uint32_t* __restrict__ ranks,
                         uint32_t* __restrict__ piece_cols, uint2* __restrict__ long_pieces) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_pieces) return;
  const uint32_t col = cols[i];
  const bool follows = i > 0 && cols[i - 1] == col, leads = i + 1 < num_pieces && cols[i + 1] == col;
  piece_cols[i] = follows || leads ? col | kIsPart : col;
  if (leads && !follows) long_pieces[ranks[i]].x = i;
  if (follows && !leads) long_pieces[ranks[i] - 1].y = i + 1;
}

// marks[col] <- whether it is empty and not stored with another.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_mark_empty(uint32_t num_cols, const uint32_t* __restrict__ col_bits, uint32_t* __restrict__ marks) {
  await_stream();
  const uint32_t col = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (col < num_cols) marks[col] = ~col_bits[col / 32] >> col % 32 & 1;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_list_empty(uint32_t num_cols, const uint32_t* __restrict__ ranks, uint32_t* __restrict__ empty_cols) {
  await_stream();
  const uint32_t col = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (col < num_cols && ranks[col] != ranks[col + 1]) empty_cols[ranks[col]] = col;
}

// ---- The product ----

// The place in shared memory of a tile's entry: neither entries side by side nor entries at a stride of a power of two
// meet in a bank.
__device__ __forceinline__ uint32_t bank_place(uint32_t place) {
  constexpr int kBanks = 128 / sizeof(AccumT);
  return place ^ (place / kBanks & (kBanks - 1));
}

// Adds up the tile's entries from each begin to the next, a thread a sum, and calls store(i, sum) for i in first .. end.
// The sums of several steps are under way at once. All threads of the block call it.
template <typename Store>
__device__ __forceinline__ void tile_sums(const AccumT* tile, uint32_t count, uint32_t first, uint32_t end,
                                          const uint16_t* __restrict__ begins, Store store) {
  constexpr int kAtOnce = 4;
  const int lane = threadIdx.x & 31;
#pragma unroll 1
  for (uint32_t base = first; base < end; base += kAtOnce * kTileThreads) {
    uint32_t from[kAtOnce], to[kAtOnce];
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      const uint32_t i = base + s * kTileThreads + threadIdx.x;
      from[s] = i < end ? __ldcs(begins + i) : count;
      // Lanes but the last learn it from their neighbours.
      to[s] = lane == 31 && i + 1 < end ? __ldg(begins + i + 1) : count;
    }
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      const uint32_t i = base + s * kTileThreads + threadIdx.x;
      const uint32_t next = __shfl_down_sync(kAllLanes, from[s], 1);
      if (lane != 31) to[s] = next;
      AccumT sum = 0;
      if (from[s] < to[s]) {
        sum = tile[bank_place(from[s])];
        for (uint32_t place = from[s] + 1; place < to[s]; ++place) sum += tile[bank_place(place)];
      }
      if (i < end) store(i, sum);
    }
  }
}

// Consecutive entries that a thread takes in a step: 16 bytes of values.
constexpr int kVector = 16 / sizeof(ValueT);

// The products of a tile in the order of their columns.
template <bool kFull>
__device__ __forceinline__ void load_products(AccumT* tile, uint32_t begin, uint32_t count,
                                              const ValueT* __restrict__ values,
                                              const uint16_t* __restrict__ product_places,
                                              const uint2* __restrict__ row_words, const uint32_t* __restrict__ rows,
                                              const XT* __restrict__ x) {
  constexpr int kAtOnce = 2;
#pragma unroll 1
  for (uint32_t base = threadIdx.x * kVector; base < count; base += kAtOnce * kTileThreads * kVector) {
    ValueT entries[kAtOnce][kVector];
    uint16_t places[kAtOnce][kVector];
    uint2 words[kAtOnce];
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      const uint32_t i = base + s * kTileThreads * kVector;
      if (kFull && (kTile % (kAtOnce * kTileThreads * kVector) == 0 || i < count)) {
        load_streaming<kVector, true>(entries[s], values + begin + i);
        load_streaming<kVector>(places[s], product_places + begin + i);
      } else {
#pragma unroll
        for (int v = 0; v < kVector; ++v) {
          entries[s][v] = i + v < count ? __ldcs(values + begin + i + v) : ValueT(0);
          places[s][v] = i + v < count ? __ldcs(product_places + begin + i + v) : kPadding;
        }
      }
      words[s] = i < count ? __ldg(row_words + (begin + i) / 32) : uint2{};
    }
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      const uint32_t i = base + s * kTileThreads * kVector;
      if (i >= count) break;
      const uint32_t bit = i % 32;
      const bool is_listed = words[s].y & kIsListed;
      uint32_t row = (words[s].y & ~kIsListed) + __popc(words[s].x & (2u << bit) - 1) - 1;
      AccumT entry = AccumT(__ldg(x + (is_listed ? __ldg(rows + row) : row)));
#pragma unroll
      for (int v = 0; v < kVector; ++v) {
        if (!kFull && places[s][v] == kPadding) break;
        if (v > 0 && words[s].x >> (bit + v) & 1) {
          ++row;
          entry = AccumT(__ldg(x + (is_listed ? __ldg(rows + row) : row)));
        }
        tile[bank_place(places[s][v])] = AccumT(entries[s][v]) * entry;
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(kTileThreads, kTilesAtOnce)
spmv_planned_t(uint32_t nnz, const ValueT* __restrict__ values,
               const XT* __restrict__ x, AlphaT alpha, const uint16_t* __restrict__ product_places,
               const uint2* __restrict__ row_words, const uint32_t* __restrict__ rows,
               const uint32_t* __restrict__ first_tiles, const uint16_t* __restrict__ begin_places,
               const uint32_t* __restrict__ sector_targets, AccumT* __restrict__ sums) {
  await_stream();
  extern __shared__ __align__(16) AccumT tile[];
  if (skips_product(alpha)) return;
  const uint32_t begin = blockIdx.x * kTile, count = min(kTile, nnz - begin);
  const uint32_t first = __ldg(first_tiles + blockIdx.x), end = __ldg(first_tiles + blockIdx.x + 1);
  if (count == kTile) {
    load_products<true>(tile, begin, count, values, product_places, row_words, rows, x);
  } else {
    load_products<false>(tile, begin, count, values, product_places, row_words, rows, x);
  }
  __syncthreads();
  const uint32_t* targets = sector_targets + first;
  const uint16_t* begins = begin_places + uint64_t(first) * kSector;
  tile_sums(tile, count, 0, (end - first) * kSector, begins, [=](uint32_t i, AccumT sum) {
    sums[uint64_t(__ldg(targets + i / kSector)) * kSector + i % kSector] = sum;
  });
}

extern "C" __global__ void __launch_bounds__(kTileThreads, kTilesAtOnce)
spmv_planned_t_columns(uint32_t num_sums, uint32_t num_empty, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                       const AccumT* __restrict__ sums, const uint16_t* __restrict__ sum_places,
                       const uint32_t* __restrict__ second_tiles, const uint16_t* __restrict__ piece_begins,
                       const uint32_t* __restrict__ piece_cols, const uint32_t* __restrict__ tile_pieces,
                       AccumT* __restrict__ pieces) {
  await_stream();
  extern __shared__ __align__(16) AccumT tile[];
  const bool skips = skips_product(alpha);
  const uint32_t count = min(kTile, num_sums - blockIdx.x * kTile);
  const uint32_t first = __ldg(tile_pieces + blockIdx.x), end = __ldg(tile_pieces + blockIdx.x + 1);
  const uint64_t slots_begin = uint64_t(__ldg(second_tiles + blockIdx.x)) * kSector;
  const uint32_t num_slots = uint32_t(uint64_t(__ldg(second_tiles + blockIdx.x + 1)) * kSector - slots_begin);
  constexpr int kAtOnce = 8;
#pragma unroll 1
  for (uint32_t base = threadIdx.x; !skips && base < num_slots; base += kAtOnce * kTileThreads) {
    AccumT entries[kAtOnce];
    uint16_t places[kAtOnce];
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      const uint32_t i = base + s * kTileThreads;
      places[s] = i < num_slots ? __ldcs(sum_places + slots_begin + i) : kPadding;
      entries[s] = i < num_slots ? __ldcs(sums + slots_begin + i) : AccumT(0);
    }
#pragma unroll
    for (int s = 0; s < kAtOnce; ++s) {
      if (places[s] != kPadding) tile[bank_place(places[s])] = entries[s];
    }
  }
  __syncthreads();
  const auto store = [=](uint32_t i, AccumT sum) {
    const uint32_t marked = __ldg(piece_cols + i), col = marked & ~kIsPart;
    if (marked == col) {
      store_scaled(y, col, sum, alpha, beta);
    } else {
      pieces[i] = sum;
    }
    if (num_empty == 0) return;
    const uint32_t before = i == 0 ? uint32_t(-1) : __ldg(piece_cols + i - 1) & ~kIsPart;
    if (before == col) return;
    for (uint32_t c = first_stored_with(col, before); c < col; ++c) store_scaled(y, c, AccumT(0), alpha, beta);
  };
  if (skips) {
    for (uint32_t i = first + threadIdx.x; i < end; i += kTileThreads) store(i, AccumT(0));
  } else {
    tile_sums(tile, count, first, end, piece_begins, store);
  }
}

// The sum of pieces first + lane, first + lane + kLanes, … of each lane of a group; the same in all of them.
template <int kLanes>
__device__ __forceinline__ AccumT sum_of_pieces(const AccumT* __restrict__ pieces, uint2 range, uint32_t mask) {
  AccumT sum = 0;
#pragma unroll 8
  for (uint32_t i = range.x + threadIdx.x % kLanes; i < range.y; i += kLanes) sum += __ldg(pieces + i);
  return group_sum<kLanes>(sum, mask);
}

// A group of lanes adds the pieces of a column, or the warp where they are many.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_long_columns(uint32_t num_long, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                            const uint2* __restrict__ long_pieces, const uint32_t* __restrict__ piece_cols,
                            const AccumT* __restrict__ pieces) {
  await_stream();
  constexpr int kLanes = 8;
  const bool skips = skips_product(alpha);
  const uint32_t i = (blockIdx.x * kThreadsPerBlock + threadIdx.x) / kLanes;
  const uint2 range = i < num_long ? __ldg(long_pieces + i) : uint2{};
  const bool has_many = !skips && range.y - range.x > kManyPieces;
  AccumT sum = 0;
  if (!skips) sum = sum_of_pieces<kLanes>(pieces, has_many ? uint2{} : range, group_mask<kLanes>());
  const int leader = threadIdx.x & 31 & ~(kLanes - 1);
  for (uint32_t many = __ballot_sync(kAllLanes, has_many); many != 0;) {
    const int source = __ffs(many) - 1;
    const uint2 all = {__shfl_sync(kAllLanes, range.x, source), __shfl_sync(kAllLanes, range.y, source)};
    const AccumT warp_sum = sum_of_pieces<32>(pieces, all, kAllLanes);
    if (leader == source) sum = warp_sum;
    many &= ~(((1u << kLanes) - 1) << source);
  }
  if (i < num_long && threadIdx.x % kLanes == 0) {
    store_scaled(y, __ldg(piece_cols + range.x) & ~kIsPart, sum, alpha, beta);
  }
}

// The empty columns in long stretches.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_planned_t_empty_columns(uint32_t num_empty, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                             const uint32_t* __restrict__ empty_cols) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < num_empty) store_scaled(y, __ldg(empty_cols + i), AccumT(0), alpha, beta);
}
