// The first of `count` rising entries that `reaches` says yes to, or `count`.
template <typename Reaches>
__device__ __forceinline__ uint32_t first_that(uint32_t count, Reaches reaches) {
  uint32_t low = 0, high = count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (reaches(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}
