// row_patterns: rows that are equal but for their place are stored once; a thread a few rows, a byte each.
//
// Formula:   y[r] <- alpha * sum over e of values[e] * x[r + offsets[e]] + beta * y[r], over the entries of the pattern of row r
// Paper:     the project's own
// Suits:     constant coefficients on regular grids: stencils, lattices and finite elements whose rows differ at borders only
// Suffers:   more than 256 different rows, of which values that differ from row to row make as many: refused; values that change (they are copied when a plan is made)
// Bytes:     rows * (1 + y) + x once; the patterns stay in L1; keeps its own values
// Guarantee: bit-reproducible; a row is one chain in the order of the matrix
// Launch:    a thread a few rows, a warp apart; one pass; patterns are found, compared entry by entry and stored on the device by four passes, once
#ifndef SPMV_GENERATED
#include "prelude/default.cuh"
constexpr int kRowsPerLane = 4;
#include "prelude/arithmetic.cuh"
#include "prelude/scaling.cuh"
#include "prelude/unsigned.cuh"
#endif

// Patterns have numbers of one byte; a hash table has four times as many entries.
constexpr uint32_t kMostPatterns = 256;
constexpr uint32_t kHashEntries = 4 * kMostPatterns;

// An entry of a pattern: how far its column is behind the row's number, and its value.
struct alignas(sizeof(ValueT) > 8 ? 32 : sizeof(ValueT) > 4 ? 16 : 8) PatternEntry {
  int32_t offset;
  ValueT value;
};

__device__ __forceinline__ uint64_t mixed(uint64_t key, uint64_t bits) {
  key = (key ^ bits) * 0x9e3779b97f4a7c15ull;
  return key ^ key >> 29;
}
// Values differ where their bits do.
template <typename T>
__device__ __forceinline__ uint64_t mixed_value(uint64_t key, const T& value) {
  if constexpr (sizeof(T) == 16) {
    const uint64_t* halves = reinterpret_cast<const uint64_t*>(&value);
    return mixed(mixed(key, halves[0]), halves[1]);
  } else {
    return mixed(key, *reinterpret_cast<const typename UnsignedOf<sizeof(T)>::Type*>(&value));
  }
}
template <typename T>
__device__ __forceinline__ bool are_same(const T& a, const T& b) {
  if constexpr (sizeof(T) == 16) {
    const uint64_t* first = reinterpret_cast<const uint64_t*>(&a);
    const uint64_t* second = reinterpret_cast<const uint64_t*>(&b);
    return first[0] == second[0] && first[1] == second[1];
  } else {
    using Bits = typename UnsignedOf<sizeof(T)>::Type;
    return *reinterpret_cast<const Bits*>(&a) == *reinterpret_cast<const Bits*>(&b);
  }
}

// A thread a row: finds the row's entry in the hash table by what the row is but for its place, or takes a free one. The
// first row of each entry is kept inverted, so that memory full of zeros is none. num_patterns <- how many there are, or
// some number above kMostPatterns.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_row_patterns_find(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                       const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values, uint64_t* keys,
                       uint32_t* inverted_rows, uint16_t* __restrict__ row_entries, uint64_t* num_patterns) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows || *static_cast<volatile uint64_t*>(num_patterns) > kMostPatterns) return;
  const OffsetT begin = __ldg(row_offsets + row), end = __ldg(row_offsets + row + 1);
  uint64_t key = mixed(1, end - begin);
#pragma unroll 4
  for (OffsetT j = begin; j < end; ++j) {
    key = mixed_value(mixed(key, uint32_t(__ldg(col_indices + j)) - row), __ldg(values + j));
  }
  if (key == 0) key = 1;
  uint32_t entry = uint32_t(key >> 32) % kHashEntries;
  while (*static_cast<volatile uint64_t*>(num_patterns) <= kMostPatterns) {
    // Most patterns are there already, and reading is cheaper.
    uint64_t found = static_cast<volatile uint64_t*>(keys)[entry];
    if (found == 0) {
      found = atomicCAS(keys + entry, uint64_t(0), key);
      if (found == 0) atomicAdd(num_patterns, uint64_t(1));
    }
    if (found == 0 || found == key) {
      if (static_cast<volatile uint32_t*>(inverted_rows)[entry] < ~row) atomicMax(inverted_rows + entry, ~row);
      row_entries[row] = uint16_t(entry);
      return;
    }
    entry = (entry + 1) % kHashEntries;
  }
}

// One block: patterns get numbers by their first rows, and their entries places one behind the other.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_row_patterns_number(const OffsetT* __restrict__ row_offsets, const uint64_t* __restrict__ keys,
                         const uint32_t* __restrict__ inverted_rows, uint32_t* __restrict__ numbers,
                         uint32_t* __restrict__ first_rows, OffsetT* __restrict__ pattern_offsets,
                         uint64_t* num_entries) {
  await_stream();
  __shared__ uint32_t rows[kHashEntries];
  __shared__ OffsetT lengths[kMostPatterns];
  constexpr uint32_t kNoRow = 0xffffffffu;
  for (uint32_t entry = threadIdx.x; entry < kHashEntries; entry += kThreadsPerBlock) {
    rows[entry] = keys[entry] == 0 ? kNoRow : ~inverted_rows[entry];
  }
  __syncthreads();
  for (uint32_t entry = threadIdx.x; entry < kHashEntries; entry += kThreadsPerBlock) {
    const uint32_t row = rows[entry];
    if (row == kNoRow) continue;
    uint32_t number = 0;
#pragma unroll 8
    for (uint32_t other = 0; other < kHashEntries; ++other) number += rows[other] < row;
    numbers[entry] = number;
    first_rows[number] = row;
    lengths[number] = row_offsets[row + 1] - row_offsets[row];
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    uint32_t num_patterns = 0;
#pragma unroll 8
    for (uint32_t entry = 0; entry < kHashEntries; ++entry) num_patterns += rows[entry] != kNoRow;
    OffsetT offset = 0;
    for (uint32_t number = 0; number < num_patterns; ++number) {
      pattern_offsets[number] = offset;
      offset += lengths[number];
    }
    pattern_offsets[num_patterns] = offset;
    *num_entries = offset;
  }
}

// A thread a row: its pattern; num_misfits <- the rows that are not equal to the first row of theirs.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_row_patterns_compare(uint32_t num_rows, const OffsetT* __restrict__ row_offsets,
                          const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                          const uint16_t* __restrict__ row_entries, const uint32_t* __restrict__ numbers,
                          const uint32_t* __restrict__ first_rows, unsigned char* __restrict__ row_patterns,
                          uint64_t* num_misfits) {
  await_stream();
  const uint32_t row = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  if (row >= num_rows) return;
  const uint32_t number = __ldg(numbers + row_entries[row]);
  const uint32_t first_row = __ldg(first_rows + number);
  const OffsetT begin = __ldg(row_offsets + row), first_begin = __ldg(row_offsets + first_row);
  const OffsetT length = __ldg(row_offsets + row + 1) - begin;
  bool fits = length == __ldg(row_offsets + first_row + 1) - first_begin;
#pragma unroll 4
  for (OffsetT k = 0; fits && k < length; ++k) {
    const uint32_t col = __ldg(col_indices + begin + k), first_col = __ldg(col_indices + first_begin + k);
    fits = col - row == first_col - first_row && are_same(__ldg(values + begin + k), __ldg(values + first_begin + k));
  }
  row_patterns[row] = (unsigned char)(number);
  if (!fits) atomicAdd(num_misfits, uint64_t(1));
}

// A warp a pattern: its entries.
extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_row_patterns_store(uint32_t num_patterns, const OffsetT* __restrict__ row_offsets,
                        const IndexT* __restrict__ col_indices, const ValueT* __restrict__ values,
                        const uint32_t* __restrict__ first_rows, const OffsetT* __restrict__ pattern_offsets,
                        PatternEntry* __restrict__ entries) {
  await_stream();
  const uint32_t thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint32_t number = thread / 32;
  if (number >= num_patterns) return;
  const uint32_t row = first_rows[number];
  const OffsetT from = row_offsets[row], to = pattern_offsets[number];
  for (OffsetT k = thread % 32; k < row_offsets[row + 1] - from; k += 32) {
    PatternEntry entry = {};
    entry.offset = int32_t(uint32_t(col_indices[from + k]) - row);
    entry.value = values[from + k];
    entries[to + k] = entry;
  }
}

// A whole entry by one load where it has up to 16 bytes.
__device__ __forceinline__ PatternEntry load_entry(const PatternEntry* __restrict__ from) {
  if constexpr (sizeof(PatternEntry) == 8) {
    const uint2 bits = __ldg(reinterpret_cast<const uint2*>(from));
    return *reinterpret_cast<const PatternEntry*>(&bits);
  } else if constexpr (sizeof(PatternEntry) == 16) {
    const uint4 bits = __ldg(reinterpret_cast<const uint4*>(from));
    return *reinterpret_cast<const PatternEntry*>(&bits);
  } else {
    return *from;
  }
}

// Entries of a row whose loads are in flight together: where a warp has one pattern, and where every row has its own. More
// take registers from all warps: with four rows a lane and two steps, a product took 1.1 to 1.3 times as long.
constexpr int kSteps = 4;
constexpr int kOwnSteps = kRowsPerLane < 4 ? 4 / kRowsPerLane : 1;

extern "C" __global__ void __launch_bounds__(kThreadsPerBlock)
spmv_row_patterns(uint32_t num_rows, const OffsetT* __restrict__ pattern_offsets,
                  const PatternEntry* __restrict__ entries, const unsigned char* __restrict__ row_patterns,
                  const XT* __restrict__ x, YT* __restrict__ y, AlphaT alpha, BetaT beta) {
  await_stream();
  const uint32_t thread = blockIdx.x * kThreadsPerBlock + threadIdx.x;
  const uint32_t lane = thread % 32;
  const uint32_t warp_row = thread / 32 * (32 * kRowsPerLane);
  const uint32_t first_row = warp_row + lane;
  if (warp_row >= num_rows || skips_product(alpha)) {
#pragma unroll
    for (int r = 0; r < kRowsPerLane; ++r) {
      const uint32_t row = first_row + 32 * r;
      if (row < num_rows) store_scaled(y, row, kIdentity, alpha, beta);
    }
    return;
  }
  uint32_t patterns[kRowsPerLane];
#pragma unroll
  for (int r = 0; r < kRowsPerLane; ++r) {
    const uint32_t row = first_row + 32 * r;
    patterns[r] = row < num_rows ? __ldcs(row_patterns + row) : kMostPatterns;
  }
  const uint32_t pattern = __shfl_sync(0xffffffffu, patterns[0], 0);
  bool is_common = true;
#pragma unroll
  for (int r = 0; r < kRowsPerLane; ++r) is_common = is_common && patterns[r] == pattern;
  AccumT sums[kRowsPerLane];
#pragma unroll
  for (int r = 0; r < kRowsPerLane; ++r) sums[r] = kIdentity;
  if (__all_sync(0xffffffffu, is_common)) {
    // Most warps: every entry is loaded once for all rows of a lane.
    const OffsetT begin = __ldg(pattern_offsets + pattern);
    const uint32_t length = uint32_t(__ldg(pattern_offsets + pattern + 1) - begin);
    for (uint32_t k = 0; k < length; k += kSteps) {
      PatternEntry loaded[kSteps];
      XT read[kSteps][kRowsPerLane];
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
        if (k + s < length) loaded[s] = load_entry(entries + begin + k + s);
      }
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
#pragma unroll
        for (int r = 0; r < kRowsPerLane; ++r) {
          if (k + s < length) read[s][r] = __ldg(x + (first_row + loaded[s].offset) + 32 * r);
        }
      }
#pragma unroll
      for (int s = 0; s < kSteps; ++s) {
#pragma unroll
        for (int r = 0; r < kRowsPerLane; ++r) {
          if (k + s < length) {
            const IndexT col = IndexT(first_row + loaded[s].offset + 32 * r);
            sums[r] = combine_reduce(AccumT(loaded[s].value), AccumT(read[s][r]), col, sums[r]);
          }
        }
      }
    }
  } else {
    OffsetT begins[kRowsPerLane];
    uint32_t lengths[kRowsPerLane];
    uint32_t longest = 0;
#pragma unroll
    for (int r = 0; r < kRowsPerLane; ++r) {
      const bool is_row = patterns[r] < kMostPatterns;
      begins[r] = is_row ? __ldg(pattern_offsets + patterns[r]) : 0;
      lengths[r] = is_row ? uint32_t(__ldg(pattern_offsets + patterns[r] + 1) - begins[r]) : 0;
      longest = lengths[r] > longest ? lengths[r] : longest;
    }
    for (uint32_t k = 0; k < longest; k += kOwnSteps) {
      PatternEntry loaded[kOwnSteps][kRowsPerLane];
      XT read[kOwnSteps][kRowsPerLane];
#pragma unroll
      for (int s = 0; s < kOwnSteps; ++s) {
#pragma unroll
        for (int r = 0; r < kRowsPerLane; ++r) {
          if (k + s < lengths[r]) loaded[s][r] = load_entry(entries + begins[r] + k + s);
        }
      }
#pragma unroll
      for (int s = 0; s < kOwnSteps; ++s) {
#pragma unroll
        for (int r = 0; r < kRowsPerLane; ++r) {
          if (k + s < lengths[r]) read[s][r] = __ldg(x + (first_row + 32 * r + loaded[s][r].offset));
        }
      }
#pragma unroll
      for (int s = 0; s < kOwnSteps; ++s) {
#pragma unroll
        for (int r = 0; r < kRowsPerLane; ++r) {
          if (k + s < lengths[r]) {
            const IndexT col = IndexT(first_row + 32 * r + loaded[s][r].offset);
            sums[r] = combine_reduce(AccumT(loaded[s][r].value), AccumT(read[s][r]), col, sums[r]);
          }
        }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsPerLane; ++r) {
    const uint32_t row = first_row + 32 * r;
    if (row < num_rows) store_scaled(y, row, sums[r], alpha, beta);
  }
}
