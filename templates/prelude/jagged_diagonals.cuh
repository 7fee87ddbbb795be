// Jagged diagonals, made when a plan is made: rows by falling length, their first entries, their second entries, and so
// on. What they are made from may be a transpose: then rows are columns of the matrix and columns are rows.

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jagged_width(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint64_t* width) {
  await_stream();
  find_longest_row(num_rows, row_offsets, width);
}

// pairs <- how much shorter than the longest every row is, and the row.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jagged_rows(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, uint32_t width,
                 SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row < num_rows) pairs[row] = {width - uint32_t(row_offsets[row + 1] - row_offsets[row]), row};
}

// Entries of a diagonal: the rows that are longer than its number, which are the first of the sorted ones.
struct DiagonalLength {
  const SortPair* pairs;
  uint32_t num_rows, width;

  __device__ __forceinline__ OffsetT operator()(uint64_t diagonal) const {
    const uint32_t too_short = width - uint32_t(diagonal);
    uint32_t low = 0, high = num_rows;
    while (low < high) {
      const uint32_t middle = low + (high - low) / 2;
      if (pairs[middle].x < too_short) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jagged_diagonals_sum_chunk(uint64_t length, const SortPair* pairs, uint32_t num_rows, uint32_t width,
                                uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, DiagonalLength{pairs, num_rows, width});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jagged_diagonals_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, OffsetT* diagonal_offsets,
                               uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, diagonal_offsets, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jagged_diagonals_chunk(uint64_t length, const SortPair* pairs, uint32_t num_rows, uint32_t width,
                            const uint64_t* partials, OffsetT* diagonal_offsets) {
  await_stream();
  scan_chunk(length, partials, diagonal_offsets, DiagonalLength{pairs, num_rows, width});
}

// A thread a row, in the sorted order.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_jagged_convert(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                    const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                    const SortPair* __restrict__ pairs, const OffsetT* __restrict__ diagonal_offsets,
                    uint32_t* __restrict__ permutation, IndexT* __restrict__ slot_cols,
                    ValueT* __restrict__ slot_values) {
  await_stream();
  const uint32_t place = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (place >= num_rows) return;
  const uint32_t row = pairs[place].y;
  permutation[place] = row;
  const OffsetT begin = __ldg(row_offsets + row);
  const uint32_t length = uint32_t(__ldg(row_offsets + row + 1) - begin);
#pragma unroll 4
  for (uint32_t k = 0; k < length; ++k) {
    const OffsetT slot = __ldg(diagonal_offsets + k) + place;
    slot_cols[slot] = __ldg(col_indices + begin + k);
    slot_values[slot] = __ldg(values + begin + k);
  }
}

// Diagonals whose loads are in flight together.
constexpr int kDiagonalSteps = 8;

// What the row at `place` has in diagonals k to k + kDiagonalSteps - 1, of `width`; behind its last entry, nothing.
__device__ __forceinline__ void load_diagonals(IndexT (&cols)[kDiagonalSteps], ValueT (&values)[kDiagonalSteps],
                                               uint32_t k, uint32_t width, uint32_t place,
                                               const OffsetT* __restrict__ diagonal_offsets,
                                               const IndexT* __restrict__ slot_cols,
                                               const ValueT* __restrict__ slot_values) {
  OffsetT first = __ldg(diagonal_offsets + k);
#pragma unroll
  for (int s = 0; s < kDiagonalSteps; ++s) {
    const OffsetT next = __ldg(diagonal_offsets + min(k + s + 1, width));
    const bool is_entry = k + s < width && place < next - first;
    cols[s] = is_entry ? __ldcs(slot_cols + first + place) : kNoColumn;
    values[s] = is_entry ? __ldcs(slot_values + first + place) : ValueT(0);
    first = next;
  }
}
