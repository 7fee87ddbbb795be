// x in shared memory, by copies that go on while the threads do something else.

// staged <- count entries of x from `from` on, which is a multiple of 16 bytes from x, by all kThreads threads of the
// block. They are there when the block has awaited its copies.
template <uint32_t kThreads>
__device__ __forceinline__ void stage_async(uint32_t count, const XT* __restrict__ x, const XT* __restrict__ from,
                                            XT* staged) {
  uint32_t copied = 0;
  constexpr uint32_t kPerCopy = 16 / sizeof(XT);
  if (reinterpret_cast<uint64_t>(x) % 16 == 0) {
    copied = count / kPerCopy * kPerCopy;
    for (uint32_t i = threadIdx.x * kPerCopy; i < copied; i += kThreads * kPerCopy) copy_async<16>(staged + i, from + i);
  }
  for (uint32_t i = copied + threadIdx.x; i < count; i += kThreads) staged[i] = __ldg(from + i);
}
