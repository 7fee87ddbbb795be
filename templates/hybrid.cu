// hybrid: rows in bins by length: a thread, a group of lanes, a warp, a block or several blocks a row.
//
// Formula:   y[r] <- alpha * sum over j in [row_offsets[r], row_offsets[r+1]) of values[j] * x[col_indices[j]] + beta * y[r]
// Paper:     Messa, Hybrid (short rows a thread, medium rows a warp, long rows a block); Fox et al. 2018 (logarithmic bins, LRB)
// Suits:     rows of very uneven length in any order: power laws, dense rows, giants
// Suffers:   rows of few lengths beside each other (their bins read the same lines, and the order of the rows)
// Bytes:     nnz * (value + index) + rows * (offset + 6 + y), or without 6 where one bin has all rows, + x once; the plan keeps offset + 6 a row and (4 + 2 * offset + 2 * sum) a part of a long row
// Guarantee: bit-reproducible; how a row is summed depends on its length and on where it begins, parts are summed in a fixed order
// Launch:    rows are sorted stably into bins and long rows cut in parts by seven passes once for a structure; where all rows are in the bin of the fewest lanes, a kernel for their order; else one whose blocks find their bin: long rows first, then all bins side by side in stripes; a row in several parts is finished by the block that brings the last
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kNnzPerLane = 4;
constexpr int kFewestLanes = 1;
constexpr int kNnzPerWarp = 512;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/group.cuh"
#include "prelude/group_rows.cuh"
#include "prelude/spanning_row.cuh"
#include "prelude/block.cuh"
#include "prelude/row_part.cuh"
#include "prelude/row_blocks.cuh"
#include "primitives/block_scan.cuh"
#include "primitives/grid_scan.cuh"
#include "primitives/partition.cuh"
#endif

// Bins 0 to 5: rows of 1, 2, 4, ... 32 lanes, those of fewer than kFewestLanes empty. Bin 6: long rows, in parts of a block
// each.
constexpr int kBins = 7;
// The other bins are cut in so many parts, and their first parts computed together, then their second and so on: rows of
// several bins lie in the same lines of memory, which are then read once.
constexpr uint32_t kStripes = 16;
constexpr uint32_t kNnzPerPart = 8 * kThreadsPerBlock;

static_assert(kNnzPerWarp < 1 << 16, "lengths of rows are kept in 16 bits");

struct BinOf {
  const OffsetT* row_offsets;
  __device__ __forceinline__ uint32_t operator()(uint32_t row) const {
    const OffsetT length = row_offsets[row + 1] - row_offsets[row];
    uint32_t bin = 31 - __clz(kFewestLanes);
    while (bin < 5 && length > OffsetT(kNnzPerLane) << bin) ++bin;
    return length > kNnzPerWarp ? kBins - 1 : bin;
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hybrid_bins_count(uint32_t num_rows, const OffsetT* row_offsets, uint32_t* offsets) {
  await_stream();
  partition_count<kBins>(num_rows, offsets, BinOf{row_offsets});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hybrid_bins_offsets(uint32_t num_blocks, uint32_t* offsets, uint64_t* bin_counts) {
  await_stream();
  partition_offsets<kBins>(num_blocks, offsets, bin_counts);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hybrid_bins_scatter(uint32_t num_rows, const OffsetT* row_offsets, const uint32_t* offsets, uint32_t* row_order,
                         OffsetT* row_begins, uint16_t* row_lengths) {
  await_stream();
  partition_scatter<kBins>(num_rows, offsets, BinOf{row_offsets}, [=](uint32_t place, uint32_t row) {
    row_order[place] = row;
    row_begins[place] = row_offsets[row];
    // Nobody asks for that of a long row, which need not fit.
    row_lengths[place] = uint16_t(row_offsets[row + 1] - row_offsets[row]);
  });
}

// The parts of the i-th long row.
struct PartsOf {
  const OffsetT* row_offsets;
  const uint32_t* long_rows;
  __device__ __forceinline__ uint32_t operator()(uint64_t i) const {
    const uint32_t row = long_rows[i];
    return (row_offsets[row + 1] - row_offsets[row] + kNnzPerPart - 1) / kNnzPerPart;
  }
};

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hybrid_parts_sum_chunk(uint64_t num_long, const OffsetT* row_offsets, const uint32_t* row_order,
                            uint32_t first_long, uint64_t* partials) {
  await_stream();
  scan_sum_chunk(num_long, partials, PartsOf{row_offsets, row_order + first_long});
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hybrid_parts_partials(uint32_t num_partials, uint64_t num_long, uint64_t* partials, uint32_t* first_parts,
                           uint64_t* num_parts) {
  await_stream();
  scan_partials(num_partials, num_long, partials, first_parts, num_parts);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hybrid_parts_chunk(uint64_t num_long, const OffsetT* row_offsets, const uint32_t* row_order, uint32_t first_long,
                        const uint64_t* partials, uint32_t* first_parts) {
  await_stream();
  scan_chunk(num_long, partials, first_parts, PartsOf{row_offsets, row_order + first_long});
}

// Where every part of a long row begins and ends.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hybrid_parts(uint32_t num_parts, uint32_t num_long, const OffsetT* row_offsets, const uint32_t* row_order,
                  uint32_t first_long, const uint32_t* first_parts, uint32_t* part_rows, OffsetT* part_ends) {
  await_stream();
  const uint32_t part = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (part >= num_parts) return;
  const uint32_t i = first_row_of_block(part, num_long, first_parts);
  const uint32_t row = row_order[first_long + i];
  const OffsetT begin = row_offsets[row] + OffsetT(part - first_parts[i]) * kNnzPerPart;
  part_rows[part] = row;
  part_ends[2 * part] = begin;
  part_ends[2 * part + 1] = min(begin + kNnzPerPart, row_offsets[row + 1]);
}

// Blocks of a bin in a stripe.
template <int kWidth>
__device__ __forceinline__ uint32_t stripe_blocks(uint32_t rows) {
  constexpr uint32_t kRows = kStripes * (kThreadsPerBlock / kWidth);
  return (rows + kRows - 1) / kRows;
}

// The rows in the order of their bins, what a row in its place needs side by side: whoever computes it asks for
// nothing that another answer must tell. Where all rows are in one bin, their order is that of the matrix.
struct OrderedRows {
  uint32_t num_rows;
  const OffsetT* __restrict__ row_offsets;
  const uint32_t* __restrict__ rows;
  const OffsetT* __restrict__ begins;
  const uint16_t* __restrict__ lengths;
};

// Computes the block's rows of the bin of kWidth lanes, whose places in the order end before *last; *block counts from
// the bin's first in the stripe. False where the block belongs to a later bin: both then say where that one is. Rows of wide
// groups are long enough for their steps to begin at lines.
template <int kWidth>
__device__ __forceinline__ bool computes_bin(uint32_t rows, uint32_t stripe, uint32_t* last, uint32_t* block,
                                             const OrderedRows& ordered, const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                                             const XT* __restrict__ x, YT* __restrict__ y, AccumT alpha, BetaT beta) {
  constexpr uint32_t kRowsPerBlock = kThreadsPerBlock / kWidth;
  if constexpr (kWidth < kFewestLanes) return false;
  const uint32_t num_blocks = stripe_blocks<kWidth>(rows);
  const uint32_t first = *last - rows;
  if (*block >= num_blocks) {
    *block -= num_blocks;
    *last = first;
    return false;
  }
  const uint32_t place = first + (stripe * num_blocks + *block) * kRowsPerBlock + threadIdx.x / kWidth;
  const bool is_row = place < *last;
  if (kWidth == 1 && !is_row) return true;
  uint32_t row = place;
  OffsetT begin = 0, next = 0;
  if (is_row && rows == ordered.num_rows) {
    begin = __ldg(ordered.row_offsets + place);
    next = __ldg(ordered.row_offsets + place + 1);
  } else if (is_row) {
    row = __ldg(ordered.rows + place);
    begin = __ldg(ordered.begins + place);
    next = begin + __ldg(ordered.lengths + place);
  }
  multiply_row_by_group<kWidth, 4, (kWidth >= 16), kWidth == 1>(is_row, row, begin, next, col_indices, values, x, y, alpha,
                                                                beta);
  return true;
}

// The product where all rows are in the bin of the fewest lanes: their order is that of the matrix, and nothing is to be looked for.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kGroupBlocks)
spmv_hybrid_alike(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
                  const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha,
                  BetaT beta) {
  await_stream();
  multiply_rows_by_groups<kFewestLanes, 4, (kFewestLanes >= 16)>(num_rows, row_offsets, col_indices, values, x, y, alpha, beta);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_hybrid(uint32_t num_rows, const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices,
            const ValueT* __restrict__ values, const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta,
            const uint32_t* __restrict__ row_order, const OffsetT* __restrict__ row_begins,
            const uint16_t* __restrict__ row_lengths, uint32_t rows_1, uint32_t rows_2, uint32_t rows_4,
            uint32_t rows_8, uint32_t rows_16, uint32_t rows_32, uint32_t blocks_per_stripe, uint32_t num_parts,
            const uint32_t* __restrict__ part_rows, const OffsetT* __restrict__ part_ends, AccumT* pieces,
            PieceWordT* meetings) {
  await_stream();
  if (blockIdx.x < num_parts) {
    const uint32_t row = __ldg(part_rows + blockIdx.x);
    const OffsetT begin = __ldg(part_ends + 2 * blockIdx.x);
    const OffsetT end = __ldg(part_ends + 2 * blockIdx.x + 1);
    add_row_part<kNnzPerPart>({pieces, pieces, meetings}, row_offsets, row, begin, end, col_indices, values, x, y, alpha,
                              beta);
    return;
  }
  uint32_t block = blockIdx.x - num_parts;
  // Division, without what the compiler makes of it: a block begins with this.
  uint32_t stripe = 0;
#pragma unroll
  for (uint32_t half = kStripes / 2; half > 0; half /= 2) {
    if (block < half * blocks_per_stripe) continue;
    block -= half * blocks_per_stripe;
    stripe += half;
  }
  const OrderedRows ordered = {num_rows, row_offsets, row_order, row_begins, row_lengths};
  uint32_t last = rows_1 + rows_2 + rows_4 + rows_8 + rows_16 + rows_32;
  if (computes_bin<32>(rows_32, stripe, &last, &block, ordered, col_indices, values, x, y, alpha, beta)) return;
  if (computes_bin<16>(rows_16, stripe, &last, &block, ordered, col_indices, values, x, y, alpha, beta)) return;
  if (computes_bin<8>(rows_8, stripe, &last, &block, ordered, col_indices, values, x, y, alpha, beta)) return;
  if (computes_bin<4>(rows_4, stripe, &last, &block, ordered, col_indices, values, x, y, alpha, beta)) return;
  if (computes_bin<2>(rows_2, stripe, &last, &block, ordered, col_indices, values, x, y, alpha, beta)) return;
  computes_bin<1>(rows_1, stripe, &last, &block, ordered, col_indices, values, x, y, alpha, beta);
}
