//! Classes that are known by the lengths of their rows.

use super::GenerateError;
use super::class::{Plan, Settings};
use super::rng::{Rng, sort_distinct};

struct Circuit {
    n: usize,
    per_row: usize,
    dense_rows: usize,
    dense_length: usize,
}

impl Plan for Circuit {
    fn num_rows(&self) -> usize {
        self.n
    }

    fn expected_nnz(&self) -> u64 {
        let dense = self.dense_rows.min(self.n) as u64 * self.dense_length.min(self.n) as u64;
        self.n as u64 * self.per_row as u64 + dense
    }

    fn row(&self, row: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        let start = cols.len();
        // Dense rows lie evenly: row r is one where r·dense_rows/n steps up.
        let step = |row: usize| row as u128 * self.dense_rows as u128 / self.n as u128;
        if step(row + 1) > step(row) {
            rng.distinct(0, self.n, self.dense_length, cols);
            return;
        }
        cols.push(row as u32);
        for _ in 0..rng.below(2 * self.per_row - 1) {
            let near = rng.below(3) > 0;
            let first = if near { row.saturating_sub(50) } else { 0 };
            let range = if near { (self.n - first).min(101) } else { self.n };
            cols.push((first + rng.below(range)) as u32);
        }
        sort_distinct(cols, start);
    }
}

/// Entries of a row on average: no more than there are columns, which is what a row is made of before what is twice goes.
fn per_row(settings: &Settings, num_cols: usize) -> usize {
    settings.count("per_row").min(num_cols.max(1))
}

pub(super) fn circuit(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let n = settings.count("n");
    Ok(Box::new(Circuit {
        n,
        per_row: per_row(settings, n),
        dense_rows: settings.count("dense_rows"),
        dense_length: settings.count("dense_length"),
    }))
}

struct GiantRow {
    n: usize,
    per_row: usize,
    giant: usize,
    empty: f64,
}

impl Plan for GiantRow {
    fn num_rows(&self) -> usize {
        self.n
    }

    fn expected_nnz(&self) -> u64 {
        let others = (self.n as u64 * self.per_row as u64) as f64 * (1.0 - self.empty);
        others as u64 + self.giant.min(self.n) as u64
    }

    fn row(&self, row: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        let start = cols.len();
        let giant = self.n / 3;
        if row == giant {
            rng.distinct(0, self.n, self.giant, cols);
            return;
        }
        if self.empty > 0.0 && rng.unit() < self.empty {
            return;
        }
        // 1 to 2·per_row − 1 entries, half of the first ones in the giant's column.
        for entry in 0..1 + rng.below(2 * self.per_row - 1) {
            let to_giant = entry == 0 && rng.below(2) == 0;
            cols.push(if to_giant { giant } else { rng.below(self.n) } as u32);
        }
        sort_distinct(cols, start);
    }
}

pub(super) fn giant_row(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let (n, giant) = (settings.count("n"), settings.count("giant"));
    Ok(Box::new(GiantRow { n, per_row: per_row(settings, n), giant, empty: settings.real("empty") }))
}

struct Rail {
    num_rows: usize,
    num_cols: usize,
    per_row: usize,
}

impl Plan for Rail {
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
        // 4·u³ is 1 on average, from almost nothing to 4.
        let u = rng.unit();
        rng.distinct(0, self.num_cols, (4.0 * u * u * u * self.per_row as f64 + 0.5) as usize, cols);
    }
}

pub(super) fn rail(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let (num_rows, num_cols) = (settings.count("rows"), settings.count("cols"));
    Ok(Box::new(Rail { num_rows, num_cols, per_row: settings.count("per_row") }))
}

struct Tall {
    num_rows: usize,
    num_cols: usize,
    per_row: usize,
    stretch: usize,
    empty: f64,
}

impl Plan for Tall {
    fn num_rows(&self) -> usize {
        self.num_rows
    }

    fn num_cols(&self) -> usize {
        self.num_cols
    }

    fn expected_nnz(&self) -> u64 {
        ((self.num_rows as u64 * self.per_row as u64) as f64 * (1.0 - self.empty)) as u64
    }

    fn row(&self, row: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        // Stretch s is empty where s·empty steps up: so they alternate as evenly as they can.
        let step = |stretch: usize| (stretch as f64 * self.empty) as u64;
        let stretch = row / self.stretch;
        if step(stretch + 1) > step(stretch) {
            return;
        }
        let length = 1 + rng.below(2 * self.per_row - 1);
        rng.distinct(0, self.num_cols, length, cols);
    }
}

pub(super) fn tall(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    Ok(Box::new(Tall {
        num_rows: settings.count("rows"),
        num_cols: settings.count("cols"),
        per_row: settings.count("per_row"),
        stretch: settings.count("stretch"),
        empty: settings.real("empty"),
    }))
}

/// Basis functions overlap with a dense cluster of near ones and with runs of far ones.
struct Chemistry {
    n: usize,
    per_row: usize,
}

impl Plan for Chemistry {
    fn num_rows(&self) -> usize {
        self.n
    }

    fn expected_nnz(&self) -> u64 {
        self.n as u64 * self.per_row as u64
    }

    fn row(&self, row: usize, rng: &mut Rng, cols: &mut Vec<u32>) {
        let start = cols.len();
        // 64 neighbouring rows belong to one atom and reach about equally far: 1/4 to 7/4 of the average.
        let atom = Rng::new(0, super::rng::Stream::Columns, (row / 64) as u64).unit();
        let length = ((0.25 + 1.5 * atom) * self.per_row as f64) as usize + rng.below(8) + 1;
        let near = length / 2;
        let first = row.saturating_sub(near / 2);
        cols.extend((first..self.n.min(first + near)).map(|col| col as u32));
        let reach = self.n / 4 + 1;
        while cols.len() - start < length {
            let run = 4 + rng.below(13);
            let from = (row + self.n - reach + rng.below(2 * reach)) % self.n;
            let run = run.min(self.n - from).min(length - (cols.len() - start));
            cols.extend((from..from + run).map(|col| col as u32));
        }
        sort_distinct(cols, start);
    }
}

pub(super) fn chemistry(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    let n = settings.count("n");
    Ok(Box::new(Chemistry { n, per_row: per_row(settings, n) }))
}
