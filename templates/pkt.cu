// pkt: a block takes a square packet on the diagonal, with its part of x in shared memory and 16-bit columns.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Bell and Garland 2008 (PKT; packets are consecutive rows and columns in place of a graph partitioner's); Steinberger et al., Hola
// Suits:     matrices in an order in which most entries are near the diagonal, and rows of nearly one length: reordered meshes, bands
// Suffers:   entries far from the diagonal, which cost as in CSR, and many of them in one row, which one thread adds up; rows much longer than others of their packet: each is stored as long, which is refused from 8 slots a nonzero on; values that change (they are copied when a plan is made)
// Bytes:     slots of packets * (value + 2) + other entries * (value + index) + rows * (offset + y) + x once, 8 a packet; keeps its own values and columns
// Guarantee: bit-reproducible; a row is a chain of its entries in the packet, then of the others; fill touches no x
// Launch:    a block rows_per_packet rows, a thread up to four neighbouring rows at a time; one pass; packets are measured, scanned and converted on the device by eight passes, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kRowsPerPacket = 1024;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/stream.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#endif

// The column of a slot that holds no entry.
constexpr uint16_t kNoLocalColumn = 0xffff;
// Neighbouring rows of a thread, whose slots come in one load, and steps whose loads are in flight together.
constexpr int kMostRows = kRowsPerPacket / kThreadsPerBlock;
constexpr int kRows = kMostRows >= 4 ? 4 : kMostRows >= 2 ? 2 : 1;
constexpr int kSteps = kRows == 1 ? 8 : 64 / (kRows * int(sizeof(AccumT)));
// Entries outside the packet that a warp multiplies at a time.
constexpr uint32_t kProducts = 128;

// Rows of a packet, and those that fill up its last warp.
struct PacketRows {
  uint32_t first, end, stride;

  __device__ __forceinline__ PacketRows(uint32_t packet, uint32_t num_rows)
      : first(packet * kRowsPerPacket),
        end(num_rows - first > kRowsPerPacket ? first + kRowsPerPacket : num_rows),
        stride((end - first + 31) / 32 * 32) {}
};

// A thread a row: how many of its entries lie outside its packet, and for the packet how many a row has inside at most.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pkt_count(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
               uint32_t* widths, OffsetT* __restrict__ remainder_offsets) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint32_t packet = row / kRowsPerPacket;
  uint32_t inside = 0;
  if (row < num_rows) {
    const OffsetT begin = row_offsets[row], end = row_offsets[row + 1];
#pragma unroll 4
    for (OffsetT j = begin; j < end; ++j) inside += uint32_t(__ldg(col_indices + j)) / kRowsPerPacket == packet;
    remainder_offsets[row] = end - begin - inside;
  }
  // A warp's rows are of one packet.
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) inside = max(inside, __shfl_xor_sync(0xffffffffu, inside, offset));
  if (threadIdx.x % 32 == 0 && inside > 0) atomicMax(widths + packet, inside);
}

struct PacketSlots {
  uint32_t num_rows;
  const uint32_t* widths;
  __device__ __forceinline__ uint64_t operator()(uint64_t packet) const {
    return uint64_t(widths[packet]) * PacketRows(uint32_t(packet), num_rows).stride;
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pkt_packets_sum_chunk(uint64_t length, uint32_t num_rows, const uint32_t* widths, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, PacketSlots{num_rows, widths});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pkt_packets_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, uint64_t* packet_offsets,
                          uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, packet_offsets, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pkt_packets_chunk(uint64_t length, uint32_t num_rows, const uint32_t* widths, const uint64_t* partials,
                       uint64_t* packet_offsets) {
  await_stream();
  scan_chunk(length, partials, packet_offsets, PacketSlots{num_rows, widths});
}

struct EntriesOutside {
  const OffsetT* counts;
  __device__ __forceinline__ OffsetT operator()(uint64_t row) const { return counts[row]; }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pkt_remainder_sum_chunk(uint64_t length, const OffsetT* counts, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, EntriesOutside{counts});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pkt_remainder_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, OffsetT* remainder_offsets,
                            uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, remainder_offsets, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pkt_remainder_chunk(uint64_t length, const OffsetT* counts, const uint64_t* partials, OffsetT* remainder_offsets) {
  await_stream();
  scan_chunk(length, partials, remainder_offsets, EntriesOutside{counts});
}

// A thread a row, and one for each of those that fill up the last warp: its entries in the packet and fill behind them,
// and its others.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pkt_convert(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                 const ValueT* __restrict__ values, const uint32_t* __restrict__ widths,
                 const uint64_t* __restrict__ packet_offsets, const OffsetT* __restrict__ remainder_offsets,
                 uint16_t* __restrict__ local_cols, ValueT* __restrict__ slot_values,
                 IndexT* __restrict__ remainder_cols, ValueT* __restrict__ remainder_values) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint32_t packet = row / kRowsPerPacket;
  if (packet * uint64_t(kRowsPerPacket) >= num_rows) return;
  const PacketRows rows(packet, num_rows);
  if (row - rows.first >= rows.stride) return;
  uint64_t slot = packet_offsets[packet] + (row - rows.first);
  const uint64_t end_slot = slot + uint64_t(widths[packet]) * rows.stride;
  if (row < num_rows) {
    OffsetT outside = remainder_offsets[row];
    const OffsetT end = row_offsets[row + 1];
#pragma unroll 4
    for (OffsetT j = row_offsets[row]; j < end; ++j) {
      const IndexT col = __ldg(col_indices + j);
      const ValueT value = __ldg(values + j);
      if (uint32_t(col) / kRowsPerPacket == packet) {
        local_cols[slot] = uint16_t(col - rows.first);
        slot_values[slot] = value;
        slot += rows.stride;
      } else {
        remainder_cols[outside] = col;
        remainder_values[outside] = value;
        ++outside;
      }
    }
  }
  for (; slot < end_slot; slot += rows.stride) {
    local_cols[slot] = kNoLocalColumn;
    slot_values[slot] = ValueT(0);
  }
}

// Adds the products of neighbouring rows in their packet, up to the step in which all of them are over.
__device__ __forceinline__ void add_packet_rows(uint32_t width, uint32_t stride, const uint16_t* __restrict__ local_cols,
                                                const ValueT* __restrict__ slot_values, const XT* packet_x,
                                                AccumT (&sums)[kRows]) {
  for (uint32_t k = 0; k < width; k += kSteps) {
    uint16_t cols[kSteps][kRows];
    ValueT values[kSteps][kRows] = {};
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) cols[s][r] = kNoLocalColumn;
      if (k + s < width) load_streaming<kRows>(cols[s], local_cols + s * uint64_t(stride));
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      if (k + s < width) load_streaming<kRows, true>(values[s], slot_values + s * uint64_t(stride));
    }
    bool are_over = true;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        const XT entry = cols[s][r] == kNoLocalColumn ? XT(0) : packet_x[cols[s][r]];
        sums[r] = multiply_add(AccumT(values[s][r]), AccumT(entry), sums[r]);
      }
      are_over = are_over && cols[kSteps - 1][r] == kNoLocalColumn;
    }
    if (are_over) break;
    local_cols += kSteps * uint64_t(stride);
    slot_values += kSteps * uint64_t(stride);
  }
}

// Adds the entries outside the packet to the rows of a warp: row r of a thread has those from offsets[r] to
// offsets[r + 1]. They lie together, so the lanes multiply them side by side, and each adds up its own.
__device__ __forceinline__ void add_remainder(const OffsetT (&offsets)[kRows + 1], const IndexT* __restrict__ cols,
                                              const ValueT* __restrict__ values, const XT* __restrict__ x,
                                              AccumT* products, AccumT (&sums)[kRows]) {
  const uint32_t lane = threadIdx.x % 32;
  const OffsetT end = __shfl_sync(0xffffffffu, offsets[kRows], 31);
#pragma unroll 1
  for (OffsetT first = __shfl_sync(0xffffffffu, offsets[0], 0); first < end; first += kProducts) {
#pragma unroll
    for (uint32_t k = 0; k < kProducts; k += 32) {
      const OffsetT j = min(first + k + lane, end - 1);
      products[k + lane] = AccumT(__ldcs(values + j)) * AccumT(__ldg(x + __ldcs(cols + j)));
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const OffsetT stop = min(offsets[r + 1], first + kProducts);
      for (OffsetT j = max(offsets[r], first); j < stop; ++j) sums[r] += products[j - first];
    }
    __syncwarp();
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_pkt(uint32_t num_rows, uint64_t num_cols, const uint64_t* __restrict__ packet_offsets,
         const uint16_t* __restrict__ local_cols, const ValueT* __restrict__ slot_values,
         const OffsetT* __restrict__ remainder_offsets, const IndexT* __restrict__ remainder_cols,
         const ValueT* __restrict__ remainder_values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
         BetaT beta) {
  await_stream();
  __shared__ XT packet_x[kRowsPerPacket];
  __shared__ AccumT products[kThreadsPerBlock / 32][kProducts];
  const PacketRows rows(blockIdx.x, num_rows);
  const uint32_t num_packet_rows = rows.end - rows.first;
  const bool skips = skips_product(alpha);
  const uint64_t first_slot = __ldg(packet_offsets + blockIdx.x);
  const uint32_t width = skips ? 0 : uint32_t((__ldg(packet_offsets + blockIdx.x + 1) - first_slot) / rows.stride);
  if (width > 0) {
#pragma unroll 4
    for (uint32_t i = threadIdx.x; i < kRowsPerPacket; i += kThreadsPerBlock) {
      if (uint64_t(rows.first) + i < num_cols) packet_x[i] = __ldg(x + rows.first + i);
    }
  }
  __syncthreads();
#pragma unroll 1
  for (uint32_t warp_row = threadIdx.x / 32 * (32 * kRows); warp_row < rows.stride; warp_row += kThreadsPerBlock * kRows) {
    const uint32_t i = warp_row + threadIdx.x % 32 * kRows;
    OffsetT outside[kRows + 1] = {};
#pragma unroll
    for (int r = 0; r <= kRows; ++r) {
      if (!skips) outside[r] = __ldg(remainder_offsets + rows.first + min(i + r, num_packet_rows));
    }
    AccumT sums[kRows] = {};
    if (i < rows.stride) {
      add_packet_rows(width, rows.stride, local_cols + first_slot + i, slot_values + first_slot + i, packet_x, sums);
    }
    add_remainder(outside, remainder_cols, remainder_values, x, products[threadIdx.x / 32], sums);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      if (i + r < num_packet_rows) store_scaled(y, rows.first + i + r, sums[r], alpha, beta);
    }
  }
}
