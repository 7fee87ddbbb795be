// Both triangles of a matrix of which one is stored, in CSR, made when a plan is made: algorithms of the plain product then
// compute with the whole matrix. A row has what is stored of it, in its order, then the column that mirrors it, downwards.

// offsets <- where each row begins, for every row and the end; num_mirrored <- entries above the diagonal.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_expanded_copy_offsets(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                           const uint32_t* __restrict__ col_offsets, OffsetT* __restrict__ offsets,
                           uint64_t* __restrict__ num_mirrored) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row > num_rows) return;
  offsets[row] = row_offsets[row] + col_offsets[row];
  if (row == num_rows) *num_mirrored = col_offsets[row];
}

// Columns and values: a thread has a stored entry, and one above the diagonal by its place among those.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_expanded_copy_fill(uint32_t num_rows, uint32_t nnz, const OffsetT* __restrict__ row_offsets,
                        const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                        const SortPair* __restrict__ pairs, const uint32_t* __restrict__ col_offsets,
                        IndexT* __restrict__ cols, ValueT* __restrict__ copy) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= nnz) return;
  const auto row_of = [=](uint32_t place) {
    return first_that(num_rows, [=](uint32_t row) { return row_offsets[row + 1] > place; });
  };
  const uint32_t stored = i + col_offsets[row_of(i)];
  cols[stored] = col_indices[i];
  copy[stored] = values[i];
  const SortPair upper = pairs[i];
  if (upper.x == num_rows) return;
  const uint32_t to = row_offsets[upper.x + 1] + i;
  const ValueT value = mirrored(values[upper.y]);
  cols[to] = row_of(upper.y);
  copy[to] = kMirrorSign < 0 ? ValueT(-value) : value;
}
