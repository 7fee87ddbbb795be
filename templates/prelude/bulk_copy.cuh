// Copies of many bytes from global to shared memory by Hopper's copy engine, and the barriers in shared memory on which threads
// wait for them: a barrier's phase ends when so many threads have arrived, and all bytes that they expected. Who uses them is for
// compute capability 9.0 on.

// Where something is in shared memory, as a warp's registers hold it: of memory that is named, each load would begin with where
// the block's is.
__device__ __forceinline__ uint32_t shared_address(const void* in_shared) {
  return __shfl_sync(~0u, uint32_t(__cvta_generic_to_shared(in_shared)), 0);
}

// An entry of shared memory, loaded where this stands and not where a branch uses it.
template <typename T>
__device__ __forceinline__ T load_shared(uint32_t address) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
  if constexpr (sizeof(T) == 2) {
    uint16_t word;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(word) : "r"(address));
    return *reinterpret_cast<const T*>(&word);
  } else if constexpr (sizeof(T) == 4) {
    uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address));
    return *reinterpret_cast<const T*>(&word);
  } else if constexpr (sizeof(T) == 8) {
    uint64_t word;
    asm volatile("ld.shared.u64 %0, [%1];" : "=l"(word) : "r"(address));
    return *reinterpret_cast<const T*>(&word);
  } else {
    ulonglong2 words;
    asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];" : "=l"(words.x), "=l"(words.y) : "r"(address));
    return *reinterpret_cast<const T*>(&words);
  }
}

// A barrier at which so many threads arrive in each phase; the block meets before anybody else uses it.
__device__ __forceinline__ void begin_barrier(uint32_t barrier, uint32_t num_arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(barrier), "r"(num_arrivals) : "memory");
}

// After the barriers of a block began, and before they are used.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
  __syncthreads();
}

__device__ __forceinline__ void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" : : "r"(barrier) : "memory");
}

// Arrives, and lets the phase wait for so many bytes more.
__device__ __forceinline__ void arrive_expecting(uint32_t barrier, uint32_t num_bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" : : "r"(barrier), "r"(num_bytes) : "memory");
}

// Waits until the phase of this parity has ended: the first has parity 0.
__device__ __forceinline__ void await_phase(uint32_t barrier, uint32_t parity) {
  uint32_t has_ended;
  do {
    asm volatile(
        "{\n"
        ".reg .pred has_ended;\n"
        "mbarrier.try_wait.parity.shared.b64 has_ended, [%1], %2;\n"
        "selp.u32 %0, 1, 0, has_ended;\n"
        "}"
        : "=r"(has_ended)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (has_ended == 0);
}

// Begins a copy, whose bytes the barrier counts. Both addresses and the number of bytes are multiples of 16.
__device__ __forceinline__ void copy_bulk(uint32_t to, const void* from, uint32_t num_bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(to), "l"(from), "r"(num_bytes), "r"(barrier)
               : "memory");
}

// What the thread stored to shared memory comes before what a later copy of its writes there.
__device__ __forceinline__ void order_before_copies() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}
