//! Columns drawn at random, row by row.

use super::GenerateError;
use super::class::{Plan, Settings};
use super::numeric::pow;
use super::rng::{Rng, sort_distinct};

struct Gaussian {
    n: usize,
    per_row: usize,
    sigma: f64,
}

impl Plan for Gaussian {
    fn num_rows(&self) -> usize {
        self.n
    }

    fn expected_nnz(&self) -> u64 {
        self.n as u64 * self.per_row as u64
    }

    /// Columns beyond the edge are drawn again; a row that has found too few after many draws stays short.
    fn row(&self, row: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        let start = cols.len();
        let wanted = self.per_row.min(self.n);
        for _ in 0..16 {
            let missing = wanted - (cols.len() - start);
            for _ in 0..2 * missing {
                let col = (row as f64 + self.sigma * rng.gaussian() + 0.5).floor();
                if cols.len() - start < wanted && col >= 0.0 && col < self.n as f64 {
                    cols.push(col as u32);
                }
            }
            sort_distinct(cols, start);
            if cols.len() - start == wanted {
                break;
            }
        }
    }
}

pub(super) fn gaussian(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let n = settings.count("n");
    Ok(Box::new(Gaussian { n, per_row: settings.count("per_row"), sigma: settings.real("sigma") }))
}

struct Uniform {
    num_rows: usize,
    num_cols: usize,
    per_row: usize,
}

impl Plan for Uniform {
    fn num_rows(&self) -> usize {
        self.num_rows
    }

    fn num_cols(&self) -> usize {
        self.num_cols
    }

    fn expected_nnz(&self) -> u64 {
        self.num_rows as u64 * self.per_row as u64
    }

    fn row(&self, _: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        rng.distinct(0, self.num_cols, self.per_row, cols);
    }
}

pub(super) fn uniform(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let (num_rows, num_cols) = (settings.count("rows"), settings.count("cols"));
    Ok(Box::new(Uniform { num_rows, num_cols, per_row: settings.count("per_row") }))
}

struct PowerLaw {
    n: usize,
    shortest: usize,
    longest: usize,
    exponent: f64,
}

impl Plan for PowerLaw {
    fn num_rows(&self) -> usize {
        self.n
    }

    fn expected_nnz(&self) -> u64 {
        // The mean of a power law between two ends; the exponent 2 would divide by zero.
        let (low, high) = (self.shortest as f64, self.longest.min(self.n).max(self.shortest) as f64);
        let k = if (self.exponent - 2.0).abs() < 1e-6 { 1.000_001 } else { self.exponent - 1.0 };
        let tail = pow(low / high, k);
        let mean = k * low / (k - 1.0) * (1.0 - pow(low / high, k - 1.0)) + high * tail;
        (self.n as f64 * mean.min(self.n as f64)) as u64
    }

    fn row(&self, _: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        let length = self.shortest as f64 * pow(1.0 - rng.unit(), -1.0 / (self.exponent - 1.0));
        rng.distinct(0, self.n, (length as usize).min(self.longest), cols);
    }
}

pub(super) fn power_law(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let (shortest, longest) = (settings.count("shortest"), settings.count("longest"));
    if shortest > longest {
        return Err(settings.conflict(format!("shortest = {shortest} exceeds longest = {longest}")));
    }
    Ok(Box::new(PowerLaw { n: settings.count("n"), shortest, longest, exponent: settings.real("exponent") }))
}
