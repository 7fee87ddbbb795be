// What measures beside what is measured: a copy, a flush, a pause, an empty launch, a comparison of bits.

struct alignas(16) Quad { unsigned a, b, c, d; };

extern "C" __global__ void bench_empty() {}

// 16 bytes a thread and step.
extern "C" __global__ void bench_copy(const Quad* from, Quad* to, unsigned long long quads) {
  const unsigned long long stride = 1ull * gridDim.x * blockDim.x;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += stride) to[i] = from[i];
}

// Reads everything, so that nothing else stays in the caches; stores nothing unless the bits sum to `never`.
extern "C" __global__ void bench_flush(const Quad* from, unsigned long long quads, unsigned never, unsigned* sink) {
  const unsigned long long stride = 1ull * gridDim.x * blockDim.x;
  unsigned sum = 0;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += stride) {
    const Quad quad = from[i];
    sum += quad.a ^ quad.b ^ quad.c ^ quad.d;
  }
  if (sum == never) *sink = sum;
}

// Keeps the stream busy for about so many nanoseconds, while the host fills it.
extern "C" __global__ void bench_pause(unsigned long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

// How many words differ, of an even number of bytes; the last of them may be half a word.
extern "C" __global__ void bench_differing(const unsigned* a, const unsigned* b, unsigned long long bytes,
                                           unsigned* differing) {
  const unsigned long long words = bytes / 4;
  const unsigned long long stride = 1ull * gridDim.x * blockDim.x;
  unsigned found = 0;
  for (unsigned long long i = 1ull * blockIdx.x * blockDim.x + threadIdx.x; i < words; i += stride) {
    if (a[i] != b[i]) ++found;
  }
  if (bytes % 4 != 0 && blockIdx.x == 0 && threadIdx.x == 0) {
    const unsigned short *half_a = (const unsigned short*)(a + words), *half_b = (const unsigned short*)(b + words);
    if (*half_a != *half_b) ++found;
  }
  if (found > 0) atomicAdd(differing, found);
}
