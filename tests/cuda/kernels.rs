//! Kernels of many threads, each beside what it must leave in memory, computed in Rust: warp-wide operations,
//! atomics, barriers, memory spaces, control flow, small and structured types.

/// A kernel (const uint64_t* in, uint64_t* out, int count, Settings settings).
pub struct Kernel {
    pub name: &'static str,
    /// Text before the kernel.
    pub declarations: &'static str,
    pub body: &'static str,
    /// The first architecture that has the instructions.
    pub since: u32,
    pub blocks: u32,
    pub threads: u32,
    pub shared_bytes: u32,
    /// Words that it leaves in `out`, which is zero before.
    pub outputs: usize,
    /// From the words of `in`, one a thread of the grid.
    pub expected: fn(&[u64]) -> Vec<u64>,
}

const PRELUDE: &str = r#"
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
struct Settings {
  uint8_t small;
  double scale;
  int16_t table[5];
  float3 point;
};
"#;

/// The settings as they lie in parameter space, and what is in them.
pub fn settings() -> Vec<u8> {
    let mut bytes = vec![0u8; 40];
    bytes[0] = 7;
    bytes[8..16].copy_from_slice(&2.5f64.to_le_bytes());
    for (index, entry) in [3i16, -1, 4, -1, 5].into_iter().enumerate() {
        bytes[16 + 2 * index..18 + 2 * index].copy_from_slice(&entry.to_le_bytes());
    }
    for (index, entry) in [1.0f32, 2.0, 4.0].into_iter().enumerate() {
        bytes[28 + 4 * index..32 + 4 * index].copy_from_slice(&entry.to_le_bytes());
    }
    bytes
}

impl Kernel {
    pub fn source(&self) -> String {
        format!(
            "{PRELUDE}{}\nextern \"C\" __global__ void {}(const uint64_t* in, uint64_t* out, int count, Settings settings) {{\n  \
             const int i = blockIdx.x * blockDim.x + threadIdx.x;\n{}\n}}\n",
            self.declarations, self.name, self.body
        )
    }

    pub fn count(&self) -> usize {
        (self.blocks * self.threads) as usize
    }

    /// The words of `in`: small numbers.
    pub fn words(&self) -> Vec<u64> {
        let mut state = 1u64;
        (0..self.count())
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 33 & 0x3ff
            })
            .collect()
    }
}

fn per_thread(words: &[u64], f: impl Fn(usize, u64) -> u64) -> Vec<u64> {
    words.iter().enumerate().map(|(index, word)| f(index, *word)).collect()
}

/// For each thread, of its warp's words.
fn per_lane(words: &[u64], f: impl Fn(usize, &[u64]) -> u64) -> Vec<u64> {
    (0..words.len())
        .map(|thread| f(thread % 32, &words[thread / 32 * 32..(thread / 32 * 32 + 32).min(words.len())]))
        .collect()
}

fn mask_of(warp: &[u64], holds: impl Fn(u64) -> bool) -> u64 {
    warp.iter().enumerate().filter(|(_, word)| holds(**word)).map(|(lane, _)| 1 << lane).sum()
}

const DEFAULT: Kernel = Kernel {
    name: "",
    declarations: "",
    body: "",
    since: 75,
    blocks: 3,
    threads: 96,
    shared_bytes: 0,
    outputs: 288,
    expected: |words| words.to_vec(),
};

#[rustfmt::skip]
pub fn kernels() -> Vec<Kernel> {
    vec![
        Kernel {
            name: "votes",
            body: r#"
  const uint32_t odd = __ballot_sync(0xffffffffu, in[i] & 1);
  const bool any = __any_sync(0xffffffffu, in[i] > 1000), all = __all_sync(0xffffffffu, in[i] < 1020);
  uint32_t later = 0;
  if (threadIdx.x % 32 >= 8) later = __ballot_sync(0xffffff00u, in[i] & 2);
  out[i] = odd ^ (uint64_t(later) << 32) ^ (any ? 1ull << 60 : 0) ^ (all ? 1ull << 61 : 0);"#,
            expected: |words| per_lane(words, |lane, warp| {
                let later = if lane >= 8 { mask_of(warp, |word| word & 2 != 0) & !0xff } else { 0 };
                let any = u64::from(warp.iter().any(|word| *word > 1000)) << 60;
                let all = u64::from(warp.iter().all(|word| *word < 1020)) << 61;
                mask_of(warp, |word| word & 1 != 0) ^ later << 32 ^ any ^ all
            }),
            ..DEFAULT
        },
        Kernel {
            name: "matches",
            body: r#"
  int all_same;
  const uint32_t any = __match_any_sync(0xffffffffu, uint32_t(in[i] % 5));
  const uint32_t wide = __match_any_sync(0xffffffffu, (in[i] % 3) << 40);
  const uint32_t same = __match_all_sync(0xffffffffu, 7, &all_same);
  out[i] = any ^ (uint64_t(wide) << 32) ^ (same + all_same);"#,
            expected: |words| per_lane(words, |lane, warp| {
                let any = mask_of(warp, |word| word % 5 == warp[lane] % 5);
                let wide = mask_of(warp, |word| word % 3 == warp[lane] % 3);
                any ^ wide << 32 ^ u64::from(u32::MAX.wrapping_add(1))
            }),
            ..DEFAULT
        },
        Kernel {
            name: "reductions_of_a_warp",
            since: 80,
            body: r#"
  const uint32_t value = uint32_t(in[i]);
  const uint32_t sum = __reduce_add_sync(0xffffffffu, value), high = __reduce_max_sync(0xffffffffu, value);
  const int low = __reduce_min_sync(0xffffffffu, int(value) - 500);
  const uint32_t bits = __reduce_xor_sync(0xffffffffu, value) | (__reduce_and_sync(0xffffffffu, value | 1) << 10) |
                        (__reduce_or_sync(0xffffffffu, value) << 20);
  out[i] = (uint64_t(sum) << 32) + high * 7 + uint32_t(low) + bits;"#,
            expected: |words| per_lane(words, |_, warp| {
                let sum: u64 = warp.iter().sum();
                let (high, low) = (warp.iter().max().unwrap(), *warp.iter().min().unwrap() as i32 - 500);
                let xor = warp.iter().fold(0, |all, word| all ^ word) as u32;
                let and = warp.iter().fold(u64::MAX, |all, word| all & (word | 1)) as u32;
                let or = warp.iter().fold(0, |all, word| all | word) as u32;
                (sum << 32) + high * 7 + u64::from(low as u32) + u64::from(xor | and << 10 | or << 20)
            }),
            ..DEFAULT
        },
        Kernel {
            name: "products_of_matrices",
            since: 80,
            body: r#"
  // A is 8 by 4 and B 4 by 8, of the warp's words; C counts.
  const int lane = threadIdx.x % 32;
  double d0 = lane, d1 = -lane;
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d0), "+d"(d1) : "d"(double(in[i])), "d"(double(in[i] % 7) - 3));
  out[i] = uint64_t(int64_t(d0)) * 1000003 + uint64_t(int64_t(d1));"#,
            expected: |words| per_lane(words, |lane, warp| {
                // Both matrices stand by the lane's number: A by rows, B by columns.
                let sum = |row: usize, column: usize| (0..4)
                    .map(|k| warp[4 * row + k] as i64 * (warp[4 * column + k] as i64 % 7 - 3))
                    .sum::<i64>();
                let (row, column) = (lane / 4, lane % 4 * 2);
                let [first, second] = [sum(row, column) + lane as i64, sum(row, column + 1) - lane as i64];
                (first as u64).wrapping_mul(1_000_003).wrapping_add(second as u64)
            }),
            ..DEFAULT
        },
        Kernel {
            name: "products_of_matrices_of_halves",
            since: 80,
            body: r#"
  // Small whole numbers in f16 and bf16; each lane's register holds its own word's low bits twice, the second negated.
  const float low = float(in[i] % 8), high = -float(in[i] % 5);
  uint32_t half_pair, bf_pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(half_pair) : "f"(high), "f"(low));
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bf_pair) : "f"(high), "f"(low));
  float small[4] = {1, 2, 3, 4}, large[4] = {0, 0, 0, 0}, other[4] = {0, 0, 0, 0};
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+f"(small[0]), "+f"(small[1]), "+f"(small[2]), "+f"(small[3]) : "r"(half_pair), "r"(0u), "r"(half_pair));
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(large[0]), "+f"(large[1]), "+f"(large[2]), "+f"(large[3])
               : "r"(0u), "r"(half_pair), "r"(half_pair), "r"(0u), "r"(half_pair), "r"(half_pair));
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(other[0]), "+f"(other[1]), "+f"(other[2]), "+f"(other[3])
               : "r"(0u), "r"(bf_pair), "r"(bf_pair), "r"(0u), "r"(bf_pair), "r"(bf_pair));
  bool same = true;
  for (int k = 0; k < 4; ++k) same = same && large[k] == other[k];
  out[i] = uint64_t(int64_t(small[0] + 1000 * small[1] + 10 * small[2] + 100 * small[3] + 7 * large[0] + 3 * large[3])) + (same ? 1ull << 40 : 0);"#,
            expected: |words| per_lane(words, |lane, warp| {
                // Element k of row (of A) or column (of B) g: the lane 4g + k/2, and one of its two numbers.
                let element = |g: usize, k: usize| {
                    let word = warp[4 * g + k / 2];
                    if k.is_multiple_of(2) { (word % 8) as i64 } else { -((word % 5) as i64) }
                };
                let sum = |row: usize, column: usize| (0..8).map(|k| element(row, k) * element(column, k)).sum::<i64>();
                let (row, column) = (lane / 4, lane % 4 * 2);
                // Rows 0 to 7 have zeros in the first half of k or nowhere, rows 8 to 15 in the second or everywhere.
                let (first, second) = (sum(row, column), sum(row, column + 1));
                let all = (first + 1) + 1000 * (second + 2) + 10 * 3 + 100 * 4 + 7 * first + 3 * second;
                (all as u64).wrapping_add(1 << 40)
            }),
            ..DEFAULT
        },
        Kernel {
            name: "shuffles",
            body: r#"
  const uint64_t value = in[i] << 20 | in[i];
  const uint64_t left = __shfl_up_sync(0xffffffffu, value, 3);
  const uint64_t right = __shfl_down_sync(0xffffffffu, value, 5, 16);
  const uint64_t first = __shfl_sync(0xffffffffu, value, 9, 8);
  const double swapped = __shfl_xor_sync(0xffffffffu, double(in[i]), 17);
  const float chosen = __shfl_sync(0xffffffffu, float(in[i]), int(in[i]));
  out[i] = left + 3 * right + 5 * first + uint64_t(swapped) + uint64_t(chosen);"#,
            expected: |words| per_lane(words, |lane, warp| {
                let value = |lane: usize| warp[lane] << 20 | warp[lane];
                let left = value(if lane >= 3 { lane - 3 } else { lane });
                let right = value(if lane % 16 + 5 < 16 { lane + 5 } else { lane });
                let first = value(lane / 8 * 8 + 1);
                left + 3 * right + 5 * first + warp[lane ^ 17] + warp[warp[lane] as usize % 32]
            }),
            ..DEFAULT
        },
        Kernel {
            name: "shuffles_of_part_of_a_warp",
            threads: 20,
            outputs: 60,
            body: r#"
  const uint32_t mask = __activemask();
  uint32_t sum = uint32_t(in[i]);
  for (int step = 1; step < 20; step *= 2) {
    const uint32_t other = __shfl_up_sync(mask, sum, step);
    if (threadIdx.x >= step) sum += other;
  }
  out[i] = sum + (uint64_t(mask) << 32);"#,
            expected: |words| per_thread(words, |thread, _| {
                words[thread / 20 * 20..=thread].iter().sum::<u64>() + (0xf_ffff << 32)
            }),
            ..DEFAULT
        },
        Kernel {
            name: "atomics_32",
            outputs: 8,
            body: r#"
  uint32_t* words = reinterpret_cast<uint32_t*>(out);
  const uint32_t value = uint32_t(in[i]);
  atomicAdd(words + 0, value);
  atomicMax(words + 1, value);
  atomicMin(reinterpret_cast<int*>(words + 2), -int(value));
  atomicOr(words + 3, value);
  atomicXor(words + 4, value);
  atomicSub(words + 5, 1u);
  atomicInc(words + 6, 99);
  atomicDec(words + 7, 1000);
  atomicAdd(reinterpret_cast<float*>(words + 8), float(value));
  if (i == 0) words[9] = 0xffffffffu;
  atomicAnd(words + 10, ~value);
  atomicExch(words + 11, 17u);
  if (atomicAdd(words + 12, 1u) == gridDim.x * blockDim.x - 1) words[13] = 5;"#,
            expected: |words| {
                let fold = |f: fn(u32, u32) -> u32| words.iter().fold(0, |all, word| f(all, *word as u32));
                let all = [
                    fold(|a, b| a + b), fold(u32::max), (-(fold(u32::max) as i32)) as u32, fold(|a, b| a | b),
                    fold(|a, b| a ^ b), 288u32.wrapping_neg(), 288 % 100, 1001 - 288,
                    (fold(|a, b| a + b) as f32).to_bits(), u32::MAX, 0, 17, 288, 5, 0, 0,
                ];
                all.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32).collect()
            },
            ..DEFAULT
        },
        Kernel {
            name: "atomics_64",
            outputs: 8,
            declarations: r#"
__device__ double add_by_compare_and_swap(double* address, double value) {
  uint64_t* word = reinterpret_cast<uint64_t*>(address);
  uint64_t old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}"#,
            body: r#"
  const uint64_t value = in[i] << 30;
  atomicAdd(out + 0, value);
  atomicMax(out + 1, value);
  atomicMin(reinterpret_cast<int64_t*>(out + 2), -int64_t(value));
  atomicOr(out + 3, value);
  atomicAdd(reinterpret_cast<double*>(out + 4), double(in[i]));
  add_by_compare_and_swap(reinterpret_cast<double*>(out + 5), double(in[i]));
  atomicXor(out + 6, value);
  atomicExch(out + 7, 1ull << 50);"#,
            expected: |words| {
                let fold = |f: fn(u64, u64) -> u64| words.iter().fold(0, |all, word| f(all, word << 30));
                let sum = (words.iter().sum::<u64>() as f64).to_bits();
                let low = (fold(u64::max) as i64).wrapping_neg() as u64;
                vec![fold(|a, b| a + b), fold(u64::max), low, fold(|a, b| a | b), sum, sum, fold(|a, b| a ^ b), 1 << 50]
            },
            ..DEFAULT
        },
        Kernel {
            name: "atomics_in_shared_memory",
            outputs: 48,
            body: r#"
  __shared__ uint32_t histogram[16];
  __shared__ double total;
  __shared__ uint64_t largest;
  __shared__ float sum;
  if (threadIdx.x < 16) histogram[threadIdx.x] = 0;
  if (threadIdx.x == 0) total = 0, largest = 0, sum = 0;
  __syncthreads();
  atomicAdd(&histogram[in[i] % 16], 1u);
  atomicAdd(&total, double(in[i]));
  atomicAdd(&sum, float(in[i]));
  atomicMax(&largest, in[i]);
  __syncthreads();
  if (threadIdx.x < 16) {
    out[blockIdx.x * 16 + threadIdx.x] = histogram[threadIdx.x] + uint64_t(total) * 1000 + largest + (uint64_t(sum) << 40);
  }"#,
            expected: |words| words.chunks(96).flat_map(|block| {
                (0..16).map(move |bin| {
                    let sum: u64 = block.iter().sum();
                    let bin = block.iter().filter(|word| *word % 16 == bin).count() as u64;
                    bin + sum * 1000 + block.iter().max().unwrap() + (sum << 40)
                })
            }).collect(),
            ..DEFAULT
        },
        Kernel {
            name: "a_lock_between_blocks",
            outputs: 2,
            body: r#"
  if (threadIdx.x == 0) {
    while (atomicCAS(out, 0ull, 1ull) != 0) __nanosleep(20);
    __threadfence();
    volatile uint64_t* counter = out + 1;
    *counter = *counter + in[i];
    __threadfence();
    atomicExch(out, 0ull);
  }"#,
            expected: |words| vec![0, words.iter().step_by(96).sum()],
            ..DEFAULT
        },
        Kernel {
            name: "local_arrays",
            body: r#"
  int counts[16];
  double sums[4] = {};
  for (int k = 0; k < 16; ++k) counts[k] = k;
  for (int k = 0; k < 10; ++k) {
    counts[(in[i] + k * k) % 16] += k;
    sums[(in[i] >> 3) % 4] += counts[k];
  }
  out[i] = counts[in[i] % 16] * 1000 + uint64_t(sums[(in[i] >> 3) % 4] + sums[in[i] % 4]);"#,
            expected: |words| per_thread(words, |_, word| {
                let mut counts: [u64; 16] = std::array::from_fn(|k| k as u64);
                let mut sums = [0; 4];
                for k in 0..10 {
                    counts[((word + k * k) % 16) as usize] += k;
                    sums[(word >> 3) as usize % 4] += counts[k as usize];
                }
                counts[word as usize % 16] * 1000 + sums[(word >> 3) as usize % 4] + sums[word as usize % 4]
            }),
            ..DEFAULT
        },
        Kernel {
            name: "functions_that_are_called",
            declarations: r#"
struct Pair { double re; int16_t im; uint8_t tag; };
__device__ __noinline__ Pair twist(Pair pair, const Settings& settings, int steps) {
  for (int k = 0; k < steps; ++k) pair = Pair{pair.im * settings.scale, int16_t(pair.re), uint8_t(pair.tag + settings.small)};
  return pair;
}
__device__ __noinline__ void store(uint64_t* out, uint64_t value) { if (value != 5) *out = value; }
__device__ __noinline__ float scaled(float value) { return value > 500 ? value * 2 : value; }"#,
            body: r#"
  const Pair pair = twist(Pair{double(in[i]), 3, 250}, settings, int(in[i] % 4));
  store(out + i, uint64_t(pair.re * 2) + pair.im * 100000 + (uint64_t(pair.tag) << 40) + uint64_t(scaled(float(in[i]))));"#,
            expected: |words| per_thread(words, |_, word| {
                let (mut re, mut im, mut tag) = (word as f64, 3i16, 250u8);
                for _ in 0..word % 4 {
                    (re, im, tag) = (f64::from(im) * 2.5, re as i16, tag.wrapping_add(7));
                }
                let scaled = if word > 500 { word * 2 } else { word };
                (re * 2.0) as u64 + (i64::from(im) * 100_000) as u64 + (u64::from(tag) << 40) + scaled
            }),
            ..DEFAULT
        },
        Kernel {
            name: "switches",
            body: r#"
  uint64_t value = in[i];
  switch (value % 11) {
    case 0: value = value * 3 + 1; break;
    case 1: value = value ^ 0x55; break;
    case 2: value = value << 2;
    case 3: value += 17; break;
    case 4: value = value * value; break;
    case 5: value = ~value; break;
    case 6: value = value / 3; break;
    case 7: value = value - 1000; break;
    case 8: out[i] = 8; return;
    case 9: value = __popcll(value); break;
    default: value = 4242;
  }
  out[i] = value;"#,
            expected: |words| per_thread(words, |_, word| match word % 11 {
                0 => word * 3 + 1,
                1 => word ^ 0x55,
                2 => (word << 2) + 17,
                3 => word + 17,
                4 => word * word,
                5 => !word,
                6 => word / 3,
                7 => word.wrapping_sub(1000),
                8 => 8,
                9 => word.count_ones().into(),
                _ => 4242,
            }),
            ..DEFAULT
        },
        Kernel {
            name: "dynamic_shared_memory",
            shared_bytes: 96 * 8 + 96,
            body: r#"
  extern __shared__ uint64_t tile[];
  __shared__ int shift;
  uint8_t* small = reinterpret_cast<uint8_t*>(tile + blockDim.x);
  tile[threadIdx.x] = in[i];
  small[threadIdx.x] = uint8_t(in[i] >> 2);
  if (threadIdx.x == 50) shift = 7;
  __syncthreads();
  const int other = (threadIdx.x + shift) % blockDim.x;
  out[i] = tile[other] + (uint64_t(small[blockDim.x - 1 - threadIdx.x]) << 32);"#,
            expected: |words| words.chunks(96).flat_map(|block| {
                (0..96).map(move |thread| block[(thread + 7) % 96] + ((block[95 - thread] >> 2 & 0xff) << 32))
            }).collect(),
            ..DEFAULT
        },
        Kernel {
            name: "tables_in_constant_memory",
            declarations: r#"
__constant__ double weights[6] = {0.5, 1.5, -2.0, 8.25, 0.0, 1e3};
__constant__ uint8_t order[8] = {3, 1, 4, 1, 5, 0, 2, 5};
__device__ int16_t offsets[4] = {-7, 7, 300, -300};
__device__ const float* nothing = nullptr;"#,
            body: r#"
  const double value = weights[order[in[i] % 8]] * 4 + offsets[in[i] % 4] + (nothing == nullptr ? 0 : 1);
  out[i] = uint64_t(int64_t(value));"#,
            expected: |words| per_thread(words, |_, word| {
                let weights = [0.5, 1.5, -2.0, 8.25, 0.0, 1e3];
                let order = [3, 1, 4, 1, 5, 0, 2, 5];
                let value = weights[order[word as usize % 8]] * 4.0 + [-7.0, 7.0, 300.0, -300.0][word as usize % 4];
                value as i64 as u64
            }),
            ..DEFAULT
        },
        Kernel {
            name: "structures_by_value",
            body: r#"
  const float* point = &settings.point.x;
  const double value = settings.scale * in[i] + settings.table[in[i] % 5] + settings.small + point[in[i] % 3] + count;
  out[i] = uint64_t(value * 4);"#,
            expected: |words| per_thread(words, |_, word| {
                let table = [3.0, -1.0, 4.0, -1.0, 5.0][word as usize % 5];
                let value = 2.5 * word as f64 + table + 7.0 + [1.0, 2.0, 4.0][word as usize % 3] + 288.0;
                (value * 4.0) as u64
            }),
            ..DEFAULT
        },
        Kernel {
            name: "complex_numbers",
            declarations: r#"
template <typename T> struct alignas(2 * sizeof(T)) Complex {
  T re, im;
  __device__ Complex operator*(Complex other) const { return {re * other.re - im * other.im, re * other.im + im * other.re}; }
  __device__ Complex operator+(Complex other) const { return {re + other.re, im + other.im}; }
};
template <typename T> __device__ Complex<T> sum_of_warp(Complex<T> value) {
  for (int step = 16; step > 0; step /= 2) {
    value = value + Complex<T>{__shfl_xor_sync(0xffffffffu, value.re, step), __shfl_xor_sync(0xffffffffu, value.im, step)};
  }
  return value;
}"#,
            body: r#"
  __shared__ Complex<float> narrow[96];
  __shared__ Complex<double> wide[96];
  const Complex<float> z{float(in[i] % 32), -3};
  narrow[threadIdx.x] = z * Complex<float>{2, 1};
  wide[threadIdx.x] = Complex<double>{double(in[i]), 1} * Complex<double>{0, 2};
  __syncthreads();
  const Complex<float> a = sum_of_warp(narrow[threadIdx.x ^ 1]);
  const Complex<double> b = sum_of_warp(wide[threadIdx.x]);
  out[i] = uint64_t(int64_t(a.re + a.im) * 1000000 + int64_t(b.re + b.im));"#,
            expected: |words| per_lane(words, |_, warp| {
                let narrow: i64 = warp.iter().map(|word| (2 * (word % 32) as i64 + 3) + ((word % 32) as i64 - 6)).sum();
                let wide: i64 = warp.iter().map(|word| -2 + 2 * *word as i64).sum();
                (narrow * 1_000_000 + wide) as u64
            }),
            ..DEFAULT
        },
        Kernel {
            name: "small_types",
            outputs: 288 * 2,
            body: r#"
  int8_t* bytes = reinterpret_cast<int8_t*>(out);
  uint16_t* halves = reinterpret_cast<uint16_t*>(out + 72);
  bool* flags = reinterpret_cast<bool*>(out + 200);
  const uint16_t* source = reinterpret_cast<const uint16_t*>(in);
  const int8_t* small = reinterpret_cast<const int8_t*>(in);
  bytes[i] = int8_t(in[i]) / 3;
  halves[i] = source[4 * i] * 5 - 9;
  flags[i] = in[i] % 3 == 1;
  if (flags[i] || bytes[i] < 0) out[288 + i] = uint64_t(int64_t(small[8 * i]) - bytes[i]);"#,
            expected: |words| {
                let mut bytes = vec![0u8; 288 * 16];
                for (thread, word) in words.iter().enumerate() {
                    let third = *word as i8 / 3;
                    bytes[thread] = third as u8;
                    bytes[72 * 8 + 2 * thread..][..2].copy_from_slice(&(*word as u16 * 5).wrapping_sub(9).to_le_bytes());
                    bytes[200 * 8 + thread] = u8::from(word % 3 == 1);
                    if word % 3 == 1 || third < 0 {
                        let value = i64::from(*word as i8) - i64::from(third);
                        bytes[(288 + thread) * 8..][..8].copy_from_slice(&value.to_le_bytes());
                    }
                }
                super::from_bytes(&bytes)
            },
            ..DEFAULT
        },
        Kernel {
            name: "vectors_of_memory",
            body: r#"
  if (i % 2 == 0) {
    const ulonglong2 two = reinterpret_cast<const ulonglong2*>(in)[i / 2];
    const uint4 four = __ldg(reinterpret_cast<const uint4*>(in) + i / 2);
    const uchar4 bytes = reinterpret_cast<const uchar4*>(in)[i];
    const ushort2 halves = __ldcs(reinterpret_cast<const ushort2*>(in) + 2 * i);
    const float2 floats = reinterpret_cast<const float2*>(in)[i];
    const uint64_t volatile_word = *reinterpret_cast<const volatile uint64_t*>(in + i);
    reinterpret_cast<ulonglong2*>(out)[i / 2] =
        make_ulonglong2(two.y + four.x + bytes.y + (__float_as_uint(floats.y) << 1), four.z + halves.x + __ldcg(in + i) + volatile_word + __ldca(in + i) + __ldlu(in + i));
  }"#,
            expected: |words| per_thread(words, |thread, word| {
                let pair = [words[thread & !1], words[thread | 1]];
                if thread % 2 == 0 {
                    let byte = words[thread / 2] >> if thread / 2 * 8 == thread * 4 { 8 } else { 40 } & 0xff;
                    pair[1] + word + byte
                } else {
                    pair[1] + (pair[0] & 0xffff) + 4 * pair[0]
                }
            }),
            ..DEFAULT
        },
        Kernel {
            name: "barriers_that_count",
            body: r#"
  const int count_of_odd = __syncthreads_count(in[i] & 1);
  const int all = __syncthreads_and(in[i] < 1023), any = __syncthreads_or(in[i] == 77);
  out[i] = count_of_odd + (all ? 1000 : 0) + (any ? 2000 : 0);"#,
            expected: |words| words.chunks(96).flat_map(|block| {
                let odd = block.iter().filter(|word| *word % 2 == 1).count() as u64;
                let all = if block.iter().all(|word| *word < 1023) { 1000 } else { 0 };
                let any = if block.contains(&77) { 2000 } else { 0 };
                vec![odd + all + any; 96]
            }).collect(),
            ..DEFAULT
        },
        Kernel {
            name: "loops_of_different_length",
            body: r#"
  uint64_t value = in[i] + 1;
  int steps = 0;
  while (value != 1 && steps < 200) {
    value = value % 2 ? 3 * value + 1 : value / 2;
    for (int k = 0; k < int(value % 3); ++k) {
      if (k == 1 && value % 5 == 0) break;
      if (value % 7 == 3) continue;
      steps += 2;
    }
    ++steps;
  }
  out[i] = steps + (__ballot_sync(0xffffffffu, steps % 2) << 10);"#,
            expected: |words| {
                let steps = |word: u64| {
                    let (mut value, mut steps) = (word + 1, 0u64);
                    while value != 1 && steps < 200 {
                        value = if value % 2 == 1 { 3 * value + 1 } else { value / 2 };
                        for k in 0..value % 3 {
                            if k == 1 && value % 5 == 0 {
                                break;
                            }
                            if value % 7 != 3 {
                                steps += 2;
                            }
                        }
                        steps += 1;
                    }
                    steps
                };
                per_lane(words, |lane, warp| {
                    let odd = mask_of(warp, |word| steps(word) % 2 == 1) as u32;
                    u64::from((steps(warp[lane]) as u32).wrapping_add(odd << 10))
                })
            },
            ..DEFAULT
        },
        Kernel {
            name: "copies_in_flight",
            since: 80,
            body: r#"
  __shared__ alignas(16) uint64_t tile[96];
  const uint32_t at = uint32_t(__cvta_generic_to_shared(tile + threadIdx.x));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;\n cp.async.commit_group;\n cp.async.wait_group 0;" :: "r"(at), "l"(in + i) : "memory");
  __syncthreads();
  out[i] = tile[95 - threadIdx.x];"#,
            expected: |words| words.chunks(96).flat_map(|block| block.iter().rev().copied()).collect(),
            ..DEFAULT
        },
        Kernel {
            name: "copies_in_two_stages",
            since: 80,
            body: r#"
  // While one half of the tile is read, the other is on its way.
  __shared__ alignas(16) uint64_t tile[2][96];
  auto fetch = [&](int stage, int from) {
    const uint32_t at = uint32_t(__cvta_generic_to_shared(&tile[stage][threadIdx.x & ~1u]));
    if (threadIdx.x % 2 == 0) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(in + from + threadIdx.x) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  uint64_t sum = 0;
  fetch(0, 0);
  for (int step = 0; step < 3; ++step) {
    if (step < 2) {
      fetch((step + 1) % 2, (step + 1) * 96);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    sum += tile[step % 2][95 - threadIdx.x] * (step + 1);
    __syncthreads();
  }
  out[i] = sum;"#,
            expected: |words| per_thread(words, |thread, _| {
                (0..3).map(|step| words[step * 96 + 95 - thread % 96] * (step as u64 + 1)).sum()
            }),
            ..DEFAULT
        },
        Kernel {
            name: "wide_vectors_of_every_memory",
            body: r#"
  __shared__ float4 tile[96];
  __shared__ double2 pairs[96];
  const float4* source = reinterpret_cast<const float4*>(in);
  uint32_t a, b, c, d;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(source + threadIdx.x));
  const float4 streamed = __ldcs(source + threadIdx.x);
  const double2 two = __ldcs(reinterpret_cast<const double2*>(in) + threadIdx.x);
  tile[threadIdx.x] = make_float4(float(a), float(b), float(c), float(d));
  pairs[threadIdx.x] = two;
  __syncthreads();
  const float4 other = tile[95 - threadIdx.x];
  const double2 pair = pairs[95 - threadIdx.x];
  __syncwarp(0xffffffffu);
  if (i % 2 == 0) {
    const uint4 result = make_uint4(uint32_t(other.x), uint32_t(other.z), __float_as_uint(streamed.x), uint32_t(__double_as_longlong(pair.y)));
    reinterpret_cast<uint4*>(out)[i / 2] = result;
  }"#,
            expected: |words| per_thread(words, |thread, _| {
                let even = thread & !1;
                let (own, other) = (2 * (even % 96), 2 * (95 - even % 96));
                if thread % 2 == 0 { words[other] | words[other + 1] << 32 } else { words[own] | words[other + 1] << 32 }
            }),
            ..DEFAULT
        },
        Kernel {
            name: "bits_and_halves",
            body: r#"
  const uint32_t value = uint32_t(in[i]) * 2654435761u;
  uint32_t field, inserted, bytes, halves, sum;
  asm("bfe.u32 %0, %1, 5, 11;" : "=r"(field) : "r"(value));
  asm("bfi.b32 %0, %1, %2, 8, 12;" : "=r"(inserted) : "r"(value), "r"(0xffffffffu));
  asm("prmt.b32 %0, %1, %2, 0x1476;" : "=r"(bytes) : "r"(value), "r"(0x11223344u));
  asm("{ .reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h}; }" : "=r"(halves) : "f"(float(in[i] % 64)), "f"(2.0f));
  asm("fma.rn.f16x2 %0, %1, %1, %1;" : "=r"(sum) : "r"(halves));
  const int8_t small = reinterpret_cast<const int8_t*>(in)[8 * i];
  const uint32_t counted = __popc(value) + __clz(value) + __ffs(value) + (__brev(value) & 15) + uint32_t(small + 128);
  const uint32_t group = __match_any_sync(0xffffffffu, in[i] % 4);
  const uint64_t total = __shfl_sync(group, in[i] << 20, __ffs(group) - 1);
  out[i] = field + uint64_t(inserted) + bytes + sum + counted + total;"#,
            expected: |words| per_lane(words, |lane, warp| {
                let word = warp[lane];
                let value = (word as u32).wrapping_mul(2_654_435_761);
                let field = value >> 5 & 0x7ff;
                let inserted = !(0xfff << 8) | (value & 0xfff) << 8;
                let pool = u64::from(value) | 0x1122_3344 << 32;
                let bytes = (0..4).fold(0, |all, at| all | ((pool >> (8 * ([6, 7, 4, 1][at])) & 0xff) as u32) << (8 * at));
                let square = |x: f32| u32::from(half::f16::from_f32(x * x + x).to_bits());
                let sum = square((word % 64) as f32) | square(2.0) << 16;
                let first = if value == 0 { 0 } else { value.trailing_zeros() + 1 };
                let counted = value.count_ones() + value.leading_zeros() + first + (value.reverse_bits() & 15)
                    + (i32::from(word as i8) + 128) as u32;
                let leader = warp.iter().position(|other| other % 4 == word % 4).unwrap();
                u64::from(field) + u64::from(inserted) + u64::from(bytes) + u64::from(sum) + u64::from(counted) + (warp[leader] << 20)
            }),
            ..DEFAULT
        },
        Kernel {
            name: "a_scan_that_looks_back",
            blocks: 150,
            threads: 32,
            outputs: 150 * 32 + 302,
            body: r#"
  // Blocks take tickets, publish their sums and wait for those before them.
  volatile uint64_t* sums = out + gridDim.x * 32 + 2;
  volatile uint64_t* flags = sums + gridDim.x;
  uint32_t ticket = 0;
  if (threadIdx.x == 0) ticket = uint32_t(atomicAdd(out + gridDim.x * 32, 1ull));
  ticket = __shfl_sync(0xffffffffu, ticket, 0);
  uint64_t sum = in[ticket * 32 + threadIdx.x];
  for (int step = 1; step < 32; step *= 2) {
    const uint64_t other = __shfl_up_sync(0xffffffffu, sum, step);
    if (threadIdx.x >= step) sum += other;
  }
  uint64_t before = 0;
  if (ticket > 0) {
    while (flags[ticket - 1] == 0) {}
    __threadfence();
    before = sums[ticket - 1];
  }
  out[ticket * 32 + threadIdx.x] = before + sum;
  if (threadIdx.x == 31) {
    sums[ticket] = before + sum;
    __threadfence();
    flags[ticket] = 1;
  }"#,
            expected: |words| {
                let mut sum = 0;
                let mut all: Vec<u64> = words.iter().map(|word| { sum += word; sum }).collect();
                let sums: Vec<u64> = all.iter().copied().skip(31).step_by(32).collect();
                all.extend([150, 0]);
                all.extend(sums);
                all.extend([1; 150]);
                all
            },
            ..DEFAULT
        },
        Kernel {
            name: "acquire_and_release",
            outputs: 4,
            body: r#"
  if (i == 0) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" :: "l"(out), "l"(in[0] + 1) : "memory");
    uint64_t seen;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(out) : "memory");
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" :: "l"(out + 1), "l"(seen) : "memory");
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
    asm volatile("red.release.gpu.global.add.u64 [%0], %1;" :: "l"(out + 2), "l"(seen) : "memory");
    asm volatile("atom.acq_rel.gpu.global.add.u64 %0, [%1], %2;" : "=l"(seen) : "l"(out + 2), "l"(3ull) : "memory");
    uint64_t streamed;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.u64 %0, [%1];" : "=l"(streamed) : "l"(in));
    asm volatile("prefetch.global.L2 [%0];" :: "l"(in));
    out[3] = seen * 2 + streamed;
  }"#,
            expected: |words| vec![words[0] + 1, words[0] + 1, words[0] + 4, 2 * (words[0] + 1) + words[0]],
            ..DEFAULT
        },
        Kernel {
            name: "atomics_of_halves",
            outputs: 1,
            body: r#"
  uint32_t one = 0x40003c00u;
  if (i < 100) asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(out), "r"(one) : "memory");"#,
            // A hundred ones and a hundred twos.
            expected: |_| vec![u64::from(half::f16::from_f32(100.0).to_bits()) | u64::from(half::f16::from_f32(200.0).to_bits()) << 16],
            ..DEFAULT
        },
        Kernel {
            name: "sum_of_a_block",
            outputs: 3,
            body: r#"
  __shared__ double partial[3];
  double value = double(in[i]);
#pragma unroll
  for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = uint64_t(partial[0] + partial[1] + partial[2]);"#,
            expected: |words| words.chunks(96).map(|block| block.iter().sum()).collect(),
            ..DEFAULT
        },
    ]
}
