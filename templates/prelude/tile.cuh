// Products of 8 x 4 tiles of f64, of which the diagonal is wanted: the sums of eight rows. A lane has one entry of row
// lane / 4 of the tile, and the entry of x for it. On tensor cores these are A and B of an 8 x 8 x 4 product: an
// element of its diagonal is made of the entries of one row alone, and nobody looks at the others.

// What a lane has of the product: its elements of columns 2 * (lane % 4) and one more, in row lane / 4.
struct TileSums {
  double even;
  double odd;
};

// Adds the product of a tile. All lanes of the warp call it. Before sm_80 the lanes of a row do what the tensor cores
// do, in the same order.
__device__ __forceinline__ void add_tile_product(double a, double b, TileSums* sums) {
#if __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(sums->even), "+d"(sums->odd)
               : "d"(a), "d"(b));
#else
  double sum = sums->even;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    sum = multiply_add(__shfl_sync(0xffffffffu, a, k, 4), __shfl_sync(0xffffffffu, b, k, 4), sum);
  }
  *sums = {sum, sum};
#endif
}

// The lane that has the sum of a row of the tile.
__device__ __forceinline__ int lane_of_tile_row(int row) { return 4 * row + row / 2; }

// The sum of row lane / 4 in the lane that has it, anything in the others.
__device__ __forceinline__ double tile_row_sum(const TileSums& sums) { return threadIdx.x & 4 ? sums.odd : sums.even; }
