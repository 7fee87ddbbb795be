// Entries of x that are kept for a later kernel, which does not know their columns any more.
using MappedX = XT;
__device__ __forceinline__ MappedX mapped_x(XT x, uint32_t) { return x; }
__device__ __forceinline__ AccumT combine_reduce_mapped(ValueT value, MappedX x, AccumT sum) {
  return combine_reduce(AccumT(value), AccumT(x), 0, sum);
}
