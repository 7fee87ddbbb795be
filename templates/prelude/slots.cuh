// Layouts of slots: a slot holds an entry of the matrix, or fill, which names no column and has no part in a product.
constexpr IndexT kNoColumn = ~IndexT(0);

// The entry of x for a slot; fill touches none.
__device__ __forceinline__ XT slot_entry(const XT* __restrict__ x, IndexT col) {
  return col == kNoColumn ? XT(0) : __ldg(x + col);
}

// The sum with a slot's product; fill has none.
__device__ __forceinline__ AccumT add_slot(IndexT col, ValueT value, XT entry, AccumT sum) {
  const AccumT added = combine_reduce(AccumT(value), AccumT(entry), col, sum);
  return kZerosAddNothing || col != kNoColumn ? added : sum;
}

// A row's entries, and fill behind them, into `width` slots that lie `stride` apart. Neighbouring threads have
// neighbouring slots; lines of the matrix that they share stay in L1 between the steps.
__device__ __forceinline__ void fill_slots(OffsetT begin, uint32_t length, uint32_t width,
                                           const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                                           uint64_t stride, IndexT* __restrict__ slot_cols,
                                           ValueT* __restrict__ slot_values) {
#pragma unroll 4
  for (uint32_t k = 0; k < width; ++k) {
    slot_cols[k * stride] = k < length ? __ldg(col_indices + begin + k) : kNoColumn;
    slot_values[k * stride] = k < length ? __ldg(values + begin + k) : ValueT(0);
  }
}

// The longest row of the grid's share of the rows, into *longest.
__device__ __forceinline__ void find_longest_row(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                                 uint64_t* longest) {
  OffsetT length = 0;
  for (uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x; row < num_rows; row += gridDim.x * kThreadsPerBlock) {
    length = max(length, row_offsets[row + 1] - row_offsets[row]);
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) length = max(length, __shfl_xor_sync(0xffffffffu, length, offset));
  if (threadIdx.x % 32 == 0) atomicMax(longest, uint64_t(length));
}
