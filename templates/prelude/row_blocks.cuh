// Consecutive rows in blocks of about equally many nonzeros, found row by row: a block ends where the nonzeros of the
// next row begin in another window of kWindow, and after kMaxRows rows. So the nonzeros of a block are fewer than
// kWindow and those of its last row together. (The published rule, rows until the buffer is full, is sequential.)
template <uint32_t kWindow, uint32_t kMaxRows>
__device__ __forceinline__ bool begins_row_block(uint32_t row, const OffsetT* __restrict__ row_offsets) {
  if (row % kMaxRows == 0) return true;
  return row_offsets[row] / kWindow != row_offsets[row - 1] / kWindow;
}

// The last row whose entry of first_blocks, which rise, is not above `block`.
__device__ __forceinline__ uint32_t first_row_of_block(uint32_t block, uint32_t num_rows, const uint32_t* first_blocks) {
  uint32_t low = 0;
  uint32_t high = num_rows;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (first_blocks[middle] <= block) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
