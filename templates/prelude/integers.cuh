// Integers as memory has them. Sums are in unsigned types, which wrap around, so that they are exact modulo 2^32 or 2^64
// in any order; signed types would have the same bits, and the compiler's leave to do anything where they overflow.
using int8_t = signed char;

__device__ __forceinline__ uint32_t multiply_add(uint32_t a, uint32_t b, uint32_t c) { return a * b + c; }
__device__ __forceinline__ uint64_t multiply_add(uint64_t a, uint64_t b, uint64_t c) { return a * b + c; }
__device__ __forceinline__ int64_t atomicAdd(int64_t* to, int64_t number) {
  return int64_t(atomicAdd(reinterpret_cast<uint64_t*>(to), uint64_t(number)));
}

// Sums and products for min and max: `none` stands for a number without end and stays what it is, and what leaves the
// type becomes its greatest or its least number.
__device__ __forceinline__ int32_t plus_within(int32_t a, int32_t b, int32_t none) {
  if (a == none || b == none) return none;
  return int32_t(min(max(int64_t(a) + b, -0x80000000ll), 0x7fffffffll));
}
__device__ __forceinline__ uint32_t plus_within(uint32_t a, uint32_t b, uint32_t none) {
  if (a == none || b == none) return none;
  return uint32_t(min(uint64_t(a) + b, 0xffffffffull));
}
__device__ __forceinline__ int64_t plus_within(int64_t a, int64_t b, int64_t none) {
  if (a == none || b == none) return none;
  const int64_t sum = int64_t(uint64_t(a) + uint64_t(b));
  // Two numbers of one sign whose sum has the other left the type on their own side.
  if (((a ^ sum) & (b ^ sum)) >= 0) return sum;
  return a < 0 ? int64_t(1ull << 63) : int64_t(~0ull >> 1);
}
__device__ __forceinline__ int32_t times_within(int32_t a, int32_t b, int32_t none) {
  if (a == none || b == none) return none;
  return int32_t(min(max(int64_t(a) * b, -0x80000000ll), 0x7fffffffll));
}
__device__ __forceinline__ uint32_t times_within(uint32_t a, uint32_t b, uint32_t none) {
  if (a == none || b == none) return none;
  return uint32_t(min(uint64_t(a) * b, 0xffffffffull));
}
__device__ __forceinline__ int64_t times_within(int64_t a, int64_t b, int64_t none) {
  if (a == none || b == none) return none;
  const int64_t product = int64_t(uint64_t(a) * uint64_t(b));
  if (__mul64hi(a, b) == product >> 63) return product;
  return (a < 0) != (b < 0) ? int64_t(1ull << 63) : int64_t(~0ull >> 1);
}
