// A number that a kernel is given the address of, read where it is used.
template <typename T>
struct OnDevice {
  const T* __restrict__ address;

  __device__ __forceinline__ operator T() const { return __ldg(address); }
};
