//! What a structure is like.

use crate::{CsrMatrix, Entry, Offset, parallel};

/// Rows and nonzeros of one task.
const BLOCK: usize = 1 << 16;

/// What is known of a matrix after one look at each entry.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Statistics {
    /// Rows.
    pub num_rows: usize,
    /// Columns.
    pub num_cols: usize,
    /// Stored entries.
    pub nnz: usize,
    /// Stored entries over rows times columns; 0 where there are none.
    pub density: f64,
    /// Rows without entries.
    pub empty_rows: usize,
    /// Entries of the shortest row.
    pub row_nnz_min: usize,
    /// Entries of a row on average.
    pub row_nnz_mean: f64,
    /// Entries of the longest row.
    pub row_nnz_max: usize,
    /// Standard deviation of the entries of a row.
    pub row_nnz_std: f64,
    /// How many rows have 0 entries, 1, 2–3, 4–7, 8–15 and so on, up to the longest row.
    pub row_nnz_histogram: Vec<usize>,
    /// How far entries reach below the diagonal: the largest row − column, 0 where none is below.
    pub lower_bandwidth: usize,
    /// How far entries reach above the diagonal: the largest column − row, 0 where none is above.
    pub upper_bandwidth: usize,
    /// Stored entries on the diagonal.
    pub diagonal_entries: usize,
    /// Stored entries that are zero.
    pub stored_zeros: usize,
    /// Whether the columns are ascending in every row.
    pub sorted_columns: bool,
    /// Stored entries whose column is that of the entry before; all duplicates where columns are sorted.
    pub adjacent_duplicates: usize,
    /// Bytes of the three arrays.
    pub bytes: usize,
}

impl Statistics {
    /// Looks at a matrix, in parallel.
    pub fn of<V: Entry, O: Offset>(matrix: &CsrMatrix<V, O>) -> Self {
        let (num_rows, num_cols, nnz) = (matrix.num_rows(), matrix.num_cols(), matrix.nnz());
        let blocks = matrix.row_blocks(BLOCK);
        let parts = parallel::map(blocks.into_iter(), |rows| Part::of(matrix, rows));
        let part = parts.into_iter().fold(Part::default(), Part::merge);
        let mean = if num_rows == 0 { 0.0 } else { nnz as f64 / num_rows as f64 };
        let places = num_rows as f64 * num_cols as f64;
        let last = part.histogram.iter().rposition(|&rows| rows > 0).map_or(0, |last| last + 1);
        let mean_square = if num_rows == 0 { 0.0 } else { part.squares as f64 / num_rows as f64 };
        Self {
            num_rows,
            num_cols,
            nnz,
            density: if places == 0.0 { 0.0 } else { nnz as f64 / places },
            empty_rows: part.histogram[0],
            row_nnz_min: if num_rows == 0 { 0 } else { part.min },
            row_nnz_mean: mean,
            row_nnz_max: part.max,
            row_nnz_std: (mean_square - mean * mean).max(0.0).sqrt(),
            row_nnz_histogram: part.histogram[..last].to_vec(),
            lower_bandwidth: part.lower,
            upper_bandwidth: part.upper,
            diagonal_entries: part.diagonal,
            stored_zeros: part.zeros,
            sorted_columns: part.unsorted == 0,
            adjacent_duplicates: part.duplicates,
            bytes: matrix.bytes(),
        }
    }
}

/// What is known of some rows.
struct Part {
    min: usize,
    max: usize,
    squares: u128,
    histogram: [usize; 65],
    lower: usize,
    upper: usize,
    diagonal: usize,
    zeros: usize,
    unsorted: usize,
    duplicates: usize,
}

impl Default for Part {
    fn default() -> Self {
        Self {
            min: usize::MAX,
            max: 0,
            squares: 0,
            histogram: [0; 65],
            lower: 0,
            upper: 0,
            diagonal: 0,
            zeros: 0,
            unsorted: 0,
            duplicates: 0,
        }
    }
}

impl Part {
    fn of<V: Entry, O: Offset>(matrix: &CsrMatrix<V, O>, rows: std::ops::Range<usize>) -> Self {
        let mut part = Self::default();
        let zero = V::default();
        part.zeros = matrix.values()[matrix.range_of(&rows)].iter().filter(|&&value| value == zero).count();
        for row in rows {
            let cols = matrix.row(row).0;
            let len = cols.len();
            part.min = part.min.min(len);
            part.max = part.max.max(len);
            part.squares += (len as u128).pow(2);
            part.histogram[(usize::BITS - len.leading_zeros()) as usize] += 1;
            let (mut least, mut greatest) = (u32::MAX, 0);
            for &col in cols {
                least = least.min(col);
                greatest = greatest.max(col);
                part.diagonal += usize::from(col as usize == row);
            }
            for pair in cols.windows(2) {
                part.unsorted += usize::from(pair[1] < pair[0]);
                part.duplicates += usize::from(pair[1] == pair[0]);
            }
            if len > 0 {
                part.lower = part.lower.max(row.saturating_sub(least as usize));
                part.upper = part.upper.max((greatest as usize).saturating_sub(row));
            }
        }
        part
    }

    fn merge(mut self, other: Self) -> Self {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.squares += other.squares;
        for (mine, theirs) in self.histogram.iter_mut().zip(other.histogram) {
            *mine += theirs;
        }
        self.lower = self.lower.max(other.lower);
        self.upper = self.upper.max(other.upper);
        self.diagonal += other.diagonal;
        self.zeros += other.zeros;
        self.unsorted += other.unsorted;
        self.duplicates += other.duplicates;
        self
    }
}
