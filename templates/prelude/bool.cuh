// Truth values in memory: a byte that is 0 or 1.
__device__ __forceinline__ bool multiply_add(bool a, bool b, bool c) { return (a && b) || c; }
__device__ __forceinline__ bool __ldg(const bool* from) {
  return __ldg(reinterpret_cast<const unsigned char*>(from)) != 0;
}
__device__ __forceinline__ bool __ldcs(const bool* from) {
  return __ldcs(reinterpret_cast<const unsigned char*>(from)) != 0;
}
__device__ __forceinline__ bool __ldcg(const bool* from) {
  return __ldcg(reinterpret_cast<const unsigned char*>(from)) != 0;
}
