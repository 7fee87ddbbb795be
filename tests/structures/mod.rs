//! Matrices that find what a kernel forgets: edges of tiles, empty rows, giants, disorder.

#![allow(dead_code, reason = "each program that includes this uses its part")]

use spmv_matrix::{CsrMatrix, Entry};

/// What the entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Small whole numbers: every sum is exact in any order.
    Integers,
    /// Uniform in (−1, 1), exact in f32.
    Random,
}

/// A named sparsity pattern: columns row by row.
pub struct Structure {
    pub name: &'static str,
    num_cols: usize,
    rows: Vec<Vec<u32>>,
    /// Every so many-th value is a stored zero; 0 for none.
    zero_every: usize,
    /// Whether all values are the same.
    is_constant: bool,
}

impl Structure {
    pub fn matrix(&self, numbers: Numbers) -> CsrMatrix<f64> {
        let mut stream = Stream(17);
        let mut count = 0;
        let constant = self.is_constant.then_some(-3.0);
        let rows = self.rows.iter().map(|row| {
            let entries = row.iter().map(|&col| {
                count += 1;
                let zero = self.zero_every > 0 && count % self.zero_every == 0;
                (col, if zero { 0.0 } else { constant.unwrap_or_else(|| stream.number(numbers)) })
            });
            entries.collect::<Vec<_>>()
        });
        let rows: Vec<_> = rows.collect();
        from_rows(self.num_cols, rows)
    }
}

impl Numbers {
    /// So many of them.
    pub fn vector(self, len: usize, seed: u64) -> Vec<f64> {
        let mut stream = Stream(seed);
        (0..len).map(|_| stream.number(self)).collect()
    }
}

/// The matrix with other values, by their places.
pub fn with_values<V: Entry>(a: &CsrMatrix<f64>, value: impl Fn(usize) -> V) -> CsrMatrix<V> {
    let (offsets, cols) = (a.row_offsets().to_vec(), a.col_indices().to_vec());
    let values = (0..a.nnz()).map(value).collect();
    CsrMatrix::new(a.num_rows(), a.num_cols(), offsets, cols, values).expect("the structure is valid")
}

/// A CSR matrix from (column, value) row by row, in the order given.
pub fn from_rows(num_cols: usize, rows: impl IntoIterator<Item = Vec<(u32, f64)>>) -> CsrMatrix<f64> {
    let (mut offsets, mut cols, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for row in rows {
        cols.extend(row.iter().map(|(col, _)| *col));
        values.extend(row.iter().map(|(_, value)| *value));
        offsets.push(cols.len() as u32);
    }
    CsrMatrix::new(offsets.len() - 1, num_cols, offsets, cols, values).expect("the structures are valid")
}

/// Uniform numbers in (−1, 1).
pub fn random(count: usize, seed: u64) -> Vec<f64> {
    Numbers::Random.vector(count, seed)
}

/// SplitMix64.
struct Stream(u64);

impl Stream {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn number(&mut self, numbers: Numbers) -> f64 {
        match numbers {
            Numbers::Integers => self.below(9) as f64 - 4.0,
            // 23 bits behind the point: the same number in f32 and f64.
            Numbers::Random => (self.below((1 << 24) - 1) as f64 + 1.0) / (1 << 23) as f64 - 1.0,
        }
    }
}

/// Every structure.
pub fn all() -> Vec<Structure> {
    let mut structures = Vec::new();
    let mut add = |name, num_cols: usize, rows: Vec<Vec<u32>>| {
        structures.push(Structure { name, num_cols, rows, zero_every: 0, is_constant: false });
    };
    let span = |len: usize| (0..len as u32).collect::<Vec<_>>();
    let mut stream = Stream(3);
    let mut scattered = |len: usize, num_cols: usize| -> Vec<u32> {
        (0..len).map(|_| stream.below(num_cols) as u32).collect()
    };

    add("empty", 0, vec![]);
    add("no_rows", 5, vec![]);
    add("no_columns", 0, vec![vec![]; 7]);
    add("one_entry", 1, vec![vec![0]]);
    add("one_empty", 1, vec![vec![]]);
    add("one_row", 1000, vec![span(1000)]);
    add("one_column", 1, vec![vec![0]; 1000]);
    add("no_nonzeros", 100, vec![vec![]; 300]);
    add("diagonal", 515, (0..515).map(|i| vec![i]).collect());
    add("dense", 70, vec![span(70); 70]);
    let banded = |i: u32| (i.saturating_sub(3)..(i + 4).min(600)).collect();
    add("banded", 600, (0..600).map(banded).collect());
    let mut ends_empty: Vec<Vec<u32>> = vec![vec![]; 40];
    ends_empty.extend((0..33).map(|_| span(5)));
    ends_empty.extend(vec![vec![]; 40]);
    add("empty_first_and_last_rows", 5, ends_empty);
    let one_full =
        |full: usize| (0..400).map(|i| if i == full { span(3000) } else { vec![i as u32] }).collect();
    add("full_first_row", 3000, one_full(0));
    add("full_middle_row", 3000, one_full(200));
    add("full_last_row", 3000, one_full(399));
    // Longer than what one block takes of a row.
    add(
        "giant_row",
        10_000,
        (0..90).map(|i| if i == 37 { span(10_000) } else { vec![i, i * 100] }).collect(),
    );
    add("full_column", 50, (0..800).map(|i| if i % 50 == 7 { vec![7] } else { vec![7, i % 50] }).collect());
    // Longer than what one block takes, and every block adds to it.
    add(
        "giant_column",
        5000,
        (0..5000).map(|i| if i % 7 == 3 { vec![4321] } else { vec![4321, i] }).collect(),
    );
    // Stretches of empty rows longer than any block's share, a long row between them.
    let hypersparse =
        (0..9000).map(|i| if i == 4500 { span(3000) } else { span(if i % 37 == 5 { 1 + i % 3 } else { 0 }) });
    add("hypersparse", 3000, hypersparse.collect());
    add("alternating_empty", 64, (0..500).map(|i| if i % 2 == 0 { vec![] } else { span(9) }).collect());
    // Row lengths around every edge of a group, warp, block and tile.
    let edges = [
        0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511,
        512, 513, 1023, 1024, 1025,
    ];
    add("row_length_edges", 1100, edges.iter().map(|&len| span(len)).collect());
    add("row_length_edges_backwards", 1100, edges.iter().rev().map(|&len| span(len)).collect());
    // Rows that are long enough for a warp each between rows that are not.
    let stretches = (0..120).map(|i| span(if i / 24 % 2 == 0 { 140 + i % 9 } else { i % 4 }));
    add("long_and_short_stretches", 150, stretches.collect());
    // As many rows as make the last block of any size full, one short of it, and one over.
    for (name, rows) in [("rows_1023", 1023), ("rows_1024", 1024), ("rows_1025", 1025)] {
        add(name, 1025, (0..rows).map(|i| vec![i as u32, (i * 7 % 1025) as u32]).collect());
    }
    let power_law = (0..2000).map(|i| scattered((4000 / (i + 1)).max(i % 4), 2000)).collect();
    add("power_law", 2000, power_law);
    let gaussian = (0..700i64)
        .map(|i| (0..12).map(|_| (i + scattered(1, 41)[0] as i64 - 20).clamp(0, 699) as u32).collect());
    add("gaussian", 700, gaussian.collect());
    add("wide", 5000, (0..60).map(|i| scattered(40 + i % 30, 5000)).collect());
    add("tall", 20, (0..4000).map(|i| scattered(i % 3, 20)).collect());
    add("unsorted", 300, (0..300).map(|i| scattered(i % 37, 300).into_iter().rev().collect()).collect());
    add("duplicates", 6, (0..200).map(|i| vec![i % 6; (i % 9) as usize]).collect());
    let rows = (0..150).map(|i| scattered(i % 20, 90)).collect();
    structures.push(Structure {
        name: "stored_zeros",
        num_cols: 90,
        rows,
        zero_every: 3,
        is_constant: false,
    });
    // Rows that are equal but for their place, more of them than a warp has at once.
    let neighbours = |i: u32| (i.saturating_sub(1)..(i + 2).min(700)).collect();
    let rows = (0..700).map(neighbours).collect();
    structures.push(Structure { name: "constant", num_cols: 700, rows, zero_every: 0, is_constant: true });
    // The farthest diagonal lies alone, and blocks find rows enough on the way to it.
    let half = |i: u32| [300, 1, 0].into_iter().filter_map(|distance| i.checked_sub(distance)).collect();
    let rows = (0..1490).map(half).collect();
    structures.push(Structure {
        name: "half_of_a_grid",
        num_cols: 1490,
        rows,
        zero_every: 0,
        is_constant: false,
    });
    // Nine lie together, as far, and steps are more than a block has stages for.
    let half = |i: u32| {
        let distances = [311, 310, 309, 301, 300, 299, 291, 290, 289, 11, 10, 9, 1, 0];
        distances.into_iter().filter_map(|distance| i.checked_sub(distance)).collect()
    };
    let rows = (0..4190).map(half).collect();
    structures.push(Structure {
        name: "half_of_a_box",
        num_cols: 4190,
        rows,
        zero_every: 0,
        is_constant: false,
    });
    structures
}
