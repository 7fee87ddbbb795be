// vector: the operations on vectors that an iterative solver needs beside the product.
//
// Formula:   fill x <- alpha; copy y <- x; scale x <- alpha * x; axpy y <- alpha * x + y; aypx y <- alpha * y + x; dot x . y, of complex ones both parts of conj(x) . y; amax max |x|
// Bytes:     every operand once
// Guarantee: bit-reproducible: dot adds in an order that depends on the length alone, in double precision
// Launch:    grid stride; dot and amax in two passes over at most 1,024 partial results
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
#include "prelude/arithmetic.cuh"
#endif

__device__ __forceinline__ uint64_t first_entry() { return blockIdx.x * uint64_t(kThreadsPerBlock) + threadIdx.x; }
__device__ __forceinline__ uint64_t grid_stride() { return gridDim.x * uint64_t(kThreadsPerBlock); }

struct Sum {
  __device__ __forceinline__ double operator()(double a, double b) const { return a + b; }
};

// A NaN wins: the largest magnitude of a vector that holds one is NaN.
struct Largest {
  __device__ __forceinline__ double operator()(double a, double b) const {
    if (a != a) return a;
    return a > b ? a : b;
  }
};

// What an entry brings to amax and a pair of entries to dot. Of complex ones: the larger part, and the real part of
// conj(x) * y.
template <typename Part>
struct Complex;
template <typename T>
__device__ __forceinline__ double magnitude(T x) {
  return fabs(double(x));
}
template <typename Part>
__device__ __forceinline__ double magnitude(Complex<Part> x) {
  return Largest()(fabs(double(x.re)), fabs(double(x.im)));
}
template <typename T>
__device__ __forceinline__ double add_product(double alpha, T x, T y, double sum) {
  return multiply_add(alpha * double(x), alpha * double(y), sum);
}
template <typename Part>
__device__ __forceinline__ double add_product(double alpha, Complex<Part> x, Complex<Part> y, double sum) {
  return add_product(alpha, x.im, y.im, add_product(alpha, x.re, y.re, sum));
}

// What they bring to the imaginary part of that.
template <typename T>
__device__ __forceinline__ double add_imaginary_product(T, T, double sum) {
  return sum;
}
template <typename Part>
__device__ __forceinline__ double add_imaginary_product(Complex<Part> x, Complex<Part> y, double sum) {
  return multiply_add(-double(x.im), double(y.re), multiply_add(double(x.re), double(y.im), sum));
}

// Reduces one value a thread over the block in a fixed tree; thread 0 returns the result.
template <typename Combine>
__device__ __forceinline__ double block_reduce(double value, Combine combine) {
  constexpr int kWarps = kThreadsPerBlock / 32;
  __shared__ double warp_results[kWarps];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  }
  if (threadIdx.x % 32 == 0) warp_results[threadIdx.x / 32] = value;
  __syncthreads();
  value = warp_results[0];
  for (int warp = 1; warp < kWarps; ++warp) value = combine(value, warp_results[warp]);
  return value;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) spmv_fill(uint64_t length, XT* x, AccumT alpha) {
  await_stream();
  for (uint64_t i = first_entry(); i < length; i += grid_stride()) x[i] = XT(alpha);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) spmv_copy(uint64_t length, const XT* x, XT* y) {
  await_stream();
  for (uint64_t i = first_entry(); i < length; i += grid_stride()) y[i] = x[i];
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) spmv_scale(uint64_t length, XT* x, AccumT alpha) {
  await_stream();
  for (uint64_t i = first_entry(); i < length; i += grid_stride()) x[i] = XT(scaled(alpha, AccumT(x[i])));
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_axpy(uint64_t length, const XT* x, XT* y, AccumT alpha) {
  await_stream();
  for (uint64_t i = first_entry(); i < length; i += grid_stride()) {
    y[i] = XT(scaled_add(alpha, AccumT(x[i]), AccumT(y[i])));
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_aypx(uint64_t length, const XT* x, XT* y, AccumT alpha) {
  await_stream();
  for (uint64_t i = first_entry(); i < length; i += grid_stride()) {
    y[i] = XT(scaled_add(alpha, AccumT(y[i]), AccumT(x[i])));
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock) spmv_multiply(uint64_t length, const XT* x, XT* y) {
  await_stream();
  for (uint64_t i = first_entry(); i < length; i += grid_stride()) y[i] = XT(AccumT(y[i]) * AccumT(x[i]));
}

// partial[block] <- sum of (alpha * x[i]) * (alpha * y[i]) over the block's entries; alpha keeps squares in range.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dot_partial(uint64_t length, const XT* x, const XT* y, double alpha, double* partial) {
  await_stream();
  double sum = 0;
  for (uint64_t i = first_entry(); i < length; i += grid_stride()) {
    sum = add_product(alpha, x[i], y[i], sum);
  }
  sum = block_reduce(sum, Sum());
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// As that, of the imaginary part of conj(x[i]) * y[i].
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dot_imaginary_partial(uint64_t length, const XT* x, const XT* y, double* partial) {
  await_stream();
  double sum = 0;
  for (uint64_t i = first_entry(); i < length; i += grid_stride()) sum = add_imaginary_product(x[i], y[i], sum);
  sum = block_reduce(sum, Sum());
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_dot(uint32_t num_partials, const double* partial, double* result) {
  await_stream();
  double sum = 0;
  for (uint32_t i = threadIdx.x; i < num_partials; i += kThreadsPerBlock) sum += partial[i];
  sum = block_reduce(sum, Sum());
  if (threadIdx.x == 0) *result = sum;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_amax_partial(uint64_t length, const XT* x, double* partial) {
  await_stream();
  double largest = 0;
  for (uint64_t i = first_entry(); i < length; i += grid_stride()) largest = Largest()(magnitude(x[i]), largest);
  largest = block_reduce(largest, Largest());
  if (threadIdx.x == 0) partial[blockIdx.x] = largest;
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_amax(uint32_t num_partials, const double* partial, double* result) {
  await_stream();
  double largest = 0;
  for (uint32_t i = threadIdx.x; i < num_partials; i += kThreadsPerBlock) largest = Largest()(partial[i], largest);
  largest = block_reduce(largest, Largest());
  if (threadIdx.x == 0) *result = largest;
}
