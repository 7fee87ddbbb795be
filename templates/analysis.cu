// analysis: counts what a kernel's time depends on in the structure of a matrix.
//
// Formula:   longest row; rows by the logarithm of their length; steps of warps whose rows have 1, 2, ... 32 threads each; sectors of x that samples of the entries read; columns of samples by the logarithm of their entries; sectors of x that warps read together; dense blocks that groups of rows consist of; hashes of some rows in the middle; samples of the values that differ, that no f32 is equal to, and that are no small whole numbers; diagonals that hold an entry
// Bytes:     row offsets once, at most 2^22 column indices and 2^19 more, and 2^17 with their values, and 2^11 values more; for diagonals, row offsets and column indices once more; for the transpose, column indices once more and an atomic each
// Guarantee: whole numbers, the same on every device and on the host
// Launch:    blocks of one launch take groups of rows for their blocks, pieces of samples, groups of rows for what warps read together, samples of the values, a hashed row a warp, and rows in turn; then degrees, and diagonals a warp 128 short rows or 32 long ones or some of these, only where rows may lie on few
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kLogShortStretch = 12;
constexpr int kLogLongStretch = 16;
constexpr int kLogShortBits = 14;
constexpr int kLogLongBits = 17;
constexpr int kColsPerSector = 8;
constexpr int kRowsPerGroup = 24;
constexpr int kMaxGroupEntries = 2048;
constexpr int kGathersPerRow = 64;
constexpr int kGathersInOrder = 2048;
constexpr int kNumShapes = 11;
constexpr uint64_t kShapeRows = 0x41422186432u;
constexpr uint64_t kShapeCols = 0x14241286432u;
constexpr uint32_t kHashFactor = 0x9e3779b1u;
constexpr int kDegreeSample = 16384;
constexpr int kFewSamples = 8;
constexpr int kLogDegreePlaces = 20;
constexpr int kComparedRows = 512;
constexpr int kComparedDiagonals = 256;
constexpr int kSampledValues = 2048;
constexpr int kLogBlockCols = 26;
constexpr int kPartsOfGroup = 3;
constexpr int kSamplesOfSmall = 32;
#endif

constexpr int kLengthClasses = 33;
constexpr int kWidths = 6;
constexpr uint32_t kAll = 0xffffffffu;

// Where each number is.
struct Counters {
  uint64_t longest_row;
  uint64_t row_lengths[kLengthClasses];
  uint64_t warp_steps[kWidths];
  uint64_t marked[2];
  uint64_t num_diagonals;
  uint64_t grouped;
  uint64_t blocks[kNumShapes];
  uint64_t group_diagonals;
  // Of each width, and of entries in order; then entries of rows, and in order.
  uint64_t gathers[kWidths + 3];
  uint64_t degree_cols[kLengthClasses];
  uint64_t degree_entries[kLengthClasses];
  uint64_t rows[kComparedRows];
  uint64_t different_values, wide_values, uneven_values;
  // Blocks of the last launch that are over; it is not told.
  uint64_t finished;
};

// Behind the counters: what samples have in columns, then what is marked in samples; or the length of every column.
__device__ __forceinline__ uint32_t* behind(Counters* counters) { return reinterpret_cast<uint32_t*>(counters + 1); }

// The block of the last launch that is over last writes what was counted where the host looks for it, which sees by the
// last number that all others are there, and leaves zeros for the next analysis.
__device__ __forceinline__ void tell(Counters* counters, uint64_t* told) {
  constexpr int kNumbers = sizeof(Counters) / sizeof(uint64_t) - 1;
  __shared__ bool is_last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    is_last = atomicAdd(&counters->finished, uint64_t(1)) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  uint64_t* const numbers = reinterpret_cast<uint64_t*>(counters);
  for (int place = threadIdx.x; place < kNumbers; place += kThreadsPerBlock) {
    told[place] = __ldcg(numbers + place);
    numbers[place] = 0;
  }
  if (threadIdx.x == 0) counters->finished = 0;
  __syncthreads();
  // Behind the barrier: a fence holds for what its thread knows of, and of the others' numbers it knows by the barrier.
  if (threadIdx.x == 0) {
    __threadfence_system();
    *static_cast<volatile uint64_t*>(told + kNumbers) = 1;
  }
}

// Zeroes words, every thread of the launch some.
__device__ __forceinline__ void clear(uint32_t* words, uint64_t count) {
  const uint64_t stride = gridDim.x * uint64_t(kThreadsPerBlock);
  for (uint64_t i = blockIdx.x * uint64_t(kThreadsPerBlock) + threadIdx.x; i < count; i += stride) words[i] = 0;
}

template <typename T>
__device__ __forceinline__ T warp_sum(T number) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) number += __shfl_xor_sync(kAll, number, offset);
  return number;
}

// Adds what all threads of the block have: atomics of all warps on one address would take turns.
__device__ __forceinline__ void add_of_block(uint32_t number, uint64_t* sum) {
  __shared__ uint32_t of_block;
  __syncthreads();
  if (threadIdx.x == 0) of_block = 0;
  __syncthreads();
  number = warp_sum(number);
  if (threadIdx.x % 32 == 0 && number > 0) atomicAdd(&of_block, number);
  __syncthreads();
  if (threadIdx.x == 0 && of_block > 0) atomicAdd(sum, uint64_t(of_block));
}

// The part of a block in what its launch does: it is the one of this number among so many.
struct Part {
  uint32_t block, num_blocks;
};

// A warp takes 32 rows that follow one another. Their lengths are of type Length.
template <typename Length, typename LengthOf>
__device__ __forceinline__ void count_lengths(Part part, uint32_t num_rows, LengthOf length_of, Counters* counters) {
  // Atomics of all warps on few addresses would take longer than all else: a block adds up its own first.
  constexpr uint32_t kWarps = kThreadsPerBlock / 32;
  __shared__ uint32_t rows_of_class[kLengthClasses];
  __shared__ uint64_t steps_of_warp[kWidths][kWarps];
  __shared__ Length longest_of_warp[kWarps];
  if (threadIdx.x < kLengthClasses) rows_of_class[threadIdx.x] = 0;
  __syncthreads();
  const uint32_t lane = threadIdx.x % 32, warp_of_block = threadIdx.x / 32;
  Length longest = 0;
  // Of 2^k neighbouring rows, whose threads are 32 / 2^k each, one lane counts the steps: the one of this k among them.
  const int log_rows = __ffs(lane), log_threads = kWidths - 1 - log_rows;
  uint64_t steps_of_row = 0, steps_of_rows = 0;
  uint32_t of_class = 0;
  const uint32_t num_warps = (num_rows + 31) / 32;
  const auto own_length = [&](uint32_t warp) {
    const uint32_t row = warp * 32 + lane;
    return warp < num_warps && row < num_rows ? length_of(row) : Length(0);
  };
  uint32_t warp = part.block * kWarps + warp_of_block;
  const uint32_t stride = part.num_blocks * kWarps;
  Length next_length = own_length(warp);
#pragma unroll 1
  for (; warp < num_warps; warp += stride) {
    const bool is_row = warp * 32 + lane < num_rows;
    const Length length = next_length;
    // The next one is on its way meanwhile.
    next_length = own_length(warp + stride);
    int length_class = 8 * int(sizeof(Length)) - (sizeof(Length) == 8 ? __clzll(length) : __clz(uint32_t(length)));
    if (length_class > kLengthClasses - 1) length_class = kLengthClasses - 1;
    steps_of_row += (length + 31) / 32;
    Length longest_of_rows = length, of_lane = length;
    const bool is_like_first = length == __shfl_sync(kAll, length, 0);
    if (__all_sync(kAll, is_row && is_like_first && length_class < kLengthClasses - 1)) {
      // Rows of one length, as most are in a grid or a band.
      if (lane == length_class) of_class += 32;
    } else {
      // Every lane counts a class; the last, of which there are few rows, is counted at once. Most warps have few classes.
      for (uint32_t waiting = __ballot_sync(kAll, is_row); waiting != 0;) {
        const int class_of_first = __shfl_sync(kAll, length_class, __ffs(waiting) - 1);
        const uint32_t same = __ballot_sync(kAll, is_row && length_class == class_of_first);
        if (lane == class_of_first) of_class += __popc(same);
        if (class_of_first == kLengthClasses - 1 && lane == 0) {
          atomicAdd(&rows_of_class[class_of_first], uint32_t(__popc(same)));
        }
        waiting &= ~same;
      }
      of_lane = 0;
#pragma unroll
      for (int k = 1; k < kWidths; ++k) {
        const Length other = __shfl_xor_sync(kAll, longest_of_rows, 1 << (k - 1));
        if (other > longest_of_rows) longest_of_rows = other;
        if (k == log_rows) of_lane = longest_of_rows;
      }
    }
    steps_of_rows += (of_lane + ((Length(1) << log_threads) - 1)) >> log_threads;
    if (longest_of_rows > longest) longest = longest_of_rows;
  }
#pragma unroll 1
  for (int k = 0; k < kWidths; ++k) {
    const uint64_t of_warp = warp_sum(k == 0 ? steps_of_row : k == log_rows ? steps_of_rows : 0);
    if (lane == 0) steps_of_warp[kWidths - 1 - k][warp_of_block] = of_warp;
  }
  if (lane == 0) longest_of_warp[warp_of_block] = longest;
  if (of_class > 0) atomicAdd(&rows_of_class[lane], of_class);
  __syncthreads();
  if (threadIdx.x < kLengthClasses && rows_of_class[threadIdx.x] > 0) {
    atomicAdd(&counters->row_lengths[threadIdx.x], uint64_t(rows_of_class[threadIdx.x]));
  }
  static_assert(kWarps > kWidths && kWarps <= 32, "a warp takes a width, a lane what a warp has");
  if (warp_of_block < kWidths) {
    const uint64_t of_block = warp_sum(lane < kWarps ? steps_of_warp[warp_of_block][lane] : 0);
    if (lane == 0) atomicAdd(&counters->warp_steps[warp_of_block], of_block);
  } else if (warp_of_block == kWidths) {
    atomicMax(&counters->longest_row, uint64_t(lane < kWarps ? longest_of_warp[lane] : 0));
  }
}

// Columns are the rows of the transpose.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_analysis_lengths(uint32_t num_cols, Counters* counters, uint64_t* told) {
  await_stream();
  uint32_t* const lengths = behind(counters);
  const auto take = [=](uint32_t col) {
    const uint32_t length = lengths[col];
    lengths[col] = 0;
    return length;
  };
  count_lengths<uint32_t>({blockIdx.x, gridDim.x}, num_cols, take, counters);
  tell(counters, told);
}

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_analysis_entries(uint64_t nnz, const IndexT* __restrict__ col_indices, Counters* counters) {
  await_stream();
  uint32_t* lengths = behind(counters);
  const uint64_t stride = gridDim.x * uint64_t(kThreadsPerBlock);
#pragma unroll 4
  for (uint64_t i = blockIdx.x * uint64_t(kThreadsPerBlock) + threadIdx.x; i < nnz; i += stride) {
    atomicAdd(lengths + __ldcs(col_indices + i), 1u);
  }
}

template <int kLogBits>
__device__ __forceinline__ void mark(uint32_t* bits, IndexT col) {
  const uint32_t bit = uint32_t(col / kColsPerSector) * kHashFactor >> (32 - kLogBits);
  atomicOr(bits + bit / 32, 1u << bit % 32);
}

// Where a column is counted: with more columns than places, some share one.
__device__ __forceinline__ uint32_t degree_place(bool has_own, IndexT col) {
  return has_own ? uint32_t(col) : uint32_t(col) * kHashFactor >> (32 - kLogDegreePlaces);
}

// What a block has in shared memory: words of bits, or keys and then owners of places.
constexpr uint32_t kShared = 1u << 15;
constexpr uint32_t kPlaces = 4096, kKeyBytes = kShared - kPlaces * 4;
constexpr uint32_t kShortWords = 1u << (kLogShortBits - 5);
constexpr uint32_t kLongWords = 1u << (kLogLongBits - 5);
static_assert((2 * kShortWords + kLongWords) * 4 <= kShared, "bits have room");

// Counts what a warp finds in places: in one that many lanes find together, as one place may have half of all, by one atomic.
struct DegreeCounter {
  uint32_t* degrees;
  uint32_t frequent = ~0u, count = 0;

  // Lanes that make a place frequent.
  static constexpr int kMany = 4;

  // `looks_at` is a lane of the warp, another from step to step.
  __device__ __forceinline__ void add(bool is_entry, uint32_t place, uint32_t looks_at) {
    uint32_t same = __ballot_sync(kAll, is_entry && place == frequent);
    if (__popc(same) < kMany) {
      const uint32_t other = __shfl_sync(kAll, place, looks_at);
      const uint32_t same_as_other = __ballot_sync(kAll, is_entry && place == other);
      if (__popc(same_as_other) >= kMany) {
        end();
        frequent = other;
        same = same_as_other;
      }
    }
    count += __popc(same);
    if (is_entry && place != frequent) atomicAdd(degrees + place, 1u);
  }
  __device__ __forceinline__ void end() {
    if (threadIdx.x % 32 == 0 && count > 0) atomicAdd(degrees + frequent, count);
    count = 0;
  }
};

// A sample is a long stretch of entries, as short ones that follow one another, of which a block takes some. What several
// blocks mark in a long stretch is put together in global memory.
__device__ __forceinline__ void count_columns(Part part, uint32_t* words, uint32_t num_samples, uint64_t nnz,
                                              uint64_t num_cols, const IndexT* __restrict__ col_indices,
                                              uint32_t* degrees, uint32_t* long_marks, Counters* counters) {
  constexpr uint32_t kShortStretch = 1u << kLogShortStretch;
  constexpr uint32_t kLongStretch = 1u << kLogLongStretch;
  constexpr uint32_t kStretches = kLongStretch / kShortStretch;
  constexpr uint32_t kSteps = kShortStretch / kThreadsPerBlock;
  const uint32_t pieces = part.num_blocks / num_samples, sample = part.block / pieces, piece = part.block % pieces;
  if (sample >= num_samples) return;
  const uint64_t begin = sample * nnz / num_samples;
  const uint32_t num_entries = nnz - begin < kLongStretch ? uint32_t(nnz - begin) : kLongStretch;
  const uint32_t first = piece * kStretches / pieces * kShortStretch;
  const uint32_t last = min((piece + 1) * kStretches / pieces * kShortStretch, num_entries);
  if (first >= last) return;
  uint32_t* short_bits = words;
  uint32_t* other_short_bits = words + kShortWords;
  uint32_t* long_bits = words + 2 * kShortWords;
  for (uint32_t word = threadIdx.x; word < 2 * kShortWords + kLongWords; word += kThreadsPerBlock) words[word] = 0;
  __syncthreads();
  col_indices += begin;
  uint32_t marked_short = 0, marked_long = 0;
  DegreeCounter counter = {degrees};
  const bool has_own_place = num_cols <= 1ull << kLogDegreePlaces;
  const uint32_t degree_sample = num_samples <= kFewSamples       ? kDegreeSample
                                 : num_samples <= kSamplesOfSmall ? kShortStretch
                                                                  : 2 * kDegreeSample;
#pragma unroll 1
  for (uint32_t stretch = first; stretch < last; stretch += kShortStretch) {
    const uint32_t own = stretch + threadIdx.x;
    IndexT cols[kSteps];
    // Threads behind the last entry mark what it marks again.
#pragma unroll
    for (uint32_t step = 0; step < kSteps; ++step) {
      cols[step] = __ldcs(col_indices + min(own + step * kThreadsPerBlock, last - 1));
    }
#pragma unroll
    for (uint32_t step = 0; step < kSteps; ++step) {
      // Entries next to each other often read the same sector, and marking it at once would take turns.
      const IndexT col_before = __shfl_up_sync(kAll, cols[step], 1);
      const bool is_first = threadIdx.x % 32 == 0 || col_before / kColsPerSector != cols[step] / kColsPerSector;
      if (is_first) {
        mark<kLogShortBits>(short_bits, cols[step]);
        mark<kLogLongBits>(long_bits, cols[step]);
      }
    }
    if (stretch < degree_sample) {
#pragma unroll
      for (uint32_t step = 0; step < kSteps; ++step) {
        const bool is_entry = own + step * kThreadsPerBlock < last;
        counter.add(is_entry, degree_place(has_own_place, cols[step]), (step * 5 + threadIdx.x / 32) % 32);
      }
    }
    __syncthreads();
    // What the next stretch marks was cleared before this barrier.
    for (uint32_t word = threadIdx.x; word < kShortWords; word += kThreadsPerBlock) {
      marked_short += __popc(short_bits[word]);
      short_bits[word] = 0;
    }
    uint32_t* const counted = short_bits;
    short_bits = other_short_bits;
    other_short_bits = counted;
  }
  counter.end();
  static_assert(kDegreeSample % kShortStretch == 0, "all of a stretch is counted, or nothing");
  long_marks += sample * uint64_t(kLongWords);
  // Some words of a thread wait together.
  constexpr uint32_t kTogether = 4;
  static_assert(kLongWords % (kTogether * kThreadsPerBlock) == 0, "all threads have as many words");
#pragma unroll 1
  for (uint32_t own = threadIdx.x; own < kLongWords; own += kTogether * kThreadsPerBlock) {
    uint32_t own_bits[kTogether], known_bits[kTogether];
#pragma unroll
    for (uint32_t k = 0; k < kTogether; ++k) own_bits[k] = long_bits[own + k * kThreadsPerBlock];
#pragma unroll
    for (uint32_t k = 0; k < kTogether; ++k) {
      known_bits[k] = own_bits[k] != 0 ? atomicOr(long_marks + own + k * kThreadsPerBlock, own_bits[k]) : 0;
    }
#pragma unroll
    for (uint32_t k = 0; k < kTogether; ++k) marked_long += __popc(own_bits[k] & ~known_bits[k]);
  }
  add_of_block(marked_short, &counters->marked[0]);
  add_of_block(marked_long, &counters->marked[1]);
}

// Columns by what samples have in them, whose entries are fewer than 2^32 in all, and zeros in their place.
__device__ __forceinline__ void count_degrees(Part part, uint32_t num_places, uint32_t* degrees, Counters* counters) {
  __shared__ uint32_t cols[kLengthClasses], entries[kLengthClasses];
  if (threadIdx.x < kLengthClasses) cols[threadIdx.x] = entries[threadIdx.x] = 0;
  __syncthreads();
  const uint32_t lane = threadIdx.x % 32;
  // Every lane counts a class; as many entries as the last one is for are in no sample.
  uint32_t cols_of_class = 0, entries_of_class = 0;
  for (uint32_t i = part.block * kThreadsPerBlock + threadIdx.x; i - lane < num_places;
       i += part.num_blocks * kThreadsPerBlock) {
    const bool is_place = i < num_places;
    const uint32_t degree = is_place ? degrees[i] : 0;
    if (degree != 0) degrees[i] = 0;
    const int degree_class = 32 - __clz(degree);
    for (uint32_t waiting = __ballot_sync(kAll, is_place); waiting != 0;) {
      const int class_of_first = __shfl_sync(kAll, degree_class, __ffs(waiting) - 1);
      const bool is_same = is_place && degree_class == class_of_first;
      const uint32_t same = __ballot_sync(kAll, is_same);
      const uint32_t entries_of_same = class_of_first == 0 ? 0 : warp_sum(is_same ? degree : 0);
      if (lane == class_of_first) cols_of_class += __popc(same);
      if (lane == class_of_first) entries_of_class += entries_of_same;
      waiting &= ~same;
    }
  }
  if (cols_of_class > 0) {
    atomicAdd(&cols[lane], cols_of_class);
    atomicAdd(&entries[lane], entries_of_class);
  }
  __syncthreads();
  if (threadIdx.x < kLengthClasses && cols[threadIdx.x] > 0) {
    atomicAdd(&counters->degree_cols[threadIdx.x], uint64_t(cols[threadIdx.x]));
    atomicAdd(&counters->degree_entries[threadIdx.x], uint64_t(entries[threadIdx.x]));
  }
}

// How many keys differ of those that some threads have, a bit of `entries` for each, and this thread is the first to have. A thread
// has written its keys, num_threads from each other; there are `places` owners, a power of two. Every key asks for the place that its hash names, one
// of those that do owns it, and whoever has the owner's key is done: few are left for the next turn, with another hash. The
// whole block takes part, and turns never begin anew, so owners of before are known as such; they are zero in the beginning.
template <int kKeys, typename Key>
__device__ __forceinline__ uint32_t count_different(const Key* keys, uint32_t entries, uint32_t thread,
                                                    uint32_t num_threads, uint32_t* owners, uint32_t places,
                                                    uint32_t& turn) {
  uint32_t different = 0;
  const auto place_of = [&](Key key) {
    uint32_t hash = uint32_t(key);
    if constexpr (sizeof(Key) == 8) hash ^= uint32_t(key >> 32) * 0x85ebca6bu;
    return (hash ^ hash >> 15) * (kHashFactor + 2 * turn) >> 12 & (places - 1);
  };
  // The barrier in the question keeps this turn from the one before.
  while (__syncthreads_or(entries != 0)) {
    ++turn;
#pragma unroll 4
    for (int k = 0; k < kKeys; ++k) {
      const uint32_t number = k * num_threads + thread;
      if (entries >> k & 1) atomicMax(owners + place_of(keys[number]), turn << 16 | number);
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < kKeys; ++k) {
      if ((entries >> k & 1) == 0) continue;
      const uint32_t number = k * num_threads + thread, owner = owners[place_of(keys[number])] & 0xffff;
      different += owner == number;
      if (keys[owner] == keys[number]) entries &= ~(1u << k);
    }
  }
  return different;
}

// The owners of places in a block's shared memory, all of nobody.
__device__ __forceinline__ uint32_t* no_owners(unsigned char* shared) {
  uint32_t* const owners = reinterpret_cast<uint32_t*>(shared + kKeyBytes);
  for (uint32_t place = threadIdx.x; place < kPlaces; place += kThreadsPerBlock) owners[place] = 0;
  return owners;
}

// The first row of a group, of which there is one for each part.
__device__ __forceinline__ uint32_t first_row(Part part, uint32_t num_rows) {
  const uint32_t num_groups = (num_rows + kRowsPerGroup - 1) / kRowsPerGroup;
  return uint32_t(uint64_t(part.block) * num_groups / part.num_blocks) * kRowsPerGroup;
}

// Sectors of x that a warp reads together, from a group's first row on: of its 32 rows entries of the same rank, with so many
// threads a row; and entries that follow one another.
__device__ __forceinline__ void count_gathers(uint32_t first, uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                              const IndexT* __restrict__ col_indices, Counters* counters) {
  constexpr uint32_t kWarps = kThreadsPerBlock / 32;
  constexpr int kItems = kGathersPerRow / kWarps, kItemsInOrder = kGathersInOrder / kThreadsPerBlock;
  static_assert(kItems * kWarps == kGathersPerRow && kItemsInOrder * kThreadsPerBlock == kGathersInOrder, "all take part");
  // No sector has this number.
  constexpr uint32_t kNone = ~0u;
  __shared__ uint32_t counts[kWidths + 3];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (threadIdx.x < kWidths + 3) counts[threadIdx.x] = 0;
  __syncthreads();
  const uint32_t row = first + lane < num_rows ? first + lane : num_rows;
  const OffsetT begin = row_offsets[row], end = row_offsets[row < num_rows ? row + 1 : row];
  const uint32_t length = end - begin < kGathersPerRow ? uint32_t(end - begin) : uint32_t(kGathersPerRow);
  const OffsetT begin_of_first = __shfl_sync(kAll, begin, 0), entries = __shfl_sync(kAll, end, 31) - begin_of_first;
  const uint32_t in_order = entries < kGathersInOrder ? uint32_t(entries) : uint32_t(kGathersInOrder);
  const auto load = [&](bool reads, OffsetT i) { return reads ? uint32_t(col_indices[i] / kColsPerSector) : kNone; };
  const auto different = [&](uint32_t sector) {
    const uint32_t same = __match_any_sync(kAll, sector);
    return __popc(__ballot_sync(kAll, sector != kNone && __ffs(same) - 1 == lane));
  };
#pragma unroll 1
  for (int k = 0; k < kWidths; ++k) {
    // As many steps of as many groups of rows as a row has entries that count. Their loads wait together.
    uint32_t sectors[kItems], count = 0;
#pragma unroll
    for (int item = 0; item < kItems; ++item) {
      const uint32_t number = item * kWarps + warp, in_group = number & ((1u << k) - 1);
      const uint32_t of_group = (in_group << (5 - k)) + (lane >> k);
      const uint32_t entry = number - in_group + (lane & ((1u << k) - 1));
      const OffsetT row_begin = __shfl_sync(kAll, begin, of_group);
      sectors[item] = load(entry < __shfl_sync(kAll, length, of_group), row_begin + entry);
    }
#pragma unroll
    for (int item = 0; item < kItems; ++item) count += different(sectors[item]);
    if (lane == 0) atomicAdd(&counts[k], count);
  }
  uint32_t sectors[kItemsInOrder], count = 0;
#pragma unroll
  for (int item = 0; item < kItemsInOrder; ++item) {
    const uint32_t i = item * kThreadsPerBlock + threadIdx.x;
    sectors[item] = load(i < in_order, begin_of_first + i);
  }
#pragma unroll
  for (int item = 0; item < kItemsInOrder; ++item) count += different(sectors[item]);
  if (lane == 0) atomicAdd(&counts[kWidths], count);
  const uint32_t of_rows = warp_sum(length);
  if (threadIdx.x == 0) counts[kWidths + 1] = of_rows;
  if (threadIdx.x == 0) counts[kWidths + 2] = in_order;
  __syncthreads();
  if (threadIdx.x < kWidths + 3) atomicAdd(&counters->gathers[threadIdx.x], uint64_t(counts[threadIdx.x]));
}

// number / divisor, which is a power of two or three times one.
__device__ __forceinline__ uint32_t quotient(uint32_t number, uint32_t divisor) {
  const uint32_t third = __umulhi(number, 0xaaaaaaabu) >> 1;
  return (divisor % 3 == 0 ? third : number) >> (__ffs(divisor) - 1);
}

// Some blocks take a group of rows, each some shapes. A part of a block's threads takes a shape: as many take shapes side by side as
// there are keys for. A dense block is known by 32 bits; where there are more than 2^26 columns of them, two may be taken for one.
__device__ __forceinline__ void count_blocks(uint32_t first, uint32_t part, unsigned char* shared, uint32_t num_rows,
                                             const OffsetT* __restrict__ row_offsets,
                                             const IndexT* __restrict__ col_indices, Counters* counters) {
  constexpr uint32_t kFewestSides = 2;
  constexpr int kSteps = (kMaxGroupEntries * kFewestSides + kThreadsPerBlock - 1) / kThreadsPerBlock;
  static_assert(kMaxGroupEntries * kFewestSides <= kPlaces && kPlaces * 4 <= kKeyBytes, "keys and owners have room");
  // The entries of the group: columns, and rows in the group.
  __shared__ uint32_t cols_of[kMaxGroupEntries];
  __shared__ unsigned char rows_of[kMaxGroupEntries];
  __shared__ OffsetT ends[kRowsPerGroup];
  __shared__ uint32_t blocks_of_shape[kNumShapes + 1];
  const auto end_of = [&](uint32_t rows) { return first + rows < num_rows ? first + rows : num_rows; };
  const OffsetT begin = row_offsets[first];
  uint32_t last = end_of(kRowsPerGroup);
  if (row_offsets[last] - begin > kMaxGroupEntries) last = end_of(kRowsPerGroup / 2);
  const OffsetT end = row_offsets[last];
  if (end - begin > kMaxGroupEntries) return;
  const uint32_t times = end - begin <= kMaxGroupEntries / 4 ? 4 : end - begin <= kMaxGroupEntries / 2 ? 2 : 1;
  const uint32_t sides = times * kFewestSides, num_threads = kThreadsPerBlock / sides, places = kPlaces / sides;
  if (part * sides > kNumShapes) return;
  if (threadIdx.x <= kNumShapes) blocks_of_shape[threadIdx.x] = 0;
  if (threadIdx.x < kRowsPerGroup) ends[threadIdx.x] = row_offsets[min(first + threadIdx.x + 1, last)];
  if (threadIdx.x == 0 && part == 0) atomicAdd(&counters->grouped, uint64_t(end - begin));
  uint32_t* const owners = no_owners(shared);
  __syncthreads();
  const uint32_t side = threadIdx.x / num_threads, thread = threadIdx.x % num_threads;
  for (uint32_t i = threadIdx.x; i < uint32_t(end - begin); i += kThreadsPerBlock) {
    uint32_t row = 0;
#pragma unroll
    for (uint32_t rows = 16; rows > 0; rows /= 2) {
      if (row + rows < kRowsPerGroup && ends[row + rows - 1] <= begin + i) row += rows;
    }
    cols_of[i] = uint32_t(col_indices[begin + i]);
    rows_of[i] = row;
  }
  __syncthreads();
  uint32_t turn = 0;
  // Behind the shapes come diagonals.
#pragma unroll 1
  for (uint32_t next = part * sides; next <= kNumShapes; next += kPartsOfGroup * sides) {
    const uint32_t shape = next + side;
    const bool is_shape = shape <= kNumShapes, is_diagonal = shape == kNumShapes;
    const uint32_t rows = is_shape && !is_diagonal ? kShapeRows >> 4 * shape & 15 : 1;
    const uint32_t cols = is_shape && !is_diagonal ? kShapeCols >> 4 * shape & 15 : 1;
    uint32_t* const keys = reinterpret_cast<uint32_t*>(shared) + side * places;
    uint32_t entries = 0;
    const auto key_of = [&](uint32_t row_of, uint32_t col_of) {
      return is_diagonal ? col_of + kRowsPerGroup - row_of
                         : quotient(row_of, rows) << kLogBlockCols ^ quotient(col_of, cols);
    };
#pragma unroll 4
    for (int step = 0; step < kSteps; ++step) {
      const uint32_t i = step * num_threads + thread;
      if (!is_shape || i >= uint32_t(end - begin)) continue;
      const uint32_t row = rows_of[i], key = key_of(row, cols_of[i]);
      // Neighbours in a row are in one block often, and one of them counts.
      if (i > 0 && rows_of[i - 1] == row && key_of(row, cols_of[i - 1]) == key) continue;
      keys[i] = key;
      entries |= 1u << step;
    }
    const uint32_t blocks = warp_sum(
        count_different<kSteps>(keys, entries, thread, num_threads, owners + side * places, places, turn));
    if (threadIdx.x % 32 == 0 && blocks > 0) atomicAdd(blocks_of_shape + shape, blocks);
  }
  __syncthreads();
  const bool has_any = threadIdx.x <= kNumShapes && blocks_of_shape[threadIdx.x] > 0;
  if (has_any && threadIdx.x < kNumShapes) {
    atomicAdd(&counters->blocks[threadIdx.x], uint64_t(blocks_of_shape[threadIdx.x]));
  } else if (has_any) {
    atomicMax(&counters->group_diagonals, uint64_t(blocks_of_shape[kNumShapes]));
  }
}

// Every bit of the number on half of the bits (the finalizer of SplitMix64).
__device__ __forceinline__ uint64_t mixed(uint64_t number) {
  number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
  number = (number ^ number >> 27) * 0x94d049bb133111ebu;
  return number ^ number >> 31;
}

// A warp hashes a row: how far its entries are from the diagonal, and their values. Longer ones are compared nowhere.
__device__ __forceinline__ void hash_rows(uint32_t block, uint32_t num_rows, uint32_t value_bytes,
                                          const OffsetT* __restrict__ row_offsets,
                                          const IndexT* __restrict__ col_indices, const void* __restrict__ values,
                                          Counters* counters) {
  const uint32_t number = (block * kThreadsPerBlock + threadIdx.x) / 32;
  const uint32_t row = (num_rows > kComparedRows ? (num_rows - kComparedRows) / 2 : 0) + number;
  if (number >= kComparedRows || row >= num_rows) return;
  const OffsetT begin = row_offsets[row], end = row_offsets[row + 1];
  if (end - begin > kComparedDiagonals) return;
  uint64_t hash = 0;
  for (OffsetT i = begin + threadIdx.x % 32; i < end; i += 32) {
    uint64_t of_entry = mixed(mixed(i - begin + 1) + col_indices[i] - row);
    if (value_bytes == 1) of_entry = mixed(of_entry + static_cast<const unsigned char*>(values)[i]);
    if (value_bytes == 2) of_entry = mixed(of_entry + static_cast<const uint16_t*>(values)[i]);
    for (uint32_t word = 0; word < value_bytes / 4; ++word) {
      of_entry = mixed(of_entry + static_cast<const uint32_t*>(values)[uint64_t(i) * (value_bytes / 4) + word]);
    }
    hash += of_entry;
  }
  hash = warp_sum(hash);
  if (threadIdx.x % 32 == 0) counters->rows[number] = hash;
}

// Whether a number is no whole one from -127 to 127, by its bits: -0 is none of them.
template <typename T, typename Bits>
__device__ __forceinline__ bool is_uneven(T read, Bits bits) {
  const T whole = T(read >= T(-127) && read <= T(127) ? int(read) : 0);
  return *reinterpret_cast<const Bits*>(&whole) != bits;
}

// One block takes samples of the values: which of them differ, which of 8 bytes, read as f64, are no f32, and which of 4 or 8,
// read as f32 or f64, are no small whole numbers.
__device__ __forceinline__ void count_values(unsigned char* shared, uint64_t nnz, uint32_t value_bytes,
                                             const void* __restrict__ values, Counters* counters) {
  constexpr int kSteps = (kSampledValues + kThreadsPerBlock - 1) / kThreadsPerBlock;
  static_assert(kSampledValues <= kPlaces && kSampledValues * 8 <= kKeyBytes, "keys and owners have room");
  if (value_bytes > 8) return;
  uint32_t* const owners = no_owners(shared);
  const uint32_t count = nnz < kSampledValues ? uint32_t(nnz) : kSampledValues;
  uint32_t entries = 0, wide = 0, uneven = 0, turn = 0;
  uint64_t* const keys = reinterpret_cast<uint64_t*>(shared);
#pragma unroll 2
  for (int step = 0; step < kSteps; ++step) {
    const uint32_t number = step * kThreadsPerBlock + threadIdx.x;
    if (number >= count) continue;
    uint64_t bits = 0;
    entries |= 1u << step;
    const uint64_t i = nnz < kSampledValues ? number : number * nnz / kSampledValues;
    if (value_bytes == 1) bits = static_cast<const unsigned char*>(values)[i];
    if (value_bytes == 2) bits = static_cast<const uint16_t*>(values)[i];
    if (value_bytes == 4) bits = static_cast<const uint32_t*>(values)[i];
    if (value_bytes == 8) bits = static_cast<const uint64_t*>(values)[i];
    keys[number] = bits;
  }
#pragma unroll 1
  for (int step = 0; step < kSteps; ++step) {
    if ((entries >> step & 1) == 0) continue;
    const uint64_t bits = keys[step * kThreadsPerBlock + threadIdx.x];
    if (value_bytes == 4) uneven += is_uneven(__uint_as_float(uint32_t(bits)), uint32_t(bits));
    if (value_bytes == 8) {
      const double read = __longlong_as_double(bits);
      wide += double(float(read)) != read;
      uneven += is_uneven(read, bits);
    }
  }
  const uint32_t different =
      count_different<kSteps>(keys, entries, threadIdx.x, kThreadsPerBlock, owners, kPlaces, turn);
  add_of_block(different, &counters->different_values);
  add_of_block(wide, &counters->wide_values);
  add_of_block(uneven, &counters->uneven_values);
}

// How many blocks of the first launch are resident: before 9.0 the compiler lacks a register for a third.
#if __CUDA_ARCH__ >= 900
constexpr int kResidentBlocks = 1536 / kThreadsPerBlock;
#else
constexpr int kResidentBlocks = 1024 / kThreadsPerBlock;
#endif

// The first blocks take groups of rows, for what is counted in them takes longest; those that follow a piece of a sample
// of columns, then a group of rows each once more; then one samples of the values, some hashed rows, and the rest the lengths of
// all rows. Behind the counters are what samples have in
// columns, and `first_mark` words from there on what is marked in long stretches. `diagonals` are zero from now on.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, kResidentBlocks)
spmv_analysis_structure(uint32_t num_samples, uint32_t num_pieces, uint32_t num_groups, uint32_t num_rows,
                        uint64_t num_cols, uint64_t nnz, uint32_t value_bytes, const OffsetT* __restrict__ row_offsets,
                        const IndexT* __restrict__ col_indices, const void* __restrict__ values, uint64_t first_mark,
                        Counters* counters, uint32_t* diagonals) {
  await_stream();
  clear(diagonals, (num_rows + num_cols + 31) / 32);
  __shared__ __align__(8) unsigned char shared[kShared];
  constexpr uint32_t kHashBlocks = kComparedRows / (kThreadsPerBlock / 32);
  const uint32_t grouped = num_groups * kPartsOfGroup, looked_at = grouped + num_pieces, gathered = looked_at + num_groups, hashed = gathered + 1;
  const uint32_t others = hashed + kHashBlocks;
  if (blockIdx.x < grouped) {
    const uint32_t first = first_row({blockIdx.x / kPartsOfGroup, num_groups}, num_rows);
    count_blocks(first, blockIdx.x % kPartsOfGroup, shared, num_rows, row_offsets, col_indices, counters);
  } else if (blockIdx.x < looked_at) {
    uint32_t* words = reinterpret_cast<uint32_t*>(shared);
    count_columns({blockIdx.x - grouped, num_pieces}, words, num_samples, nnz, num_cols, col_indices,
                  behind(counters), behind(counters) + first_mark, counters);
  } else if (blockIdx.x < gathered) {
    const uint32_t first = first_row({blockIdx.x - looked_at, num_groups}, num_rows);
    count_gathers(first, num_rows, row_offsets, col_indices, counters);
  } else if (blockIdx.x < hashed) {
    count_values(shared, nnz, value_bytes, values, counters);
  } else if (blockIdx.x < others) {
    hash_rows(blockIdx.x - hashed, num_rows, value_bytes, row_offsets, col_indices, values, counters);
  } else {
    const auto length_of = [=](uint32_t row) { return row_offsets[row + 1] - row_offsets[row]; };
    count_lengths<OffsetT>({blockIdx.x - others, gridDim.x - others}, num_rows, length_of, counters);
  }
}

// Whether diagonals are worth counting, by what was counted before: Features::may_be_diagonal.
__device__ __forceinline__ bool may_be_diagonal(uint64_t num_rows, uint64_t nnz, const Counters* counters) {
  const uint64_t longest_row = counters->longest_row, diagonals = counters->group_diagonals;
  return diagonals > 0 && longest_row <= 2 * nnz / num_rows && diagonals <= 2 * nnz / num_rows;
}

// A bit for each diagonal that holds an entry, rising from the lower left corner. A block remembers diagonals that have their
// bits: all would read the same few words else.
struct DiagonalMarker {
  static constexpr uint32_t kRemembered = 1024;
  // No diagonal has this number.
  static constexpr uint32_t kNone = ~0u;
  uint32_t* bits;
  uint32_t* remembered;
  uint32_t count = 0;

  __device__ __forceinline__ void mark(uint32_t diagonal) {
    if (atomicExch(remembered + diagonal % kRemembered, diagonal) == diagonal) return;
    const uint32_t bit = 1u << diagonal % 32;
    uint32_t* const word = bits + diagonal / 32;
    // Most bits are there already, and reading is cheaper.
    if ((*static_cast<volatile uint32_t*>(word) & bit) == 0) count += (atomicOr(word, bit) & bit) == 0;
  }
};

// Where rows are long, a warp takes one after the other, four at once, and shares 32 with others where rows are few. An entry
// that continues the diagonal of the entry of the same rank in the row before is left to that one.
__device__ __forceinline__ void mark_long_rows(Part part, uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                               const IndexT* __restrict__ col_indices, DiagonalMarker& marker) {
  constexpr uint32_t kTogether = 4;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t num_parts = (num_rows + 31) / 32, all_warps = part.num_blocks * (kThreadsPerBlock / 32);
  const uint32_t sharing = all_warps / 4 >= num_parts ? 4 : 1;
#pragma unroll 1
  for (uint32_t warp = (part.block * kThreadsPerBlock + threadIdx.x) / 32; warp / sharing < num_parts;
       warp += all_warps) {
    const uint32_t first = warp / sharing * 32;
    const bool is_row = first + lane < num_rows;
    const OffsetT own_begin = is_row ? row_offsets[first + lane] : 0;
    const OffsetT own_end = is_row ? row_offsets[first + lane + 1] : 0;
#pragma unroll 1
    for (uint32_t next = warp % sharing * kTogether; next < 32; next += sharing * kTogether) {
      OffsetT at[kTogether], ends[kTogether];
      bool is_any = false;
#pragma unroll
      for (uint32_t u = 0; u < kTogether; ++u) {
        at[u] = __shfl_sync(kAll, own_begin, next + u);
        ends[u] = __shfl_sync(kAll, own_end, next + u);
        is_any |= at[u] < ends[u];
        at[u] += lane;
      }
      while (is_any) {
        uint32_t cols[kTogether];
#pragma unroll
        for (uint32_t u = 0; u < kTogether; ++u) cols[u] = at[u] < ends[u] ? uint32_t(__ldg(col_indices + at[u])) : 0;
        is_any = false;
#pragma unroll
        for (uint32_t u = 0; u < kTogether; ++u) {
          const bool is_known = u > 0 && at[u - 1] - 32 < ends[u - 1] && cols[u - 1] + 1 == cols[u];
          if (at[u] < ends[u] && !is_known) marker.mark(num_rows - 1 - (first + next + u) + cols[u]);
          at[u] += 32;
          is_any |= at[u] - lane < ends[u];
        }
      }
    }
  }
}

// So many rows from one on, where these and the one before are equally long: the entry of the same rank in the row before is at a
// distance, and one that continues its diagonal is left to it. Else nothing is marked.
template <uint32_t kRows>
__device__ __forceinline__ bool mark_regular_rows(uint32_t first, uint32_t num_rows,
                                                  const OffsetT* __restrict__ row_offsets,
                                                  const IndexT* __restrict__ col_indices, DiagonalMarker& marker) {
  constexpr int kUnroll = kRows / 32;
  if (first == 0 || first + kRows > num_rows) return false;
  const uint32_t lane = threadIdx.x % 32;
  const OffsetT begin = row_offsets[first], length = begin - row_offsets[first - 1];
  bool is_like_before = true;
#pragma unroll
  for (uint32_t row = 0; row < kRows; row += 32) {
    is_like_before &= row_offsets[first + row + lane + 1] - begin == (row + lane + 1) * length;
  }
  if (!__all_sync(kAll, is_like_before)) return false;
  const IndexT* at = col_indices + begin + lane;
#pragma unroll 1
  for (uint32_t step = 0; step < uint32_t(length); ++step, at += kRows) {
    uint32_t cols[kUnroll], cols_before[kUnroll];
    bool is_any_new = false;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      cols[u] = uint32_t(__ldg(at + u * 32));
      cols_before[u] = uint32_t(__ldg(at + u * 32 - length));
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) is_any_new |= cols_before[u] + 1 != cols[u];
    if (!is_any_new) continue;
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const uint32_t row = first + (step * kRows + u * 32 + lane) / uint32_t(length);
      if (cols_before[u] + 1 != cols[u]) marker.mark(num_rows - 1 - row + cols[u]);
    }
  }
  return true;
}

// Where rows are short, a warp takes 128 at once, or as many as are alike.
__device__ __forceinline__ void mark_short_rows(Part part, uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                                                const IndexT* __restrict__ col_indices, DiagonalMarker& marker) {
  constexpr uint32_t kRows = 128;
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t num_parts = (num_rows + kRows - 1) / kRows, all_warps = part.num_blocks * (kThreadsPerBlock / 32);
  const uint64_t warp = (part.block * kThreadsPerBlock + threadIdx.x) / 32;
  // Parts that follow one another: those at the ends of a grid's lines, which take longer, would be the same warp's else.
  const uint32_t last = uint32_t((warp + 1) * num_parts / all_warps);
#pragma unroll 1
  for (uint32_t next = uint32_t(warp * num_parts / all_warps); next < last; ++next) {
    const uint32_t first = next * kRows;
    if (mark_regular_rows<kRows>(first, num_rows, row_offsets, col_indices, marker)) continue;
#pragma unroll 1
    for (uint32_t row = first; row < first + kRows && row < num_rows; row += 32) {
      if (mark_regular_rows<32>(row, num_rows, row_offsets, col_indices, marker)) continue;
      const OffsetT own_end = row_offsets[min(row + lane, num_rows - 1) + 1];
      const OffsetT begin = row_offsets[row], end = __shfl_sync(kAll, own_end, 31);
#pragma unroll 1
      for (OffsetT step = begin; step < end; step += 32 * 2) {
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          // Lanes behind the last entry look at it again.
          const OffsetT i = min(OffsetT(step + u * 32 + lane), OffsetT(end - 1));
          const uint32_t col = uint32_t(__ldg(col_indices + i));
          // The row of an entry: the first that ends behind it.
          uint32_t of_entry = 0;
#pragma unroll
          for (uint32_t rows_before = 16; rows_before > 0; rows_before /= 2) {
            if (__shfl_sync(kAll, own_end, of_entry + rows_before - 1) <= i) of_entry += rows_before;
          }
          marker.mark(num_rows - 1 - (row + of_entry) + col);
        }
      }
    }
  }
}

__device__ __forceinline__ void mark_diagonals(Part part, uint32_t num_rows, uint64_t nnz,
                                               const OffsetT* __restrict__ row_offsets,
                                               const IndexT* __restrict__ col_indices, uint32_t* bits,
                                               uint64_t* num_diagonals) {
  __shared__ uint32_t remembered[DiagonalMarker::kRemembered];
  for (uint32_t place = threadIdx.x; place < DiagonalMarker::kRemembered; place += kThreadsPerBlock) {
    remembered[place] = DiagonalMarker::kNone;
  }
  __syncthreads();
  DiagonalMarker marker = {bits, remembered};
  if (nnz / num_rows >= 16) {
    mark_long_rows(part, num_rows, row_offsets, col_indices, marker);
  } else {
    mark_short_rows(part, num_rows, row_offsets, col_indices, marker);
  }
  const uint32_t count = warp_sum(marker.count);
  if (threadIdx.x % 32 == 0 && count > 0) atomicAdd(num_diagonals, uint64_t(count));
}

// The first blocks take the columns of samples, the others diagonals. What is marked in samples, so many words, goes.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock, (sizeof(OffsetT) == 4 ? 1536 : 1024) / kThreadsPerBlock)
spmv_analysis_details(uint32_t num_degree_blocks, uint32_t num_places, uint32_t num_rows, uint64_t nnz,
                      const OffsetT* __restrict__ row_offsets, const IndexT* __restrict__ col_indices, uint64_t num_marks,
                      Counters* counters, uint32_t* diagonals, uint64_t* told) {
  await_stream();
  clear(behind(counters) + num_places, num_marks);
  if (blockIdx.x < num_degree_blocks) {
    count_degrees({blockIdx.x, num_degree_blocks}, num_places, behind(counters), counters);
  } else if (may_be_diagonal(num_rows, nnz, counters)) {
    const Part part = {blockIdx.x - num_degree_blocks, gridDim.x - num_degree_blocks};
    mark_diagonals(part, num_rows, nnz, row_offsets, col_indices, diagonals, &counters->num_diagonals);
  }
  tell(counters, told);
}
