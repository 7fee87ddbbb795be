// The table of values that are stored by their places in it: how a plan makes it, and how a product's blocks read it.

// A hash table has four times as many entries.
constexpr uint32_t kHashEntries = 4 * kMostDistinct;

// The entry of a hash table from which on a key is looked for.
__device__ __forceinline__ uint32_t first_entry(uint64_t key) {
  return uint32_t((key * 0x9e3779b97f4a7c15ull) >> 32) % kHashEntries;
}

// Where a key is in a hash table, or would be put; kHashEntries where it is not and there is no room.
__device__ __forceinline__ uint32_t find_key(uint64_t key, const uint64_t* table) {
  uint32_t entry = first_entry(key);
  for (uint32_t step = 0; step < kHashEntries; ++step, entry = (entry + 1) % kHashEntries) {
    if (table[entry] == key || table[entry] == 0) return entry;
  }
  return kHashEntries;
}

// Puts a key that is not zero into a hash table, unless it is full of others.
template <typename CountT>
__device__ __forceinline__ void put_key(uint64_t key, uint64_t* table, CountT* count) {
  uint32_t entry = first_entry(key);
  for (uint32_t step = 0; step < kHashEntries; ++step, entry = (entry + 1) % kHashEntries) {
    const uint64_t found = atomicCAS(table + entry, uint64_t(0), key);
    if (found == 0) atomicAdd(count, CountT(1));
    if (found == 0 || found == key) return;
  }
}

// A block puts values into a hash table of its own, and that into the one of all. num_distinct <- how many there are, or some
// number above kMostDistinct.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_encoding_distinct(uint64_t nnz, const ValueT* __restrict__ values, uint64_t* hashed, uint64_t* num_distinct) {
  await_stream();
  if constexpr (kEncoding != 2) return;
  constexpr uint32_t kSteps = 8;
  __shared__ uint64_t own[kHashEntries];
  __shared__ uint32_t num_own;
  for (uint32_t i = threadIdx.x; i < kHashEntries; i += kThreadsPerBlock) own[i] = 0;
  if (threadIdx.x == 0) num_own = 0;
  __syncthreads();
  const uint64_t stride = gridDim.x * uint64_t(kThreadsPerBlock);
  for (uint64_t first = blockIdx.x * uint64_t(kThreadsPerBlock); first < nnz; first += kSteps * stride) {
    uint64_t keys[kSteps];
    bool is_new[kSteps], any_new = false;
#pragma unroll
    for (uint32_t step = 0; step < kSteps; ++step) {
      const uint64_t i = first + step * stride + threadIdx.x;
      is_new[step] = i < nnz;
      if (is_new[step]) keys[step] = EncodingT::key(__ldcs(values + i));
    }
    // Most values are there already, and reading is cheaper.
#pragma unroll
    for (uint32_t step = 0; step < kSteps; ++step) {
      if (!is_new[step]) continue;
      const uint32_t entry = find_key(keys[step], own);
      is_new[step] = keys[step] == 0 || entry == kHashEntries || own[entry] == 0;
      any_new |= is_new[step];
    }
    if (__syncthreads_or(any_new) == 0) continue;
#pragma unroll
    for (uint32_t step = 0; step < kSteps; ++step) {
      if (!is_new[step]) continue;
      if (keys[step] == 0) atomicAdd(&num_own, kMostDistinct + 1);
      if (keys[step] != 0) put_key(keys[step], own, &num_own);
    }
    __syncthreads();
    if (num_own > kMostDistinct) break;
  }
  __syncthreads();
  if (num_own > kMostDistinct) {
    if (threadIdx.x == 0) atomicAdd(num_distinct, uint64_t(kMostDistinct) + 1);
    return;
  }
  for (uint32_t i = threadIdx.x; i < kHashEntries; i += kThreadsPerBlock) {
    if (own[i] != 0) put_key(own[i], hashed, num_distinct);
  }
}

// One block: table <- the values, by their keys.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_encoding_table(const uint64_t* __restrict__ hashed, uint64_t* __restrict__ table) {
  await_stream();
  if constexpr (kEncoding != 2) return;
  __shared__ uint64_t keys[kHashEntries];
  for (uint32_t i = threadIdx.x; i < kHashEntries; i += kThreadsPerBlock) keys[i] = hashed[i];
  __syncthreads();
  for (uint32_t i = threadIdx.x; i < kHashEntries; i += kThreadsPerBlock) {
    if (keys[i] == 0) continue;
    uint32_t rank = 0;
    for (uint32_t k = 0; k < kHashEntries; ++k) rank += keys[k] != 0 && keys[k] < keys[i];
    table[rank] = keys[i];
  }
}

// The values of the table, which a block reads together.
constexpr uint32_t kTableEntries = kEncoding == 2 ? kMostDistinct : 1;
__device__ __forceinline__ void read_table(ValueT* to, uint32_t num_distinct, const uint64_t* __restrict__ table) {
  if constexpr (kEncoding == 2) {
    for (uint32_t i = threadIdx.x; i < num_distinct; i += kThreadsPerBlock) to[i] = EncodingT::value(__ldg(table + i));
    __syncthreads();
  }
}
