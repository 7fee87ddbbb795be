// Rows that begin in one of several shares of the entries and end in another.

// The tails of all shares before this one since the last of them in which a row ends, added up by a warp in a fixed order;
// every lane returns it.
__device__ __forceinline__ AccumT sum_of_tails(uint32_t share, const AccumT* __restrict__ tails,
                                               const uint32_t* __restrict__ ends) {
  const uint32_t lane = threadIdx.x % 32;
  AccumT sum = kIdentity;
  for (uint32_t before = share; before > 0; before -= min(before, 32u)) {
    const bool is_there = lane < before;
    const uint32_t at = is_there ? before - 1 - lane : 0;
    const uint32_t began = __ballot_sync(0xffffffffu, is_there && ends[at] != 0);
    const uint32_t last = began == 0 ? 31 : __ffs(began) - 1;
    if (is_there && lane <= last) sum = reduce(sum, tails[at]);
    if (began != 0) break;
  }
  return __shfl_sync(0xffffffffu, warp_segmented_sum(sum, lane), 31);
}
