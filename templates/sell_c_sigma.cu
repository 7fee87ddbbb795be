// sell_c_sigma: sliced ELLPACK; slices of 32 rows, each as wide as its longest, rows sorted by length in windows of sigma.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Kreutzer et al. 2014 (SELL-C-sigma); C = 32, a warp
// Suits:     rows of a few lengths: stencils, finite elements, banded matrices; sigma = 1 where neighbouring rows are alike, more where they are not
// Suffers:   a few rows much longer than those of their slice (their warp works alone); values that change (they are copied when a plan is made)
// Bytes:     slots * (value + index) + 8 a slice + rows * y + x once, and 4 a row where sorting moved any; of fill, a row reads no more than two steps; keeps its own values and columns
// Guarantee: bit-reproducible; a row is one chain in the order of the matrix; fill touches no x
// Launch:    a warp a slice, a lane a row, column indices a step ahead of what they lead to; one pass; sorted, measured, scanned and converted on the device by six passes, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kSigma = 256;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/slots.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#endif

// Rows of a slice.
constexpr uint32_t kSliceRows = 32;
// Columns whose loads are in flight together; the indices of the next are, too.
constexpr int kSteps = 4;

// A block a window: its rows by falling length, those of one length in their order, as bitonic sorting of length and
// place leaves them. num_moved <- how many rows are not where they were.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sell_c_sigma_sort(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t* __restrict__ permutation,
                       uint64_t* num_moved) {
  await_stream();
  __shared__ uint64_t keys[kSigma];
  const uint64_t first = uint64_t(blockIdx.x) * kSigma;
  for (uint32_t i = threadIdx.x; i < kSigma; i += kThreadsPerBlock) {
    const uint64_t row = first + i;
    const OffsetT length = row < num_rows ? row_offsets[row + 1] - row_offsets[row] : 0;
    keys[i] = row < num_rows ? uint64_t(~uint32_t(length)) << 32 | i : ~uint64_t(0);
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
  for (uint32_t i = threadIdx.x; i < kSigma && first + i < num_rows; i += kThreadsPerBlock) {
    permutation[first + i] = uint32_t(first) + uint32_t(keys[i]);
    moved += uint32_t(keys[i]) != i;
  }
  if (moved > 0) atomicAdd(num_moved, uint64_t(moved));
}

// The row at a place of the order in which rows are stored.
__device__ __forceinline__ uint32_t sell_row(uint32_t place, bool is_moved, const uint32_t* __restrict__ permutation) {
  return is_moved ? __ldcs(permutation + place) : place;
}

// A warp a slice: widths[slice] <- its longest row.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sell_c_sigma_widths(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t num_moved,
                         const uint32_t* __restrict__ permutation, uint32_t* __restrict__ widths) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  uint32_t length = 0;
  if (place < num_rows) {
    const uint32_t row = sell_row(place, num_moved > 0, permutation);
    length = uint32_t(row_offsets[row + 1] - row_offsets[row]);
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) length = max(length, __shfl_xor_sync(0xffffffffu, length, offset));
  if (threadIdx.x % 32 == 0 && place < num_rows) widths[place / kSliceRows] = length;
}

struct SliceSlots {
  const uint32_t* widths;
  __device__ __forceinline__ uint64_t operator()(uint64_t slice) const { return uint64_t(widths[slice]) * kSliceRows; }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sell_c_sigma_slices_sum_chunk(uint64_t length, const uint32_t* widths, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, SliceSlots{widths});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sell_c_sigma_slices_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, uint64_t* slice_offsets,
                                  uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, slice_offsets, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sell_c_sigma_slices_chunk(uint64_t length, const uint32_t* widths, const uint64_t* partials,
                               uint64_t* slice_offsets) {
  await_stream();
  scan_chunk(length, partials, slice_offsets, SliceSlots{widths});
}

// A thread a row, and one for each of the rows that fill up the last slice.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sell_c_sigma_convert(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                          const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                          uint32_t num_moved, const uint32_t* __restrict__ permutation, uint32_t num_slices,
                          const uint64_t* __restrict__ slice_offsets, IndexT* __restrict__ slot_cols,
                          ValueT* __restrict__ slot_values) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint32_t slice = place / kSliceRows;
  if (slice >= num_slices) return;
  OffsetT begin = 0, end = 0;
  if (place < num_rows) {
    const uint32_t row = sell_row(place, num_moved > 0, permutation);
    begin = __ldg(row_offsets + row);
    end = __ldg(row_offsets + row + 1);
  }
  const uint64_t first = slice_offsets[slice];
  const uint32_t width = uint32_t((slice_offsets[slice + 1] - first) / kSliceRows);
  const uint64_t slot = first + place % kSliceRows;
  fill_slots(begin, uint32_t(end - begin), width, col_indices, values, kSliceRows, slot_cols + slot,
             slot_values + slot);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sell_c_sigma(uint32_t num_rows, uint32_t num_moved, const uint32_t* __restrict__ permutation,
                  uint32_t num_slices, const uint64_t* __restrict__ slice_offsets,
                  const IndexT* __restrict__ slot_cols, const ValueT* __restrict__ slot_values,
                  const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint32_t slice = place / kSliceRows;
  if (slice >= num_slices) return;
  const uint64_t first = __ldg(slice_offsets + slice);
  uint32_t width = uint32_t((__ldg(slice_offsets + slice + 1) - first) / kSliceRows);
  if (skips_product(alpha)) width = 0;
  const uint32_t row = place < num_rows ? sell_row(place, num_moved > 0, permutation) : num_rows;
  slot_cols += first + place % kSliceRows;
  slot_values += first + place % kSliceRows;
  AccumT sum = kIdentity;
  IndexT cols[kSteps];
#pragma unroll
  for (int s = 0; s < kSteps; ++s) cols[s] = s < width ? __ldcs(slot_cols + s * kSliceRows) : kNoColumn;
  for (uint32_t k = 0; k < width; k += kSteps) {
    IndexT next_cols[kSteps];
    ValueT values[kSteps];
    XT entries[kSteps];
    slot_cols += kSteps * kSliceRows;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) values[s] = k + s < width ? __ldcs(slot_values + s * kSliceRows) : ValueT(0);
#pragma unroll
    for (int s = 0; s < kSteps; ++s) {
      next_cols[s] = k + kSteps + s < width ? __ldcs(slot_cols + s * kSliceRows) : kNoColumn;
    }
#pragma unroll
    for (int s = 0; s < kSteps; ++s) entries[s] = slot_entry(x, cols[s]);
#pragma unroll
    for (int s = 0; s < kSteps; ++s) sum = add_slot(cols[s], values[s], entries[s], sum);
    if (next_cols[0] == kNoColumn) break;
#pragma unroll
    for (int s = 0; s < kSteps; ++s) cols[s] = next_cols[s];
    slot_values += kSteps * kSliceRows;
  }
  if (row < num_rows) store_scaled(y, row, sum, alpha, beta);
}
