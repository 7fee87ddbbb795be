// Products that are scattered, transposed ones from rows or plain ones from columns, are added to y by atomics, once it is
// beta * y.

// y <- beta * y. beta = 0 stores without reading y.
__device__ __forceinline__ void scale_y(uint32_t length, YT* __restrict__ y, AccumT beta) {
  if constexpr (kBeta == Coefficient::kOne) return;
  const uint32_t num_threads = gridDim.x * kThreadsPerBlock;
  for (uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x; i < length; i += num_threads) {
    if (kBeta == Coefficient::kZero || (kBeta == Coefficient::kAny && beta == AccumT(0))) {
      y[i] = YT(0);
    } else {
      y[i] = YT(scaled(kBeta == Coefficient::kMinusOne ? AccumT(-1) : beta, AccumT(y[i])));
    }
  }
}

// y[i] += alpha * sum, which nobody waits for.
__device__ __forceinline__ void add_scaled(YT* y, uint32_t i, AccumT sum, AccumT alpha) {
  if constexpr (kAlpha == Coefficient::kAny) sum = scaled(alpha, sum);
  if constexpr (kAlpha == Coefficient::kMinusOne) sum = -sum;
  atomicAdd(y + i, YT(sum));
}
