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
