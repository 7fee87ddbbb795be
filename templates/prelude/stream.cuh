// Data that a product reads once: loads that bring up to 16 bytes at a time and leave the caches to x.

// Words of 8 bytes are loaded as such: two of 4 bytes would have to be moved together, and whoever moves them waits for them.
template <typename T>
constexpr bool kHasWideWords = false;
template <>
constexpr bool kHasWideWords<double> = true;
template <>
constexpr bool kHasWideWords<int64_t> = true;
template <>
constexpr bool kHasWideWords<uint64_t> = true;

template <int kBytes, bool kOfWide = false>
struct Packet;
template <>
struct Packet<1> {
  using Type = unsigned char;
};
template <>
struct Packet<2> {
  using Type = uint16_t;
};
template <>
struct Packet<4> {
  using Type = uint32_t;
};
template <>
struct Packet<8> {
  using Type = uint2;
};
template <>
struct Packet<16> {
  using Type = uint4;
};
template <>
struct Packet<8, true> {
  using Type = unsigned long long;
};
template <>
struct Packet<16, true> {
  using Type = ulonglong2;
};

// As many of kCount consecutive entries as one access brings: all, or 16 bytes of them.
template <int kCount, typename T, bool kOfWide = kHasWideWords<T>>
union PacketOf {
  enum : int { kBytes = kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16, kEntries = kBytes / sizeof(T) };
  using Type = typename Packet<kBytes, kOfWide>::Type;
  Type packet;
  T entries[kEntries];
};

// kCount consecutive entries from an address that is aligned to 16 bytes, or to all of them where they are fewer; `to` may
// be of a wider type. The compiler may put loads of wide words off until it needs them, but for those in halves.
template <int kCount, bool kInHalves = false, typename To, typename T>
__device__ __forceinline__ void load_streaming(To* to, const T* __restrict__ from) {
  using Together = PacketOf<kCount, T, kHasWideWords<T> && !kInHalves>;
#pragma unroll
  for (int i = 0; i < kCount; i += Together::kEntries) {
    Together loaded;
    loaded.packet = __ldcs(reinterpret_cast<const typename Together::Type*>(from + i));
#pragma unroll
    for (int j = 0; j < Together::kEntries; ++j) to[i + j] = loaded.entries[j];
  }
}
