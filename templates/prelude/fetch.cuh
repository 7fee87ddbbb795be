// Chunks of rows that are handed out while the kernel runs. A fetcher is a group or a warp, kWidth lanes.

// Calls work(chunk) in every fetcher until all chunks are done. A fetcher owns its first chunk, and with short rows half
// of its share, which halves the atomics; the rest comes from a counter, and the next chunk is fetched before the last
// is worked on, so that nobody waits for an atomic. Wide groups are for long rows, where what is owned would wait behind
// a giant. Both counters are zero before and after.
template <int kWidth, typename Work>
__device__ __forceinline__ void for_fetched_chunks(uint32_t num_chunks, uint32_t* next_chunk, uint32_t* finished_blocks,
                                                   Work work) {
  const uint32_t mask = group_mask<kWidth>();
  const uint32_t num_fetchers = gridDim.x * (kThreadsPerBlock / kWidth);
  const uint32_t rounds = (num_chunks + num_fetchers - 1) / num_fetchers;
  const uint32_t num_owned = kThreadsPerVector >= 16 ? num_fetchers : (rounds + 1) / 2 * num_fetchers;
  uint32_t chunk = (blockIdx.x * kThreadsPerBlock + threadIdx.x) / kWidth;
  while (chunk < num_chunks) {
    uint32_t next = chunk + num_fetchers;
    if (next >= num_owned && threadIdx.x % kWidth == 0) next = num_owned + atomicAdd(next_chunk, 1u);
    work(chunk);
    chunk = __shfl_sync(mask, next, 0, kWidth);
  }
  // The block that finishes last leaves both counters at zero for the next product: nobody fetches any more.
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    if (atomicAdd(finished_blocks, 1u) == gridDim.x - 1) {
      *next_chunk = 0;
      *finished_blocks = 0;
    }
  }
}
