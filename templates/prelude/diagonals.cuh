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

// What is loaded of x at once: an entry, or two of 2 bytes.
template <bool kAreTwo>
struct EntriesOf {
  using Type = XT;
};
template <>
struct EntriesOf<true> {
  using Type = uint32_t;
};

// How values that are stored as StoredT lie in slots. A slot is the bits of a value, inverted, or a byte that is not zero: one
// more than its place in a table, or a whole number as it is encoded. Memory full of zeros is fill, and a stored zero is not. The
// one NaN whose bits are all ones becomes another.
template <typename StoredT, int kMostPacks>
struct Slots {
  static constexpr int kBytes = sizeof(StoredT);
  static constexpr bool kIsByte = kBytes == 1;
  // Rows whose slots a thread loads at once: a warp apart, or neighbours where their entries of x are one load as well. Such
  // packs of a thread; diagonals whose loads are in flight together.
  static constexpr int kPack = kBytes < 4 ? 4 / kBytes : 1;
  static constexpr bool kAreNeighbours = kBytes == 2 && sizeof(XT) == 2;
  static constexpr int kPacks = kIsByte && sizeof(XT) > 4 ? 1 : kAreNeighbours ? kMostPacks : 2;
  static constexpr int kSteps = kPacks == 4 ? 2 : kPacks == 1 || (kIsByte && kEncoding == 3) ? 4 : 3;
  static constexpr int kApart = 32 * kPack;
  static constexpr int kWarpRows = kApart * kPacks;
  static constexpr int kRows = kPack * kPacks;

  using SlotT = typename SlotOf<kBytes>::Type;
  using PackT = typename SlotOf<kBytes * kPack>::Type;
  // Entries of x that are loaded at once.
  static constexpr int kEntries = kAreNeighbours ? kPack : 1;
  using EntriesT = typename EntriesOf<kAreNeighbours>::Type;

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
    return kAreNeighbours ? row : row / kApart * kApart + row % 32 * kPack + row / 32 % kPack;
  }
  // The first of a thread's rows, and how far behind it another one is.
  static __device__ __forceinline__ uint32_t first_row(uint32_t lane) { return lane * kEntries; }
  static __device__ __forceinline__ constexpr uint32_t apart(int row) {
    return kAreNeighbours ? row / kPack * kApart + row % kPack : 32 * row;
  }
};

// Diagonals are this far apart: whole warps, so that every thread has its slots, of which those behind the last row are fill.
__device__ __forceinline__ uint64_t diagonal_stride(uint32_t num_rows) {
  constexpr uint32_t kMostRows = 256;
  static_assert(kMostRows % Slots<ValueT, 4>::kWarpRows == 0 && kMostRows % Slots<EncodedT, 4>::kWarpRows == 0);
  return (uint64_t(num_rows) + kMostRows - 1) / kMostRows * kMostRows;
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
spmv_diagonals_ranks_sum_chunk(uint64_t length, const uint32_t* bits, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, MarkedDiagonals{bits});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_ranks_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, uint32_t* ranks, uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, ranks, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_ranks_chunk(uint64_t length, const uint32_t* bits, const uint64_t* partials, uint32_t* ranks) {
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
spmv_diagonals_stored_sum_chunk(uint64_t length, const uint32_t* more_layers, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(length, partials, LayersOf{more_layers});
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_stored_partials(uint32_t num_partials, uint64_t length, uint64_t* partials, uint32_t* first_layers,
                            uint64_t* total) {
  await_stream();
  scan_partials(num_partials, length, partials, first_layers, total);
}
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_diagonals_stored_chunk(uint64_t length, const uint32_t* more_layers, const uint64_t* partials,
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
                 const uint64_t* __restrict__ table, Slots<ValueT, 1>::SlotT* __restrict__ slots,
                 Slots<EncodedT, 1>::SlotT* __restrict__ encoded_slots) {
  await_stream();
  using Given = Slots<ValueT, 1>;
  using Encoded = Slots<EncodedT, 1>;
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
      encoded_slots[layer * stride + Encoded::place(row)] = Encoded::slot(encoded);
    } else {
      slots[layer * stride + Given::place(row)] = Given::slot(value);
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
template <typename In>
struct WarpRows {
  uint32_t num_rows, warp_row, lane;
  uint32_t num_cols;
  // Columns at which a warp's first row may be, from kBeside on, so that all rows have one there, and one beside that.
  static constexpr uint32_t kBeside = In::kAreNeighbours ? 1 : 0;
  uint32_t num_inside;

  __device__ __forceinline__ WarpRows(uint32_t num_rows, uint32_t num_cols, uint32_t thread)
      : num_rows(num_rows), warp_row(thread / 32 * In::kWarpRows), lane(thread % 32), num_cols(num_cols) {
    constexpr uint32_t kLeast = In::kWarpRows + 2 * kBeside;
    num_inside = num_cols >= kLeast ? num_cols - kLeast + 1 : 0;
  }
  __device__ __forceinline__ bool are_all() const { return warp_row + In::kWarpRows <= num_rows; }
  __device__ __forceinline__ uint32_t row(int number) const { return warp_row + In::first_row(lane) + In::apart(number); }
};

// Where a thread is on a diagonal, and beside its first row in x. Addresses are counted from here: those of a diagonal's
// loads differ by what is known when the kernel is compiled.
template <typename In>
struct Place {
  const typename In::PackT* __restrict__ packs;
  uint64_t stride;  // of diagonals, in packs
  const XT* __restrict__ x;

  __device__ __forceinline__ Place(const WarpRows<In>& rows, const typename In::SlotT* slots, uint64_t stride, const XT* x)
      : packs(reinterpret_cast<const typename In::PackT*>(slots + rows.warp_row) + rows.lane),
        stride(stride / In::kPack),
        x(x + rows.warp_row + In::first_row(rows.lane)) {}
};

// The entries of x for a thread's rows: as many together as a thread loads at once.
template <typename In>
struct RowEntries {
  typename In::EntriesT loaded[In::kRows / In::kEntries];

  // All are there, and so are those beside them.
  __device__ __forceinline__ void load(const XT* from) {
    if constexpr (In::kAreNeighbours) {
      // Two entries are a word, or the inner halves of two: for all threads of a warp alike.
      const bool are_word = reinterpret_cast<uint64_t>(from) % 4 == 0;
      const uint32_t* words = reinterpret_cast<const uint32_t*>(are_word ? from : from - 1);
      if (are_word) {
#pragma unroll
        for (int p = 0; p < In::kPacks; ++p) loaded[p] = __ldg(words + 32 * p);
      } else {
#pragma unroll
        for (int p = 0; p < In::kPacks; ++p) loaded[p] = __funnelshift_r(__ldg(words + 32 * p), __ldg(words + 32 * p + 1), 16);
      }
    } else {
#pragma unroll
      for (int r = 0; r < In::kRows; ++r) set(r, __ldg(from + 32 * r));
    }
  }
  // Each is looked at, whether it is there: `from` is that of the thread's first row, in this column.
  __device__ __forceinline__ void load(const WarpRows<In>& rows, const XT* from, uint32_t col) {
#pragma unroll
    for (int r = 0; r < In::kRows; ++r) {
      set(r, col + In::apart(r) < rows.num_cols ? __ldg(from + In::apart(r)) : XT(0));
    }
  }
  __device__ __forceinline__ void set(int row, XT entry) {
    if constexpr (In::kAreNeighbours) {
      const uint32_t bits = *reinterpret_cast<const uint16_t*>(&entry);
      loaded[row / 2] = row % 2 == 0 ? bits : loaded[row / 2] | bits << 16;
    } else {
      loaded[row] = entry;
    }
  }
  __device__ __forceinline__ XT operator[](int row) const {
    if constexpr (In::kAreNeighbours) {
      const uint16_t bits = uint16_t(loaded[row / 2] >> 16 * (row % 2));
      return *reinterpret_cast<const XT*>(&bits);
    } else {
      return loaded[row];
    }
  }
};

// Adds kCount diagonals to the sums of a thread's rows. Rows and columns are fewer than 2^31, so columns before the first
// are behind the last where they have no sign, and what is as far above the main diagonal as it may be has 32 bits.
template <typename In, int kCount>
__device__ __forceinline__ void add_diagonals(const WarpRows<In>& rows, const int64_t* __restrict__ offsets,
                                              const Place<In>& place, const ValueT* table, AccumT (&sums)[In::kRows]) {
  typename In::PackT loaded[kCount][In::kPacks];
  RowEntries<In> entries[kCount];
#pragma unroll
  for (int s = 0; s < kCount; ++s) {
#pragma unroll
    for (int p = 0; p < In::kPacks; ++p) loaded[s][p] = __ldcs(place.packs + s * place.stride + 32 * p);
  }
  // Where all columns of a warp's rows are there, and those beside them, nothing is looked at one by one.
  int32_t above[kCount];
  bool are_inside = true;
#pragma unroll
  for (int s = 0; s < kCount; ++s) {
    above[s] = __ldg(reinterpret_cast<const int32_t*>(offsets + s));
    are_inside = are_inside && rows.warp_row + above[s] - rows.kBeside < rows.num_inside;
  }
  if (are_inside) {
#pragma unroll
    for (int s = 0; s < kCount; ++s) entries[s].load(place.x + above[s]);
  } else {
#pragma unroll
    for (int s = 0; s < kCount; ++s) entries[s].load(rows, place.x + above[s], rows.row(0) + above[s]);
  }
#pragma unroll
  for (int r = 0; r < In::kRows; ++r) {
#pragma unroll
    for (int s = 0; s < kCount; ++s) {
      const typename In::SlotT slot = In::in(loaded[s][r / In::kPack], r % In::kPack);
      if (slot != 0) sums[r] = multiply_add(AccumT(In::value(slot, table)), AccumT(entries[s][r]), sums[r]);
    }
  }
}

// Adds so many diagonals, kCount together.
template <typename In, int kCount>
__device__ __forceinline__ void add_each(uint32_t count, const WarpRows<In>& rows, const int64_t* __restrict__ offsets,
                                         Place<In> place, const ValueT* table, AccumT (&sums)[In::kRows]) {
  for (; count >= kCount; count -= kCount, offsets += kCount, place.packs += kCount * place.stride) {
    add_diagonals<In, kCount>(rows, offsets, place, table, sums);
  }
  if constexpr (kCount > 1) add_each<In, kCount - 1>(count, rows, offsets, place, table, sums);
}
