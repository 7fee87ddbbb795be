// alpha = 0 leaves beta * y, whatever A and x hold: the row is then treated as empty.
__device__ __forceinline__ bool skips_product(AccumT alpha) {
  if constexpr (kAlpha == Coefficient::kAny) return alpha == AccumT(0);
  return false;
}

// y[row] <- alpha * sum + beta * y[row]. beta = 0 stores without reading y.
__device__ __forceinline__ void store_scaled(YT* y, uint32_t row, AccumT sum, AccumT alpha, AccumT beta) {
  AccumT result = sum;
  if constexpr (kAlpha == Coefficient::kAny) result = scaled(alpha, sum);
  if constexpr (kAlpha == Coefficient::kMinusOne) result = -sum;
  if constexpr (kBeta == Coefficient::kOne) result = result + AccumT(y[row]);
  if constexpr (kBeta == Coefficient::kMinusOne) result = result - AccumT(y[row]);
  if constexpr (kBeta == Coefficient::kAny) {
    if (beta != AccumT(0)) result = scaled_add(beta, AccumT(y[row]), result);
  }
  y[row] = YT(result);
}
