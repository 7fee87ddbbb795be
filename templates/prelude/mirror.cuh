// The half of a symmetric, skew-symmetric or Hermitian matrix that is not stored.

// What an entry below the diagonal says of the one above, but for its sign.
template <typename Number>
__device__ __forceinline__ Number mirrored(Number number) {
  if constexpr (kMirrorConjugates) {
    return conjugate(number);
  } else {
    return number;
  }
}

// A row's sum of what is stored and of what mirrors it.
__device__ __forceinline__ AccumT both_halves(AccumT lower_sum, AccumT upper_sum) {
  return kMirrorSign < 0 ? lower_sum - upper_sum : lower_sum + upper_sum;
}
