// Data that a product reads once, as loads bring it: an entry is taken out where it is used. Taken out where it is loaded, it
// would be waited for there, and no loads would be in flight.

// kCount consecutive entries, aligned as load_streaming wants them.
template <int kCount, typename T>
struct Loaded {
  using Together = PacketOf<kCount, T>;
  Together parts[kCount / Together::kEntries];

  __device__ __forceinline__ T& entry(int i) { return parts[i / Together::kEntries].entries[i % Together::kEntries]; }
  __device__ __forceinline__ T operator[](int i) const {
    return parts[i / Together::kEntries].entries[i % Together::kEntries];
  }
  // Entries that an access brings lie `stride` behind those of the one before it.
  __device__ __forceinline__ void load(const T* __restrict__ from, uint32_t stride = Together::kEntries) {
#pragma unroll
    for (int i = 0; i < kCount / Together::kEntries; ++i) {
      parts[i].packet = __ldcs(reinterpret_cast<const typename Together::Type*>(from + i * stride));
    }
  }
  __device__ __forceinline__ void empty() {
#pragma unroll
    for (int i = 0; i < kCount; ++i) entry(i) = T(0);
  }
};
