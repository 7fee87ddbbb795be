// A stable partition of the items 0 .. num_items - 1 by a key below kBins <= 32, in three passes: every block counts
// the keys of its chunk, one block finds where each block's items of each bin go, every block moves its items. Items of
// a bin keep their order. The first and the third have the same number of blocks. offsets has kBins entries a block.

// offsets[bin * blocks + block] <- how many items of the block's chunk are in the bin.
template <int kBins, typename KeyOf>
__device__ __forceinline__ void partition_count(uint32_t num_items, uint32_t* offsets, KeyOf key_of) {
  static_assert(kBins <= 32, "a lane a bin");
  __shared__ uint32_t counts[kBins];
  if (threadIdx.x < kBins) counts[threadIdx.x] = 0;
  __syncthreads();
  const Chunk chunk = block_chunk(num_items);
  for (uint64_t base = chunk.begin; base < chunk.end; base += kThreadsPerBlock) {
    const uint64_t item = base + threadIdx.x;
    const uint32_t key = item < chunk.end ? key_of(uint32_t(item)) : kBins;
    const uint32_t peers = __match_any_sync(0xffffffffu, key);
    if (key < kBins && threadIdx.x % 32 == __ffs(peers) - 1) atomicAdd(&counts[key], uint32_t(__popc(peers)));
  }
  __syncthreads();
  if (threadIdx.x < kBins) offsets[threadIdx.x * gridDim.x + blockIdx.x] = counts[threadIdx.x];
}

// offsets <- their exclusive scan; bin_counts[bin] <- the items of the bin. One block.
template <int kBins>
__device__ __forceinline__ void partition_offsets(uint32_t num_blocks, uint32_t* offsets, uint64_t* bin_counts) {
  uint32_t before = 0;
  for (int bin = 0; bin < kBins; ++bin) {
    const uint32_t bin_begin = before;
    for (uint32_t base = 0; base < num_blocks; base += kThreadsPerBlock) {
      const uint32_t block = base + threadIdx.x;
      uint32_t* offset = offsets + bin * num_blocks + block;
      uint32_t sum;
      const uint32_t prefix = block_exclusive_scan(block < num_blocks ? *offset : 0u, &sum);
      if (block < num_blocks) *offset = before + prefix;
      before += sum;
    }
    if (threadIdx.x == 0) bin_counts[bin] = before - bin_begin;
  }
}

// Calls emit(place, item) for every item of the block's chunk.
template <int kBins, typename KeyOf, typename Emit>
__device__ __forceinline__ void partition_scatter(uint32_t num_items, const uint32_t* offsets, KeyOf key_of, Emit emit) {
  constexpr int kWarps = kThreadsPerBlock / 32;
  __shared__ uint32_t next_place[kBins];
  __shared__ uint32_t warp_places[kWarps][kBins];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  if (threadIdx.x < kBins) next_place[threadIdx.x] = offsets[threadIdx.x * gridDim.x + blockIdx.x];
  const Chunk chunk = block_chunk(num_items);
  for (uint64_t base = chunk.begin; base < chunk.end; base += kThreadsPerBlock) {
    if (lane < kBins) warp_places[warp][lane] = 0;
    __syncwarp();
    const uint64_t item = base + threadIdx.x;
    const uint32_t key = item < chunk.end ? key_of(uint32_t(item)) : kBins;
    const uint32_t peers = __match_any_sync(0xffffffffu, key);
    const int rank = __popc(peers & ((1u << lane) - 1u));
    if (key < kBins && rank == 0) warp_places[warp][key] = __popc(peers);
    __syncthreads();
    if (threadIdx.x < kBins) {
      uint32_t place = next_place[threadIdx.x];
      for (int w = 0; w < kWarps; ++w) {
        const uint32_t count = warp_places[w][threadIdx.x];
        warp_places[w][threadIdx.x] = place;
        place += count;
      }
      next_place[threadIdx.x] = place;
    }
    __syncthreads();
    if (key < kBins) emit(warp_places[warp][key] + rank, uint32_t(item));
    // A warp clears its own places only, but after all its lanes have read them.
    __syncwarp();
  }
}
