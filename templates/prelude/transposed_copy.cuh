// The transpose of the matrix, in CSR, made when a plan is made: algorithms of the plain product then compute the
// transposed one. Its rows keep the order of the matrix.

// pairs <- column and place of every nonzero.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_transposed_copy_entries(uint32_t nnz, const IndexT* __restrict__ col_indices, SortPair* __restrict__ pairs) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i < nnz) pairs[i] = {uint32_t(col_indices[i]), i};
}

// offsets <- where each column begins, for every column and the end.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_transposed_copy_offsets(uint32_t num_cols, uint32_t nnz, const SortPair* __restrict__ pairs,
                             OffsetT* __restrict__ offsets) {
  await_stream();
  const uint32_t col = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (col <= num_cols) offsets[col] = first_that(nnz, [=](uint32_t i) { return pairs[i].x >= col; });
}

// Rows and values in the order of the columns.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_transposed_copy_fill(uint32_t num_rows, uint32_t nnz, const OffsetT* __restrict__ row_offsets,
                          const ValueT* __restrict__ values, const SortPair* __restrict__ pairs,
                          IndexT* __restrict__ rows, ValueT* __restrict__ copy) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const uint32_t place = pairs[i].y;
  rows[i] = first_that(num_rows, [=](uint32_t row) { return row_offsets[row + 1] > place; });
  copy[i] = values[place];
}
