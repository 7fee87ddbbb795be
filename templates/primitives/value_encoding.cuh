// Values of a layout stored as less than they are, where nothing is lost: what a plan finds out about them, how they are
// stored, and how they are read again.

// Different values up to which they are stored by their places in a table.
constexpr uint32_t kMostDistinct = 256;

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
  } else if constexpr (kEncoding == 2 && sizeof(StoredT) == 1) {
    return table[stored];
  } else {
    return ValueT(stored);
  }
}
