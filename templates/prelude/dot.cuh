// A sum of numbers that is exact until it is rounded once, whatever their order and their magnitudes: a number is an
// integer times a power of two, and integers add up to the same in every order. Each is added, shifted, to one of
// kDotBins bins of 64 bits, one for kDotWidth neighbouring powers; a double to two of them. A bin is spread over
// kDotLanes entries, and a hash of the row, the first of those that a warp adds up together, says which is added to:
// each has about as many terms as the others, also where rows are stored a stride apart or sorted by length, and room for
// nearly twice as many as 2^31 rows bring on average.
constexpr bool kDotIsWide = sizeof(AccumT) == 8;
constexpr int kDotFraction = kDotIsWide ? 52 : 23;
constexpr uint32_t kDotMaxExponent = kDotIsWide ? 2047 : 255;
// Bits of the integers that are added; a double's two have signs, so that neither is above 2^26.
constexpr int kDotPiece = kDotIsWide ? 27 : 24;
constexpr int64_t kDotMostOfPiece = int64_t(1) << (kDotIsWide ? kDotPiece - 1 : kDotPiece);
// Behind the bins: their sums, in two halves each; what of terms is not finite; blocks that have arrived.
constexpr int kDotSums = kDotBins * kDotLanes;
constexpr int kDotFlags = kDotSums + 2 * kDotBins;
constexpr int kDotArrivals = kDotFlags + 1;
static_assert(kDotLanes == 1024);
__device__ __forceinline__ uint32_t dot_lane(uint32_t row) { return row * 2654435769u >> 22; }
constexpr uint64_t kDotInfinity = 1, kDotMinusInfinity = 2, kDotNan = 4;

// Adds a term of this row. Threads of a warp that come here together add up what goes to one bin first: integers of the
// size that a warp adds up in one instruction, a lower part and an upper one. How many come together changes nothing.
__device__ __forceinline__ void add_to_dot(uint64_t* bins, uint32_t row, AccumT term) {
  uint64_t whole;
  if constexpr (kDotIsWide) {
    whole = uint64_t(__double_as_longlong(term));
  } else {
    whole = __float_as_uint(term);
  }
  const bool is_negative = whole >> (8 * sizeof(AccumT) - 1) != 0;
  const uint32_t exponent = uint32_t(whole >> kDotFraction) & kDotMaxExponent;
  whole &= (uint64_t(1) << kDotFraction) - 1;
  if (exponent == kDotMaxExponent) {
    atomicOr(bins + kDotFlags, whole != 0 ? kDotNan : is_negative ? kDotMinusInfinity : kDotInfinity);
    whole = 0;
  } else if (exponent != 0) {
    whole |= uint64_t(1) << kDotFraction;
  }
  uint32_t position = exponent != 0 ? exponent - 1 : 0;
#pragma unroll
  for (int done = 0; done <= kDotFraction; done += kDotPiece, position += kDotPiece) {
    int64_t piece = int64_t(whole & ((uint64_t(1) << kDotPiece) - 1));
    whole >>= kDotPiece;
    if (piece > kDotMostOfPiece) {
      piece -= int64_t(1) << kDotPiece;
      ++whole;
    }
    piece = (is_negative ? -piece : piece) * (int64_t(1) << position % kDotWidth);
    const uint32_t bin = position / kDotWidth;
    uint64_t* entry = bins + bin * kDotLanes + dot_lane(row);
#if __CUDA_ARCH__ >= 800
    constexpr int kLowerBits = 22;
    const uint32_t together = __activemask();
    for (uint32_t waiting = __ballot_sync(together, piece != 0); waiting != 0;) {
      const int first = __ffs(waiting) - 1;
      const uint32_t bin_of_first = __shfl_sync(together, bin, first);
      const bool is_same = piece != 0 && bin == bin_of_first;
      const int64_t own = is_same ? piece : 0;
      const uint32_t lower = __reduce_add_sync(together, uint32_t(own) & ((1u << kLowerBits) - 1));
      const int upper = __reduce_add_sync(together, int(own >> kLowerBits));
      if (threadIdx.x % 32 == first) {
        atomicAdd(entry, uint64_t((int64_t(upper) << kLowerBits) + int64_t(lower)));
      }
      waiting &= ~__ballot_sync(together, is_same);
    }
#else
    if (piece != 0) atomicAdd(entry, uint64_t(piece));
#endif
  }
}

// A block for each bin adds its entries up and leaves them 0. The block that comes last carries from bin to bin and
// rounds to nearest, ties to even.
extern "C" __global__ void __launch_bounds__(kDotThreads) spmv_dot(uint64_t* __restrict__ bins, double* __restrict__ dot) {
  await_stream();
  // The digits of the sum, of kDotWidth bits each: the lower halves of the bins, their upper halves 32 bits higher, and
  // what is carried beyond.
  constexpr int kHigher = 32 / kDotWidth;
  constexpr int kDigits = kDotBins + kHigher + 64 / kDotWidth;
  constexpr int64_t kDigitMask = (int64_t(1) << kDotWidth) - 1;
  __shared__ int64_t digits[kDigits];
  __shared__ uint64_t halves[2];
  __shared__ int first, last;
  __shared__ bool comes_last;
  if (threadIdx.x < 2) halves[threadIdx.x] = 0;
  if (threadIdx.x == 0) first = kDigits;
  if (threadIdx.x == 0) last = -1;
  __syncthreads();
  uint64_t low = 0, high = 0;
  constexpr int kEach = kDotLanes / kDotThreads;
  static_assert(kEach * kDotThreads == kDotLanes);
  uint64_t* own = bins + int(blockIdx.x) * kDotLanes + int(threadIdx.x);
  uint64_t entries[kEach];
#pragma unroll
  for (int i = 0; i < kEach; ++i) entries[i] = own[i * kDotThreads];
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (entries[i] != 0) own[i * kDotThreads] = 0;
    low += uint32_t(entries[i]);
    high += uint64_t(int64_t(entries[i]) >> 32);
  }
  for (int offset = 16; offset > 0; offset /= 2) {
    low += __shfl_down_sync(0xffffffffu, low, offset);
    high += __shfl_down_sync(0xffffffffu, high, offset);
  }
  if (threadIdx.x % 32 == 0) {
    atomicAdd(&halves[0], low);
    atomicAdd(&halves[1], high);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    bins[kDotSums + 2 * int(blockIdx.x)] = halves[0];
    bins[kDotSums + 2 * int(blockIdx.x) + 1] = halves[1];
    __threadfence();
    comes_last = atomicAdd(bins + kDotArrivals, uint64_t(1)) == kDotBins - 1;
  }
  __syncthreads();
  if (!comes_last) return;
  __threadfence();
  for (int i = int(threadIdx.x); i < kDigits; i += kDotThreads) {
    const volatile uint64_t* sums = bins + kDotSums;
    uint64_t digit = 0;
    if (i < kDotBins) digit += sums[2 * i];
    if (i >= kHigher && i - kHigher < kDotBins) digit += sums[2 * (i - kHigher) + 1];
    digits[i] = int64_t(digit);
    if (digit != 0) atomicMin(&first, i);
    if (digit != 0) atomicMax(&last, i);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;

  const uint64_t flags = bins[kDotFlags];
  bins[kDotFlags] = 0;
  bins[kDotArrivals] = 0;
  const int end = last + 64 / kDotWidth < kDigits ? last + 64 / kDotWidth : kDigits;
  int64_t carry = 0;
  for (int i = first; i < end; ++i) carry = (carry + digits[i]) >> kDotWidth;
  const bool is_negative = carry < 0;
  carry = 0;
  int top = -1;
  for (int i = first; i < end; ++i) {
    carry += is_negative ? -digits[i] : digits[i];
    digits[i] = carry & kDigitMask;
    carry >>= kDotWidth;
    if (digits[i] != 0) top = i;
  }
  uint64_t bits = 0;
  if (top >= 0) {
    // Bit 0 of the first digit is the smallest subnormal number of AccumT; what a double has below that bit 0 of floats.
    constexpr int kLowest = kDotIsWide ? 0 : 149 - 1074;
    const int highest = top * kDotWidth + 63 - __clzll(digits[top]);
    const int kept = highest - 52 > kLowest ? highest - 52 : kLowest;
    uint64_t whole = 0;
    for (int i = first; i <= top; ++i) {
      const int shift = i * kDotWidth - kept;
      if (shift > -kDotWidth) whole += shift >= 0 ? uint64_t(digits[i]) << shift : uint64_t(digits[i]) >> -shift;
    }
    if (kept > first * kDotWidth) {
      const int half = kept - 1;
      int64_t rest = digits[half / kDotWidth] & ((int64_t(1) << half % kDotWidth) - 1);
      for (int i = first; i < half / kDotWidth; ++i) rest |= digits[i];
      const bool reaches_half = (digits[half / kDotWidth] >> half % kDotWidth & 1) != 0;
      if (reaches_half && (rest != 0 || (whole & 1) != 0)) ++whole;
    }
    constexpr uint64_t kInfinite = uint64_t(2047) << 52;
    const uint64_t exponent = uint64_t(kept - kLowest);
    bits = exponent < 2046 ? (exponent << 52) + whole : kInfinite;
    if (bits > kInfinite) bits = kInfinite;
    if (is_negative) bits |= uint64_t(1) << 63;
  }
  double result = __longlong_as_double(int64_t(bits));
  if (flags != 0) {
    result = __longlong_as_double(int64_t(flags == kDotInfinity ? 0x7ff0000000000000ull
                                          : flags == kDotMinusInfinity ? 0xfff0000000000000ull
                                                                       : 0x7ff8000000000000ull));
  }
  *dot = result;
}
