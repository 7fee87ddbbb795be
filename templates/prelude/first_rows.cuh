// Rows that begin in one of several shares of the entries and end in another.

// The tails of all shares before this one since the last of them in which a row ends, added up by a warp in a fixed order;
// every lane returns it. A row may go through thousands of shares: the loads of kEach of a lane's are in flight together.
__device__ __forceinline__ AccumT sum_of_tails(uint32_t share, const AccumT* __restrict__ tails,
                                               const uint32_t* __restrict__ ends) {
  constexpr int kEach = 8;
  const uint32_t lane = threadIdx.x % 32;
  AccumT sum = kIdentity;
  bool began = false;
  for (uint32_t before = share; before > 0 && !began; before -= min(before, 32u * kEach)) {
    AccumT found[kEach];
    bool has_ends[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const uint32_t back = i * 32 + lane;
      found[i] = back < before ? tails[before - 1 - back] : kIdentity;
      has_ends[i] = back < before && ends[before - 1 - back] != 0;
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const uint32_t heads = __ballot_sync(0xffffffffu, has_ends[i]);
      if (!began && lane <= (heads == 0 ? 31 : __ffs(heads) - 1)) sum = reduce(sum, found[i]);
      began |= heads != 0;
    }
  }
  return __shfl_sync(0xffffffffu, warp_segmented_sum(sum, lane), 31);
}
