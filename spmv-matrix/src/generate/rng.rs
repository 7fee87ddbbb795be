//! Random numbers: SplitMix64 (G. L. Steele, D. Lea and C. H. Flood, *Fast Splittable Pseudorandom Number
//! Generators*, OOPSLA 2014), with one stream for each row.

/// What a stream is for.
#[derive(Clone, Copy)]
pub(super) enum Stream {
    /// Where a row has entries.
    Columns = 1,
    /// What they are.
    Values = 2,
}

/// A stream of random numbers.
pub(super) struct Rng {
    state: u64,
}

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The odd multiple of 2⁻²⁴ in (−1, 1) that 24 bits choose.
fn odd_multiple(bits: u64) -> f64 {
    (2 * bits as i64 + 1 - (1 << 24)) as f64 / (1 << 24) as f64
}

impl Rng {
    /// The stream of a row.
    pub fn new(seed: u64, stream: Stream, row: u64) -> Self {
        let seed = mix(seed.wrapping_add(GAMMA.wrapping_mul(stream as u64)));
        Self { state: mix(seed ^ mix(row.wrapping_add(GAMMA))) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A whole number below `bound`, uniform to within 2⁻³².
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in (−1, 1) among the odd multiples of 2⁻²⁴, which f32 holds exactly.
    pub fn signed_unit(&mut self) -> f64 {
        odd_multiple(self.bits() >> 40)
    }

    /// Uniform in (−1, 1), with digits that f32 has no room for: as [`signed_unit`](Self::signed_unit), less than 2⁻²⁵ away.
    pub fn wide_unit(&mut self) -> f64 {
        let bits = self.bits();
        // An odd number of 28 bits, of which there is one with either sign.
        let rest = 2 * (bits & ((1 << 28) - 1)) as i64 + 1 - (1 << 28);
        odd_multiple(bits >> 40) + rest as f64 / (1u64 << 53) as f64
    }

    /// A whole number from −4 to 4 other than 0.
    pub fn small_integer(&mut self) -> f64 {
        let number = self.below(8) as f64 - 4.0;
        if number >= 0.0 { number + 1.0 } else { number }
    }

    /// Close to normal with mean 0 and deviation 1: the sum of 12 uniform numbers, less 6.
    pub fn gaussian(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// A whole number of that mean: Poisson up to a mean of 32, rounded normal above.
    pub fn poisson(&mut self, mean: f64) -> usize {
        if mean > 32.0 {
            return (mean + mean.sqrt() * self.gaussian() + 0.5).max(0.0) as usize;
        }
        let limit = super::numeric::exp(-mean);
        let (mut count, mut product) = (0, self.unit());
        while product > limit {
            count += 1;
            product *= self.unit();
        }
        count
    }

    /// Appends `count` distinct numbers from `first .. first + range`, ascending; all of them where there
    /// are no more.
    pub fn distinct(&mut self, first: usize, range: usize, count: usize, out: &mut Vec<u32>) {
        if count >= range {
            out.extend(first as u32..(first + range) as u32);
        } else if count > range / 8 {
            let mut wanted = count;
            for offset in 0..range {
                if self.below(range - offset) < wanted {
                    out.push((first + offset) as u32);
                    wanted -= 1;
                }
            }
        } else {
            let start = out.len();
            while out.len() < start + count {
                for _ in out.len()..start + count {
                    out.push((first + self.below(range)) as u32);
                }
                sort_distinct(out, start);
            }
        }
    }
}

/// Sorts what comes after `start` and removes repetitions.
pub(super) fn sort_distinct(out: &mut Vec<u32>, start: usize) {
    out[start..].sort_unstable();
    let mut write = start;
    for read in start..out.len() {
        if write == start || out[read] != out[write - 1] {
            out[write] = out[read];
            write += 1;
        }
    }
    out.truncate(write);
}
