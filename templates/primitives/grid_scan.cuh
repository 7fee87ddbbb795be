// An exclusive scan over the grid in three passes: every block sums its chunk of the entries, one block scans the
// sums, every block scans its chunk from there. The first and the third have the same number of blocks. An entry is
// what entry(i) gives: entries need not be in memory, and may be where the results go.

struct Chunk {
  uint64_t begin;
  uint64_t end;
};

// The block's share of `length` entries: contiguous, whole tiles of one entry a thread.
__device__ __forceinline__ Chunk block_chunk(uint64_t length) {
  const uint32_t num_tiles = uint32_t((length + kThreadsPerBlock - 1) / kThreadsPerBlock);
  const uint64_t share = uint64_t((num_tiles + gridDim.x - 1) / gridDim.x) * kThreadsPerBlock;
  const uint64_t begin = min(blockIdx.x * share, length);
  return {begin, min(begin + share, length)};
}

// partials[block] <- the sum of the block's chunk. What is scanned may have no room for the sum of all, and then *total says so.
template <typename Entry>
__device__ __forceinline__ void scan_sum_chunk(uint64_t length, uint64_t* partials, Entry entry) {
  const Chunk chunk = block_chunk(length);
  uint64_t sum = 0;
  for (uint64_t i = chunk.begin + threadIdx.x; i < chunk.end; i += kThreadsPerBlock) sum += entry(i);
  uint64_t total;
  block_exclusive_scan(sum, &total);
  if (threadIdx.x == 0) partials[blockIdx.x] = total;
}

// partials <- their exclusive scan; out[length] and *total <- their sum. One block.
template <typename Sum>
__device__ __forceinline__ void scan_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, Sum* out,
                                              uint64_t* total) {
  uint64_t before = 0;
  for (uint32_t base = 0; base < num_partials; base += kThreadsPerBlock) {
    const uint32_t i = base + threadIdx.x;
    uint64_t sum;
    const uint64_t prefix = block_exclusive_scan(i < num_partials ? partials[i] : uint64_t(0), &sum);
    if (i < num_partials) partials[i] = before + prefix;
    before += sum;
  }
  if (threadIdx.x == 0) {
    out[length] = Sum(before);
    *total = before;
  }
}

// out[i] <- the sum of the entries before i, for the block's chunk.
template <typename Sum, typename Entry>
__device__ __forceinline__ void scan_chunk(uint64_t length, const uint64_t* partials, Sum* out, Entry entry) {
  const Chunk chunk = block_chunk(length);
  Sum before = Sum(partials[blockIdx.x]);
  for (uint64_t base = chunk.begin; base < chunk.end; base += kThreadsPerBlock) {
    const uint64_t i = base + threadIdx.x;
    Sum sum;
    const Sum prefix = block_exclusive_scan(i < chunk.end ? Sum(entry(i)) : Sum(0), &sum);
    if (i < chunk.end) out[i] = before + prefix;
    before += sum;
  }
}
