// Rows of one length, stored column by column: the slots of a column are as many as the rows, rounded up to whole warps.

// Neighbouring rows of a thread, whose slots of a column come in one load, and columns whose loads are in flight together.
constexpr int kEllRows = 2;
constexpr int kEllSteps = 4;

// How far columns are apart.
__device__ __forceinline__ uint64_t ell_stride(uint32_t num_rows) { return (uint64_t(num_rows) + 31) / 32 * 32; }

// Adds the products of rows `row` to `row + kEllRows - 1`, up to the step in which all of them are over.
__device__ __forceinline__ void add_ell_rows(uint32_t num_rows, uint32_t row, uint32_t width,
                                             const IndexT* __restrict__ slot_cols,
                                             const ValueT* __restrict__ slot_values, const XT* __restrict__ x,
                                             AccumT* sums) {
  const uint64_t stride = ell_stride(num_rows);
  slot_cols += row;
  slot_values += row;
  for (uint32_t k = 0; k < width; k += kEllSteps) {
    IndexT cols[kEllSteps][kEllRows];
    ValueT values[kEllSteps][kEllRows] = {};
    XT entries[kEllSteps][kEllRows];
#pragma unroll
    for (int s = 0; s < kEllSteps; ++s) {
#pragma unroll
      for (int r = 0; r < kEllRows; ++r) cols[s][r] = kNoColumn;
      if (k + s < width) load_streaming<kEllRows>(cols[s], slot_cols + s * stride);
    }
#pragma unroll
    for (int s = 0; s < kEllSteps; ++s) {
      if (k + s < width) load_streaming<kEllRows>(values[s], slot_values + s * stride);
    }
#pragma unroll
    for (int s = 0; s < kEllSteps; ++s) {
#pragma unroll
      for (int r = 0; r < kEllRows; ++r) entries[s][r] = slot_entry(x, cols[s][r]);
    }
    bool are_over = true;
#pragma unroll
    for (int r = 0; r < kEllRows; ++r) {
#pragma unroll
      for (int s = 0; s < kEllSteps; ++s) {
        sums[r] = add_slot(cols[s][r], values[s][r], entries[s][r], sums[r]);
      }
      are_over = are_over && cols[kEllSteps - 1][r] == kNoColumn;
    }
    if (are_over) break;
    slot_cols += kEllSteps * stride;
    slot_values += kEllSteps * stride;
  }
}
