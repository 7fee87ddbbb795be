// What rows are reduced with: sums of products. A product over another semiring has that semiring's functions instead,
// and what the user writes may ask for the column of x.
constexpr AccumT kIdentity = 0;
// Whether two zeros are combined to nothing, so that fill may take part.
constexpr bool kZerosAddNothing = true;
__device__ __forceinline__ AccumT reduce(AccumT a, AccumT b) { return a + b; }
__device__ __forceinline__ AccumT combine(AccumT value, AccumT x, uint32_t) { return value * x; }
__device__ __forceinline__ AccumT combine_reduce(AccumT value, AccumT x, uint32_t, AccumT sum) {
  return multiply_add(value, x, sum);
}
