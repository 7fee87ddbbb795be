// A group: kWidth neighbouring lanes of a warp, kWidth a power of two, that work on one row.

// The lanes of the calling thread's group. Where shuffles name exactly these, groups of a warp may diverge. Where they name all
// of the warp, its groups go on together behind a row: what follows, stores of neighbouring rows too, is done once for all
// of them and not once a group.
template <int kWidth>
__device__ __forceinline__ uint32_t group_mask() {
  if constexpr (kWidth == 32) return 0xffffffffu;
  return ((1u << (kWidth & 31)) - 1u) << (threadIdx.x & 31 & ~(kWidth - 1));
}

// The sum over the group, the same bits in every lane: reducing is commutative and the tree is fixed.
template <int kWidth, typename T>
__device__ __forceinline__ T group_sum(T value, uint32_t mask) {
#pragma unroll
  for (int offset = kWidth / 2; offset > 0; offset /= 2) value = reduce(value, __shfl_xor_sync(mask, value, offset, kWidth));
  return value;
}

// Some bits of a value that was loaded.
template <typename T>
__device__ __forceinline__ uint32_t bits_of(const T& value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof(T) < 4 ? sizeof(T) : 4);
  return bits;
}

// x, but not before the values have come that these bits are of: blockIdx.z is 0, which the compiler does not know. Where
// registers are few it would ask for the values behind the entries of x, and these wait for the columns.
__device__ __forceinline__ const XT* x_behind(uint32_t bits, const XT* __restrict__ x) {
  return reinterpret_cast<const XT*>(reinterpret_cast<uint64_t>(x) | (bits & blockIdx.z));
}

// What a thread adds up of a row that kWidth threads share, of which it is the `lane`-th. Guarded, not peeled: the loads
// of kUnroll terms are in flight together, in a row's last step too. The terms of a step are added up before they are
// added to the sum: one sum takes fewer registers than a chain for every load, so more loads are under way. kAligned
// starts at a multiple of as many entries as lanes of a warp share the row, so that what they load of a step touches no
// line twice. Where kOrders, values are asked for with the columns, however few the registers are; where these suffice,
// the compiler does better unasked.
template <int kWidth, int kUnroll, bool kAligned, bool kOrders = false>
__device__ __forceinline__ AccumT row_share(uint32_t lane, OffsetT begin, OffsetT end,
                                            const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                                            const XT* __restrict__ x) {
  constexpr int kStep = kWidth * kUnroll;
  const OffsetT first = (kAligned ? begin & ~OffsetT((kWidth < 32 ? kWidth : 32) - 1) : begin) + lane;
  bool is_before = kAligned && first < begin;
  col_indices += first;
  values += first;
  AccumT sum = kIdentity;
#pragma unroll 1
  for (OffsetT left = first < end ? end - first : 0; left > 0; left = left > kStep ? left - kStep : 0) {
    bool inside[kUnroll];
    IndexT cols[kUnroll];
    ValueT factors[kUnroll];
    XT entries[kUnroll];
    if constexpr (kOrders) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) factors[u] = ValueT(0);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      inside[u] = left > OffsetT(u * kWidth) && (u > 0 || !is_before);
      if (inside[u]) cols[u] = __ldcs(col_indices + u * kWidth);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (inside[u]) factors[u] = __ldcs(values + u * kWidth);
    }
    uint32_t bits = 0;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (kOrders) bits |= bits_of(factors[u]);
    }
    const XT* const entries_of = kOrders ? x_behind(bits, x) : x;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (inside[u]) entries[u] = __ldg(entries_of + cols[u]);
    }
    AccumT step = kIdentity;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (inside[u]) step = combine_reduce(AccumT(factors[u]), AccumT(entries[u]), cols[u], step);
    }
    sum = reduce(sum, step);
    is_before = false;
    col_indices += kStep;
    values += kStep;
  }
  return sum;
}

// The product of one row with x, summed by a group; every lane of the group returns the sum.
template <int kWidth, int kUnroll, bool kAligned, bool kOrders = false>
__device__ __forceinline__ AccumT group_row_product(OffsetT begin, OffsetT end, const IndexT* __restrict__ col_indices,
                                                    const ValueT* __restrict__ values, const XT* __restrict__ x,
                                                    uint32_t mask) {
  const uint32_t lane = threadIdx.x & (kWidth - 1);
  return group_sum<kWidth>(
      row_share<kWidth, kUnroll, kAligned, kOrders>(lane, begin, end, col_indices, values, x), mask);
}
