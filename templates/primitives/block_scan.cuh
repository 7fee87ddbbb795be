// Scans over the threads of a warp and of a block, in their order.

// The sum of the values of the lanes up to and with this one. Integers; every lane calls it.
template <typename T>
__device__ __forceinline__ T warp_inclusive_scan(T value) {
#pragma unroll
  for (int offset = 1; offset < 32; offset *= 2) {
    const T before = __shfl_up_sync(0xffffffffu, value, offset);
    if (int(threadIdx.x % 32) >= offset) value += before;
  }
  return value;
}

// The sum of the values of the threads before this one; `total` is the sum over the block. Integers; every thread of
// the block calls it.
template <typename T>
__device__ __forceinline__ T block_exclusive_scan(T value, T* total) {
  constexpr int kWarps = kThreadsPerBlock / 32;
  __shared__ T warp_sums[kWarps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const T inclusive = warp_inclusive_scan(value);
  if (lane == 31) warp_sums[warp] = inclusive;
  __syncthreads();
  T before = 0;
  T sum = 0;
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) before = sum;
    sum += warp_sums[w];
  }
  // The next scan writes what slower warps still read.
  __syncthreads();
  *total = sum;
  return before + inclusive - value;
}
