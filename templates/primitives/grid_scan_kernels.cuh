// An exclusive scan (grid_scan.cuh) of 32-bit integers where they are: the three passes.

struct ScannedEntry {
  const uint32_t* entries;
  __device__ __forceinline__ uint32_t operator()(uint64_t i) const { return entries[i]; }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_scan_sum_chunk(uint64_t length, const uint32_t* entries, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, ScannedEntry{entries});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_scan_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, uint32_t* entries, uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, entries, total);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_scan_chunk(uint64_t length, const uint32_t* entries, const uint64_t* partials, uint32_t* scanned) {
  await_stream();
  scan_chunk(length, partials, scanned, ScannedEntry{entries});
}
