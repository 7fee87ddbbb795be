// The product of a row by a group of kWidth lanes. Where groups keep step, all lanes of a warp come here, those of a group
// without a row too.
template <int kWidth, int kUnroll, bool kAligned, bool kOrders = false, bool kInStep = true>
__device__ __forceinline__ void multiply_row_by_group(bool is_row, uint32_t row, OffsetT begin, OffsetT next,
                                                      const IndexT* __restrict__ col_indices,
                                                      const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                      YT* __restrict__ y, AccumT alpha, BetaT beta) {
  const OffsetT end = skips_product(alpha) ? begin : next;
  const AccumT sum = group_row_product<kWidth, kUnroll, kAligned, kOrders>(
      begin, end, col_indices, values, x, kInStep ? 0xffffffffu : group_mask<kWidth>());
  if (is_row && threadIdx.x % kWidth == 0) store_scaled(y, row, sum, alpha, beta);
}

// Sums of 8 bytes: loads are ordered best for a kernel of so many threads a multiprocessor that has no loop over rows, those of
// narrower sums for one that has, though the grid may have a group for every row. kGroupBlocks is for their
// launch bounds.
constexpr bool kIsWide = sizeof(AccumT) == 8 && sizeof(OffsetT) == 4;
constexpr int kGroupBlocks = kIsWide ? 1536 / kThreadsPerBlock : 0;

// The product of all rows, a group of kWidth lanes a row: with kIsWhole the grid has a group for every row, else grid stride.
template <int kWidth, int kUnroll, bool kAligned, bool kIsWhole = true>
__device__ __forceinline__ void multiply_rows_by_groups(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                                        const IndexT* __restrict__ col_indices,
                                                        const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                        YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  // Wide sums of groups that take several rows do better where these go on by themselves.
  constexpr bool kInStep = kWidth > 1 && (kIsWhole || !kIsWide);
  constexpr uint32_t kRowsPerBlock = kThreadsPerBlock / kWidth;
  const uint32_t first = blockIdx.x * kRowsPerBlock + threadIdx.x / kWidth;
  const auto multiply = [=](uint32_t row) {
    const bool is_row = row < num_rows;
    const OffsetT begin = is_row ? __ldg(row_offsets + row) : 0, next = is_row ? __ldg(row_offsets + row + 1) : 0;
    multiply_row_by_group<kWidth, kUnroll, kAligned, false, kInStep>(is_row, row, begin, next, col_indices, values, x, y,
                                                                     alpha, beta);
  };
  if constexpr (kIsWide && kInStep) {
    if (kWidth < 32 || first < num_rows) multiply(first);
  } else {
    const uint32_t in_warp = kInStep ? threadIdx.x % 32 / kWidth : 0;
    for (uint32_t row = first; row - in_warp < num_rows; row += gridDim.x * kRowsPerBlock) multiply(row);
  }
}
