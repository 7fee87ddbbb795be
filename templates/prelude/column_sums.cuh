// Sums of columns in shared memory: a hash table of runs of eight columns. A block whose nonzeros fall in few narrow
// windows of columns adds there and hands whole sectors of y on, instead of an atomic a nonzero.

constexpr int kRunCols = 8;
constexpr int kRuns = kNnzPerBlock / 4;
// Blocks with more runs than this add to y directly.
constexpr int kMostRuns = kNnzPerBlock / 8 + kNnzPerBlock / 64;
constexpr int kProbes = 8;
constexpr uint32_t kNoRun = 0xffffffffu;

// Which runs the table has: `tags` by place, `places` in the order in which they came.
struct RunTable {
  uint32_t tags[kRuns];
  uint16_t places[kMostRuns];
  int count;
};

__device__ __forceinline__ void clear(RunTable& table) {
  for (int i = threadIdx.x; i < kRuns; i += kThreadsPerBlock) table.tags[i] = kNoRun;
  if (threadIdx.x == 0) table.count = 0;
}

// The place of a run, which is entered where it is new; -1 where there is none for it. Only atomics touch the tags, so
// threads need not wait for each other.
__device__ __forceinline__ int place_of(RunTable& table, uint32_t run) {
  // Fibonacci hashing keeps neighbours apart.
  uint32_t place = (run * 2654435769u) >> (__clz(kRuns) + 1);
  for (int probe = 0; probe < kProbes; ++probe) {
    const uint32_t found = atomicCAS(&table.tags[place], kNoRun, run);
    if (found == run) return int(place);
    if (found == kNoRun) {
      const int entry = atomicAdd(&table.count, 1);
      if (entry < kMostRuns) table.places[entry] = uint16_t(place);
      return int(place);
    }
    place = (place + 1) & (kRuns - 1);
  }
  return -1;
}
