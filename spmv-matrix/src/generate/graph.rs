//! Graphs: R-MAT and roads.

use super::GenerateError;
use super::class::{Plan, Settings};
use super::rng::{Rng, sort_distinct};

/// D. Chakrabarti, Y. Zhan and C. Faloutsos, *R-MAT: A Recursive Model for Graph Mining* (SDM 2004). Each
/// row draws how many of the edges fall to it, then their columns bit by bit, given its own bits.
struct RMat {
    scale: u32,
    edges: f64,
    /// The chance that a bit of the row is set.
    row_bit: f64,
    /// The chance that a bit of the column is set, where the row's is not and where it is.
    col_bit: [f64; 2],
}

impl Plan for RMat {
    fn num_rows(&self) -> usize {
        1 << self.scale
    }

    fn expected_nnz(&self) -> u64 {
        self.edges as u64
    }

    fn row(&self, row: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        let mut mean = self.edges;
        for bit in 0..self.scale {
            mean *= if row >> bit & 1 == 1 { self.row_bit } else { 1.0 - self.row_bit };
        }
        let start = cols.len();
        for _ in 0..rng.poisson(mean) {
            let mut col = 0;
            for bit in 0..self.scale {
                let set = rng.unit() < self.col_bit[row >> bit & 1];
                col |= u32::from(set) << bit;
            }
            cols.push(col);
        }
        sort_distinct(cols, start);
    }
}

pub(super) fn rmat(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let (a, b, c) = (settings.real("a"), settings.real("b"), settings.real("c"));
    let d = 1.0 - a - b - c;
    if d < -1e-12 {
        return Err(settings.conflict(format!("a + b + c = {} exceeds 1", a + b + c)));
    }
    let d = d.max(0.0);
    let scale = settings.count("scale") as u32;
    let part = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
    Ok(Box::new(RMat {
        scale,
        edges: settings.real("per_row") * (1_u64 << scale) as f64,
        row_bit: c + d,
        col_bit: [part(b, a + b), part(d, c + d)],
    }))
}

/// Places along roads: most have one or two neighbours, nearly all of them close by.
struct Road {
    n: usize,
}

impl Plan for Road {
    fn num_rows(&self) -> usize {
        self.n
    }

    fn expected_nnz(&self) -> u64 {
        (self.n as f64 * 1.7) as u64
    }

    fn row(&self, row: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        let start = cols.len();
        // 1 to 4 neighbours in parts of 45, 42, 11 and 2 in a hundred: 1.7 on average.
        let degree = match rng.below(100) {
            0..45 => 1,
            45..87 => 2,
            87..98 => 3,
            _ => 4,
        };
        let far = (self.n as f64).sqrt() as usize + 2;
        for _ in 0..degree {
            let reach = if rng.below(4) == 0 { far } else { 8 };
            let distance = 1 + rng.below(reach);
            let col = if rng.below(2) == 0 { row.checked_sub(distance) } else { Some(row + distance) };
            let inside = col.filter(|&col| col < self.n).unwrap_or(row);
            cols.push(inside as u32);
        }
        sort_distinct(cols, start);
    }
}

pub(super) fn road(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    Ok(Box::new(Road { n: settings.count("n") }))
}
