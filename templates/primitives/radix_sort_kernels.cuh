// A sort of pairs (radix_sort.cuh): the passes of a digit beside those of grid_scan_kernels.cuh.

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sort_count(uint32_t num_pairs, const SortPair* pairs, uint32_t shift, uint32_t* counts) {
  await_stream();
  sort_count(num_pairs, pairs, shift, counts);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sort_scatter(uint32_t num_pairs, const SortPair* pairs, uint32_t shift, const uint32_t* places,
                  SortPair* sorted) {
  await_stream();
  sort_scatter(num_pairs, pairs, shift, places, sorted);
}
