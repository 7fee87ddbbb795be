// Rows that are handed out while the kernel runs. A fetcher draws tickets; a ticket is for some rounds, and in a round each
// of the fetcher's groups of kThreadsPerVector lanes computes a row. A fetcher is a warp that takes kRowsPerFetch rounds,
// or, where that is 0, a block that takes one: then the warps of a multiprocessor stay close to each other in memory, no
// long row waits for another, and the counter, which serves about one fetcher a nanosecond, keeps pace.

// Where sums are wide, the loads of a step would follow one another for want of registers if more threads were resident.
constexpr int kResidentBlocks = (sizeof(AccumT) == 8 ? 1536 : 2048) / kThreadsPerBlock;
constexpr uint32_t kThreadsPerFetcher = kRowsPerFetch > 0 ? 32 : kThreadsPerBlock;
constexpr uint32_t kRowsPerRound = kThreadsPerFetcher / kThreadsPerVector;
constexpr uint32_t kRounds = kRowsPerFetch > 0 ? kRowsPerFetch : 1;

// The fetcher's first thread draws one of so many numbers. The counter begins anew after the last of them, and so is zero
// before and after a product. Nobody waits for the number before it is used: the compiler would make an atomicAdd wait
// for it at once.
__device__ __forceinline__ uint32_t draw(uint32_t* counter, uint32_t num_draws) {
  uint32_t number = 0;
  if (threadIdx.x % kThreadsPerFetcher == 0) {
    asm volatile("atom.global.inc.u32 %0, [%1], %2;" : "=r"(number) : "l"(counter), "r"(num_draws - 1));
  }
  return number;
}

// Calls work(row) in every group for all rows, and for rows behind the last that fill up a round; all lanes of a warp
// call it together. In a round the groups take neighbouring rows where kInterleaved; else each takes the next of its own
// stretch of rows. A fetcher owns its first ticket and draws the next while it works on the last.
template <bool kInterleaved, typename Work>
__device__ __forceinline__ void for_fetched_rows(uint32_t num_rows, uint32_t* next_ticket, Work work) {
  __shared__ uint32_t numbers[2];
  const uint32_t num_tickets = (num_rows + kRowsPerRound * kRounds - 1) / (kRowsPerRound * kRounds);
  const uint32_t num_fetchers = gridDim.x * (kThreadsPerBlock / kThreadsPerFetcher);
  uint32_t ticket = (blockIdx.x * kThreadsPerBlock + threadIdx.x) / kThreadsPerFetcher;
  for (uint32_t turn = 0; ticket < num_tickets; turn ^= 1) {
    // Every ticket is followed by a draw, so there are as many draws as tickets. Where all are owned, nobody draws.
    const bool draws = num_tickets > num_fetchers;
    uint32_t number = draws ? draw(next_ticket, num_tickets) : 0;
    const uint32_t group = threadIdx.x % kThreadsPerFetcher / kThreadsPerVector;
    const uint32_t first_row = ticket * (kRowsPerRound * kRounds) + group * (kInterleaved ? 1 : kRounds);
#pragma unroll 1
    for (uint32_t i = 0; i < kRounds; ++i) work(first_row + i * (kInterleaved ? kRowsPerRound : 1));
    if (!draws) return;
    if constexpr (kRowsPerFetch > 0) {
      number = __shfl_sync(0xffffffffu, number, 0);
    } else {
      if (threadIdx.x == 0) numbers[turn] = number;
      __syncthreads();
      number = numbers[turn];
    }
    ticket = num_fetchers + number;
  }
}
