//! x, y, alpha and beta of a product, the same for a seed on every machine.

use spmv_runtime::codegen::{Types, ValueKind, ValueType};
use spmv_runtime::matrix::{Entry, Value, bf16, f16};

use crate::failure::{Failure, Kind};

/// Operands in double precision; every number is exact in the type that the kernel has for it. Complex entries are two
/// numbers, the real part and the imaginary one.
#[derive(Debug)]
pub struct Operands {
    pub alpha: f64,
    pub beta: f64,
    pub x: Vec<f64>,
    pub y: Vec<f64>,
}

impl Operands {
    /// x random in [-1, 1), or small whole numbers where its type has no others; y too where beta is not 0, else NaN, which a right product overwrites. `(x, y)` is how
    /// many entries they have.
    pub fn new(
        (x_length, y_length): (usize, usize),
        types: Types,
        alpha: f64,
        beta: f64,
        seed: u64,
    ) -> Result<Operands, Failure> {
        let scalar = |name: &str, value: f64| {
            let accumulator = types.accumulator;
            number_of(accumulator, value).ok_or_else(|| {
                let allowed = range(accumulator);
                let message =
                    format!("--{name} {value:?}: no number of type {accumulator}; allowed are {allowed}");
                Failure::new(Kind::Usage, message)
            })
        };
        let (alpha, beta) = (scalar("alpha", alpha)?, scalar("beta", beta)?);
        let mut random = SplitMix64(seed);
        let (x_numbers, y_numbers) = (x_length * parts(types.x), y_length * parts(types.y));
        let x = (0..x_numbers).map(|_| random.number(types.x)).collect();
        let y = match beta {
            0.0 => vec![f64::NAN; y_numbers],
            _ => (0..y_numbers).map(|_| random.number(types.y)).collect(),
        };
        Ok(Operands { alpha, beta, x, y })
    }
}

/// How many numbers an entry of a type is.
pub fn parts(value: ValueType) -> usize {
    if value.kind() == ValueKind::Complex { 2 } else { 1 }
}

/// A real number in a type, rounded where it must be.
pub fn real<V: Entry>(number: f64) -> V {
    V::from_parts(V::Real::from_f64(number), V::Real::default())
}

/// Numbers as entries of a type, rounded where they must be.
pub fn entries<V: Entry>(numbers: &[f64]) -> Vec<V> {
    let part = V::Real::from_f64;
    match V::COMPLEX {
        true => numbers.chunks(2).map(|parts| V::from_parts(part(parts[0]), part(parts[1]))).collect(),
        false => numbers.iter().map(|&number| real(number)).collect(),
    }
}

/// The numbers of entries.
pub fn numbers<V: Entry>(entries: &[V]) -> Vec<f64> {
    match V::COMPLEX {
        true => entries.iter().flat_map(|entry| [entry.re().to_f64(), entry.im().to_f64()]).collect(),
        false => entries.iter().map(|entry| entry.re().to_f64()).collect(),
    }
}

/// Whole numbers up to this one are exact in f64, and told apart from all others.
pub const LARGEST_WHOLE: i64 = (1 << 53) - 1;

/// Which numbers a coefficient of a type of sums may be.
fn range(of: ValueType) -> String {
    match of.part() {
        ValueType::I32 => whole(i32::MIN.into(), i32::MAX.into()),
        ValueType::U32 => whole(0, u32::MAX.into()),
        ValueType::I64 => whole(-LARGEST_WHOLE, LARGEST_WHOLE),
        ValueType::Bool => "0 and 1".to_owned(),
        ValueType::F32 => format!("numbers up to {:e}", f32::MAX),
        _ => format!("numbers up to {:e}", f64::MAX),
    }
}

fn whole(least: i64, most: i64) -> String {
    format!("whole numbers from {least} to {most}")
}

/// A number in a type: rounded where the type rounds, else the number itself, where it is one of the type. `None` where it is
/// beyond the type, and where f64 does not tell it apart from other whole numbers.
pub fn number_of(value: ValueType, number: f64) -> Option<f64> {
    let rounded = round(value, number);
    let is_one = match value.kind() {
        ValueKind::Float | ValueKind::Complex => true,
        _ => rounded == number && number.abs() <= LARGEST_WHOLE as f64,
    };
    (rounded.is_finite() && is_one).then_some(rounded)
}

fn round(to: ValueType, value: f64) -> f64 {
    match to.part() {
        ValueType::F16 => <f16 as Value>::from_f64(value).to_f64(),
        ValueType::Bf16 => <bf16 as Value>::from_f64(value).to_f64(),
        ValueType::F32 => f64::from(value as f32),
        ValueType::I8 => <i8 as Value>::from_f64(value).to_f64(),
        ValueType::I32 => <i32 as Value>::from_f64(value).to_f64(),
        ValueType::I64 => <i64 as Value>::from_f64(value).to_f64(),
        ValueType::U32 => <u32 as Value>::from_f64(value).to_f64(),
        ValueType::Bool => <bool as Value>::from_f64(value).to_f64(),
        _ => value,
    }
}

/// Steele, Lea and Flood, *Fast Splittable Pseudorandom Number Generators* (OOPSLA 2014).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// What an entry of a type is: in [-1, 1), or a whole number from -8 to 7, from 0 to 15, or 0 or 1.
    fn number(&mut self, value: ValueType) -> f64 {
        match (value.kind(), value) {
            (ValueKind::Float | ValueKind::Complex, _) => self.signed_unit(value),
            (ValueKind::Bool, _) => (self.next() >> 63) as f64,
            (_, ValueType::U32) => (self.next() >> 60) as f64,
            _ => (self.next() >> 60) as f64 - 8.0,
        }
    }

    /// A multiple of as many halvings of 1 as the type has digits, in [-1, 1): exact in the type.
    fn signed_unit(&mut self, exact_in: ValueType) -> f64 {
        let bits = exact_in.digits();
        (self.next() >> (64 - bits)) as f64 / (1u64 << (bits - 1)) as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use spmv_runtime::codegen::{CsrVector, KernelConfig};
    use spmv_runtime::matrix::Complex32;

    use super::*;

    fn types(value: ValueType) -> Types {
        KernelConfig::builder(CsrVector::default()).value(value).build().unwrap().types()
    }

    #[test]
    fn numbers_are_exact_in_their_type_and_in_range() {
        let operands = Operands::new((1000, 1000), types(ValueType::F32), 0.1, 0.5, 1).unwrap();
        assert_eq!(operands.alpha, f64::from(0.1f32));
        for number in operands.x.iter().chain(&operands.y) {
            assert!((-1.0..1.0).contains(number) && f64::from(*number as f32) == *number, "{number}");
        }
        let mean = operands.x.iter().sum::<f64>() / 1000.0;
        assert!(mean.abs() < 0.1, "{mean}");
        let wide = Operands::new((1000, 0), types(ValueType::F64), 1.0, 0.0, 1).unwrap();
        assert!(wide.x.iter().any(|number| f64::from(*number as f32) != *number));
        assert_ne!(operands.x, operands.y);
    }

    #[test]
    fn the_seed_decides() {
        let x = |seed| Operands::new((3, 0), types(ValueType::F64), 1.0, 0.0, seed).unwrap().x;
        assert_eq!(x(7), x(7));
        assert_ne!(x(7), x(8));
        // The first output for seed 0 is 0xe220a8397b1dcdaf.
        assert_eq!(x(0)[0], (0xe220_a839_7b1d_cdaf_u64 >> 11) as f64 / (1u64 << 52) as f64 - 1.0);
    }

    #[test]
    fn complex_entries_are_two_numbers() {
        let operands = Operands::new((10, 7), types(ValueType::C32), 0.1, 0.0, 1).unwrap();
        assert_eq!((operands.alpha, operands.x.len(), operands.y.len()), (f64::from(0.1f32), 20, 14));
        let complex = entries::<Complex32>(&operands.x);
        assert_eq!((complex.len(), f64::from(complex[9].im)), (10, operands.x[19]));
        assert_eq!(numbers(&complex), operands.x);
    }

    #[test]
    fn scalars_beyond_the_type_are_refused() {
        let error = Operands::new((0, 0), types(ValueType::F32), 1e300, 0.0, 0).unwrap_err();
        assert_eq!(error.kind(), Kind::Usage);
        assert!(Operands::new((0, 0), types(ValueType::F64), 1e300, 0.0, 0).is_ok());
    }
}
