// Values of a layout stored as less than they are, where nothing is lost: what a plan finds out about them, how they are
// stored, and how they are read again.

// Different values up to which they are stored by their places in a table; a hash table has four times as many entries.
constexpr uint32_t kMostDistinct = 256;
constexpr uint32_t kHashEntries = 4 * kMostDistinct;

// What values are stored as by this encoding; as they are.
template <int kEncoding, typename T>
struct ValueEncoding {
  using StoredT = T;
  static __device__ __forceinline__ bool keeps(T) { return true; }
  static __device__ __forceinline__ uint64_t key(T) { return 0; }
  static __device__ __forceinline__ T value(uint64_t) { return T(0); }
  static __device__ __forceinline__ T stored(T value, uint32_t, const uint64_t*) { return value; }
};

// As f32; -0 and all NaNs that come back as they were are kept.
template <>
struct ValueEncoding<1, double> : ValueEncoding<0, double> {
  using StoredT = float;
  static __device__ __forceinline__ bool keeps(double value) {
    return __double_as_longlong(double(float(value))) == __double_as_longlong(value);
  }
  static __device__ __forceinline__ float stored(double value, uint32_t, const uint64_t*) { return float(value); }
};

// By places in a table of those that differ, which they do where their bits do. A key is the bits inverted, so that 0 is none;
// the NaN whose bits are all ones counts as many.
template <typename T>
struct ValueEncoding<2, T> {
  using StoredT = unsigned char;
  using Bits = typename UnsignedOf<sizeof(T)>::Type;
  static __device__ __forceinline__ bool keeps(T) { return true; }
  static __device__ __forceinline__ uint64_t key(T value) { return ~uint64_t(*reinterpret_cast<const Bits*>(&value)); }
  static __device__ __forceinline__ T value(uint64_t key) {
    const Bits bits = Bits(~key);
    return *reinterpret_cast<const T*>(&bits);
  }
  // The keys of the table rise.
  static __device__ __forceinline__ unsigned char stored(T value, uint32_t num_distinct, const uint64_t* table) {
    uint32_t place = 0;
    for (uint32_t step = kMostDistinct / 2; step > 0; step /= 2) {
      if (place + step < num_distinct && __ldg(table + place + step) <= key(value)) place += step;
    }
    return place;
  }
};

// As bytes, where all are whole numbers from -127 to 127: 128 more than the number, so that 0 is none.
template <typename T>
struct ValueEncoding<3, T> : ValueEncoding<0, T> {
  using StoredT = unsigned char;
  static __device__ __forceinline__ int whole(float number) { return number >= -127 && number <= 127 ? int(number) : 0; }
  static __device__ __forceinline__ bool keeps(T value) {
    using Bits = typename UnsignedOf<sizeof(T)>::Type;
    // -0 is not the whole number that it is equal to.
    const T kept = T(float(whole(float(value))));
    return *reinterpret_cast<const Bits*>(&kept) == *reinterpret_cast<const Bits*>(&value);
  }
  static __device__ __forceinline__ unsigned char stored(T value, uint32_t, const uint64_t*) {
    return (unsigned char)(whole(float(value)) + 128);
  }
};

using EncodingT = ValueEncoding<kEncoding, ValueT>;
using EncodedT = EncodingT::StoredT;
constexpr bool kIsEncoded = sizeof(EncodedT) < sizeof(ValueT);

// Kernels that the encoding does not launch return at once: what follows takes no time to compile then.

// num_others <- how many values the encoding does not keep.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_encoding_others(uint64_t nnz, const ValueT* __restrict__ values, uint64_t* num_others) {
  await_stream();
  if constexpr (kEncoding != 1 && kEncoding != 3) return;
  const uint64_t i = blockIdx.x * uint64_t(kThreadsPerBlock) + threadIdx.x;
  const ValueT value = i < nnz ? __ldcs(values + i) : ValueT(0);
  const uint32_t others = __ballot_sync(0xffffffffu, !EncodingT::keeps(value));
  if (others != 0 && threadIdx.x % 32 == 0) atomicAdd(num_others, uint64_t(__popc(others)));
}

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

// The whole number that is stored so: the byte at the end of a number whose last bit counts as one, less that number and 128.
template <typename T>
__device__ __forceinline__ T whole_number(uint32_t stored) {
  return T(__uint_as_float(0x4b000000u | stored) - 8388736.0f);
}
template <>
__device__ __forceinline__ double whole_number<double>(uint32_t stored) {
  return __hiloint2double(0x43300000, int(stored)) - 4503599627370624.0;
}

// The value that is stored so.
template <typename StoredT>
__device__ __forceinline__ ValueT decode(StoredT stored, const ValueT* table) {
  if constexpr (kEncoding == 3 && sizeof(StoredT) == 1) {
    return whole_number<ValueT>(stored);
  } else if constexpr (sizeof(StoredT) == 1) {
    return table[stored];
  } else {
    return ValueT(stored);
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
