//! Floating point by its definition: an exact value, rounded once. Slow beside the host's arithmetic, so used where
//! the host has none: rounding modes other than to nearest, and formats that it does not know.

/// How a value that a format does not have becomes one that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// `.rn`: to nearest, ties to even
    Nearest,
    /// `.rna`: to nearest, ties away from zero
    NearestAway,
    /// `.rz`: toward zero
    Zero,
    /// `.rm`: toward negative infinity
    Down,
    /// `.rp`: toward positive infinity
    Up,
}

impl Rounding {
    /// Whether a magnitude goes up, from what lies below its last bit in units of half of it: 0, between, 1 (a tie)
    /// or more.
    fn up(self, negative: bool, odd: bool, remainder: u128, half: u128) -> bool {
        match self {
            Rounding::Nearest => remainder > half || remainder == half && odd,
            Rounding::NearestAway => remainder >= half,
            Rounding::Zero => false,
            Rounding::Down => negative && remainder != 0,
            Rounding::Up => !negative && remainder != 0,
        }
    }
}

/// A binary format of IEEE 754's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
}

pub(super) const F16: Format = Format { exponent_bits: 5, mantissa_bits: 10 };
pub(super) const BF16: Format = Format { exponent_bits: 8, mantissa_bits: 7 };
pub(super) const TF32: Format = Format { exponent_bits: 8, mantissa_bits: 10 };
pub(super) const F32: Format = Format { exponent_bits: 8, mantissa_bits: 23 };
pub(super) const F64: Format = Format { exponent_bits: 11, mantissa_bits: 52 };

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The bits of positive infinity, which follow those of the largest finite number.
    pub(super) fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    pub(super) fn sign(self) -> u64 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    pub(super) fn one(self) -> u64 {
        (self.bias() as u64) << self.mantissa_bits
    }

    pub(super) fn mantissa_bits(self) -> u32 {
        self.mantissa_bits
    }

    /// What conversions to this format give for NaN: all bits set but the sign.
    pub(super) fn nan(self) -> u64 {
        self.sign() - 1
    }

    pub(super) fn is_subnormal(self, bits: u64) -> bool {
        bits & self.infinity() == 0 && bits & (self.sign() - 1) != 0
    }

    pub(super) fn decode(self, bits: u64) -> Number {
        let negative = bits & self.sign() != 0;
        let magnitude = bits & (self.sign() - 1);
        if magnitude > self.infinity() {
            return Number::Nan;
        }
        if magnitude == self.infinity() {
            return Number::Infinite { negative };
        }
        let field = (magnitude >> self.mantissa_bits) as i32;
        let fraction = u128::from(magnitude & ((1 << self.mantissa_bits) - 1));
        let implicit = u128::from(field != 0) << self.mantissa_bits;
        let exponent = field.max(1) - self.bias() - self.mantissa_bits as i32;
        Number::Finite(Exact { negative, significand: implicit | fraction, exponent })
    }

    /// The bits of a value, rounded once.
    pub(super) fn encode(self, value: Exact, rounding: Rounding) -> u64 {
        let Exact { negative, significand, exponent } = value;
        let sign = if negative { self.sign() } else { 0 };
        if significand == 0 {
            return sign;
        }
        let top = 127 - significand.leading_zeros() as i32;
        let scale = (top + exponent).max(1 - self.bias());
        let shift = scale - self.mantissa_bits as i32 - exponent;
        let rounded = if shift <= 0 {
            significand << -shift
        } else {
            let (kept, remainder, half) = if shift < 128 {
                (significand >> shift, significand & ((1 << shift) - 1), 1 << (shift - 1))
            } else {
                (0, 1, 2)
            };
            kept + u128::from(rounding.up(negative, kept & 1 == 1, remainder, half))
        };
        // The implicit bit, where there is one, adds 1 to the exponent; so does a carry out of the mantissa.
        let magnitude =
            (((scale + self.bias() - 1) as u64) << self.mantissa_bits).wrapping_add(rounded as u64);
        if scale > self.bias() || magnitude >= self.infinity() {
            let to_infinity = match rounding {
                Rounding::Nearest | Rounding::NearestAway => true,
                Rounding::Zero => false,
                Rounding::Down => negative,
                Rounding::Up => !negative,
            };
            return sign | if to_infinity { self.infinity() } else { self.infinity() - 1 };
        }
        sign | magnitude
    }
}

/// What bits stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Nan,
    Infinite { negative: bool },
    Finite(Exact),
}

/// ± significand · 2^exponent. A significand whose last bit is set may stand for anything between its neighbours;
/// it is kept more than two bits longer than any format, so that rounding cannot tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Exact {
    pub(super) negative: bool,
    pub(super) significand: u128,
    pub(super) exponent: i32,
}

/// Where the first bit of a significand is put before an operation, leaving room for a carry.
const TOP: u32 = 125;

/// A shift to the right that leaves a trace of what falls out.
fn shift_right(significand: u128, by: u32) -> u128 {
    if by >= 128 {
        return u128::from(significand != 0);
    }
    significand >> by | u128::from(significand & ((1 << by) - 1) != 0)
}

impl Exact {
    pub(super) fn integer(value: i128) -> Exact {
        Exact { negative: value < 0, significand: value.unsigned_abs(), exponent: 0 }
    }

    fn normalized(self) -> Exact {
        let by = TOP as i32 - (127 - self.significand.leading_zeros() as i32);
        Exact { significand: self.significand << by, exponent: self.exponent - by, ..self }
    }

    pub(super) fn negated(self) -> Exact {
        Exact { negative: !self.negative, ..self }
    }

    /// The sum. The rounding mode decides the sign of an exact zero (IEEE 754, 6.3).
    pub(super) fn plus(self, other: Exact, rounding: Rounding) -> Exact {
        match (self.significand, other.significand) {
            (0, 0) if self.negative == other.negative => return self,
            (0, 0) => return Exact { negative: rounding == Rounding::Down, ..self },
            (0, _) => return other,
            (_, 0) => return self,
            _ => {}
        }
        let (x, y) = (self.normalized(), other.normalized());
        let (large, small) = if x.exponent >= y.exponent { (x, y) } else { (y, x) };
        let aligned = shift_right(small.significand, (large.exponent - small.exponent) as u32);
        if large.negative == small.negative {
            return Exact { significand: large.significand + aligned, ..large };
        }
        if large.significand == aligned {
            return Exact { negative: rounding == Rounding::Down, significand: 0, exponent: 0 };
        }
        Exact {
            negative: large.negative ^ (aligned > large.significand),
            significand: large.significand.abs_diff(aligned),
            exponent: large.exponent,
        }
    }

    /// The product, of significands of at most 64 bits.
    pub(super) fn times(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative ^ other.negative,
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
        }
    }

    /// The quotient, of significands of at most 53 bits and a divisor that is not zero.
    pub(super) fn over(self, other: Exact) -> Exact {
        let negative = self.negative ^ other.negative;
        if self.significand == 0 {
            return Exact { negative, ..self };
        }
        let x = self.normalized();
        let (quotient, remainder) = (x.significand / other.significand, x.significand % other.significand);
        Exact {
            negative,
            significand: quotient | u128::from(remainder != 0),
            exponent: x.exponent - other.exponent,
        }
    }

    /// The square root of a value that is not negative.
    pub(super) fn square_root(self) -> Exact {
        if self.significand == 0 {
            return self;
        }
        let mut x = self.normalized();
        if x.exponent % 2 != 0 {
            x = Exact { significand: x.significand >> 1, exponent: x.exponent + 1, ..x };
        }
        let root = x.significand.isqrt();
        Exact {
            negative: false,
            significand: root | u128::from(root * root != x.significand),
            exponent: x.exponent / 2,
        }
    }

    /// The integer that rounding gives, held between the bounds of an `i128`.
    pub(super) fn to_integer(self, rounding: Rounding) -> i128 {
        let magnitude = if self.exponent >= 0 {
            if self.significand.leading_zeros() as i32 <= self.exponent + 1 && self.significand != 0 {
                return if self.negative { i128::MIN } else { i128::MAX };
            }
            self.significand << self.exponent.min(127)
        } else {
            let by = self.exponent.unsigned_abs();
            let (kept, remainder, half) = if by < 128 {
                (self.significand >> by, self.significand & ((1 << by) - 1), 1 << (by - 1))
            } else {
                (0, u128::from(self.significand != 0), 2)
            };
            kept + u128::from(rounding.up(self.negative, kept & 1 == 1, remainder, half))
        };
        if self.negative { -(magnitude as i128) } else { magnitude as i128 }
    }
}
