// Diagonals that hold an entry, stored whole and without columns: how they are found and filled, and what a product adds up of
// them.

// Diagonals up to which nobody looks for those that meet a warp's rows.
constexpr uint32_t kFewDiagonals = 64;

template <int kBytes>
struct SlotOf {
  using Type = typename UnsignedOf<kBytes>::Type;
};
struct alignas(16) WideSlot {
  uint64_t low, high;

  WideSlot() = default;
  __device__ __forceinline__ explicit WideSlot(uint64_t low, uint64_t high = 0) : low(low), high(high) {}
  __device__ __forceinline__ WideSlot operator~() const { return WideSlot(~low, ~high); }
  __device__ __forceinline__ bool operator==(int zero) const { return (low | high) == uint64_t(zero); }
  __device__ __forceinline__ bool operator!=(int zero) const { return !(*this == zero); }
};
__device__ __forceinline__ WideSlot __ldcs(const WideSlot* from) {
  const ulonglong2 words = __ldcs(reinterpret_cast<const ulonglong2*>(from));
  return WideSlot(words.x, words.y);
}
template <>
struct SlotOf<16> {
  using Type = WideSlot;
};

// How values that are stored as StoredT lie in slots. A slot is the bits of a value, inverted, or a byte that is not zero: one
// more than its place in a table, or a whole number as it is encoded. Memory full of zeros is fill, and a stored zero is not. The
// one NaN whose bits are all ones becomes another.
template <typename StoredT>
struct Slots {
  static constexpr int kBytes = sizeof(StoredT);
  static constexpr bool kIsByte = kBytes == 1;
  // Rows, a warp apart, whose slots a thread loads at once; such packs of a thread; diagonals whose loads are in flight
  // together.
  static constexpr int kPack = kBytes < 4 ? 4 / kBytes : 1;
  static constexpr int kPacks = kIsByte && sizeof(XT) > 4 ? 1 : 2;
  static constexpr int kSteps = kPacks == 1 || (kIsByte && kEncoding == 3) ? 4 : 3;
  static constexpr int kApart = 32 * kPack;
  static constexpr int kWarpRows = kApart * kPacks;

  using SlotT = typename SlotOf<kBytes>::Type;
  using PackT = typename SlotOf<kBytes * kPack>::Type;

  static __device__ __forceinline__ SlotT slot(StoredT value) {
    const SlotT bits = *reinterpret_cast<const SlotT*>(&value);
    if constexpr (kIsByte) return SlotT(bits + (kEncoding == 2));
    const SlotT slot = ~bits;
    return slot == 0 ? SlotT(1) : slot;
  }
  // The first entry of the table is that of fill.
  static __device__ __forceinline__ ValueT value(SlotT slot, const ValueT* table) {
    if constexpr (!kIsByte) slot = ~slot;
    return decode(*reinterpret_cast<const StoredT*>(&slot), table);
  }
  // The slot of this row of a pack.
  static __device__ __forceinline__ SlotT in(PackT pack, int row) {
    if constexpr (kPack == 1) {
      return pack;
    } else {
      return SlotT(pack >> 8 * kBytes * row);
    }
  }
  // Where a row's slot is on a diagonal.
  static __device__ __forceinline__ uint32_t place(uint32_t row) {
    return row / kApart * kApart + row % 32 * kPack + row / 32 % kPack;
  }
};
using GivenSlots = Slots<ValueT>;
using EncodedSlots = Slots<EncodedT>;

// Diagonals are this far apart: whole warps of packs.
__device__ __forceinline__ uint64_t diagonal_stride(uint32_t num_rows) {
  constexpr int kMost = GivenSlots::kApart > EncodedSlots::kApart ? GivenSlots::kApart : EncodedSlots::kApart;
  return (uint64_t(num_rows) + kMost - 1) / kMost * kMost;
}

// Every diagonal of A has a number, rising from the lower left corner, and a bit that says whether it holds an entry.
struct Diagonals {
  uint32_t num_rows;
  const uint32_t* bits;
  const uint32_t* ranks;  // of the first diagonal of each word among those that hold an entry

  __device__ __forceinline__ uint64_t number(uint32_t row, uint32_t col) const { return uint64_t(num_rows - 1 - row) + col; }
  __device__ __forceinline__ int64_t offset(uint64_t number) const { return int64_t(number) - int64_t(num_rows - 1); }
  __device__ __forceinline__ uint32_t rank(uint64_t number) const {
    const uint32_t below = __ldg(bits + number / 32) & ((1u << number % 32) - 1);
    return __ldg(ranks + number / 32) + __popc(below);
  }
};

// A thread a row: sets the bits, and counts the rows whose columns do not rise, which may hold a position twice.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_mark(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
              uint32_t* bits, uint64_t* num_disordered) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const Diagonals diagonals = {num_rows, bits, nullptr};
  const OffsetT begin = row_offsets[row], end = row_offsets[row + 1];
  bool rises = true;
  IndexT before = 0;
#pragma unroll 4
  for (OffsetT j = begin; j < end; ++j) {
    const IndexT col = __ldg(col_indices + j);
    rises = rises && (j == begin || col > before);
    before = col;
    const uint64_t number = diagonals.number(row, col);
    const uint32_t bit = 1u << number % 32;
    // Most bits are there already, and reading is cheaper.
    if ((*static_cast<volatile uint32_t*>(bits + number / 32) & bit) == 0) atomicOr(bits + number / 32, bit);
  }
  if (!rises) atomicAdd(num_disordered, uint64_t(1));
}

struct MarkedDiagonals {
  const uint32_t* bits;
  __device__ __forceinline__ uint32_t operator()(uint64_t word) const { return __popc(bits[word]); }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_ranks_sum_chunk(uint64_t length, const uint32_t* bits, uint32_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, MarkedDiagonals{bits});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_ranks_partials(uint32_t num_partials, uint64_t length, uint32_t* partials, uint32_t* ranks, uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, ranks, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_ranks_chunk(uint64_t length, const uint32_t* bits, const uint32_t* partials, uint32_t* ranks) {
  await_stream();
  scan_chunk(length, partials, ranks, MarkedDiagonals{bits});
}

// A thread a row: counts the entries of every position; more_layers <- the most on a diagonal, less one.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_layers(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                const uint32_t* __restrict__ bits, const uint32_t* __restrict__ ranks, uint32_t* position_counts,
                uint32_t* more_layers) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const Diagonals diagonals = {num_rows, bits, ranks};
  const uint64_t stride = diagonal_stride(num_rows);
  for (OffsetT j = row_offsets[row]; j < row_offsets[row + 1]; ++j) {
    const uint32_t rank = diagonals.rank(diagonals.number(row, col_indices[j]));
    const uint32_t earlier = position_counts[rank * stride + row]++;
    if (earlier > 0) atomicMax(more_layers + rank, earlier);
  }
}

struct LayersOf {
  const uint32_t* more_layers;
  __device__ __forceinline__ uint32_t operator()(uint64_t rank) const { return 1 + more_layers[rank]; }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_stored_sum_chunk(uint64_t length, const uint32_t* more_layers, uint32_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, LayersOf{more_layers});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_stored_partials(uint32_t num_partials, uint64_t length, uint32_t* partials, uint32_t* first_layers,
                            uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, first_layers, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_stored_chunk(uint64_t length, const uint32_t* more_layers, const uint32_t* partials,
                         uint32_t* first_layers) {
  await_stream();
  scan_chunk(length, partials, first_layers, LayersOf{more_layers});
}

// A thread a word of bits: how far each stored diagonal is above the main one.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_offsets(uint32_t num_rows, uint64_t num_words, const uint32_t* __restrict__ bits,
                 const uint32_t* __restrict__ ranks, const uint32_t* __restrict__ first_layers,
                 int64_t* __restrict__ offsets) {
  await_stream();
  const uint64_t word = blockIdx.x * uint64_t(kThreadsPerBlock) + threadIdx.x;
  if (word >= num_words) return;
  const Diagonals diagonals = {num_rows, bits, ranks};
  uint32_t rank = ranks[word];
  for (uint32_t rest = bits[word]; rest != 0; rest &= rest - 1, ++rank) {
    const int64_t offset = diagonals.offset(word * 32 + __ffs(rest) - 1);
    for (uint32_t layer = first_layers[rank]; layer < first_layers[rank + 1]; ++layer) offsets[layer] = offset;
  }
}

// A thread a row: its values, the last first, so that the counters of positions say in which layer each belongs.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_convert(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                 const ValueT* __restrict__ values, const uint32_t* __restrict__ bits,
                 const uint32_t* __restrict__ ranks, const uint32_t* __restrict__ first_layers,
                 uint32_t num_disordered, uint32_t* position_counts, uint32_t is_encoded, uint32_t num_distinct,
                 const uint64_t* __restrict__ table, GivenSlots::SlotT* __restrict__ slots,
                 EncodedSlots::SlotT* __restrict__ encoded_slots) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const Diagonals diagonals = {num_rows, bits, ranks};
  const uint64_t stride = diagonal_stride(num_rows);
  const OffsetT begin = __ldg(row_offsets + row);
#pragma unroll 4
  for (OffsetT j = __ldg(row_offsets + row + 1); j > begin; --j) {
    const uint32_t rank = diagonals.rank(diagonals.number(row, __ldg(col_indices + j - 1)));
    uint32_t layer = __ldg(first_layers + rank);
    if (num_disordered > 0) layer += --position_counts[rank * stride + row];
    const ValueT value = __ldg(values + j - 1);
    if (kIsEncoded && is_encoded != 0) {
      const EncodedT encoded = EncodingT::stored(value, num_distinct, table);
      encoded_slots[layer * stride + EncodedSlots::place(row)] = EncodedSlots::slot(encoded);
    } else {
      slots[layer * stride + GivenSlots::place(row)] = GivenSlots::slot(value);
    }
  }
}

// The first diagonal that is at least so far above the main one.
__device__ __forceinline__ uint32_t first_diagonal(uint32_t num_diagonals, const int64_t* __restrict__ offsets,
                                                   int64_t offset) {
  uint32_t low = 0, high = num_diagonals;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (__ldg(offsets + middle) < offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The rows of a warp, and of them those of a thread.
struct WarpRows {
  uint32_t num_rows, warp_row, lane;
  uint64_t num_cols;
  bool are_all;

  __device__ __forceinline__ uint32_t row(int number) const { return warp_row + lane + 32 * number; }
};

// A thread's p-th pack of slots on a diagonal. Behind the last row a pack has fill.
template <typename In>
__device__ __forceinline__ typename In::PackT load_pack(const WarpRows& rows, const typename In::SlotT* diagonal, int p) {
  const bool is_there = rows.are_all || rows.row(p * In::kPack) < rows.num_rows;
  const uint32_t place = rows.warp_row + rows.lane * In::kPack + p * In::kApart;
  return is_there ? __ldcs(reinterpret_cast<const typename In::PackT*>(diagonal + place)) : typename In::PackT(0);
}

// Adds kCount diagonals to the sums of a thread's rows.
template <typename In, int kCount, int kRows>
__device__ __forceinline__ void add_diagonals(const WarpRows& rows, const int64_t* __restrict__ offsets,
                                              const typename In::SlotT* __restrict__ slots, uint64_t stride,
                                              const ValueT* table, const XT* __restrict__ x, AccumT (&sums)[kRows]) {
  typename In::PackT loaded[kCount][In::kPacks];
  XT entries[kCount][kRows];
#pragma unroll
  for (int s = 0; s < kCount; ++s) {
#pragma unroll
    for (int p = 0; p < In::kPacks; ++p) loaded[s][p] = load_pack<In>(rows, slots + s * stride, p);
  }
  // Where all rows of a warp are there, and all of their columns, nothing is looked at one by one.
  const int64_t last_inside = int64_t(rows.num_cols) - In::kWarpRows;
  int64_t first_cols[kCount];
  bool are_inside = rows.are_all;
#pragma unroll
  for (int s = 0; s < kCount; ++s) {
    first_cols[s] = rows.warp_row + __ldg(offsets + s);
    are_inside = are_inside && first_cols[s] >= 0 && first_cols[s] <= last_inside;
  }
  if (are_inside) {
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) entries[s][r] = __ldg(x + (first_cols[s] + rows.lane) + 32 * r);
    }
  } else {
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int64_t col = first_cols[s] + rows.lane + 32 * r;
        const bool is_there = uint64_t(col) < rows.num_cols && rows.row(r) < rows.num_rows;
        entries[s][r] = is_there ? __ldg(x + col) : XT(0);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
      const typename In::SlotT slot = In::in(loaded[s][r / In::kPack], r % In::kPack);
      if (slot != 0) sums[r] = multiply_add(AccumT(In::value(slot, table)), AccumT(entries[s][r]), sums[r]);
    }
  }
}

// Adds the diagonals that are left, kCount at most.
template <typename In, int kCount, int kRows>
__device__ __forceinline__ void add_last(uint32_t count, const WarpRows& rows, const int64_t* __restrict__ offsets,
                                         const typename In::SlotT* __restrict__ slots, uint64_t stride,
                                         const ValueT* table, const XT* __restrict__ x, AccumT (&sums)[kRows]) {
  if constexpr (kCount > 0) {
    if (count == kCount) {
      add_diagonals<In, kCount>(rows, offsets, slots, stride, table, x, sums);
    } else {
      add_last<In, kCount - 1>(count, rows, offsets, slots, stride, table, x, sums);
    }
  }
}
