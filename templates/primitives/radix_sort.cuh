// A stable sort of pairs by their keys, or by what is left of them without their lowest bits, 8 bits at a time, the lowest
// first. A digit takes five passes: every block counts the digits of its chunk, a scan over the grid (grid_scan.cuh) of the
// counts, by digit and then by block, finds where each block's pairs of each digit go, every block moves its pairs.

// x is the key, y goes with it.
using SortPair = uint2;

constexpr int kDigits = 256;

__device__ __forceinline__ uint32_t sort_digit(SortPair pair, uint32_t shift) {
  return shift < 32 ? pair.x >> shift & (kDigits - 1) : 0;
}

// Pairs that a thread has at once, and those of a block, which shared memory holds.
constexpr int kSortPairs = kThreadsPerBlock >= 1024 ? 2 : kThreadsPerBlock >= 512 ? 4 : 8;
constexpr uint32_t kSortTile = kSortPairs * kThreadsPerBlock;

// A thread's pairs of a tile: those of a warp follow one another.
struct SortPairs {
  SortPair pairs[kSortPairs];
  uint32_t digits[kSortPairs];

  // What is behind the end has a digit that is none.
  __device__ __forceinline__ SortPairs(uint64_t tile, uint64_t end, const SortPair* __restrict__ from, uint32_t shift) {
    const uint64_t first = tile + threadIdx.x / 32 * (32 * kSortPairs) + threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < kSortPairs; ++k) pairs[k] = first + k * 32 < end ? from[first + k * 32] : SortPair{};
#pragma unroll
    for (int k = 0; k < kSortPairs; ++k) digits[k] = first + k * 32 < end ? sort_digit(pairs[k], shift) : kDigits;
  }
};

// counts[digit * blocks + block] <- how many pairs of the block's chunk have the digit.
__device__ __forceinline__ void sort_count(uint32_t num_pairs, const SortPair* __restrict__ pairs, uint32_t shift,
                                           uint32_t* counts) {
  __shared__ uint32_t digit_counts[kDigits];
#pragma unroll 1
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreadsPerBlock) digit_counts[digit] = 0;
  __syncthreads();
  const Chunk chunk = block_chunk(num_pairs);
#pragma unroll 1
  for (uint64_t tile = chunk.begin; tile < chunk.end; tile += kSortTile) {
    const SortPairs mine(tile, chunk.end, pairs, shift);
#pragma unroll
    for (int k = 0; k < kSortPairs; ++k) {
      const uint32_t peers = __match_any_sync(0xffffffffu, mine.digits[k]);
      if (mine.digits[k] < kDigits && threadIdx.x % 32 == __ffs(peers) - 1) {
        atomicAdd(&digit_counts[mine.digits[k]], uint32_t(__popc(peers)));
      }
    }
  }
  __syncthreads();
#pragma unroll 1
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreadsPerBlock) {
    counts[digit * gridDim.x + blockIdx.x] = digit_counts[digit];
  }
}

// sorted <- the pairs, stable by the digit; places is the scan of the counts. A block sorts a tile in shared memory, and stores
// those of a digit side by side.
__device__ __forceinline__ void sort_scatter(uint32_t num_pairs, const SortPair* __restrict__ pairs, uint32_t shift,
                                             const uint32_t* __restrict__ places, SortPair* __restrict__ sorted) {
  constexpr int kWarps = kThreadsPerBlock / 32;
  constexpr int kDigitsPerLane = kDigits / 32;
  __shared__ SortPair tile_pairs[kSortTile];
  // Of the pairs of a digit in a warp, how many there are, then where in the tile they begin.
  __shared__ uint16_t warp_places[kWarps][kDigits];
  // Of those of a digit in the tile, how many there are, where in the tile they begin, and where they go.
  __shared__ uint32_t tile_counts[kDigits];
  __shared__ uint32_t tile_begins[kDigits];
  __shared__ uint32_t next_places[kDigits];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  // A digit is one thread's from here to the end, and most blocks have a thread for each: such loops are not unrolled.
#pragma unroll 1
  for (int digit = threadIdx.x; digit < kDigits; digit += kThreadsPerBlock) {
    next_places[digit] = places[digit * gridDim.x + blockIdx.x];
  }
  const Chunk chunk = block_chunk(num_pairs);
#pragma unroll 1
  for (uint64_t tile = chunk.begin; tile < chunk.end; tile += kSortTile) {
    const SortPairs mine(tile, chunk.end, pairs, shift);
    for (int digit = lane; digit < kDigits; digit += 32) warp_places[warp][digit] = 0;
    __syncwarp();
    uint32_t ranks[kSortPairs];
#pragma unroll
    for (int k = 0; k < kSortPairs; ++k) {
      const uint32_t digit = mine.digits[k];
      const uint32_t peers = __match_any_sync(0xffffffffu, digit);
      const uint32_t before = digit < kDigits ? warp_places[warp][digit] : 0;
      __syncwarp();
      if (digit < kDigits && lane == __ffs(peers) - 1) warp_places[warp][digit] = uint16_t(before + __popc(peers));
      __syncwarp();
      ranks[k] = before + __popc(peers & ((1u << lane) - 1));
    }
    __syncthreads();
#pragma unroll 1
    for (int digit = threadIdx.x; digit < kDigits; digit += kThreadsPerBlock) {
      uint32_t place = 0;
      for (int w = 0; w < kWarps; ++w) {
        const uint32_t count = warp_places[w][digit];
        warp_places[w][digit] = uint16_t(place);
        place += count;
      }
      tile_counts[digit] = place;
    }
    __syncthreads();
    if (warp == 0) {
      uint32_t sum = 0;
      uint32_t befores[kDigitsPerLane];
#pragma unroll
      for (int i = 0; i < kDigitsPerLane; ++i) {
        befores[i] = sum;
        sum += tile_counts[lane * kDigitsPerLane + i];
      }
      const uint32_t before = warp_inclusive_scan(sum) - sum;
#pragma unroll
      for (int i = 0; i < kDigitsPerLane; ++i) tile_begins[lane * kDigitsPerLane + i] = before + befores[i];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kSortPairs; ++k) {
      const uint32_t digit = mine.digits[k];
      if (digit < kDigits) tile_pairs[tile_begins[digit] + warp_places[warp][digit] + ranks[k]] = mine.pairs[k];
    }
    __syncthreads();
    const uint32_t count = uint32_t(min(chunk.end - tile, uint64_t(kSortTile)));
    for (uint32_t i = threadIdx.x; i < count; i += kThreadsPerBlock) {
      const SortPair pair = tile_pairs[i];
      const uint32_t digit = sort_digit(pair, shift);
      sorted[next_places[digit] + i - tile_begins[digit]] = pair;
    }
    __syncthreads();
#pragma unroll 1
    for (int digit = threadIdx.x; digit < kDigits; digit += kThreadsPerBlock) next_places[digit] += tile_counts[digit];
  }
}
