// A stable sort of pairs by their keys, 8 bits at a time, the lowest first. A digit takes five passes: every block
// counts the digits of its chunk, a scan over the grid (grid_scan.cuh) of the counts, by digit and then by block, finds
// where each block's pairs of each digit go, every block moves its pairs.

// x is the key, y goes with it.
using SortPair = uint2;

constexpr int kDigits = 256;

__device__ __forceinline__ uint32_t sort_digit(SortPair pair, uint32_t shift) { return pair.x >> shift & (kDigits - 1); }

// counts[digit * blocks + block] <- how many pairs of the block's chunk have the digit.
__device__ __forceinline__ void sort_count(uint32_t num_pairs, const SortPair* __restrict__ pairs, uint32_t shift,
                                           uint32_t* counts) {
  __shared__ uint32_t digit_counts[kDigits];
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreadsPerBlock) digit_counts[digit] = 0;
  __syncthreads();
  const Chunk chunk = block_chunk(num_pairs);
  for (uint64_t base = chunk.begin; base < chunk.end; base += kThreadsPerBlock) {
    const uint64_t i = base + threadIdx.x;
    const uint32_t digit = i < chunk.end ? sort_digit(pairs[i], shift) : kDigits;
    const uint32_t peers = __match_any_sync(0xffffffffu, digit);
    if (digit < kDigits && threadIdx.x % 32 == __ffs(peers) - 1) {
      atomicAdd(&digit_counts[digit], uint32_t(__popc(peers)));
    }
  }
  __syncthreads();
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreadsPerBlock) {
    counts[digit * gridDim.x + blockIdx.x] = digit_counts[digit];
  }
}

// sorted <- the pairs, stable by the digit; places is the scan of the counts.
__device__ __forceinline__ void sort_scatter(uint32_t num_pairs, const SortPair* __restrict__ pairs, uint32_t shift,
                                             const uint32_t* __restrict__ places, SortPair* __restrict__ sorted) {
  constexpr int kWarps = kThreadsPerBlock / 32;
  __shared__ uint32_t next_place[kDigits];
  __shared__ uint32_t warp_places[kWarps][kDigits];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  // A digit is one thread's from here to the end.
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreadsPerBlock) {
    next_place[digit] = places[digit * gridDim.x + blockIdx.x];
  }
  const Chunk chunk = block_chunk(num_pairs);
  for (uint64_t base = chunk.begin; base < chunk.end; base += kThreadsPerBlock) {
    for (int digit = lane; digit < kDigits; digit += 32) warp_places[warp][digit] = 0;
    __syncwarp();
    const uint64_t i = base + threadIdx.x;
    const SortPair pair = i < chunk.end ? pairs[i] : SortPair{};
    const uint32_t digit = i < chunk.end ? sort_digit(pair, shift) : kDigits;
    const uint32_t peers = __match_any_sync(0xffffffffu, digit);
    const int rank = __popc(peers & ((1u << lane) - 1u));
    if (digit < kDigits && rank == 0) warp_places[warp][digit] = __popc(peers);
    __syncthreads();
    for (int d = threadIdx.x; d < kDigits; d += kThreadsPerBlock) {
      uint32_t place = next_place[d];
      for (int w = 0; w < kWarps; ++w) {
        const uint32_t count = warp_places[w][d];
        warp_places[w][d] = place;
        place += count;
      }
      next_place[d] = place;
    }
    __syncthreads();
    if (digit < kDigits) sorted[warp_places[warp][digit] + rank] = pair;
    // A warp clears its own places only, but after all its lanes have read them.
    __syncwarp();
  }
}
