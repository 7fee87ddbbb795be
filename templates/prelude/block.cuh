// The sum over the block in a fixed tree; the threads of the first warp return it. Once a kernel: nobody waits before the
// sums are reused.
template <typename T>
__device__ __forceinline__ T block_sum(T value) {
  constexpr int kWarps = kThreadsPerBlock / 32;
  __shared__ T warp_sums[kWarps];
  value = group_sum<32>(value, 0xffffffffu);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return value;
  return group_sum<32>(threadIdx.x < kWarps ? warp_sums[threadIdx.x] : kIdentity, 0xffffffffu);
}
