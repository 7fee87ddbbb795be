// Sources are compiled with --fmad=false: a product is contracted into its sum where this is called, nowhere else.
__device__ __forceinline__ float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
// A coefficient times a number, and added to another one.
template <typename T>
__device__ __forceinline__ T scaled(T factor, T number) {
  return factor * number;
}
template <typename T>
__device__ __forceinline__ T scaled_add(T factor, T number, T sum) {
  return multiply_add(factor, number, sum);
}
#ifndef SPMV_GENERATED
#include "plus_times.cuh"
#endif
