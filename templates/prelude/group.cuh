// A group: kWidth neighbouring lanes of a warp, kWidth a power of two, that work on one row.

// The lanes of the calling thread's group. Shuffles name exactly these, so groups of a warp may diverge.
template <int kWidth>
__device__ __forceinline__ uint32_t group_mask() {
  if constexpr (kWidth == 32) return 0xffffffffu;
  return ((1u << (kWidth & 31)) - 1u) << (threadIdx.x & 31 & ~(kWidth - 1));
}

// The sum over the group, the same bits in every lane: addition is commutative and the tree is fixed.
template <int kWidth, typename T>
__device__ __forceinline__ T group_sum(T value, uint32_t mask) {
#pragma unroll
  for (int offset = kWidth / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(mask, value, offset, kWidth);
  return value;
}

// The product of one row with x, summed by a group; every lane of the group returns the sum.
template <int kWidth>
__device__ __forceinline__ AccumT group_row_product(OffsetT begin, OffsetT end, const IndexT* __restrict__ col_indices,
                                                    const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                    uint32_t mask) {
  const int lane = threadIdx.x & (kWidth - 1);
  AccumT sum = 0;
  OffsetT j = begin + lane;
  if constexpr (kWidth == 32) {
    // A full warp starts at a line of 32 entries, so that every later access of the row is aligned too.
    j = (begin & ~OffsetT(31)) + lane;
    if (j < begin) j += 32;
  }
  for (; j < end; j += kWidth) {
    sum = multiply_add(AccumT(__ldcs(values + j)), AccumT(__ldg(x + __ldcs(col_indices + j))), sum);
  }
  return group_sum<kWidth>(sum, mask);
}
