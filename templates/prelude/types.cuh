// Fixed-width integers (NVRTC has no <cstdint>) and what is known of alpha and beta when a kernel is generated.
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;

// What every kernel begins with. A kernel may be launched while the one ahead of it in its stream still ends: nothing is
// read or written before that one is over and what it wrote is seen. Elsewhere streams see to it.
__device__ __forceinline__ void await_stream() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

enum class Coefficient { kAny, kZero, kOne, kMinusOne };
