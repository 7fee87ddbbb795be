// bfloat16 as memory has it: the upper half of a float. Nobody computes with it: entries are converted when they are
// read, and a result is rounded once, to nearest even, when it is stored. By its bits on sm_75, which has no instruction for it.
struct Bf16 {
  uint16_t bits;

  Bf16() = default;
  __device__ __forceinline__ explicit Bf16(float value) {
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    const uint32_t word = __float_as_uint(value);
    // A carry out of the mantissa is a larger exponent, up to infinity; only a NaN could be carried away.
    bits = value != value ? 0x7fffu : (word + 0x7fffu + (word >> 16 & 1)) >> 16;
#endif
  }
  // What is cut off goes into the last bit of the float, so that it does not look like a tie that it is not.
  __device__ __forceinline__ explicit Bf16(double value)
      : Bf16(__uint_as_float(__float_as_uint(__double2float_rz(value)) | (double(__double2float_rz(value)) != value))) {}
  __device__ __forceinline__ explicit Bf16(int value) : Bf16(float(value)) {}

  __device__ __forceinline__ explicit operator float() const { return __uint_as_float(uint32_t(bits) << 16); }
  __device__ __forceinline__ explicit operator double() const { return float(*this); }
  __device__ __forceinline__ Bf16 operator-() const {
    Bf16 opposite;
    opposite.bits = bits ^ 0x8000u;
    return opposite;
  }
};

__device__ __forceinline__ Bf16 __ldg(const Bf16* from) {
  Bf16 entry;
  entry.bits = __ldg(reinterpret_cast<const uint16_t*>(from));
  return entry;
}
__device__ __forceinline__ Bf16 __ldcs(const Bf16* from) {
  Bf16 entry;
  entry.bits = __ldcs(reinterpret_cast<const uint16_t*>(from));
  return entry;
}
