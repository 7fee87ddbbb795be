// A block that works on one row, or on a part of one. Parts begin at kNnzPerPart nonzeros of their row or a multiple of
// them, and blocks that follow one another have those of a row: it is stored by the block that brings the last, or by the
// only one.
template <uint32_t kNnzPerPart>
__device__ __forceinline__ void add_row_part(const SpanningRows& spanning, const OffsetT* __restrict__ row_offsets,
                                             uint32_t row, OffsetT begin, OffsetT end,
                                             const IndexT* __restrict__ col_indices,
                                             const ValueT* __restrict__ values, const XT* __restrict__ x, YT* y,
                                             AccumT alpha, BetaT beta) {
  const OffsetT row_begin = __ldg(row_offsets + row);
  const OffsetT row_end = __ldg(row_offsets + row + 1);
  if (skips_product(alpha)) end = begin;
  const AccumT sum =
      block_sum(row_share<kThreadsPerBlock, 4, true, sizeof(AccumT) == 4>(threadIdx.x, begin, end, col_indices, values, x));
  if (threadIdx.x >= 32) return;
  if (row_end - row_begin <= kNnzPerPart) {
    if (threadIdx.x == 0) store_scaled(y, row, sum, alpha, beta);
    return;
  }
  const uint32_t first = blockIdx.x - uint32_t((begin - row_begin) / kNnzPerPart);
  const uint32_t last = first + uint32_t((row_end - row_begin - 1) / kNnzPerPart);
  add_piece(spanning, row, first, last, blockIdx.x, sum, y, alpha, beta);
}
