// Rows that are handed out while the kernel runs. A fetcher draws tickets; a ticket is for some rounds, and in a round each
// group of kThreadsPerVector lanes of a warp computes a row. A fetcher is a warp that takes kRowsPerFetch rounds, or,
// where that is 0, a block that takes a round for each of its warps: then the warps of a multiprocessor stay close to
// each other in memory and the counter, which serves about one fetcher a nanosecond, keeps pace. Where blocks do not stay,
// every fetcher has one ticket, its own, and the counter is left alone. Groups of few lanes are
// for short rows, where a block waits for its slowest warp more often than it must: it takes four rounds a warp, which
// its warps share out among themselves, and one near the end, so that all blocks end together. Rows that are very long for
// a group are left to the whole block.

// Where sums or offsets are wide, the loads of a step would follow one another for want of registers if more threads were
// resident.
constexpr int kWideTypes = (sizeof(AccumT) >= 8) + (sizeof(OffsetT) == 8);
constexpr int kResidentBlocks = (kWideTypes == 0 ? 2048 : kWideTypes == 1 ? 1536 : 1280) / kThreadsPerBlock;
constexpr bool kFetchesByBlock = kRowsPerFetch == 0;
constexpr uint32_t kThreadsPerFetcher = kFetchesByBlock ? kThreadsPerBlock : 32;
constexpr uint32_t kWarpsPerFetcher = kThreadsPerFetcher / 32;
constexpr uint32_t kGroupsPerWarp = 32 / kThreadsPerVector;
constexpr uint32_t kRoundsPerWarp = !kFetchesByBlock ? kRowsPerFetch : kThreadsPerVector <= 4 ? 4 : 1;
constexpr bool kSharesRounds = kFetchesByBlock && kRoundsPerWarp > 1;
constexpr uint32_t kRounds = kRoundsPerWarp * kWarpsPerFetcher;
constexpr uint32_t kRowsPerTicket = kRounds * kGroupsPerWarp;
constexpr uint32_t kNotDrawn = 0xffffffffu;
// Nonzeros of a row up to which a group computes it: four steps of a block.
constexpr OffsetT kLongestOfGroup = kFetchesByBlock ? 16 * kThreadsPerBlock : ~OffsetT(0);
// Nonzeros up to which a row is short enough for a ticket to wait that was drawn ahead of it: four steps of a group.
constexpr OffsetT kLongestToDrawAhead = 4 * kThreadsPerVector * kUnroll;

// Draws one of so many numbers; one lane calls this. The counter begins anew after the last of them, and so is zero before
// and after a product. Nobody waits for the number before it is used: the compiler would make an atomicAdd wait for it at
// once.
__device__ __forceinline__ uint32_t draw(uint32_t* counter, uint32_t num_draws) {
  uint32_t number = 0;
  asm volatile("atom.global.inc.u32 %0, [%1], %2;" : "=r"(number) : "l"(counter), "r"(num_draws - 1));
  return number;
}

// What a ticket is for, in order of the rows. Where rounds are shared, the last tickets are for a round a warp.
struct Tickets {
  uint32_t num_large, num;
  __device__ __forceinline__ Tickets(uint32_t num_rows, uint32_t num_fetchers) {
    num_large = num = (num_rows + kRowsPerTicket - 1) / kRowsPerTicket;
    if constexpr (kSharesRounds) {
      constexpr uint32_t kRowsPerSmall = kRowsPerTicket / kRoundsPerWarp;
      num_large = num_rows / kRowsPerTicket > 2 * num_fetchers ? num_rows / kRowsPerTicket - 2 * num_fetchers : 0;
      num = num_large + (num_rows - num_large * kRowsPerTicket + kRowsPerSmall - 1) / kRowsPerSmall;
    }
  }
  __device__ __forceinline__ bool is_large(uint32_t ticket) const { return !kSharesRounds || ticket < num_large; }
  __device__ __forceinline__ uint32_t rounds(uint32_t ticket) const {
    return is_large(ticket) ? kRounds : kRounds / kRoundsPerWarp;
  }
  __device__ __forceinline__ uint32_t first_row(uint32_t ticket) const {
    if (is_large(ticket)) return ticket * kRowsPerTicket;
    return (ticket + num_large * (kRoundsPerWarp - 1)) * (kRowsPerTicket / kRoundsPerWarp);
  }
};

// What the warps of a block tell each other of a turn: what its ticket is for, the rounds of all turns before, and how many
// rows are left to the block.
struct Turn {
  uint32_t first_row, rounds, rounds_before, num_left;
};

// Sends the row offsets of a turn to shared memory, and with them where its last row ends.
__device__ __forceinline__ void send_offsets(OffsetT* to, uint32_t first_row, uint32_t rounds, uint32_t num_rows,
                                             const OffsetT* __restrict__ row_offsets) {
  const uint32_t last = min(rounds * kGroupsPerWarp, num_rows - first_row);
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i <= last; i += kThreadsPerBlock) {
    copy_async<sizeof(OffsetT)>(to + i, row_offsets + first_row + i);
    if (kRowsPerTicket < kThreadsPerBlock) break;
  }
  end_copies();
}

// The product of a row by all of the block.
__device__ __forceinline__ void multiply_row_of_block(uint32_t row, OffsetT begin, OffsetT end,
                                                      const IndexT* __restrict__ col_indices,
                                                      const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                      YT* __restrict__ y, AccumT alpha, BetaT beta) {
  const AccumT share =
      row_share<kThreadsPerBlock, 4, kAligned, kSharesRounds>(threadIdx.x, begin, end, col_indices, values, x);
  const AccumT sum = block_sum(share);
  if (threadIdx.x == 0) store_scaled(y, row, sum, alpha, beta);
  __syncthreads();
}

// The product of all rows by blocks. A block owns its first two tickets and draws, in one of the last rounds of a turn, the
// next but one: so it knows the next, whose row offsets come while it computes the rows of this one. The draw is ahead of
// the round if its rows are short, so that nobody waits for the number; behind it if they are long, because a ticket that
// is drawn waits as long as its block works.
__device__ __forceinline__ void multiply_rows_of_blocks(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                                        const IndexT* __restrict__ col_indices,
                                                        const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                        YT* __restrict__ y, AccumT alpha, BetaT beta,
                                                        uint32_t* next_ticket) {
  // Four, because a turn's is written two turns ahead, while some warps may still read that of the turn before.
  __shared__ Turn turns[4];
  __shared__ OffsetT offsets[2][kRowsPerTicket + 1];
  __shared__ uint32_t left_rows[kRowsPerTicket], next_round;
  const Tickets tickets(num_rows, gridDim.x);
  const uint32_t first_row = blockIdx.x < tickets.num ? tickets.first_row(blockIdx.x) : num_rows;
  if (first_row < num_rows) send_offsets(offsets[0], first_row, tickets.rounds(blockIdx.x), num_rows, row_offsets);
  if (threadIdx.x == 0) {
    const uint32_t second = gridDim.x + blockIdx.x, rounds = tickets.rounds(blockIdx.x);
    turns[0] = {first_row, rounds, 0, 0};
    turns[1] = {second < tickets.num ? tickets.first_row(second) : num_rows, tickets.rounds(second), rounds, 0};
    turns[2].first_row = num_rows;
    next_round = kWarpsPerFetcher;
  }
  await_copies<0>();
  __syncthreads();
  for (uint32_t turn = 0; turns[turn % 4].first_row < num_rows; ++turn) {
    const Turn& now = turns[turn % 4];
    const Turn& following = turns[(turn + 1) % 4];
    if (following.first_row < num_rows) {
      send_offsets(offsets[(turn + 1) % 2], following.first_row, following.rounds, num_rows, row_offsets);
    }
    uint32_t round = threadIdx.x / 32;
#pragma unroll 1
    do {
      const uint32_t in_turn = round * kGroupsPerWarp + threadIdx.x % 32 / kThreadsPerVector;
      const uint32_t row = now.first_row + in_turn;
      const OffsetT begin = row < num_rows ? offsets[turn % 2][in_turn] : 0;
      const OffsetT next = row < num_rows ? offsets[turn % 2][in_turn + 1] : 0;
      OffsetT end = skips_product(alpha) ? begin : next;
      // Every ticket is followed by a draw, so there are as many draws as tickets. Where all are owned, nobody draws.
      const bool draws = tickets.num > 2 * gridDim.x && round == (kSharesRounds ? now.rounds : kRounds) - kWarpsPerFetcher &&
                         threadIdx.x % 32 == 0;
      const bool is_short = __all_sync(0xffffffffu, end - begin <= kLongestToDrawAhead);
      uint32_t number = kNotDrawn;
      if (draws && is_short) number = draw(next_ticket, tickets.num);
      const bool stores = row < num_rows && threadIdx.x % kThreadsPerVector == 0 && end - begin <= kLongestOfGroup;
      if (end - begin > kLongestOfGroup) {
        if (threadIdx.x % kThreadsPerVector == 0) left_rows[atomicAdd(&turns[turn % 4].num_left, 1u)] = row;
        end = begin;
      }
      const AccumT sum = group_row_product<kThreadsPerVector, kUnroll, kAligned, kSharesRounds>(begin, end, col_indices,
                                                                                                values, x, 0xffffffffu);
      if (stores) store_scaled(y, row, sum, alpha, beta);
      if (draws) {
        if (number == kNotDrawn) number = draw(next_ticket, tickets.num);
        const uint32_t ticket = 2 * gridDim.x + number;
        turns[(turn + 2) % 4] = {ticket < tickets.num ? tickets.first_row(ticket) : num_rows, tickets.rounds(ticket),
                                 following.rounds_before + following.rounds, 0};
      }
      if constexpr (kSharesRounds) {
        // Each warp counts once in vain, so a turn counts as many as it has.
        if (threadIdx.x % 32 == 0) round = atomicAdd(&next_round, 1u) - now.rounds_before;
        round = __shfl_sync(0xffffffffu, round, 0);
      }
    } while (kSharesRounds && round < now.rounds);
    await_copies<0>();
    __syncthreads();
    for (uint32_t i = 0; i < now.num_left; ++i) {
      const uint32_t row = left_rows[i];
      multiply_row_of_block(row, __ldg(row_offsets + row), __ldg(row_offsets + row + 1), col_indices, values, x, y, alpha,
                            beta);
    }
  }
}

// The product of all rows by warps. In a round the groups take neighbouring rows where kInterleaved; else each takes the
// next of its own stretch of rows. A warp owns its first ticket and draws another in its last round, when blocks do.
template <bool kInterleaved>
__device__ __forceinline__ void multiply_rows_of_warps(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                                       const IndexT* __restrict__ col_indices,
                                                       const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                       YT* __restrict__ y, AccumT alpha, BetaT beta,
                                                       uint32_t* next_ticket) {
  const uint32_t num_fetchers = gridDim.x * (kThreadsPerBlock / 32);
  const Tickets tickets(num_rows, num_fetchers);
  const bool draws = kResident && tickets.num > num_fetchers;
  const uint32_t group = threadIdx.x % 32 / kThreadsPerVector;
  uint32_t ticket = blockIdx.x * (kThreadsPerBlock / 32) + threadIdx.x / 32;
  while (ticket < tickets.num) {
    uint32_t number = kNotDrawn;
#pragma unroll 1
    for (uint32_t round = 0; round < kRounds; ++round) {
      const uint32_t in_ticket = kInterleaved ? round * kGroupsPerWarp + group : group * kRounds + round;
      const uint32_t row = ticket * kRowsPerTicket + in_ticket;
      const OffsetT begin = row < num_rows ? __ldg(row_offsets + row) : 0;
      const OffsetT next = row < num_rows ? __ldg(row_offsets + row + 1) : 0;
      const OffsetT end = skips_product(alpha) ? begin : next;
      const bool draws_now = draws && round == kRounds - 1 && threadIdx.x % 32 == 0;
      const bool is_short = __all_sync(0xffffffffu, end - begin <= kLongestToDrawAhead);
      if (draws_now && is_short) number = draw(next_ticket, tickets.num);
      const AccumT sum = group_row_product<kThreadsPerVector, kUnroll, kAligned>(begin, end, col_indices, values, x,
                                                                                 0xffffffffu);
      if (row < num_rows && threadIdx.x % kThreadsPerVector == 0) store_scaled(y, row, sum, alpha, beta);
      if (draws_now && number == kNotDrawn) number = draw(next_ticket, tickets.num);
    }
    if (!draws) return;
    ticket = num_fetchers + __shfl_sync(0xffffffffu, number, 0);
  }
}

// The product of a block's rows, a round for each of its warps: the hardware hands out blocks as a counter does tickets. Warps
// wait for each other only where the rows have so many nonzeros together that one may be left to the block.
__device__ __forceinline__ void multiply_rows_of_turn(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                                      const IndexT* __restrict__ col_indices,
                                                      const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                      YT* __restrict__ y, AccumT alpha, BetaT beta) {
  constexpr uint32_t kRows = kThreadsPerBlock / kThreadsPerVector;
  const uint32_t first_row = blockIdx.x * kRows, end_row = min(first_row + kRows, num_rows);
  const uint32_t row = first_row + threadIdx.x / kThreadsPerVector;
  const OffsetT nnz = __ldg(row_offsets + end_row) - __ldg(row_offsets + first_row);
  const OffsetT begin = row < num_rows ? __ldg(row_offsets + row) : 0;
  const OffsetT ends_at = row < num_rows ? __ldg(row_offsets + row + 1) : 0;
  const OffsetT end = skips_product(alpha) ? begin : ends_at;
  const bool is_long = end - begin > kLongestOfGroup;
  const bool stores = row < num_rows && threadIdx.x % kThreadsPerVector == 0 && !is_long;
  const AccumT sum = group_row_product<kThreadsPerVector, kUnroll, kAligned>(
      begin, is_long ? begin : end, col_indices, values, x, 0xffffffffu);
  if (stores) store_scaled(y, row, sum, alpha, beta);
  if (nnz <= kLongestOfGroup || !__syncthreads_or(is_long)) return;
#pragma unroll 1
  for (uint32_t i = first_row; i < end_row; ++i) {
    const OffsetT long_begin = __ldg(row_offsets + i), long_end = __ldg(row_offsets + i + 1);
    if (long_end - long_begin <= kLongestOfGroup) continue;
    multiply_row_of_block(i, long_begin, long_end, col_indices, values, x, y, alpha, beta);
  }
}

template <bool kInterleaved>
__device__ __forceinline__ void multiply_fetched_rows(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                                      const IndexT* __restrict__ col_indices,
                                                      const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                      YT* __restrict__ y, AlphaT alpha, BetaT beta,
                                                      uint32_t* next_ticket) {
  if constexpr (kRowsPerFetch == 1 && !kResident) {
    // A warp has one round: there is no row to fetch.
    multiply_rows_by_groups<kThreadsPerVector, kUnroll, kAligned>(num_rows, row_offsets, col_indices, values, x, y, alpha,
                                                                  beta);
  } else if constexpr (kFetchesByBlock && !kResident) {
    multiply_rows_of_turn(num_rows, row_offsets, col_indices, values, x, y, alpha, beta);
  } else if constexpr (kFetchesByBlock) {
    multiply_rows_of_blocks(num_rows, row_offsets, col_indices, values, x, y, alpha, beta, next_ticket);
  } else {
    multiply_rows_of_warps<kInterleaved>(num_rows, row_offsets, col_indices, values, x, y, alpha, beta, next_ticket);
  }
}
