//! Products of small matrices by a whole warp: `mma.sync`.
//!
//! D = A·B + C with the elements spread over the lanes as the PTX ISA documents. It leaves the order and the
//! rounding of the sums open; here an element of D is a chain of fused multiply-adds to nearest that starts at C and
//! takes k in ascending order, in double precision for `f64` and in single for `f16` and `bf16`, whose results are
//! then rounded once more where D is `f16`. Hardware may round such sums otherwise.

use crate::alu::{L32, L64, bf16_to_f32, f16_to_f32, f32_to_f16};
use crate::op::R;

/// The format of the elements of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    F64,
    F16,
    Bf16,
}

/// Which product it is, from the mnemonic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    element: Element,
    /// Rows of A and D; there are 8 columns of B and D.
    rows: usize,
    /// Columns of A and rows of B.
    depth: usize,
    /// Four products of 8×4 by 4×8, one for each quarter of either half of the warp.
    quarters: bool,
    a_by_columns: bool,
    b_by_rows: bool,
    /// Whether C and D are `f16` rather than as wide as the sums.
    c_half: bool,
    d_half: bool,
}

/// Registers of each matrix in a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) c: usize,
    pub(crate) d: usize,
}

/// An instruction: its shape, and the registers of each matrix, the lowest elements first.
#[derive(Clone, Debug)]
pub(crate) struct Mma {
    pub(crate) shape: Shape,
    pub(crate) a: Vec<R>,
    pub(crate) b: Vec<R>,
    pub(crate) c: Vec<R>,
    pub(crate) d: Vec<R>,
}

/// Where an element stands: row and column. Of four products the matrices stand below each other.
type Place = (usize, usize);

impl Shape {
    /// From the modifiers of the mnemonic; none where there is no such product here.
    pub(crate) fn find(modifiers: &[&str]) -> Option<Shape> {
        let ["sync", "aligned", shape, a_layout, b_layout, d, a, b, c] = *modifiers else { return None };
        let (rows, depth) = match shape {
            "m8n8k4" => (8, 4),
            "m16n8k4" => (16, 4),
            "m16n8k8" => (16, 8),
            "m16n8k16" => (16, 16),
            _ => return None,
        };
        let element = match (a, depth) {
            ("f64", _) => Element::F64,
            ("f16", 4) if rows == 8 => Element::F16,
            ("f16", 8 | 16) => Element::F16,
            ("bf16", 8 | 16) => Element::Bf16,
            _ => return None,
        };
        let half = |kind| match (element, kind) {
            (Element::F64, "f64") | (Element::F16 | Element::Bf16, "f32") => Some(false),
            (Element::F16, "f16") => Some(true),
            _ => None,
        };
        let quarters = element == Element::F16 && rows == 8;
        let by_columns = |layout| match layout {
            "row" => Some(false),
            "col" => Some(true),
            _ => None,
        };
        let (a_by_columns, b_by_rows) = (by_columns(a_layout)?, !by_columns(b_layout)?);
        let shape = Shape {
            element,
            rows,
            depth,
            quarters,
            a_by_columns,
            b_by_rows,
            c_half: half(c)?,
            d_half: half(d)?,
        };
        let usual_layout = !a_by_columns && !b_by_rows;
        // Of the larger shapes C and D have one type.
        let fits = quarters || usual_layout && shape.c_half == shape.d_half;
        (a == b && fits).then_some(shape)
    }

    pub(crate) fn wide(&self) -> bool {
        self.element == Element::F64
    }

    pub(crate) fn counts(&self) -> Counts {
        let products = if self.quarters { 4 } else { 1 };
        let in_lane = |elements: usize| products * elements / 32;
        let packed = if self.wide() { 1 } else { 2 };
        let sums = |half: bool| in_lane(self.rows * 8) / if half { 2 } else { 1 };
        Counts {
            a: in_lane(self.rows * self.depth) / packed,
            b: in_lane(self.depth * 8) / packed,
            c: sums(self.c_half),
            d: sums(self.d_half),
        }
    }

    fn place_of_a(&self, lane: usize, index: usize) -> Place {
        let (group, within) = (lane / 4, lane % 4);
        if self.quarters {
            let upper = 4 * (lane / 16);
            let (row, column) =
                if self.a_by_columns { (index + upper, within) } else { (within + upper, index) };
            return (lane % 16 / 4 * 8 + row, column);
        }
        match self.element {
            Element::F64 => (group + index % 2 * 8, within + index / 2 * 4),
            _ => (group + index / 2 % 2 * 8, within * 2 + index % 2 + index / 4 * 8),
        }
    }

    fn place_of_b(&self, lane: usize, index: usize) -> Place {
        let (group, within) = (lane / 4, lane % 4);
        if self.quarters {
            let upper = 4 * (lane / 16);
            let (row, column) =
                if self.b_by_rows { (within, index + upper) } else { (index, within + upper) };
            return (lane % 16 / 4 * 4 + row, column);
        }
        match self.element {
            Element::F64 => (within + index * 4, group),
            _ => (within * 2 + index % 2 + index / 2 * 8, group),
        }
    }

    fn place_of_sum(&self, lane: usize, index: usize, half: bool) -> Place {
        let (group, within) = (lane / 4, lane % 4);
        if self.quarters {
            let above = lane % 16 / 4 * 8 + 4 * (lane / 16);
            return match half {
                true => (above + within, index),
                false => (above + (lane & 1) + (index & 2), (index & 4) + (lane & 2) + (index & 1)),
            };
        }
        (group + index / 2 * 8, within * 2 + index % 2)
    }
}

/// The matrices, with room for the largest shape.
struct Matrices<T> {
    a: [[T; 16]; 32],
    b: [[T; 8]; 16],
    sums: [[T; 8]; 32],
}

impl<T: Copy + Default> Matrices<T> {
    fn new() -> Matrices<T> {
        let zero = T::default();
        Matrices { a: [[zero; 16]; 32], b: [[zero; 8]; 16], sums: [[zero; 8]; 32] }
    }
}

impl Mma {
    /// Computes the product from and into registers of all 32 lanes.
    /// Whether its registers are those of 64 bits.
    pub(crate) fn is_wide(&self) -> bool {
        self.shape.element == Element::F64
    }

    pub(crate) fn run(&self, w32: &mut [L32], w64: &mut [L64]) {
        match self.shape.element {
            Element::F64 => self.run_wide(w64),
            Element::F16 => self.run_narrow(w32, f16_to_f32),
            Element::Bf16 => self.run_narrow(w32, bf16_to_f32),
        }
    }

    fn run_wide(&self, w64: &mut [L64]) {
        let shape = &self.shape;
        let mut all = Matrices::<f64>::new();
        let element = |register: &R, lane: usize| f64::from_bits(w64[usize::from(*register)][lane]);
        for lane in 0..32 {
            for (index, register) in self.a.iter().enumerate() {
                let (row, column) = shape.place_of_a(lane, index);
                all.a[row][column] = element(register, lane);
            }
            for (index, register) in self.b.iter().enumerate() {
                let (row, column) = shape.place_of_b(lane, index);
                all.b[row][column] = element(register, lane);
            }
            for (index, register) in self.c.iter().enumerate() {
                let (row, column) = shape.place_of_sum(lane, index, false);
                all.sums[row][column] = element(register, lane);
            }
        }
        multiply_64(shape, &mut all);
        for (index, register) in self.d.iter().enumerate() {
            for (lane, value) in w64[usize::from(*register)].iter_mut().enumerate() {
                let (row, column) = shape.place_of_sum(lane, index, false);
                let sum = all.sums[row][column];
                *value = if sum.is_nan() { NAN_64 } else { sum.to_bits() };
            }
        }
    }

    fn run_narrow(&self, w32: &mut [L32], widen: fn(u32) -> f32) {
        let shape = &self.shape;
        let mut all = Matrices::<f32>::new();
        let in_lane = |register: &R, lane: usize| w32[usize::from(*register)][lane];
        for lane in 0..32 {
            let bits = |register: &R| in_lane(register, lane);
            let halves = |register: &R| [bits(register) & 0xffff, bits(register) >> 16];
            for (index, half) in self.a.iter().flat_map(halves).enumerate() {
                let (row, column) = shape.place_of_a(lane, index);
                all.a[row][column] = widen(half);
            }
            for (index, half) in self.b.iter().flat_map(halves).enumerate() {
                let (row, column) = shape.place_of_b(lane, index);
                all.b[row][column] = widen(half);
            }
            let mut set = |index: usize, value: f32| {
                let (row, column) = shape.place_of_sum(lane, index, shape.c_half);
                all.sums[row][column] = value;
            };
            match shape.c_half {
                true => {
                    self.c.iter().flat_map(halves).enumerate().for_each(|(i, half)| set(i, f16_to_f32(half)))
                }
                false => self.c.iter().enumerate().for_each(|(i, c)| set(i, f32::from_bits(bits(c)))),
            }
        }
        multiply_32(shape, &mut all);
        for (index, register) in self.d.iter().enumerate() {
            for (lane, value) in w32[usize::from(*register)].iter_mut().enumerate() {
                let sum = |index| {
                    let (row, column) = shape.place_of_sum(lane, index, shape.d_half);
                    all.sums[row][column]
                };
                *value = match shape.d_half {
                    true => f32_to_f16(sum(2 * index)) | f32_to_f16(sum(2 * index + 1)) << 16,
                    false if sum(index).is_nan() => NAN_32,
                    false => sum(index).to_bits(),
                };
            }
        }
    }
}

const NAN_32: u32 = 0x7fff_ffff;
const NAN_64: u64 = 0x7ff8_0000_0000_0000;

/// The sums of every product, with the processor's fused multiply-add where it has one.
macro_rules! multiply {
    ($name:ident, $T:ty) => {
        fn $name(shape: &Shape, all: &mut Matrices<$T>) {
            #[inline(always)]
            fn sums(shape: &Shape, all: &mut Matrices<$T>) {
                let rows = if shape.quarters { 32 } else { shape.rows };
                for (row, sums) in all.sums.iter_mut().enumerate().take(rows) {
                    let above = if shape.quarters { row / 8 * 4 } else { 0 };
                    for k in 0..shape.depth {
                        let (factor, factors) = (all.a[row][k], &all.b[above + k]);
                        for column in 0..8 {
                            sums[column] = factor.mul_add(factors[column], sums[column]);
                        }
                    }
                }
            }
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn sums_by_hardware(shape: &Shape, all: &mut Matrices<$T>) {
                    sums(shape, all);
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has the features.
                    unsafe { sums_by_hardware(shape, all) };
                    return;
                }
            }
            sums(shape, all);
        }
    };
}
multiply!(multiply_32, f32);
multiply!(multiply_64, f64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Every element of a matrix lies in one lane, at one index.
    #[test]
    fn fragments_cover_the_matrices() {
        let mut found = 0;
        for shape in ["m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"] {
            for (a_layout, b_layout) in [("row", "col"), ("row", "row"), ("col", "col"), ("col", "row")] {
                for (d, a, c) in [
                    ("f64", "f64", "f64"),
                    ("f32", "f16", "f32"),
                    ("f16", "f16", "f16"),
                    ("f32", "bf16", "f32"),
                ] {
                    let Some(shape) =
                        Shape::find(&["sync", "aligned", shape, a_layout, b_layout, d, a, a, c])
                    else {
                        continue;
                    };
                    found += 1;
                    let covers = |registers: usize,
                                  packed: usize,
                                  size: usize,
                                  place: &dyn Fn(usize, usize) -> Place| {
                        let mut places: Vec<Place> = (0..32 * registers * packed)
                            .map(|at| place(at / (registers * packed), at % (registers * packed)))
                            .collect();
                        places.sort_unstable();
                        places.dedup();
                        assert_eq!(places.len(), 32 * registers * packed, "{shape:?}");
                        assert_eq!(places.len(), size * if shape.quarters { 4 } else { 1 }, "{shape:?}");
                    };
                    let (counts, packed) = (shape.counts(), if shape.wide() { 1 } else { 2 });
                    covers(counts.a, packed, shape.rows * shape.depth, &|lane, i| shape.place_of_a(lane, i));
                    covers(counts.b, packed, shape.depth * 8, &|lane, i| shape.place_of_b(lane, i));
                    let packed = if shape.c_half { 2 } else { 1 };
                    covers(counts.c, packed, shape.rows * 8, &|lane, i| {
                        shape.place_of_sum(lane, i, shape.c_half)
                    });
                }
            }
        }
        // Four of f64, three of either f16, two more of bf16, and the three other layouts of the smallest f16.
        assert_eq!(found, 4 + 2 * 3 + 2 + 2 * 3);
    }
}
