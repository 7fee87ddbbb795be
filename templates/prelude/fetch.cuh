// Rows that are handed out while the kernel runs. A fetcher draws tickets; a ticket is for some rounds, and in a round each
// group of kThreadsPerVector lanes of a warp computes a row. A fetcher is a warp that takes kRowsPerFetch rounds, or,
// where that is 0, a block that takes a round for each of its warps: then the warps of a multiprocessor stay close to
// each other in memory and the counter, which serves about one fetcher a nanosecond, keeps pace. Groups of few lanes are
// for short rows, where a block waits for its slowest warp more often than it must: it takes four rounds a warp, which
// its warps share out among themselves. Rows that are very long for a group are left to the whole block.

// Where sums or offsets are wide, the loads of a step would follow one another for want of registers if more threads were
// resident.
constexpr int kWideTypes = (sizeof(AccumT) >= 8) + (sizeof(OffsetT) == 8);
constexpr int kResidentBlocks = (kWideTypes == 0 ? 2048 : kWideTypes == 1 ? 1536 : 1280) / kThreadsPerBlock;
constexpr bool kFetchesByBlock = kRowsPerFetch == 0;
constexpr uint32_t kThreadsPerFetcher = kFetchesByBlock ? kThreadsPerBlock : 32;
constexpr uint32_t kWarpsPerFetcher = kThreadsPerFetcher / 32;
constexpr uint32_t kGroupsPerWarp = 32 / kThreadsPerVector;
constexpr uint32_t kRoundsPerWarp = !kFetchesByBlock ? kRowsPerFetch : kThreadsPerVector <= 4 ? 4 : 1;
constexpr uint32_t kRounds = kRoundsPerWarp * kWarpsPerFetcher;
constexpr uint32_t kRowsPerTicket = kRounds * kGroupsPerWarp;
constexpr uint32_t kNotDrawn = 0xffffffffu;
// Nonzeros of a row up to which a group computes it: four steps of a block.
constexpr OffsetT kLongestOfGroup = kFetchesByBlock ? 16 * kThreadsPerBlock : ~OffsetT(0);

// Draws one of so many numbers; one lane calls this. The counter begins anew after the last of them, and so is zero before
// and after a product. Nobody waits for the number before it is used: the compiler would make an atomicAdd wait for it at
// once.
__device__ __forceinline__ uint32_t draw(uint32_t* counter, uint32_t num_draws) {
  uint32_t number = 0;
  asm volatile("atom.global.inc.u32 %0, [%1], %2;" : "=r"(number) : "l"(counter), "r"(num_draws - 1));
  return number;
}

// What the warps of a block tell each other: the number that was drawn, and the rows that are left to the block.
struct Turn {
  uint32_t number, num_left;
};

// The product of all rows. In a round the groups take neighbouring rows where kInterleaved; else each takes the next of
// its own stretch of rows. A fetcher owns its first ticket and draws another in one of the last rounds: ahead of the round
// if its rows are short, so that nobody waits for the number; behind it if they are long, because a ticket that is drawn
// waits as long as its fetcher works.
template <bool kInterleaved>
__device__ __forceinline__ void multiply_fetched_rows(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                                      const IndexT* __restrict__ col_indices,
                                                      const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                      YT* __restrict__ y, AccumT alpha, BetaT beta,
                                                      uint32_t* next_ticket) {
  constexpr bool kSharesRounds = kFetchesByBlock && kRoundsPerWarp > 1;
  // What is kept between rounds leaves wide loads too few registers.
  constexpr bool kClears = kSharesRounds && sizeof(AccumT) == 8;
  // Two, because a warp may be in the next turn while another reads.
  __shared__ Turn turns[2];
  __shared__ uint32_t left_rows[kFetchesByBlock ? kRowsPerTicket : 1], next_round;
  const uint32_t num_tickets = (num_rows + kRowsPerTicket - 1) / kRowsPerTicket;
  const uint32_t num_fetchers = gridDim.x * (kThreadsPerBlock / kThreadsPerFetcher);
  // Every ticket is followed by a draw, so there are as many draws as tickets. Where all are owned, nobody draws.
  const bool draws = num_tickets > num_fetchers;
  const uint32_t group = threadIdx.x % 32 / kThreadsPerVector;
  uint32_t ticket = (blockIdx.x * kThreadsPerBlock + threadIdx.x) / kThreadsPerFetcher;
  if constexpr (kFetchesByBlock) {
    if (threadIdx.x == 0) {
      turns[0] = turns[1] = {0, 0};
      next_round = kWarpsPerFetcher;
    }
    __syncthreads();
  }
  for (uint32_t turn = 0; ticket < num_tickets; ++turn) {
    uint32_t number = kNotDrawn;
    uint32_t round = threadIdx.x % kThreadsPerFetcher / 32;
#pragma unroll 1
    do {
      const uint32_t in_ticket = kInterleaved ? round * kGroupsPerWarp + group : group * kRoundsPerWarp + round;
      uint32_t row = ticket * kRowsPerTicket + in_ticket;
      const OffsetT begin = row < num_rows ? __ldg(row_offsets + row) : 0;
      const OffsetT next = row < num_rows ? __ldg(row_offsets + row + 1) : 0;
      OffsetT end = skips_product(alpha) ? begin : next;
      const bool draws_now = draws && round == kRounds - kWarpsPerFetcher && threadIdx.x % 32 == 0;
      const bool is_short = __all_sync(0xffffffffu, end - begin <= kThreadsPerVector * kUnroll);
      if (draws_now && is_short) number = draw(next_ticket, num_tickets);
      if (kFetchesByBlock && end - begin > kLongestOfGroup) {
        if (threadIdx.x % kThreadsPerVector == 0) left_rows[atomicAdd(&turns[turn % 2].num_left, 1u)] = row;
        row = num_rows;
        end = begin;
      }
      const AccumT sum = group_row_product<kThreadsPerVector, kUnroll, kAligned, kClears>(begin, end, col_indices,
                                                                                          values, x, 0xffffffffu);
      if (row < num_rows && threadIdx.x % kThreadsPerVector == 0) store_scaled(y, row, sum, alpha, beta);
      if (draws_now && number == kNotDrawn) number = draw(next_ticket, num_tickets);
      if (kFetchesByBlock && draws_now) turns[turn % 2].number = number;
      if constexpr (kSharesRounds) {
        // Each warp counts once in vain, so a ticket counts kRounds in all.
        if (threadIdx.x % 32 == 0) round = atomicAdd(&next_round, 1u) - turn * kRounds;
        round = __shfl_sync(0xffffffffu, round, 0);
      } else {
        round += kWarpsPerFetcher;
      }
    } while (kRoundsPerWarp > 1 && round < kRounds);
    if constexpr (kFetchesByBlock) {
      __syncthreads();
      const Turn found = turns[turn % 2];
      number = found.number;
      for (uint32_t i = 0; i < found.num_left; ++i) {
        const uint32_t row = left_rows[i];
        const AccumT share = row_share<kThreadsPerBlock, 4, false, kClears>(threadIdx.x, __ldg(row_offsets + row),
                                                                   __ldg(row_offsets + row + 1), col_indices, values, x);
        const AccumT sum = block_sum(share);
        if (threadIdx.x == 0) store_scaled(y, row, sum, alpha, beta);
        __syncthreads();
      }
      if (found.num_left > 0 && threadIdx.x == 0) turns[turn % 2].num_left = 0;
    } else {
      number = __shfl_sync(0xffffffffu, number, 0);
    }
    if (!draws) return;
    ticket = num_fetchers + number;
  }
}
