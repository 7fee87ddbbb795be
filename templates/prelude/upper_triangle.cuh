// Where the entries above the diagonal are in the stored lower triangle, column by column.

// pairs <- column and place of every nonzero, num_rows for a column on the diagonal.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_upper_triangle_entries(uint32_t nnz, uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                            const IndexT* __restrict__ col_indices, SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const uint32_t row = first_that(num_rows, [=](uint32_t r) { return row_offsets[r + 1] > i; });
  pairs[i] = {col_indices[i] == row ? num_rows : uint32_t(col_indices[i]), i};
}

// col_offsets <- where each column begins in the sorted pairs, and where the last one ends.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_upper_triangle_columns(uint32_t num_rows, uint32_t nnz, const SortPair* __restrict__ pairs,
                            uint32_t* __restrict__ col_offsets) {
  await_stream();
  const uint32_t col = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (col <= num_rows) col_offsets[col] = first_that(nnz, [=](uint32_t i) { return pairs[i].x >= col; });
}
