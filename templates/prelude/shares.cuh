// Equal shares of nonzeros for blocks, and the rows in which they begin (Hola's AssignRowsGlobal).

constexpr int kNnzPerBlock = kThreadsPerBlock * kNnzPerThread;
constexpr uint32_t kAllLanes = 0xffffffffu;

// What a block knows of its share.
struct Share {
  OffsetT begin;        // its first nonzero
  int nnz;              // how many it has
  uint32_t first_row;   // the row of the first
  uint32_t next_row;    // the row of the next block's first, or the number of rows

  // The part of a row that lies in the share, from the share's begin; empty for empty rows.
  __device__ __forceinline__ int from(OffsetT row_begin) const {
    return row_begin > begin ? int(row_begin - begin) : 0;
  }
  __device__ __forceinline__ int to(OffsetT row_end) const {
    return row_end - begin < OffsetT(nnz) ? int(row_end - begin) : nnz;
  }
};

// The share of this block.
__device__ __forceinline__ Share load_share(OffsetT nnz, const uint32_t* __restrict__ block_rows) {
  Share share;
  share.begin = OffsetT(blockIdx.x) * kNnzPerBlock;
  share.nnz = nnz - share.begin < OffsetT(kNnzPerBlock) ? int(nnz - share.begin) : kNnzPerBlock;
  share.first_row = __ldg(block_rows + blockIdx.x);
  share.next_row = __ldg(block_rows + blockIdx.x + 1);
  return share;
}

// block_rows[b] is the row of the block's first nonzero; the first block begins at row 0, and one entry more names the
// end. A thread a row; `shared_row(row)` is called for rows that blocks share.
template <typename SharedRow>
__device__ __forceinline__ void assign_rows(uint32_t num_rows, uint32_t num_blocks,
                                            const OffsetT* __restrict__ row_offsets, uint32_t* __restrict__ block_rows,
                                            SharedRow shared_row) {
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  uint32_t first = 1, last = 0;
  if (row < num_rows) {
    const OffsetT begin = __ldg(row_offsets + row), end = __ldg(row_offsets + row + 1);
    if (begin < end) {
      first = max(uint32_t((begin + kNnzPerBlock - 1) / kNnzPerBlock), 1u);
      last = uint32_t((end - 1) / kNnzPerBlock);
      if (begin / kNnzPerBlock != last) shared_row(row);
    }
    if (row == 0) {
      block_rows[0] = 0;
      block_rows[num_blocks] = num_rows;
    }
  }
  // A row over many blocks is the whole warp's.
  const bool is_long = first + 32 <= last;
#pragma unroll 1
  for (uint32_t block = first; !is_long && block <= last; ++block) block_rows[block] = row;
  for (uint32_t longs = __ballot_sync(kAllLanes, is_long); longs != 0; longs &= longs - 1) {
    const int source = __ffs(longs) - 1;
    const uint32_t to = __shfl_sync(kAllLanes, last, source), of = __shfl_sync(kAllLanes, row, source);
    uint32_t block = __shfl_sync(kAllLanes, first, source) + (threadIdx.x & 31);
    for (; block <= to; block += 32) block_rows[block] = of;
  }
}
