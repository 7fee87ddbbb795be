// csr5: a warp takes a tile of 32 x sigma nonzeros, stored transposed so that its lanes read coalesced.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Liu and Vinter 2015 (CSR5: sigma near the mean row length from 4 to 32, more for long rows); peer in Steinberger et al., Hola
// Suits:     any distribution of row lengths, where many products pay for the conversion
// Suffers:   matrices whose values change (they are copied when a plan is made) and rows much shorter than sigma
// Bytes:     nnz * (value + index) + 4 or 8 for every sigma nonzeros + rows * y + x once, about 28 a tile, and the row offsets of tiles with empty rows; values take 4 or 1 where they are encoded; keeps its own values and columns
// Guarantee: bit-reproducible; a lane adds its entries in order, fixed trees add the lanes and the tiles of a row
// Launch:    a warp a tile, which stores the empty rows among its own too, and a thread each of the empty rows where these are very many; tiles of a block that lie within one row bring one piece of it; converted on the device by four passes, and one that looks at the values where they may be encoded, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kSigma = 16;
constexpr int kEncoding = 0;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/block.cuh"
#include "prelude/segmented.cuh"
#include "prelude/spanning_row.cuh"
#include "prelude/stream.cuh"
#include "prelude/loaded.cuh"
#include "prelude/unsigned.cuh"
#include "primitives/value_encoding.cuh"
#endif

constexpr uint32_t kTileNnz = 32 * kSigma;
constexpr int kWarps = kThreadsPerBlock / 32;
constexpr uint32_t kHasEmptyRows = 0x80000000u;
// Steps whose loads are in flight together, a multiple of the four that one 16-byte load of columns brings.
constexpr int kChunk = kSigma % 12 == 0 ? 12 : sizeof(AccumT) == 4 && kSigma % 16 == 0 ? 16 : kSigma % 8 == 0 ? 8 : 4;
// Whether sums wait in shared memory, so that neighbouring lanes store neighbouring rows: short rows ask for short lanes.
constexpr bool kStaged = kSigma <= 12 && kThreadsPerBlock * kSigma * sizeof(AccumT) <= 16384;
// A tile stores the empty rows among at most so many rows from its first to that of the next; more are listed.
constexpr uint32_t kMostRows = 4 * kTileNnz;
static_assert(kSigma % kChunk == 0 && kChunk % 4 == 0 && kSigma <= 32, "a lane's entries come in whole chunks");

// A lane's part of a tile: a bit for every entry that begins a row, how many rows begin in earlier lanes (10 bits),
// and how many earlier lanes hold entries of the row that is open at the lane's end (5 bits).
template <bool kWide>
struct Packed {
  using Type = uint32_t;
};
template <>
struct Packed<true> {
  using Type = uint64_t;
};
using DescriptorT = Packed<(kSigma > 16)>::Type;

__device__ __forceinline__ uint32_t bit_flag(DescriptorT descriptor) {
  return uint32_t(descriptor) & (0xffffffffu >> (32 - kSigma));
}
__device__ __forceinline__ uint32_t y_offset(DescriptorT descriptor) { return uint32_t(descriptor >> kSigma) & 1023; }
__device__ __forceinline__ int seg_offset(DescriptorT descriptor) { return int(descriptor >> (kSigma + 10)) & 31; }

// Where in its tile a lane's entry is stored: four entries of a lane together, so that one access brings them.
__device__ __forceinline__ uint32_t place(uint32_t lane, uint32_t step) {
  return step / 4 * 128 + lane * 4 + step % 4;
}

// A thread a row: which row every tile begins in, where rows begin, which tiles have empty rows between theirs.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csr5_mark(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets, uint32_t* tile_rows,
               uint32_t* bit_flags, uint32_t* empty_bases, uint64_t* counts) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const OffsetT begin = row_offsets[row], end = row_offsets[row + 1];
  const OffsetT tile = begin / kTileNnz;
  const uint32_t entry = uint32_t(begin % kTileNnz);
  if (begin == end) {
    atomicAdd(counts, uint64_t(1));
    if (begin < nnz && entry != 0) empty_bases[tile] = 1;
    return;
  }
  atomicOr(bit_flags + tile * 32 + entry / kSigma, 1u << entry % kSigma);
  const OffsetT last = (end - 1) / kTileNnz;
  for (OffsetT t = tile + (entry != 0); t <= last; ++t) tile_rows[t] = row;
}

// A warp a tile: packs the descriptors and takes room for the offsets of a tile with empty rows.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csr5_describe(uint32_t num_tiles, const uint32_t* __restrict__ bit_flags, uint32_t* tile_rows,
                   DescriptorT* descriptors, uint32_t* empty_bases, uint64_t* counts) {
  await_stream();
  const uint32_t tile = blockIdx.x * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x & 31;
  if (tile >= num_tiles) return;
  const uint32_t flags = bit_flags[tile * uint64_t(32) + lane];
  const uint32_t heads = __ballot_sync(0xffffffffu, flags != 0);
  const int num_flags = __popc(flags);
  int up_to_lane = num_flags;
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const int left = __shfl_up_sync(0xffffffffu, up_to_lane, offset);
    if (lane >= offset) up_to_lane += left;
  }
  descriptors[tile * uint64_t(32) + lane] = DescriptorT(flags) | DescriptorT(up_to_lane - num_flags) << kSigma |
                                            DescriptorT(lanes_before_in_segment(heads)) << (kSigma + 10);
  if (lane == 31 && empty_bases[tile] != 0) {
    empty_bases[tile] = uint32_t(atomicAdd(counts + 1, uint64_t(up_to_lane)));
    tile_rows[tile] |= kHasEmptyRows;
  }
}

// A warp a tile: columns, and values as they are or encoded, in the order in which lanes read them. The last tile is filled up
// with a column that is there and with zeros, which are never multiplied.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csr5_convert(uint32_t num_tiles, OffsetT nnz, const IndexT* __restrict__ col_indices,
                  const ValueT* __restrict__ values, uint32_t is_encoded, IndexT* tile_cols, ValueT* tile_values,
                  EncodedT* encoded_values) {
  await_stream();
  const uint32_t tile = blockIdx.x * kWarps + threadIdx.x / 32;
  if (tile >= num_tiles) return;
  const OffsetT first = tile * OffsetT(kTileNnz);
  for (uint32_t entry = threadIdx.x & 31; entry < kTileNnz; entry += 32) {
    const OffsetT from = first + entry;
    const OffsetT to = first + place(entry / kSigma, entry % kSigma);
    tile_cols[to] = col_indices[min(from, nnz - 1)];
    const ValueT value = from < nnz ? values[from] : ValueT(0);
    if (kIsEncoded && is_encoded != 0) {
      encoded_values[to] = EncodingT::stored(value, 0, nullptr);
    } else {
      tile_values[to] = value;
    }
  }
}

// The rows from a tile's first to that of the next tile, to which empty rows before and behind all others belong too.
struct RowRange {
  uint32_t first, end;

  __device__ __forceinline__ RowRange(uint32_t tile, uint32_t num_tiles, uint32_t num_rows, const uint32_t* tile_rows)
      : first(tile == 0 ? 0 : __ldg(tile_rows + tile) & ~kHasEmptyRows),
        end(tile + 1 < num_tiles ? __ldg(tile_rows + tile + 1) & ~kHasEmptyRows : num_rows) {}
  __device__ __forceinline__ bool is_narrow() const { return end - first <= kMostRows; }
};

// A thread a row: lists the empty rows that no tile stores, and the rows of tiles that have empty rows between theirs.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csr5_rows(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t num_tiles,
               const uint32_t* __restrict__ tile_rows, const DescriptorT* __restrict__ descriptors, const uint32_t* __restrict__ empty_bases,
               uint32_t* empty_offsets, uint32_t* empty_rows, uint64_t* counts) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const OffsetT begin = row_offsets[row];
  if (begin == row_offsets[row + 1]) {
    const uint32_t owner = begin == 0 ? 0 : uint32_t((begin - 1) / kTileNnz);
    if (num_tiles > 0 && RowRange(owner, num_tiles, num_rows, tile_rows).is_narrow()) return;
    empty_rows[atomicAdd(counts + 2, uint64_t(1))] = row;
    return;
  }
  const OffsetT tile = begin / kTileNnz;
  const uint32_t first_row = tile_rows[tile];
  if ((first_row & kHasEmptyRows) == 0) return;
  const uint32_t entry = uint32_t(begin % kTileNnz);
  const DescriptorT descriptor = descriptors[tile * 32 + entry / kSigma];
  const uint32_t earlier = bit_flag(descriptor) & ((1u << entry % kSigma) - 1);
  empty_offsets[empty_bases[tile] + y_offset(descriptor) + __popc(earlier)] = row - (first_row & ~kHasEmptyRows);
}

// The row of the c-th entry of a tile that begins a row.
struct TileRows {
  uint32_t first;
  const uint32_t* empty_offsets;

  __device__ __forceinline__ uint32_t operator()(uint32_t c) const {
    return empty_offsets == nullptr ? first + c : first + __ldg(empty_offsets + c);
  }
};

// A lane's entries: rows that begin and end in the lane are stored, or left in `staged`; `head` is what belongs to the row that was open
// before, the result what belongs to the row that stays open.
template <bool kFull, typename StoredT>
__device__ __forceinline__ AccumT lane_sum(const IndexT* __restrict__ tile_cols, const StoredT* __restrict__ tile_values,
                                           const XT* __restrict__ x, DescriptorT descriptor, int num_entries,
                                           const TileRows& rows, AccumT& head, AccumT* staged, YT* y, AccumT alpha,
                                           BetaT beta) {
  constexpr int kSteps = kFull ? kChunk : 4;
  const int lane = threadIdx.x & 31;
  const uint32_t flags = bit_flag(descriptor);
  uint32_t next = y_offset(descriptor);
  AccumT sum = 0;
  bool is_head = true;
#pragma unroll 1
  for (int first = 0; first < kSigma; first += kSteps) {
    IndexT cols[kSteps];
    Loaded<4, StoredT> values[kSteps / 4];
    XT entries[kSteps];
#pragma unroll
    for (int k = 0; k < kSteps; k += 4) load_streaming<4>(cols + k, tile_cols + place(lane, first + k));
#pragma unroll
    for (int k = 0; k < kSteps; k += 4) values[k / 4].load(tile_values + place(lane, first + k));
#pragma unroll
    for (int k = 0; k < kSteps; ++k) entries[k] = kFull || first + k < num_entries ? __ldg(x + cols[k]) : XT(0);
#pragma unroll
    for (int k = 0; k < kSteps; ++k) {
      if (flags >> (first + k) & 1) {
        if (is_head) {
          head = sum;
        } else if (kStaged) {
          staged[next - 1] = sum;
        } else {
          store_scaled(y, rows(next - 1), sum, alpha, beta);
        }
        is_head = false;
        ++next;
        sum = 0;
      }
      sum = multiply_add(AccumT(decode(values[k / 4][k % 4], nullptr)), AccumT(entries[k]), sum);
    }
  }
  return sum;
}

template <typename StoredT>
__device__ __forceinline__ void multiply(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets,
                                         const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                                         uint32_t num_tiles, const uint32_t* __restrict__ tile_rows,
                                         const DescriptorT* __restrict__ descriptors,
                                         const uint32_t* __restrict__ empty_bases,
                                         const uint32_t* __restrict__ empty_offsets, uint32_t num_empty_rows,
                                         const uint32_t* __restrict__ empty_rows,
                                         const IndexT* __restrict__ tile_cols,
                                         const StoredT* __restrict__ tile_values, AccumT* tails, AccumT* heads,
                                         PieceWordT* meetings) {
  if (skips_product(alpha)) {
    const uint64_t num_threads = uint64_t(gridDim.x) * kThreadsPerBlock;
    for (uint64_t row = uint64_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x; row < num_rows; row += num_threads) {
      store_scaled(y, row, AccumT(0), alpha, beta);
    }
    return;
  }
  const uint32_t tile_blocks = (num_tiles + kWarps - 1) / kWarps;
  if (blockIdx.x >= tile_blocks) {
    const uint32_t i = (blockIdx.x - tile_blocks) * kThreadsPerBlock + threadIdx.x;
    if (i < num_empty_rows) store_scaled(y, __ldg(empty_rows + i), AccumT(0), alpha, beta);
    return;
  }
  const uint32_t tile = blockIdx.x * kWarps + threadIdx.x / 32;
  const int lane = threadIdx.x & 31;
  if (tile >= num_tiles) return;
  const OffsetT first_nnz = tile * OffsetT(kTileNnz);
  const DescriptorT descriptor = __ldcs(descriptors + tile * uint64_t(32) + lane);
  const uint32_t marked_row = __ldg(tile_rows + tile);
  const uint32_t first_row = marked_row & ~kHasEmptyRows;
  const uint32_t flags = bit_flag(descriptor);
  const uint32_t heads_mask = __ballot_sync(0xffffffffu, flags != 0);
  const bool begins_row = __shfl_sync(0xffffffffu, flags, 0) & 1;
  const uint32_t num_begun = __shfl_sync(0xffffffffu, y_offset(descriptor) + __popc(flags), 31);
  TileRows rows = {first_row + !begins_row, nullptr};
  if (marked_row & kHasEmptyRows) rows = {first_row, empty_offsets + __ldg(empty_bases + tile)};
  const uint32_t last_row = num_begun == 0 ? first_row : rows(num_begun - 1);

  const RowRange range(tile, num_tiles, num_rows, tile_rows);
  const uint32_t num_rows_with_entries = num_begun + !begins_row - (range.end == last_row);
  if (range.end - range.first > num_rows_with_entries && range.is_narrow()) {
#pragma unroll 4
    for (uint32_t row = range.first + lane; row < range.end; row += 32) {
      if (__ldg(row_offsets + row) == __ldg(row_offsets + row + 1)) store_scaled(y, row, AccumT(0), alpha, beta);
    }
  }

  __shared__ AccumT block_staged[kStaged ? kWarps * kTileNnz : 1];
  AccumT* staged = block_staged + (kStaged ? threadIdx.x / 32 * kTileNnz : 0);
  AccumT head = 0;
  AccumT sum;
  if (nnz - first_nnz >= kTileNnz) {
    sum = lane_sum<true>(tile_cols + first_nnz, tile_values + first_nnz, x, descriptor, kSigma, rows, head, staged, y,
                         alpha, beta);
  } else {
    const int num_entries = int(nnz - first_nnz) - lane * kSigma;
    sum = lane_sum<false>(tile_cols + first_nnz, tile_values + first_nnz, x, descriptor, num_entries, rows, head,
                          staged, y, alpha, beta);
  }
  sum = warp_segmented_sum(sum, seg_offset(descriptor));
  const AccumT carry = __shfl_up_sync(0xffffffffu, sum, 1);
  if (lane != 0) head = carry + head;
  if (flags != 0 && y_offset(descriptor) > 0) {
    if (kStaged) {
      staged[y_offset(descriptor) - 1] = head;
    } else {
      store_scaled(y, rows(y_offset(descriptor) - 1), head, alpha, beta);
    }
  }
  if (kStaged && num_begun > 1) {
    __syncwarp();
#pragma unroll 4
    for (uint32_t c = lane; c < num_begun - 1; c += 32) store_scaled(y, rows(c), staged[c], alpha, beta);
  }

  // The calibrator: the rows that are open at the tile's beginning and at its end.
  const SpanningRows calibrator = {tails, heads, meetings};
  if (heads_mask != 0 && !begins_row) {
    const uint32_t first_tile = uint32_t(__ldg(row_offsets + first_row) / kTileNnz);
    const AccumT piece = __shfl_sync(0xffffffffu, head, __ffs(heads_mask) - 1);
    add_piece<kWarps>(calibrator, first_row, first_tile, tile, tile, piece, y, alpha, beta);
  }
  const uint32_t first_tile = uint32_t(__ldg(row_offsets + last_row) / kTileNnz);
  const uint32_t last_tile = uint32_t((__ldg(row_offsets + last_row + 1) - 1) / kTileNnz);
  AccumT piece = __shfl_sync(0xffffffffu, sum, 31);
  if (first_tile / kWarps < blockIdx.x && blockIdx.x < last_tile / kWarps) {
    piece = block_sum(lane == 0 ? piece : AccumT(0));
    if (threadIdx.x >= 32) return;
  }
  if (first_tile != last_tile) {
    add_piece<kWarps>(calibrator, last_row, first_tile, last_tile, tile, piece, y, alpha, beta);
  } else if (lane == 0) {
    store_scaled(y, last_row, piece, alpha, beta);
  }
}

// The shortest lanes need few registers; unasked, the compiler aims at as few but spills some.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kSigma == 4 ? 2048 / kThreadsPerBlock : 0)
spmv_csr5(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets, const XT* __restrict__ x,
          YT* __restrict__ y, AlphaT alpha, BetaT beta, uint32_t num_tiles, const uint32_t* __restrict__ tile_rows,
          const DescriptorT* __restrict__ descriptors, const uint32_t* __restrict__ empty_bases,
          const uint32_t* __restrict__ empty_offsets, uint32_t num_empty_rows, const uint32_t* __restrict__ empty_rows,
          const IndexT* __restrict__ tile_cols, const ValueT* __restrict__ tile_values, AccumT* tails, AccumT* heads,
          PieceWordT* meetings) {
  await_stream();
  multiply(num_rows, nnz, row_offsets, x, y, alpha, beta, num_tiles, tile_rows, descriptors, empty_bases, empty_offsets,
           num_empty_rows, empty_rows, tile_cols, tile_values, tails, heads, meetings);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_csr5_encoded(uint32_t num_rows, OffsetT nnz, const OffsetT* __restrict__ row_offsets, const XT* __restrict__ x,
                  YT* __restrict__ y, AlphaT alpha, BetaT beta, uint32_t num_tiles,
                  const uint32_t* __restrict__ tile_rows, const DescriptorT* __restrict__ descriptors,
                  const uint32_t* __restrict__ empty_bases, const uint32_t* __restrict__ empty_offsets,
                  uint32_t num_empty_rows, const uint32_t* __restrict__ empty_rows,
                  const IndexT* __restrict__ tile_cols, const EncodedT* __restrict__ tile_values, AccumT* tails,
                  AccumT* heads, PieceWordT* meetings) {
  await_stream();
  if constexpr (kIsEncoded) {
    multiply(num_rows, nnz, row_offsets, x, y, alpha, beta, num_tiles, tile_rows, descriptors, empty_bases, empty_offsets,
             num_empty_rows, empty_rows, tile_cols, tile_values, tails, heads, meetings);
  }
}
