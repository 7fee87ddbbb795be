// In place of prelude/scaling.cuh where rows are not sums of products: nothing is scaled, so no product is skipped.
__device__ __forceinline__ bool skips_product(AccumT) { return false; }

// y[row] <- sum, reduced with y[row] where beta is 1. beta = 0 stores without reading y.
__device__ __forceinline__ void store_scaled(YT* y, uint32_t row, AccumT sum, AccumT, AccumT beta) {
  AccumT result = sum;
  if constexpr (kBeta == Coefficient::kOne) result = reduce(result, AccumT(y[row]));
  if constexpr (kBeta == Coefficient::kAny) {
    if (beta != AccumT(0)) result = reduce(result, AccumT(y[row]));
  }
  y[row] = YT(result);
}
