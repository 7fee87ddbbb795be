// fingerprint: hashes bytes with BLAKE3, up to subtrees of 256 KiB.
//
// Formula:   chaining values of chunks of 1024 bytes, joined two by two; one that is left over goes up as it is
// Paper:     O'Connor, Aumasson, Neves and Wilcox-O'Hearn 2020 (BLAKE3: one function, fast everywhere)
// Bytes:     the input once; 32 bytes out for each 256 KiB
// Guarantee: the hash function's own values, the same on every device and on the host
// Launch:    a block 256 KiB, a thread a chunk, then a thread two values of its block
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
#endif

constexpr uint32_t kWordsPerChunk = 256;
constexpr uint32_t kChunkStart = 1, kChunkEnd = 2, kParent = 4;

// The hash's initial value.
__device__ __forceinline__ void start(uint32_t* value) {
  value[0] = 0x6a09e667u, value[1] = 0xbb67ae85u, value[2] = 0x3c6ef372u, value[3] = 0xa54ff53au;
  value[4] = 0x510e527fu, value[5] = 0x9b05688cu, value[6] = 0x1f83d9abu, value[7] = 0x5be0cd19u;
}

__device__ __forceinline__ uint32_t rotated(uint32_t word, int by) { return word >> by | word << (32 - by); }

__device__ __forceinline__ void mix(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d, uint32_t x, uint32_t y) {
  a += b + x, d = rotated(d ^ a, 16), c += d, b = rotated(b ^ c, 12);
  a += b + y, d = rotated(d ^ a, 8), c += d, b = rotated(b ^ c, 7);
}

// value <- the compression of 64 bytes of input.
__device__ __forceinline__ void compress(uint32_t* value, uint32_t* input, uint64_t counter, uint32_t length, uint32_t flags) {
  uint32_t s[16];
#pragma unroll
  for (int i = 0; i < 8; ++i) s[i] = value[i];
  s[8] = 0x6a09e667u, s[9] = 0xbb67ae85u, s[10] = 0x3c6ef372u, s[11] = 0xa54ff53au;
  s[12] = uint32_t(counter), s[13] = uint32_t(counter >> 32), s[14] = length, s[15] = flags;
#pragma unroll 1
  for (int round = 0; round < 7; ++round) {
    mix(s[0], s[4], s[8], s[12], input[0], input[1]);
    mix(s[1], s[5], s[9], s[13], input[2], input[3]);
    mix(s[2], s[6], s[10], s[14], input[4], input[5]);
    mix(s[3], s[7], s[11], s[15], input[6], input[7]);
    mix(s[0], s[5], s[10], s[15], input[8], input[9]);
    mix(s[1], s[6], s[11], s[12], input[10], input[11]);
    mix(s[2], s[7], s[8], s[13], input[12], input[13]);
    mix(s[3], s[4], s[9], s[14], input[14], input[15]);
    const uint32_t next[16] = {input[2], input[6],  input[3],  input[10], input[7], input[0], input[4],  input[13],
                               input[1], input[11], input[12], input[5],  input[9], input[14], input[15], input[8]};
#pragma unroll
    for (int i = 0; i < 16; ++i) input[i] = next[i];
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) value[i] = s[i] ^ s[i + 8];
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_fingerprint(uint64_t num_words, const uint32_t* __restrict__ words, uint32_t* __restrict__ values) {
  await_stream();
  __shared__ uint32_t joined[8][kThreadsPerBlock];
  const uint64_t chunk = uint64_t(blockIdx.x) * kThreadsPerBlock + threadIdx.x;
  const uint64_t begin = chunk * kWordsPerChunk;
  if (begin < num_words) {
    const uint32_t length = num_words - begin < kWordsPerChunk ? uint32_t(num_words - begin) : kWordsPerChunk;
    uint32_t value[8];
    start(value);
    for (uint32_t at = 0; at < length; at += 16) {
      uint32_t input[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) input[i] = at + i < length ? __ldg(words + begin + at + i) : 0;
      const bool last = at + 16 >= length;
      compress(value, input, chunk, last ? 4 * (length - at) : 64, (at == 0 ? kChunkStart : 0) | (last ? kChunkEnd : 0));
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) joined[i][threadIdx.x] = value[i];
  }
  const uint64_t chunks = (num_words + kWordsPerChunk - 1) / kWordsPerChunk - uint64_t(blockIdx.x) * kThreadsPerBlock;
  uint32_t left = chunks < kThreadsPerBlock ? uint32_t(chunks) : kThreadsPerBlock;
  while (left > 1) {
    __syncthreads();
    const bool joins = 2 * threadIdx.x + 1 < left;
    const bool rises = 2 * threadIdx.x + 1 == left;
    uint32_t value[8];
    if (joins) {
      uint32_t input[16];
#pragma unroll
      for (int i = 0; i < 8; ++i) input[i] = joined[i][2 * threadIdx.x], input[i + 8] = joined[i][2 * threadIdx.x + 1];
      start(value);
      compress(value, input, 0, 64, kParent);
    } else if (rises) {
#pragma unroll
      for (int i = 0; i < 8; ++i) value[i] = joined[i][2 * threadIdx.x];
    }
    __syncthreads();
    if (joins || rises) {
#pragma unroll
      for (int i = 0; i < 8; ++i) joined[i][threadIdx.x] = value[i];
    }
    left = (left + 1) / 2;
  }
  __syncthreads();
  if (threadIdx.x < 8) values[uint64_t(blockIdx.x) * 8 + threadIdx.x] = joined[threadIdx.x][0];
}
