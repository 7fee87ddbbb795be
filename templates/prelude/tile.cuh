// Products of tiles of eight rows, of which the diagonal is wanted: the sums of the rows. A lane has two entries of row
// lane / 4 and the entries of x for them. On tensor cores these are A and B of a product: an element of its diagonal is
// made of the entries of one row alone, and nobody looks at the others. Which lane has which columns does not matter.

struct F16;
struct Bf16;

// What multiplies: the lanes themselves, or tensor cores for a type.
enum class TileUnit { kLanes, kF64, kF16, kBf16 };

template <typename A, typename B, typename Sum>
constexpr TileUnit kTileUnitOf = TileUnit::kLanes;
template <typename A, typename B>
constexpr TileUnit kTileUnitOf<A, B, double> = TileUnit::kF64;
template <>
constexpr TileUnit kTileUnitOf<F16, F16, float> = TileUnit::kF16;
template <>
constexpr TileUnit kTileUnitOf<Bf16, Bf16, float> = TileUnit::kBf16;

#if __CUDA_ARCH__ >= 800
constexpr TileUnit kTileUnit = kTileUnitOf<ValueT, XT, AccumT>;
#else
constexpr TileUnit kTileUnit =
    kTileUnitOf<ValueT, XT, AccumT> == TileUnit::kF16 ? TileUnit::kF16 : TileUnit::kLanes;
#endif

// What a lane has of the product: its elements of columns 2 * (lane % 4) and one more, in row lane / 4; or, without tensor
// cores, the sum of its own entries, as the first.
struct TileSums {
  AccumT even;
  AccumT odd;
};

// Two entries in a word, the first in its low half.
template <typename T>
__device__ __forceinline__ uint32_t word_of_halves(const T* entries) {
  return uint32_t(entries[1].bits) << 16 | entries[0].bits;
}

__device__ __forceinline__ void add_f64_tile(double a, double b, double* even, double* odd) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(*even), "+d"(*odd)
               : "d"(a), "d"(b));
}

// Of the 16 rows of the shape the last eight are zero: B has eight columns, and an entry of x in B is worth one entry of A
// only, whatever the shape.
template <TileUnit kUnit>
__device__ __forceinline__ void add_half_tile(uint32_t a, uint32_t b, float* even, float* odd) {
  float below[2];
  if constexpr (kUnit == TileUnit::kF16) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %7, %7};"
                 : "+f"(*even), "+f"(*odd), "=f"(below[0]), "=f"(below[1])
                 : "r"(a), "r"(0), "r"(b), "f"(0.0f));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %7, %7};"
        : "+f"(*even), "+f"(*odd), "=f"(below[0]), "=f"(below[1])
        : "r"(a), "r"(0), "r"(b), "f"(0.0f));
  }
}

// Adds the products of a lane's two entries. All lanes of the warp call it.
template <typename A, typename B, typename Sums>
__device__ __forceinline__ void add_tile_product(const A* a, const B* b, Sums* sums) {
  if constexpr (kTileUnit == TileUnit::kF64) {
    add_f64_tile(double(a[0]), double(b[0]), &sums->even, &sums->odd);
    add_f64_tile(double(a[1]), double(b[1]), &sums->even, &sums->odd);
  } else if constexpr (kTileUnit == TileUnit::kLanes) {
    sums->even = multiply_add(AccumT(a[0]), AccumT(b[0]), sums->even);
    sums->even = multiply_add(AccumT(a[1]), AccumT(b[1]), sums->even);
  } else {
    add_half_tile<kTileUnit>(word_of_halves(a), word_of_halves(b), &sums->even, &sums->odd);
  }
}

// The element of the diagonal in row lane / 4, from the lane that has it.
__device__ __forceinline__ AccumT diagonal(const TileSums& sums) {
  const uint32_t row = threadIdx.x % 32 / 4;
  return __shfl_sync(0xffffffffu, row % 2 == 0 ? sums.even : sums.odd, 4 * row + row / 2);
}

// Of four tiles one a lane: the sum of row lane / 4 of tile lane % 4.
__device__ __forceinline__ AccumT sum_of_own_tile(const TileSums* sums) {
  const bool odd = threadIdx.x & 1;
  const bool upper = threadIdx.x & 2;
  if constexpr (kTileUnit == TileUnit::kLanes) {
    // A lane keeps the tiles that are as odd as it, then that of them which is its own, and gives away the others.
    const AccumT low = (odd ? sums[1].even : sums[0].even) +
                       __shfl_xor_sync(0xffffffffu, odd ? sums[0].even : sums[1].even, 1);
    const AccumT high = (odd ? sums[3].even : sums[2].even) +
                        __shfl_xor_sync(0xffffffffu, odd ? sums[2].even : sums[3].even, 1);
    return (upper ? high : low) + __shfl_xor_sync(0xffffffffu, upper ? low : high, 2);
  } else {
    const AccumT first = diagonal(sums[0]);
    const AccumT second = diagonal(sums[1]);
    const AccumT third = diagonal(sums[2]);
    const AccumT fourth = diagonal(sums[3]);
    return upper ? (odd ? fourth : third) : (odd ? second : first);
  }
}

__device__ __forceinline__ TileSums sum_of(const TileSums& a, const TileSums& b) {
  return {a.even + b.even, a.odd + b.odd};
}

// The sum of row lane / 4.
__device__ __forceinline__ AccumT sum_of_tile(const TileSums& sums) {
  if constexpr (kTileUnit == TileUnit::kLanes) return group_sum<4>(sums.even, group_mask<4>());
  return diagonal(sums);
}
