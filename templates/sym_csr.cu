// sym_csr: the product with a symmetric, skew-symmetric or Hermitian matrix from its lower triangle: a thread a row, slices of 32 rows.
//
// Formula:   y[i] <- alpha * (sum over j <= i of a[i][j] * x[j] + sum over k > i of mirror(a[k][i]) * x[k]) + beta * y[i], mirror(a) = a where A is symmetric, -a where it is skew-symmetric, conj(a) where it is Hermitian
// Paper:     none; slices as in Monakov, Lokhmotov and Avetisyan 2010 (Automatically tuning sparse matrix-vector multiplication for GPU architectures), without padding; every entry's second use is a load that a plan places, so no row waits for another
// Suits:     stencils, finite elements and bands larger than the L2 cache: what lies above the diagonal is read a second time while it is still in a cache
// Suffers:   columns spread at random (the second load is a sector of memory of its own); rows of very uneven length; matrices that fit in L2
// Bytes:     nnz * (value + 2) + (nnz - diagonal) * 4 + rows * (x + y + 2.5), up to a line a slice of padding, where no entry is 2^16 columns from the diagonal; else 2 and 4 more a nonzero; the plan keeps all but x and y of this, values too
// Guarantee: bit-reproducible; values are copied when a plan is made
// Launch:    one pass, a thread a row; a warp takes a row of more than 254 nonzeros in a triangle; no shared memory

// A slice is 32 rows, a lane each. Its nonzeros lie by their place in the row, then by row: what the lanes read together
// lies together, and rows that are out of nonzeros take no room. Long rows follow one by one. `lower` is a triangle's
// row, `upper` the column of it that the matrix has above the diagonal.
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kUnroll = 4;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/radix_sort.cuh"
#include "primitives/grid_scan_kernels.cuh"
#include "primitives/radix_sort_kernels.cuh"
#include "prelude/search.cuh"
#include "prelude/mirror.cuh"
#include "prelude/upper_triangle.cuh"
#endif

constexpr uint32_t kAllLanes = 0xffffffffu;
constexpr uint32_t kNone = 0xffffffffu;
// The length that stands for all that do not fit in a byte.
constexpr uint32_t kLong = 255;
// Distances and places in a slice below this fit in 16 bits.
constexpr uint32_t kNarrow = 1u << 16;

// Where a slice's nonzeros begin, and of its rows the fewest and the most that are read row beside row.
struct alignas(16) Slice {
  uint32_t lower_begin, upper_begin;
  uint16_t lower_min, lower_max, upper_min, upper_max;
};

// A nonzero above the diagonal: the row that it is stored in and its place there, by the place in the row's slice where
// the format is narrow.
template <bool kWide>
struct UpperEntry;
template <>
struct UpperEntry<false> {
  uint32_t word;
};
template <>
struct alignas(8) UpperEntry<true> {
  uint32_t row, place;
};

// ---- The plan ----

// Nonzeros of a row that are read beside those of other rows, none where it is long.
__device__ __forceinline__ uint32_t slot_count(uint32_t length) { return length < kLong ? length : 0; }

// The most of all lanes.
__device__ __forceinline__ uint32_t warp_max(uint32_t value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value = max(value, __shfl_xor_sync(kAllLanes, value, offset));
  return value;
}
__device__ __forceinline__ uint32_t warp_min(uint32_t value) { return ~warp_max(~value); }

// Slices begin where lines of memory do.
__device__ __forceinline__ uint32_t padded(uint32_t nonzeros) { return (nonzeros + 31) / 32 * 32; }

// A thread a row: lengths <- those of the row's two parts, a byte each; of slices all but where they begin, and the room
// that their parts take.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_csr_slices(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                    const uint32_t* __restrict__ col_offsets, Slice* __restrict__ slices,
                    uint16_t* __restrict__ lengths, uint32_t* __restrict__ lower_sizes,
                    uint32_t* __restrict__ upper_sizes) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const bool is_row = row < num_rows;
  const uint32_t lower = is_row ? uint32_t(row_offsets[row + 1] - row_offsets[row]) : 0;
  const uint32_t upper = is_row ? col_offsets[row + 1] - col_offsets[row] : 0;
  if (is_row) lengths[row] = uint16_t(min(lower, kLong) | min(upper, kLong) << 8);
  const uint32_t lower_slots = slot_count(lower), upper_slots = slot_count(upper);
  Slice slice = {};
  slice.lower_min = uint16_t(warp_min(lower_slots)), slice.lower_max = uint16_t(warp_max(lower_slots));
  slice.upper_min = uint16_t(warp_min(upper_slots)), slice.upper_max = uint16_t(warp_max(upper_slots));
  if (is_row && row % 32 == 0) {
    const uint32_t end = min(row + 32, num_rows);
    lower_sizes[row / 32] = padded(uint32_t(row_offsets[end] - row_offsets[row]));
    upper_sizes[row / 32] = padded(col_offsets[end] - col_offsets[row]);
    slices[row / 32] = slice;
  }
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_csr_begins(uint32_t num_slices, const uint32_t* __restrict__ lower_begins,
                    const uint32_t* __restrict__ upper_begins, Slice* __restrict__ slices) {
  await_stream();
  const uint32_t i = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (i >= num_slices) return;
  slices[i].lower_begin = lower_begins[i];
  slices[i].upper_begin = upper_begins[i];
}

// Calls place(i, p) for nonzero i of each lane's row: p is where it lies in the slice, which begins at `begin`.
template <typename Place>
__device__ __forceinline__ void for_each_place(uint32_t begin, uint32_t length, Place place) {
  const uint32_t below = (1u << (threadIdx.x & 31)) - 1, slots = slot_count(length), most = warp_max(slots);
  uint32_t next = begin;
  for (uint32_t i = 0; i < most; ++i) {
    const uint32_t filled = __ballot_sync(kAllLanes, i < slots);
    if (i < slots) place(i, next + __popc(filled & below));
    next += __popc(filled);
  }
  for (uint32_t longs = __ballot_sync(kAllLanes, length >= kLong); longs != 0; longs &= longs - 1) {
    const int source = __ffs(longs) - 1;
    const uint32_t of_source = __shfl_sync(kAllLanes, length, source);
    if ((threadIdx.x & 31) == source) {
      for (uint32_t i = 0; i < length; ++i) place(i, next + i);
    }
    next += of_source;
  }
}

// places[i] <- where nonzero i lies among the copied values; *wide becomes other than zero where 16 bits are too few.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_csr_place(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                   const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                   const Slice* __restrict__ slices, uint32_t* __restrict__ places, ValueT* __restrict__ copy,
                   uint64_t* wide) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row / 32 * 32 >= num_rows) return;
  const OffsetT first = row < num_rows ? row_offsets[row] : 0;
  const uint32_t length = row < num_rows ? uint32_t(row_offsets[row + 1] - first) : 0;
  const uint32_t begin = slices[row / 32].lower_begin;
  for_each_place(begin, length, [=](uint32_t i, uint32_t place) {
    places[first + i] = place;
    copy[place] = values[first + i];
    if (row - col_indices[first + i] >= kNarrow || place - begin >= kNarrow) *wide = 1;
  });
}

// The columns of the lower part: the distance to the diagonal where the format is narrow.
template <typename ColT>
__device__ __forceinline__ void fill_lower(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                           const IndexT* __restrict__ col_indices,
                                           const uint32_t* __restrict__ places, ColT* __restrict__ lower) {
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  for (OffsetT i = row_offsets[row]; i < row_offsets[row + 1]; ++i) {
    lower[places[i]] = ColT(sizeof(ColT) == 2 ? row - col_indices[i] : col_indices[i]);
  }
}

template <bool kWide>
__device__ __forceinline__ void fill_upper(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                           const uint32_t* __restrict__ col_offsets,
                                           const SortPair* __restrict__ pairs, const Slice* __restrict__ slices,
                                           const uint32_t* __restrict__ places, UpperEntry<kWide>* __restrict__ upper) {
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row / 32 * 32 >= num_rows) return;
  const uint32_t first = row < num_rows ? col_offsets[row] : 0;
  const uint32_t length = row < num_rows ? col_offsets[row + 1] - first : 0;
  for_each_place(slices[row / 32].upper_begin, length, [=](uint32_t i, uint32_t place) {
    const uint32_t nonzero = pairs[first + i].y;
    const uint32_t of = first_that(num_rows, [=](uint32_t r) { return row_offsets[r + 1] > nonzero; });
    if constexpr (kWide) {
      upper[place] = {of, places[nonzero]};
    } else {
      upper[place] = {(of - row) << 16 | (places[nonzero] - slices[of / 32].lower_begin)};
    }
  });
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_csr_fill_lower(uint32_t num_rows, const OffsetT* row_offsets, const IndexT* col_indices,
                        const uint32_t* places, uint16_t* lower) {
  await_stream();
  fill_lower(num_rows, row_offsets, col_indices, places, lower);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_csr_fill_lower_wide(uint32_t num_rows, const OffsetT* row_offsets, const IndexT* col_indices,
                             const uint32_t* places, uint32_t* lower) {
  await_stream();
  fill_lower(num_rows, row_offsets, col_indices, places, lower);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_csr_fill_upper(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* col_offsets,
                        const SortPair* pairs, const Slice* slices, const uint32_t* places, UpperEntry<false>* upper) {
  await_stream();
  fill_upper<false>(num_rows, row_offsets, col_offsets, pairs, slices, places, upper);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_csr_fill_upper_wide(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* col_offsets,
                             const SortPair* pairs, const Slice* slices, const uint32_t* places,
                             UpperEntry<true>* upper) {
  await_stream();
  fill_upper<true>(num_rows, row_offsets, col_offsets, pairs, slices, places, upper);
}

// ---- The product ----

template <bool kWide>
struct ColumnOf {
  using Type = uint16_t;
};
template <>
struct ColumnOf<true> {
  using Type = uint32_t;
};

__device__ __forceinline__ UpperEntry<false> load_upper(const UpperEntry<false>* from) { return {__ldcs(&from->word)}; }
__device__ __forceinline__ UpperEntry<true> load_upper(const UpperEntry<true>* from) {
  const uint2 words = __ldcs(reinterpret_cast<const uint2*>(from));
  return {words.x, words.y};
}

// What all threads know of the matrix.
template <bool kWide>
struct Triangle {
  const ValueT* values;
  const typename ColumnOf<kWide>::Type* lower;
  const UpperEntry<kWide>* upper;
  const Slice* slices;
  const XT* x;

  __device__ __forceinline__ uint32_t load_col(uint32_t place, uint32_t row) const {
    const uint32_t col = __ldcs(lower + place);
    return kWide ? col : row - col;
  }
  __device__ __forceinline__ AccumT value(uint32_t place) const { return AccumT(__ldg(values + place)); }
  __device__ __forceinline__ AccumT entry(uint32_t i) const { return AccumT(__ldg(x + i)); }
  // The product of an entry above the diagonal, but for its sign, with x; the row that has it is never row 0.
  __device__ __forceinline__ AccumT upper_product(UpperEntry<kWide> entry_above, uint32_t row, AccumT sum) const {
    uint32_t of, place;
    if constexpr (kWide) {
      of = entry_above.row, place = entry_above.place;
    } else {
      of = row + (entry_above.word >> 16);
      place = __ldg(&slices[of / 32].lower_begin) + (entry_above.word & (kNarrow - 1));
    }
    return multiply_add(mirrored(value(place)), entry(of), sum);
  }
};

// Calls add(places, full) with the places of a lane's next kUnroll nonzeros, until all lanes are through; kNone where there
// are fewer, in no lane where it is full. Returns where the slice's long rows begin.
template <typename Add>
__device__ __forceinline__ uint32_t for_slots(uint32_t begin, uint32_t slots, uint32_t min_slots, uint32_t max_slots,
                                              Add add) {
  const uint32_t lane = threadIdx.x & 31, below = (1u << lane) - 1;
  uint32_t next = begin, slot = 0, places[kUnroll];
  for (; slot + kUnroll <= min_slots; slot += kUnroll) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) places[u] = next + u * 32 + lane;
    next += kUnroll * 32;
    add(places, true);
  }
  for (; slot < max_slots; slot += kUnroll) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const bool has = slot + u < slots;
      const uint32_t filled = __ballot_sync(kAllLanes, has);
      places[u] = has ? next + __popc(filled & below) : kNone;
      next += __popc(filled);
    }
    add(places, false);
  }
  return next;
}

// The sum of a long row's product(place) over `length` places from `begin` on, by the warp.
template <typename Product>
__device__ __forceinline__ AccumT long_sum(uint32_t begin, uint32_t length, Product product) {
  AccumT sum = 0;
#pragma unroll 4
  for (uint32_t i = threadIdx.x & 31; i < length; i += 32) sum = product(begin + i, sum);
  return group_sum<32>(sum, kAllLanes);
}

template <bool kWide>
__device__ __forceinline__ void multiply(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                         const uint32_t* __restrict__ col_offsets,
                                         const uint16_t* __restrict__ lengths, const Triangle<kWide>& a,
                                         YT* __restrict__ y, AccumT alpha, BetaT beta) {
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x, first_row = row / 32 * 32;
  if (first_row >= num_rows) return;
  AccumT lower_sum = 0, upper_sum = 0;
  if (!skips_product(alpha)) {
    const Slice slice = a.slices[row / 32];
    const uint32_t both = row < num_rows ? __ldg(lengths + row) : 0;
    const uint32_t lower_length = both & 255, upper_length = both >> 8;
    const auto add_lower = [&](const uint32_t (&places)[kUnroll], bool full) {
      ValueT values[kUnroll];
      uint32_t cols[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (full || places[u] != kNone) values[u] = __ldg(a.values + places[u]), cols[u] = a.load_col(places[u], row);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (full || places[u] != kNone) lower_sum = multiply_add(AccumT(values[u]), a.entry(cols[u]), lower_sum);
      }
    };
    const auto add_upper = [&](const uint32_t (&places)[kUnroll], bool full) {
      UpperEntry<kWide> entries[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (full || places[u] != kNone) entries[u] = load_upper(a.upper + places[u]);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (full || places[u] != kNone) upper_sum = a.upper_product(entries[u], row, upper_sum);
      }
    };
    uint32_t next_lower = for_slots(slice.lower_begin, slot_count(lower_length), slice.lower_min, slice.lower_max,
                                    add_lower);
    uint32_t next_upper = for_slots(slice.upper_begin, slot_count(upper_length), slice.upper_min, slice.upper_max,
                                    add_upper);
    for (uint32_t longs = __ballot_sync(kAllLanes, lower_length == kLong); longs != 0; longs &= longs - 1) {
      const uint32_t source = __ffs(longs) - 1, of = first_row + source;
      const uint32_t length = uint32_t(__ldg(row_offsets + of + 1) - __ldg(row_offsets + of));
      const AccumT sum = long_sum(next_lower, length, [&](uint32_t place, AccumT before) {
        return multiply_add(a.value(place), a.entry(a.load_col(place, of)), before);
      });
      if (row == of) lower_sum = sum;
      next_lower += length;
    }
    for (uint32_t longs = __ballot_sync(kAllLanes, upper_length == kLong); longs != 0; longs &= longs - 1) {
      const uint32_t source = __ffs(longs) - 1, of = first_row + source;
      const uint32_t length = __ldg(col_offsets + of + 1) - __ldg(col_offsets + of);
      const AccumT sum = long_sum(next_upper, length, [&](uint32_t place, AccumT before) {
        return a.upper_product(load_upper(a.upper + place), of, before);
      });
      if (row == of) upper_sum = sum;
      next_upper += length;
    }
  }
  if (row < num_rows) store_scaled(y, row, both_halves(lower_sum, upper_sum), alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_csr(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const XT* __restrict__ x, YT* __restrict__ y,
             AlphaT alpha, BetaT beta, const uint32_t* __restrict__ col_offsets, const uint16_t* __restrict__ lengths,
             const Slice* __restrict__ slices, const ValueT* __restrict__ copy, const uint16_t* __restrict__ lower,
             const UpperEntry<false>* __restrict__ upper) {
  await_stream();
  multiply<false>(num_rows, row_offsets, col_offsets, lengths, {copy, lower, upper, slices, x}, y, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_sym_csr_wide(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const XT* __restrict__ x,
                  YT* __restrict__ y, AlphaT alpha, BetaT beta, const uint32_t* __restrict__ col_offsets,
                  const uint16_t* __restrict__ lengths, const Slice* __restrict__ slices,
                  const ValueT* __restrict__ copy, const uint32_t* __restrict__ lower,
                  const UpperEntry<true>* __restrict__ upper) {
  await_stream();
  multiply<true>(num_rows, row_offsets, col_offsets, lengths, {copy, lower, upper, slices, x}, y, alpha, beta);
}
