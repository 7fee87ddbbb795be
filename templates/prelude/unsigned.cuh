// The unsigned integer of so many bytes.
template <int kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using Type = unsigned char;
};
template <>
struct UnsignedOf<2> {
  using Type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using Type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using Type = uint64_t;
};
