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

// The product of one row with x, summed by a group; every lane of the group returns the sum. Guarded, not peeled: the
// loads of kUnroll terms a lane are in flight together, in a row's last step too. kAligned starts at a multiple of
// kWidth entries, so that a step touches no line twice.
template <int kWidth, int kUnroll, bool kAligned>
__device__ __forceinline__ AccumT group_row_product(OffsetT begin, OffsetT end, const IndexT* __restrict__ col_indices,
                                                    const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                    uint32_t mask) {
  AccumT sums[kUnroll] = {};
  const OffsetT first = kAligned ? begin & ~OffsetT(kWidth - 1) : begin;
  for (OffsetT j = first + (threadIdx.x & (kWidth - 1)); j < end; j += kWidth * kUnroll) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const OffsetT k = j + u * kWidth;
      if (k < end && (!kAligned || u > 0 || k >= begin)) {
        sums[u] = multiply_add(AccumT(__ldcs(values + k)), AccumT(__ldg(x + __ldcs(col_indices + k))), sums[u]);
      }
    }
  }
#pragma unroll
  for (int width = kUnroll / 2; width > 0; width /= 2) {
#pragma unroll
    for (int u = 0; u < width; ++u) sums[u] += sums[u + width];
  }
  return group_sum<kWidth>(sums[0], mask);
}
