// two_phase: column tiles with x in shared memory store all products, then warps with y in shared memory sum them by bins of rows.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Beamer, Asanovic and Patterson 2017 (propagation blocking), with products in an order that is planned once, so that both phases stream
// Suits:     many columns that reach anywhere, with few entries in any tile of rows and columns: uniform random, wide bands, tall matrices
// Suffers:   whatever finds x in a cache (products go to memory and come back); f64, whose products are twice as wide; values that change (they are copied when a plan is made)
// Bytes:     nnz * (value + 4 + 2 * accumulator) + 8 a chunk of up to 32 products + rows * y + x once; from L2 a column tile for every block that works on it; keeps its own values and columns
// Guarantee: bit-reproducible; a row is summed tile by tile, in a fixed tree where neighbours in a chunk are of one row; nothing but stored entries touches y
// Launch:    as many blocks as are resident, with equal shares of the products; then a warp a bin, or a part of one that has many products; a block 32 rows of bins in parts; planned on the device by two sorts
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kTileKib = 48;
constexpr int kBinKib = 4;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "prelude/segmented.cuh"
#include "prelude/search.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#endif

constexpr uint32_t kWarps = kThreadsPerBlock / 32;
// Columns of a tile, which places of 16 bits tell apart.
constexpr uint32_t kFits = kTileKib * 1024 / sizeof(XT);
constexpr uint32_t kTileCols = kFits < 65536 ? kFits : 65536;
// Rows of a bin, a warp's.
constexpr uint32_t kBinRows = kBinKib * 1024 / sizeof(AccumT);
// Entries that a thread loads at once. Tiles begin with one; what they are filled up with, nobody sums.
constexpr uint32_t kPacket = 4;
constexpr int kPacketsAhead = 4;
// Products of one bin and tile that lie in one stretch of as many, which a warp sums together.
constexpr uint32_t kChunk = 32;
constexpr int kChunksAhead = 8;
// A part of a bin has no more than this fraction of all chunks, but for few chunks.
constexpr uint32_t kWantedParts = 2048;
constexpr uint32_t kFewChunks = 32;

// ---- The plan: tiles ----

// rows[entry] <- its row; pairs <- tile and place of every entry.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_entries(uint32_t nnz, uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                       const IndexT* __restrict__ col_indices, uint32_t* __restrict__ rows,
                       SortPair* __restrict__ pairs) {
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  rows[i] = first_that(num_rows, [=](uint32_t r) { return row_offsets[r + 1] > i; });
  pairs[i] = {uint32_t(col_indices[i]) / kTileCols, i};
}

// tile_begins[tile] <- its first entry in the order of tiles.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_tile_begins(uint32_t num_tiles, uint32_t nnz, const SortPair* __restrict__ pairs,
                           uint32_t* __restrict__ tile_begins) {
  const uint32_t tile = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (tile <= num_tiles) tile_begins[tile] = first_that(nnz, [=](uint32_t i) { return pairs[i].x >= tile; });
}

// marks[tile] <- its packets.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_mark_packets(uint32_t num_tiles, const uint32_t* __restrict__ tile_begins,
                            uint32_t* __restrict__ marks) {
  const uint32_t tile = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (tile < num_tiles) marks[tile] = (tile_begins[tile + 1] - tile_begins[tile] + kPacket - 1) / kPacket;
}

// Where the i-th entry in the order of tiles is stored.
__device__ __forceinline__ uint32_t stored_at(uint32_t i, uint32_t tile, const uint32_t* __restrict__ tile_begins,
                                              const uint32_t* __restrict__ packet_begins) {
  return packet_begins[tile] * kPacket + (i - tile_begins[tile]);
}

// tile_cols, bin_rows, tile_values <- the columns in tiles, rows in bins and values of entries. What nobody writes is zero.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_fill(uint32_t nnz, const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                    const uint32_t* __restrict__ rows, const SortPair* __restrict__ pairs,
                    const uint32_t* __restrict__ tile_begins, const uint32_t* __restrict__ packet_begins,
                    uint16_t* __restrict__ tile_cols, uint16_t* __restrict__ bin_rows,
                    ValueT* __restrict__ tile_values) {
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const SortPair pair = pairs[i];
  const uint32_t at = stored_at(i, pair.x, tile_begins, packet_begins);
  tile_cols[at] = uint16_t(uint32_t(col_indices[pair.y]) % kTileCols);
  bin_rows[at] = uint16_t(rows[pair.y] % kBinRows);
  tile_values[at] = values[pair.y];
}

// ---- The plan: chunks ----

// marks[i] <- whether a chunk begins with the i-th entry in the order of tiles.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_mark_chunks(uint32_t nnz, const uint32_t* __restrict__ rows, const SortPair* __restrict__ pairs,
                           const uint32_t* __restrict__ tile_begins, const uint32_t* __restrict__ packet_begins,
                           uint32_t* __restrict__ marks) {
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const SortPair pair = pairs[i];
  marks[i] = i == tile_begins[pair.x] || stored_at(i, pair.x, tile_begins, packet_begins) % kChunk == 0 ||
             rows[pair.y] / kBinRows != rows[pairs[i - 1].y] / kBinRows;
}

// A chunk: where its first product is, and how many there are.
using ProductChunk = uint2;

// Of chunks in the order of tiles: bin_pairs <- bin and chunk, firsts <- where it is stored, and its first entry in that
// order.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_list_chunks(uint32_t nnz, const uint32_t* __restrict__ rows, const SortPair* __restrict__ pairs,
                           const uint32_t* __restrict__ tile_begins, const uint32_t* __restrict__ packet_begins,
                           const uint32_t* __restrict__ ranks, SortPair* __restrict__ bin_pairs,
                           uint2* __restrict__ firsts) {
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz || ranks[i] == ranks[i + 1]) return;
  const SortPair pair = pairs[i];
  bin_pairs[ranks[i]] = {rows[pair.y] / kBinRows, ranks[i]};
  firsts[ranks[i]] = {stored_at(i, pair.x, tile_begins, packet_begins), i};
}

// chunks <- the chunks in the order of bins, those of one in the order of tiles.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_order_chunks(uint32_t num_chunks, uint32_t nnz, const SortPair* __restrict__ bin_pairs,
                            const uint2* __restrict__ firsts, ProductChunk* __restrict__ chunks) {
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_chunks) return;
  const uint32_t chunk = bin_pairs[i].y;
  const uint32_t end = chunk + 1 < num_chunks ? firsts[chunk + 1].y : nnz;
  chunks[i] = {firsts[chunk].x, end - firsts[chunk].y};
}

// ---- The plan: bins, and parts of them ----

// chunk_begins[bin] <- its first chunk.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_bin_chunks(uint32_t num_bins, uint32_t num_chunks, const SortPair* __restrict__ bin_pairs,
                          uint32_t* __restrict__ chunk_begins) {
  const uint32_t bin = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (bin > num_bins) return;
  chunk_begins[bin] = first_that(num_chunks, [=](uint32_t i) { return bin_pairs[i].x >= bin; });
}

// marks[bin] <- its parts, one at least.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_mark_parts(uint32_t num_bins, uint32_t num_chunks, const uint32_t* __restrict__ chunk_begins,
                          uint32_t* __restrict__ marks) {
  const uint32_t bin = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (bin >= num_bins) return;
  const uint32_t most = max(kFewChunks, num_chunks / kWantedParts);
  marks[bin] = max(1u, (chunk_begins[bin + 1] - chunk_begins[bin] + most - 1) / most);
}

// marks[bin] <- whether it is cut.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_mark_cut(uint32_t num_bins, const uint32_t* __restrict__ part_begins, uint32_t* __restrict__ marks) {
  const uint32_t bin = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (bin < num_bins) marks[bin] = part_begins[bin + 1] - part_begins[bin] > 1;
}

// Of a cut bin, among all parts of cut bins: its first. Bins that are not cut have one part.
__device__ __forceinline__ uint32_t first_cut_part(uint32_t bin, const uint32_t* __restrict__ part_begins,
                                                   const uint32_t* __restrict__ cut_ranks) {
  return part_begins[bin] - (bin - cut_ranks[bin]);
}

// parts <- first chunk and end, bin, and where its sums go: 0 for y, else one more than its place among cut parts.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_list_parts(uint32_t num_parts, uint32_t num_bins, const uint32_t* __restrict__ chunk_begins,
                          const uint32_t* __restrict__ part_begins, const uint32_t* __restrict__ cut_ranks,
                          uint4* __restrict__ parts) {
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_parts) return;
  const uint32_t bin = first_that(num_bins, [=](uint32_t b) { return part_begins[b + 1] > i; });
  const uint32_t count = part_begins[bin + 1] - part_begins[bin], part = i - part_begins[bin];
  const uint32_t begin = chunk_begins[bin];
  const uint64_t of_bin = chunk_begins[bin + 1] - begin;
  const uint32_t to = count > 1 ? 1 + first_cut_part(bin, part_begins, cut_ranks) + part : 0;
  parts[i] = {begin + uint32_t(of_bin * part / count), begin + uint32_t(of_bin * (part + 1) / count), bin, to};
}

// cut_bins <- bin, first and end of its places among cut parts.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_list_cut(uint32_t num_bins, const uint32_t* __restrict__ part_begins,
                        const uint32_t* __restrict__ cut_ranks, uint4* __restrict__ cut_bins) {
  const uint32_t bin = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (bin >= num_bins || cut_ranks[bin] == cut_ranks[bin + 1]) return;
  const uint32_t first = first_cut_part(bin, part_begins, cut_ranks);
  cut_bins[cut_ranks[bin]] = {bin, first, first + part_begins[bin + 1] - part_begins[bin], 0};
}

// ---- The first phase: products ----

// kCount consecutive entries to an address that is aligned to 16 bytes, or to all of them where they are fewer.
template <int kCount, typename T>
__device__ __forceinline__ void store_packets(T* to, const T* from) {
  constexpr int kBytes = kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16;
  constexpr int kPerPacket = kBytes / sizeof(T);
  using PacketT = typename Packet<kBytes>::Type;
#pragma unroll
  for (int i = 0; i < kCount; i += kPerPacket) {
    union {
      PacketT packet;
      T entries[kPerPacket];
    } stored;
#pragma unroll
    for (int j = 0; j < kPerPacket; ++j) stored.entries[j] = from[i + j];
    *reinterpret_cast<PacketT*>(to + i) = stored.packet;
  }
}

// Packets of a tile; its x begins with column first_col.
__device__ __forceinline__ void multiply_packets(uint32_t begin, uint32_t end, uint32_t first_col,
                                                 const uint16_t* __restrict__ tile_cols,
                                                 const ValueT* __restrict__ tile_values, const XT* x,
                                                 AccumT* __restrict__ products) {
#pragma unroll 1
  for (uint32_t base = begin + threadIdx.x; base < end; base += kThreadsPerBlock * kPacketsAhead) {
    uint16_t cols[kPacketsAhead][kPacket];
    ValueT factors[kPacketsAhead][kPacket];
#pragma unroll
    for (int u = 0; u < kPacketsAhead; ++u) {
      const uint64_t at = (base + uint64_t(u) * kThreadsPerBlock) * kPacket;
      if (at < uint64_t(end) * kPacket) {
        load_streaming<kPacket>(cols[u], tile_cols + at);
        load_streaming<kPacket>(factors[u], tile_values + at);
      }
    }
#pragma unroll
    for (int u = 0; u < kPacketsAhead; ++u) {
      const uint64_t at = (base + uint64_t(u) * kThreadsPerBlock) * kPacket;
      if (at < uint64_t(end) * kPacket) {
        AccumT combined[kPacket];
#pragma unroll
        for (uint32_t i = 0; i < kPacket; ++i) {
          combined[i] = combine(AccumT(factors[u][i]), AccumT(x[cols[u][i]]), first_col + cols[u][i]);
        }
        store_packets<kPacket>(products + at, combined);
      }
    }
  }
}

// staged <- count entries of x.
__device__ __forceinline__ void stage(uint32_t count, const XT* __restrict__ x, XT* staged) {
  uint32_t copied = 0;
  if (reinterpret_cast<uint64_t>(x) % 16 == 0) {
    constexpr uint32_t kPerPacket = 16 / sizeof(XT);
    copied = count / kPerPacket * kPerPacket;
    const uint4* from = reinterpret_cast<const uint4*>(x);
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < copied / kPerPacket; i += kThreadsPerBlock) {
      reinterpret_cast<uint4*>(staged)[i] = __ldg(from + i);
    }
  }
  for (uint32_t i = copied + threadIdx.x; i < count; i += kThreadsPerBlock) staged[i] = __ldg(x + i);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_products(uint32_t num_cols, uint32_t num_tiles, uint32_t num_packets, AlphaT alpha,
                        const uint32_t* __restrict__ packet_begins, const uint16_t* __restrict__ tile_cols,
                        const ValueT* __restrict__ tile_values, const XT* __restrict__ x,
                        AccumT* __restrict__ products) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  XT* staged = reinterpret_cast<XT*>(shared_bytes);
  if (skips_product(alpha)) return;
  uint32_t begin = uint32_t(uint64_t(num_packets) * blockIdx.x / gridDim.x);
  const uint32_t share_end = uint32_t(uint64_t(num_packets) * (blockIdx.x + 1) / gridDim.x);
  uint32_t tile = first_that(num_tiles, [=](uint32_t t) { return __ldg(packet_begins + t + 1) > begin; });
  for (; begin < share_end; ++tile) {
    const uint32_t end = min(share_end, __ldg(packet_begins + tile + 1));
    const uint32_t first_col = tile * kTileCols, count = min(kTileCols, num_cols - first_col);
    // Copied where that takes fewer sectors than the entries may.
    if ((end - begin) * kPacket >= count * uint32_t(sizeof(XT)) / 32) {
      __syncthreads();
      stage(count, x + first_col, staged);
      __syncthreads();
      multiply_packets(begin, end, first_col, tile_cols, tile_values, staged, products);
    } else {
      multiply_packets(begin, end, first_col, tile_cols, tile_values, x + first_col, products);
    }
    begin = end;
  }
}

// ---- The second phase: sums ----

// Adds the products of a chunk to the sums of their rows. Where neighbours are of one row, they are added up before, so
// that no two lanes add to one sum.
__device__ __forceinline__ void add_chunk(uint32_t row, bool is_there, AccumT product, AccumT* sums) {
  const uint32_t row_before = __shfl_up_sync(0xffffffffu, row, 1);
  const uint32_t heads = __ballot_sync(0xffffffffu, threadIdx.x % 32 == 0 || row != row_before);
  bool is_last = true;
  if (heads != 0xffffffffu) {
    product = warp_segmented_sum(product, lanes_before_in_segment(heads));
    is_last = threadIdx.x % 32 == 31 || (heads >> (threadIdx.x % 32 + 1) & 1) != 0;
  }
  if (is_there && is_last) sums[row] = reduce(sums[row], product);
  __syncwarp();
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_sums(uint32_t num_parts, uint32_t num_rows, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                    const uint4* __restrict__ parts, const ProductChunk* __restrict__ chunks,
                    const uint16_t* __restrict__ bin_rows, const AccumT* __restrict__ products,
                    AccumT* __restrict__ part_sums) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  AccumT* sums = reinterpret_cast<AccumT*>(shared_bytes) + threadIdx.x / 32 * kBinRows;
  const uint32_t lane = threadIdx.x % 32, number = blockIdx.x * kWarps + threadIdx.x / 32;
  if (number >= num_parts) return;
  const uint4 part = __ldg(parts + number);
  const uint32_t end = skips_product(alpha) ? part.x : part.y;
  for (uint32_t i = lane; i < kBinRows; i += 32) sums[i] = kIdentity;
  __syncwarp();
#pragma unroll 1
  for (uint32_t base = part.x; base < end; base += kChunksAhead) {
    uint32_t rows[kChunksAhead];
    bool are_there[kChunksAhead];
    AccumT summands[kChunksAhead];
#pragma unroll
    for (int u = 0; u < kChunksAhead; ++u) {
      const ProductChunk chunk = base + u < end ? __ldg(chunks + base + u) : ProductChunk{0, 0};
      are_there[u] = lane < chunk.y;
      // Lanes without a product have rows of their own.
      rows[u] = 65536 + lane;
      summands[u] = kIdentity;
      if (are_there[u]) {
        rows[u] = __ldcs(bin_rows + chunk.x + lane);
        summands[u] = __ldcs(products + chunk.x + lane);
      }
    }
#pragma unroll
    for (int u = 0; u < kChunksAhead; ++u) add_chunk(rows[u], are_there[u], summands[u], sums);
  }
  const uint32_t first_row = part.z * kBinRows, count = min(kBinRows, num_rows - first_row);
  for (uint32_t i = lane; i < count; i += 32) {
    if (part.w == 0) {
      store_scaled(y, first_row + i, sums[i], alpha, beta);
    } else {
      part_sums[uint64_t(part.w - 1) * kBinRows + i] = sums[i];
    }
  }
}

// A block 32 rows of a bin that is cut: the sums of its parts, always in the same order.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_two_phase_add_parts(uint32_t num_rows, YT* __restrict__ y, AlphaT alpha, BetaT beta,
                         const uint4* __restrict__ cut_bins, const AccumT* __restrict__ part_sums) {
  __shared__ AccumT warp_sums[kWarps][32];
  constexpr uint32_t kBlocksPerBin = kBinRows / 32;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint4 cut = __ldg(cut_bins + blockIdx.x / kBlocksPerBin);
  const uint32_t in_bin = blockIdx.x % kBlocksPerBin * 32 + lane, row = cut.x * kBinRows + in_bin;
  AccumT sum = kIdentity;
  if (row < num_rows) {
#pragma unroll 8
    for (uint32_t part = cut.y + warp; part < cut.z; part += kWarps) {
      sum = reduce(sum, part_sums[uint64_t(part) * kBinRows + in_bin]);
    }
  }
  warp_sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || row >= num_rows) return;
  for (uint32_t w = 1; w < kWarps; ++w) sum = reduce(sum, warp_sums[w][lane]);
  store_scaled(y, row, sum, alpha, beta);
}
