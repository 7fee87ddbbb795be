// A block that works on one row, or on a part of one.

// The sum over the block in a fixed tree; thread 0 returns it. Once a kernel: nobody waits before the sums are reused.
template <typename T>
__device__ __forceinline__ T block_sum(T value) {
  constexpr int kWarps = kThreadsPerBlock / 32;
  __shared__ T warp_sums[kWarps];
  value = group_sum<32>(value, 0xffffffffu);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x >= 32) return value;
  return group_sum<32>(threadIdx.x < kWarps ? warp_sums[threadIdx.x] : kIdentity, 0xffffffffu);
}

// The product of consecutive nonzeros with x, summed by the block; thread 0 returns it.
__device__ __forceinline__ AccumT block_row_product(OffsetT begin, OffsetT end, const IndexT* __restrict__ col_indices,
                                                    const ValueT* __restrict__ values, const XT* __restrict__ x) {
  AccumT sums[4] = {kIdentity, kIdentity, kIdentity, kIdentity};
  for (OffsetT j = begin + threadIdx.x; j < end; j += 4 * kThreadsPerBlock) {
#pragma unroll
    for (int u = 0; u < 4; ++u) {
      const OffsetT k = j + u * kThreadsPerBlock;
      if (k < end) {
        const IndexT col = __ldcs(col_indices + k);
        sums[u] = combine_reduce(AccumT(__ldcs(values + k)), AccumT(__ldg(x + col)), col, sums[u]);
      }
    }
  }
  return block_sum(reduce(reduce(sums[0], sums[2]), reduce(sums[1], sums[3])));
}

// The sum of partial sums in a fixed order; thread 0 returns it.
__device__ __forceinline__ AccumT block_sum_of_parts(const AccumT* part_sums, uint32_t num_parts) {
  AccumT sum = kIdentity;
  for (uint32_t i = threadIdx.x; i < num_parts; i += kThreadsPerBlock) sum = reduce(sum, part_sums[i]);
  return block_sum(sum);
}
