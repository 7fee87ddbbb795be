// Batcher's odd-even merge sort of a thread's keys, which the companions follow; the compiler knows all indices.
template <int kCount, typename Key, typename Companion>
__device__ __forceinline__ void sort_thread(Key (&keys)[kCount], Companion (&companions)[kCount]) {
#pragma unroll
  for (int p = 1; p < kCount; p *= 2) {
#pragma unroll
    for (int k = p; k >= 1; k /= 2) {
#pragma unroll
      for (int low = k % p; low + k < kCount; ++low) {
        const bool compared = (low - k % p) / k % 2 == 0 && low / (2 * p) == (low + k) / (2 * p);
        if (compared && keys[low] > keys[low + k]) {
          const Key key = keys[low];
          const Companion companion = companions[low];
          keys[low] = keys[low + k], companions[low] = companions[low + k];
          keys[low + k] = key, companions[low + k] = companion;
        }
      }
    }
  }
}
