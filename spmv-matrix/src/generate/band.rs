//! Diagonals, bands and dense matrices.

use super::GenerateError;
use super::class::{Plan, Settings};
use super::rng::Rng;

struct Banded {
    num_rows: usize,
    num_cols: usize,
    lower: usize,
    upper: usize,
    fill: f64,
}

impl Plan for Banded {
    fn num_rows(&self) -> usize {
        self.num_rows
    }

    fn num_cols(&self) -> usize {
        self.num_cols
    }

    fn expected_nnz(&self) -> u64 {
        let width = (self.lower + self.upper) as u64;
        let beside = (self.num_rows as u64 * width.min(self.num_cols as u64)) as f64;
        (beside * self.fill) as u64 + self.num_rows as u64
    }

    fn row(&self, row: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        let end = self.num_cols.min(row.saturating_add(self.upper).saturating_add(1));
        let band = row.saturating_sub(self.lower)..end;
        if self.fill == 1.0 {
            cols.extend(band.map(|col| col as u32));
        } else {
            cols.extend(band.filter(|&col| rng.unit() < self.fill || col == row).map(|col| col as u32));
        }
    }
}

pub(super) fn diagonal(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let n = settings.count("n");
    Ok(Box::new(Banded { num_rows: n, num_cols: n, lower: 0, upper: 0, fill: 1.0 }))
}

pub(super) fn tridiagonal(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let n = settings.count("n");
    Ok(Box::new(Banded { num_rows: n, num_cols: n, lower: 1, upper: 1, fill: 1.0 }))
}

pub(super) fn banded(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let n = settings.count("n");
    let (lower, upper) = (settings.count("lower"), settings.count("upper"));
    Ok(Box::new(Banded { num_rows: n, num_cols: n, lower, upper, fill: settings.real("fill") }))
}

pub(super) fn dense(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let (num_rows, num_cols) = (settings.count("rows"), settings.count("cols"));
    Ok(Box::new(Banded { num_rows, num_cols, lower: num_rows, upper: num_cols, fill: 1.0 }))
}
