// Sums by segment. A lane whose bit in `heads` is set begins a segment; lanes before the first such lane are a segment
// too.

// How many lanes of the calling lane's segment are before it.
__device__ __forceinline__ int lanes_before_in_segment(uint32_t heads) {
  const int lane = threadIdx.x & 31;
  const uint32_t up_to_lane = heads & (0xffffffffu >> (31 - lane));
  return up_to_lane == 0 ? lane : lane - 31 + __clz(up_to_lane);
}

// The sum of the lane's segment from its beginning up to and with the lane, in a fixed tree.
template <typename T>
__device__ __forceinline__ T warp_segmented_sum(T value, int lanes_before) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const T left = __shfl_up_sync(0xffffffffu, value, offset);
    if (offset <= lanes_before) value = reduce(value, left);
  }
  return value;
}

// What earlier threads of the block leave in the segment in which the calling thread begins. `sum` is what a thread
// leaves in the segment in which it ends, and comes back with the carry of its whole segment; `begins` says whether
// that segment begins in the thread. Every thread of the block calls this.
template <typename T>
__device__ __forceinline__ T block_segmented_carry(T& sum, bool begins) {
  constexpr int kWarpsPerBlock = kThreadsPerBlock / 32;
  __shared__ T warp_sums[kWarpsPerBlock];
  __shared__ uint32_t warp_begins[kWarpsPerBlock];
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const uint32_t heads = __ballot_sync(0xffffffffu, begins);
  sum = warp_segmented_sum(sum, lanes_before_in_segment(heads));
  if (lane == 31) {
    warp_sums[warp] = sum;
    warp_begins[warp] = heads != 0;
  }
  __syncthreads();
  const bool is_warp = lane < kWarpsPerBlock;
  const uint32_t warp_heads = __ballot_sync(0xffffffffu, is_warp && warp_begins[is_warp ? lane : 0] != 0);
  const T warp_totals =
      warp_segmented_sum(is_warp ? warp_sums[lane] : kIdentity, lanes_before_in_segment(warp_heads));
  T warp_carry = __shfl_sync(0xffffffffu, warp_totals, max(warp - 1, 0));
  if (warp == 0) warp_carry = kIdentity;
  T carry = __shfl_up_sync(0xffffffffu, sum, 1);
  if (lane == 0) carry = kIdentity;
  if ((heads & ((1u << lane) - 1)) == 0) carry = reduce(warp_carry, carry);
  if ((heads & (0xffffffffu >> (31 - lane))) == 0) sum = reduce(warp_carry, sum);
  return carry;
}
