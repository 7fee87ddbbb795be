// The product of all rows, a group of kWidth lanes a row, grid stride.
template <int kWidth, int kUnroll, bool kAligned>
__device__ __forceinline__ void multiply_rows_by_groups(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                                        const IndexT* __restrict__ col_indices,
                                                        const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                        YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  constexpr uint32_t kRowsPerBlock = kThreadsPerBlock / kWidth;
  const uint32_t mask = group_mask<kWidth>();
  const uint32_t num_groups = gridDim.x * kRowsPerBlock;
  for (uint32_t row = blockIdx.x * kRowsPerBlock + threadIdx.x / kWidth; row < num_rows; row += num_groups) {
    const OffsetT begin = __ldg(row_offsets + row), next = __ldg(row_offsets + row + 1);
    const OffsetT end = skips_product(alpha) ? begin : next;
    const AccumT sum = group_row_product<kWidth, kUnroll, kAligned>(begin, end, col_indices, values, x, mask);
    if (threadIdx.x % kWidth == 0) store_scaled(y, row, sum, alpha, beta);
  }
}
