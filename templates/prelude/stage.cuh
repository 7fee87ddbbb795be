// x in shared memory.

// staged <- count entries of x, by all kThreads threads of the block.
template <uint32_t kThreads>
__device__ __forceinline__ void stage(uint32_t count, const XT* __restrict__ x, XT* staged) {
  uint32_t copied = 0;
  if (reinterpret_cast<uint64_t>(x) % 16 == 0) {
    constexpr uint32_t kPerPacket = 16 / sizeof(XT);
    copied = count / kPerPacket * kPerPacket;
    const uint4* from = reinterpret_cast<const uint4*>(x);
#pragma unroll 8
    for (uint32_t i = threadIdx.x; i < copied / kPerPacket; i += kThreads) {
      reinterpret_cast<uint4*>(staged)[i] = __ldg(from + i);
    }
  }
  for (uint32_t i = copied + threadIdx.x; i < count; i += kThreads) staged[i] = __ldg(x + i);
}
