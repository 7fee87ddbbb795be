// IEEE binary16 as memory has it. Nobody computes with it: entries are converted when they are read, and a result is
// rounded once, to nearest even, when it is stored.
struct F16 {
  uint16_t bits;

  F16() = default;
  __device__ __forceinline__ explicit F16(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
  __device__ __forceinline__ explicit F16(double value) { asm("cvt.rn.f16.f64 %0, %1;" : "=h"(bits) : "d"(value)); }
  __device__ __forceinline__ explicit F16(int value) : F16(float(value)) {}

  __device__ __forceinline__ explicit operator float() const {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
  }
  __device__ __forceinline__ explicit operator double() const { return float(*this); }
  __device__ __forceinline__ F16 operator-() const {
    F16 opposite;
    opposite.bits = bits ^ 0x8000u;
    return opposite;
  }
};

__device__ __forceinline__ F16 __ldg(const F16* from) {
  F16 entry;
  entry.bits = __ldg(reinterpret_cast<const uint16_t*>(from));
  return entry;
}
__device__ __forceinline__ F16 __ldcs(const F16* from) {
  F16 entry;
  entry.bits = __ldcs(reinterpret_cast<const uint16_t*>(from));
  return entry;
}
