// coalesced_bins: a warp computes a bin of consecutive rows, several rows at a time where they are short.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Messa, CoalescedBins (bins of rows, a warp a bin); the lanes of a row follow the bin's mean here
// Suits:     short and middling rows whose lengths change slowly from row to row
// Suffers:   giant rows (a warp works on each) and bins that mix long and short rows
// Bytes:     nnz * (value + index) + (rows + 1) * offset + rows * y + x once, and 4 a bin of about nnz_per_bin nonzeros, kept by the plan
// Guarantee: bit-reproducible; which lanes share a row depends on the structure alone
// Launch:    bins are found by four passes once for a structure; a warp a bin; no shared memory, one pass
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kNnzPerBin = 256;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/row_blocks.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#endif

struct BinsBegun {
  const OffsetT* row_offsets;
  __device__ __forceinline__ uint32_t operator()(uint64_t row) const {
    return begins_row_block<kNnzPerBin, kNnzPerBin>(uint32_t(row), row_offsets);
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coalesced_bins_sum_chunk(uint64_t num_rows, const OffsetT* row_offsets, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(num_rows, partials, BinsBegun{row_offsets});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coalesced_bins_partials(uint32_t num_partials, uint64_t num_rows, uint64_t* partials, uint32_t* first_bins,
                             uint64_t* num_bins) {
  await_stream();
  scan_partials(num_partials, num_rows, partials, first_bins, num_bins);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coalesced_bins_chunk(uint64_t num_rows, const OffsetT* row_offsets, const uint64_t* partials,
                          uint32_t* first_bins) {
  await_stream();
  scan_chunk(num_rows, partials, first_bins, BinsBegun{row_offsets});
}

// The first row of every bin, and the end behind the last.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coalesced_bins_rows(uint32_t num_bins, uint32_t num_rows, const uint32_t* first_bins, uint32_t* bin_rows) {
  await_stream();
  const uint32_t bin = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (bin > num_bins) return;
  bin_rows[bin] = bin < num_bins ? first_row_of_block(bin, num_rows, first_bins) : num_rows;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_coalesced_bins(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                    const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                    BetaT beta, uint32_t num_bins, const uint32_t* __restrict__ bin_rows) {
  await_stream();
  const uint32_t bin = blockIdx.x * (kThreadsPerBlock / 32) + threadIdx.x / 32;
  if (bin >= num_bins) return;
  const uint32_t first = __ldg(bin_rows + bin);
  const uint32_t last = __ldg(bin_rows + bin + 1);
  // About four nonzeros a lane: the loads of a row of the mean length are in flight together.
  const OffsetT bin_nnz = __ldg(row_offsets + last) - __ldg(row_offsets + first);
  int lanes_log2 = 0;
  while (lanes_log2 < 5 && OffsetT(last - first) << (lanes_log2 + 2) < bin_nnz) ++lanes_log2;
  const uint32_t lanes = 1u << lanes_log2;
  const uint32_t lane = threadIdx.x & (lanes - 1);
  for (uint32_t base = first; base < last; base += 32 >> lanes_log2) {
    const uint32_t row = base + (threadIdx.x % 32 >> lanes_log2);
    AccumT sums[4] = {kIdentity, kIdentity, kIdentity, kIdentity};
    if (row < last) {
      const OffsetT begin = __ldg(row_offsets + row), next = __ldg(row_offsets + row + 1);
      const OffsetT end = skips_product(alpha) ? begin : next;
      for (OffsetT j = begin + lane; j < end; j += 4 * lanes) {
#pragma unroll
        for (int u = 0; u < 4; ++u) {
          const OffsetT k = j + u * lanes;
          if (k < end) {
            const IndexT col = __ldcs(col_indices + k);
            sums[u] = combine_reduce(AccumT(__ldcs(values + k)), AccumT(__ldg(x + col)), col, sums[u]);
          }
        }
      }
    }
    AccumT sum = reduce(reduce(sums[0], sums[2]), reduce(sums[1], sums[3]));
    for (uint32_t offset = lanes / 2; offset > 0; offset /= 2) {
      sum = reduce(sum, __shfl_xor_sync(0xffffffffu, sum, offset));
    }
    if (row < last && lane == 0) store_scaled(y, row, sum, alpha, beta);
  }
}
