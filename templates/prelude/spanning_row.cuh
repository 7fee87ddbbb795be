// A row that lies in several tiles: every tile brings its piece of the sum, and the warp that brings the last piece adds
// all of them, always in the order of the tiles, and stores the row. No tile waits for another and no pass follows.

template <typename Part>
struct Complex;

// A piece as an integer that is never 0, so that 0 can say that nobody was here yet. Where no integer has a number to
// spare, pieces do not travel and are counted instead.
template <typename Sum>
struct PieceWord {
  using Type = uint32_t;
  static constexpr bool kTravels = false;
  static __device__ __forceinline__ Type of(Sum) { return 1; }
  static __device__ __forceinline__ Sum piece(Type) { return Sum(0); }
};
// NaNs become one.
template <>
struct PieceWord<float> {
  using Type = uint32_t;
  static constexpr bool kTravels = true;
  static __device__ __forceinline__ Type of(float piece) { return piece == piece ? ~__float_as_uint(piece) : 1u; }
  static __device__ __forceinline__ float piece(Type word) { return __uint_as_float(~word); }
};
template <>
struct PieceWord<double> {
  using Type = uint64_t;
  static constexpr bool kTravels = true;
  static __device__ __forceinline__ Type of(double piece) {
    return piece == piece ? ~uint64_t(__double_as_longlong(piece)) : 1ull;
  }
  static __device__ __forceinline__ double piece(Type word) { return __longlong_as_double(int64_t(~word)); }
};
template <>
struct PieceWord<uint32_t> {
  using Type = uint64_t;
  static constexpr bool kTravels = true;
  static __device__ __forceinline__ Type of(uint32_t piece) { return 1ull << 32 | piece; }
  static __device__ __forceinline__ uint32_t piece(Type word) { return uint32_t(word); }
};
template <>
struct PieceWord<bool> {
  using Type = uint32_t;
  static constexpr bool kTravels = true;
  static __device__ __forceinline__ Type of(bool piece) { return 2u | piece; }
  static __device__ __forceinline__ bool piece(Type word) { return word & 1u; }
};
// Of two floats both are NaN where nothing is to spare.
template <typename Part>
struct PieceWord<Complex<Part>> {
  using Type = uint64_t;
  static constexpr bool kTravels = sizeof(Part) == 4;
  static __device__ __forceinline__ Type of(Complex<Part> piece) {
    const Type word = ~(Type(__float_as_uint(piece.im)) << 32 | __float_as_uint(piece.re));
    return word == 0 ? 1ull : word;
  }
  static __device__ __forceinline__ Complex<Part> piece(Type word) {
    return {__uint_as_float(uint32_t(~word)), __uint_as_float(uint32_t(~word >> 32))};
  }
};
using PieceWordT = PieceWord<AccumT>::Type;

// One entry a tile: the piece of the row that is open at its end, the piece of the row that was open at its
// beginning, and where pieces of the row that is the first to leave the tile meet (zero between products).
struct SpanningRows {
  AccumT* tails;
  AccumT* heads;
  PieceWordT* meetings;
};

// Counts a piece that was written before. A fence would empty the first-level cache of the multiprocessor, and with it
// the x that other blocks reuse; a release does not.
__device__ __forceinline__ uint32_t arrive(uint32_t* counter) {
  uint32_t before;
  asm volatile("atom.release.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
  return before;
}
__device__ __forceinline__ uint64_t arrive(uint64_t* counter) {
  uint64_t before;
  asm volatile("atom.release.gpu.global.add.u64 %0, [%1], 1;" : "=l"(before) : "l"(counter) : "memory");
  return before;
}

// The tiles that bring a piece of a row that lies in tiles `first` to `last`: every one, but of kTogether tiles that are
// neighbours, belong together and lie within the row only the first, with the sum of all. The pieces before the last
// are put side by side, so that whoever reads them finds them without arithmetic.
template <uint32_t kTogether>
struct Pieces {
  uint32_t first, num_together;

  __device__ __forceinline__ Pieces(uint32_t first, uint32_t last) : first(first) {
    num_together = last / kTogether > first / kTogether ? last / kTogether - first / kTogether - 1 : 0;
  }
  __device__ __forceinline__ uint32_t place(uint32_t tile) const {
    const uint32_t before = tile / kTogether - first / kTogether;
    const uint32_t together_before = before > 0 ? min(before - 1, num_together) : 0;
    return tile - together_before * (kTogether - 1);
  }
};

// Called by a full warp for a row in tiles `first` to `last`, with the piece of `tile`, in every lane.
template <uint32_t kTogether = 1>
__device__ __forceinline__ void add_piece(const SpanningRows& rows, uint32_t row, uint32_t first, uint32_t last,
                                          uint32_t tile, AccumT piece, YT* y, AccumT alpha, BetaT beta) {
  const int lane = threadIdx.x & 31;
  PieceWordT* meeting = rows.meetings + first;
  if (PieceWord<AccumT>::kTravels && last - first == 1) {
    // The usual case: the piece travels in the atomic operation, and no fence throws entries of x out of L1.
    if (lane != 0) return;
    const PieceWordT other = atomicExch(meeting, PieceWord<AccumT>::of(piece));
    if (other == 0) return;
    *meeting = 0;
    const AccumT others = PieceWord<AccumT>::piece(other);
    store_scaled(y, row, tile == last ? reduce(others, piece) : reduce(piece, others), alpha, beta);
    return;
  }
  const Pieces<kTogether> pieces(first, last);
  const uint32_t num_tails = last - first - pieces.num_together * (kTogether - 1);
  PieceWordT before = 0;
  if (lane == 0) {
    *(tile == last ? rows.heads + tile : rows.tails + pieces.place(tile)) = piece;
    before = arrive(meeting);
  }
  before = __shfl_sync(0xffffffffu, before, 0);
  if (before != num_tails) return;
  // What lane 0 saw arrive, the others see behind the barrier.
  __threadfence();
  __syncwarp();
  AccumT sum = lane == 0 ? __ldcg(rows.heads + last) : kIdentity;
  // Loads are under way together: a giant row has thousands of pieces, and this warp is the last to work.
  constexpr uint32_t kAtOnce = 8;
#pragma unroll 1
  for (uint32_t t = lane; t < num_tails; t += 32 * kAtOnce) {
    AccumT tails[kAtOnce];
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      if (t + 32 * k < num_tails) tails[k] = __ldcg(rows.tails + first + t + 32 * k);
    }
#pragma unroll
    for (uint32_t k = 0; k < kAtOnce; ++k) {
      if (t + 32 * k < num_tails) sum = reduce(sum, tails[k]);
    }
  }
  sum = group_sum<32>(sum, 0xffffffffu);
  if (lane == 0) {
    *meeting = 0;
    store_scaled(y, row, sum, alpha, beta);
  }
}
