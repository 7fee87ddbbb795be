// Copies from global to shared memory that go on while the thread does something else, from compute capability 8.0 on; before,
// the thread waits for each. Both addresses are multiples of kBytes, or of 16 where those are more.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  using Together = PacketOf<kBytes, unsigned char>;
#pragma unroll
  for (int i = 0; i < kBytes; i += Together::kBytes) {
    char* part_to = static_cast<char*>(to) + i;
    const char* part_from = static_cast<const char*>(from) + i;
#if __CUDA_ARCH__ >= 800
    constexpr int kPart = Together::kBytes;
    if constexpr (kPart >= 4) {
      const uint32_t address = uint32_t(__cvta_generic_to_shared(part_to));
      if constexpr (kPart == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(address), "l"(part_from) : "memory");
      } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" : : "r"(address), "l"(part_from), "n"(kPart) : "memory");
      }
      continue;
    }
#endif
    using Part = typename Together::Type;
    *reinterpret_cast<Part*>(part_to) = __ldcg(reinterpret_cast<const Part*>(part_from));
  }
}

// Ends a group of the thread's copies, in which there may be none.
__device__ __forceinline__ void end_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

// Waits until the thread's copies are there but for those of its last kLater groups.
template <int kLater>
__device__ __forceinline__ void await_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" : : "n"(kLater) : "memory");
#endif
}
