// Entries of x that lie beside each other, several at a time where x is where an access may bring them.

// Of kCount entries from a multiple of kCount on, as many as are always aligned together where x is: up to 16 bytes.
template <int kCount>
constexpr int kXPacket = (kCount & -kCount) < 16 / int(sizeof(XT)) ? (kCount & -kCount) : 16 / int(sizeof(XT));

template <int kCount>
__device__ __forceinline__ bool is_in_packets(const XT* x) {
  return kXPacket<kCount> == 1 || reinterpret_cast<uint64_t>(x) % (kXPacket<kCount> * sizeof(XT)) == 0;
}

// kCount entries from a multiple of kCount on, of an x that is in packets where kInPackets.
template <int kCount, bool kInPackets, typename To>
__device__ __forceinline__ void load_x(To* to, const XT* __restrict__ from) {
  using Together = PacketOf<kInPackets ? kXPacket<kCount> : 1, XT>;
#pragma unroll
  for (int i = 0; i < kCount; i += Together::kEntries) {
    Together loaded;
    loaded.packet = __ldg(reinterpret_cast<const typename Together::Type*>(from + i));
#pragma unroll
    for (int j = 0; j < Together::kEntries; ++j) to[i + j] = loaded.entries[j];
  }
}

// An entry of x as registers hold it until it is used: one of 2 bytes has a register of its own, and takes no instructions to
// share one.
template <typename T, int kBytes = sizeof(T)>
struct Held {
  T value;

  __device__ __forceinline__ void empty() { value = T(0); }
  __device__ __forceinline__ Held& operator=(T entry) {
    value = entry;
    return *this;
  }
  __device__ __forceinline__ T entry() const { return value; }
};
template <typename T>
struct Held<T, 2> {
  uint32_t bits;

  __device__ __forceinline__ void empty() { bits = 0; }
  __device__ __forceinline__ Held& operator=(T entry) {
    bits = *reinterpret_cast<const uint16_t*>(&entry);
    return *this;
  }
  __device__ __forceinline__ T entry() const {
    const uint16_t half = uint16_t(bits);
    return *reinterpret_cast<const T*>(&half);
  }
};
