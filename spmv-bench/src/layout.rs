//! Storage formats that cuSPARSE takes beside CSR, made on the host, in parallel.

use rayon::prelude::*;
use spmv_runtime::RealElement;
use spmv_runtime::matrix::CsrMatrix;

/// Block rows of one task when blocks are looked for.
const BLOCK_ROWS: usize = 512;

/// The row of every entry.
pub(crate) fn coo_rows<V: RealElement>(a: &CsrMatrix<V, u32>) -> Vec<u32> {
    let mut rows = vec![0; a.nnz()];
    let mut rest = &mut rows[..];
    let mut parts = Vec::new();
    for block in row_blocks(a.num_rows(), 1 << 14) {
        let entries = a.row_range(block.end - 1).end - a.row_range(block.start).start;
        let (part, behind) = rest.split_at_mut(entries);
        parts.push((block, part));
        rest = behind;
    }
    parts.into_par_iter().for_each(|(block, part)| {
        let start = a.row_range(block.start).start;
        for row in block {
            let range = a.row_range(row);
            part[range.start - start..range.end - start].fill(row as u32);
        }
    });
    rows
}

/// Slices of rows, each as wide as its longest row; entries of a slice column by column, padding with column −1.
#[derive(Debug, PartialEq)]
pub(crate) struct SlicedEll<V> {
    pub(crate) slice_offsets: Vec<i32>,
    pub(crate) col_indices: Vec<i32>,
    pub(crate) values: Vec<V>,
}

/// Entries that slices of `rows_per_slice` rows hold, padding included; the last slice is a full one.
pub(crate) fn sliced_ell_entries<V: RealElement>(a: &CsrMatrix<V, u32>, rows_per_slice: usize) -> u64 {
    widths(a, rows_per_slice).iter().map(|width| (width * rows_per_slice) as u64).sum()
}

fn widths<V: RealElement>(a: &CsrMatrix<V, u32>, rows_per_slice: usize) -> Vec<usize> {
    let slices = a.num_rows().div_ceil(rows_per_slice);
    let width = |slice: usize| {
        let rows = slice * rows_per_slice..((slice + 1) * rows_per_slice).min(a.num_rows());
        rows.map(|row| a.row_range(row).len()).max().unwrap_or(0)
    };
    (0..slices).into_par_iter().with_min_len(64).map(width).collect()
}

/// Makes the slices. They must hold fewer than 2^31 entries.
pub(crate) fn sliced_ell<V: RealElement>(a: &CsrMatrix<V, u32>, rows_per_slice: usize) -> SlicedEll<V> {
    let widths = widths(a, rows_per_slice);
    let mut slice_offsets = Vec::with_capacity(widths.len() + 1);
    let mut total = 0;
    slice_offsets.push(0);
    for width in &widths {
        total += width * rows_per_slice;
        slice_offsets.push(total as i32);
    }
    let (mut col_indices, mut values) = (vec![-1; total], vec![V::default(); total]);
    let (mut cols_left, mut values_left) = (&mut col_indices[..], &mut values[..]);
    let mut slices = Vec::with_capacity(widths.len());
    for width in &widths {
        let (cols, cols_behind) = cols_left.split_at_mut(width * rows_per_slice);
        let (values, values_behind) = values_left.split_at_mut(width * rows_per_slice);
        slices.push((cols, values));
        (cols_left, values_left) = (cols_behind, values_behind);
    }
    slices.into_par_iter().with_min_len(64).enumerate().for_each(|(slice, (cols, values))| {
        let first = slice * rows_per_slice;
        for row in first..(first + rows_per_slice).min(a.num_rows()) {
            let (row_cols, row_values) = a.row(row);
            for (place, (col, value)) in row_cols.iter().zip(row_values).enumerate() {
                cols[place * rows_per_slice + row - first] = *col as i32;
                values[place * rows_per_slice + row - first] = *value;
            }
        }
    });
    SlicedEll { slice_offsets, col_indices, values }
}

/// Square dense blocks, those of a block row by column, entries of a block row by row.
#[derive(Debug, PartialEq)]
pub(crate) struct Blocks<V> {
    pub(crate) block_offsets: Vec<i32>,
    pub(crate) block_cols: Vec<i32>,
    pub(crate) values: Vec<V>,
}

/// How many blocks of `size` × `size` hold all entries.
pub(crate) fn count_blocks<V: RealElement>(a: &CsrMatrix<V, u32>, size: usize) -> usize {
    let count = |block_rows: std::ops::Range<usize>| {
        let mut cols = Vec::new();
        block_rows
            .map(|block_row| {
                block_cols(a, size, block_row, &mut cols);
                cols.len()
            })
            .sum::<usize>()
    };
    row_blocks(a.num_rows().div_ceil(size), BLOCK_ROWS).into_par_iter().map(count).sum()
}

/// Block columns of a block row, ascending.
fn block_cols<V: RealElement>(a: &CsrMatrix<V, u32>, size: usize, block_row: usize, cols: &mut Vec<i32>) {
    cols.clear();
    for row in block_row * size..((block_row + 1) * size).min(a.num_rows()) {
        let mut last = -1;
        for col in a.row(row).0 {
            let col = (*col as usize / size) as i32;
            if col != last {
                cols.push(col);
                last = col;
            }
        }
    }
    cols.sort_unstable();
    cols.dedup();
}

/// Makes the blocks; entries of one place add.
pub(crate) fn blocks<V: RealElement>(a: &CsrMatrix<V, u32>, size: usize) -> Blocks<V> {
    let part = |block_rows: std::ops::Range<usize>| {
        let (mut lengths, mut cols, mut values, mut own) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for block_row in block_rows {
            block_cols(a, size, block_row, &mut own);
            let first = values.len();
            values.resize(first + own.len() * size * size, V::default());
            for row in block_row * size..((block_row + 1) * size).min(a.num_rows()) {
                let (row_cols, row_values) = a.row(row);
                for (col, value) in row_cols.iter().zip(row_values) {
                    let col = *col as usize;
                    let block = own.binary_search(&((col / size) as i32)).unwrap_or_default();
                    let slot = &mut values[first + (block * size + row % size) * size + col % size];
                    *slot = slot.plus(*value);
                }
            }
            lengths.push(own.len());
            cols.extend_from_slice(&own);
        }
        (lengths, cols, values)
    };
    let parts: Vec<_> =
        row_blocks(a.num_rows().div_ceil(size), BLOCK_ROWS).into_par_iter().map(part).collect();
    let mut made = Blocks { block_offsets: vec![0], block_cols: Vec::new(), values: Vec::new() };
    let mut total = 0;
    for (lengths, cols, values) in parts {
        for length in lengths {
            total += length;
            made.block_offsets.push(total as i32);
        }
        made.block_cols.extend(cols);
        made.values.extend(values);
    }
    made
}

fn row_blocks(rows: usize, rows_per_block: usize) -> Vec<std::ops::Range<usize>> {
    (0..rows).step_by(rows_per_block).map(|first| first..(first + rows_per_block).min(rows)).collect()
}

#[cfg(test)]
mod tests {
    use spmv_runtime::matrix::generate::Generator;

    use super::*;

    fn example() -> CsrMatrix<f64, u32> {
        Generator::new("rmat").unwrap().set("scale", 11.0).unwrap().generate().unwrap()
    }

    /// Every format, multiplied entry by entry, is the matrix.
    fn entries(of: impl Iterator<Item = (usize, usize, f64)>) -> Vec<(usize, usize, f64)> {
        let mut entries: Vec<_> = of.filter(|(_, _, value)| *value != 0.0).collect();
        entries.sort_by(|a, b| a.partial_cmp(b).unwrap());
        entries
    }

    fn csr_entries(a: &CsrMatrix<f64, u32>) -> Vec<(usize, usize, f64)> {
        entries((0..a.num_rows()).flat_map(|row| {
            let (cols, values) = a.row(row);
            cols.iter().zip(values).map(move |(col, value)| (row, *col as usize, *value))
        }))
    }

    #[test]
    fn rows_of_entries() {
        let a = example();
        let rows = coo_rows(&a);
        let triples = rows.iter().zip(a.col_indices()).zip(a.values());
        let found = entries(triples.map(|((row, col), value)| (*row as usize, *col as usize, *value)));
        assert_eq!(found, csr_entries(&a));
    }

    #[test]
    fn slices_hold_the_matrix() {
        let a = example();
        for rows_per_slice in [32, 7] {
            let sell = sliced_ell(&a, rows_per_slice);
            assert_eq!(sell.values.len() as u64, sliced_ell_entries(&a, rows_per_slice));
            assert_eq!(sell.slice_offsets.len(), a.num_rows().div_ceil(rows_per_slice) + 1);
            let mut found = Vec::new();
            for (slice, ends) in sell.slice_offsets.windows(2).enumerate() {
                for at in ends[0] as usize..ends[1] as usize {
                    let row = slice * rows_per_slice + (at - ends[0] as usize) % rows_per_slice;
                    match sell.col_indices[at] {
                        -1 => assert_eq!(sell.values[at], 0.0),
                        col => found.push((row, col as usize, sell.values[at])),
                    }
                }
            }
            assert_eq!(entries(found.into_iter()), csr_entries(&a));
        }
    }

    #[test]
    fn blocks_hold_the_matrix() {
        let a = example();
        for size in [2, 3, 4] {
            let made = blocks(&a, size);
            assert_eq!(made.block_cols.len(), count_blocks(&a, size));
            assert_eq!(made.block_offsets.len(), a.num_rows().div_ceil(size) + 1);
            let mut found = Vec::new();
            for (block_row, ends) in made.block_offsets.windows(2).enumerate() {
                for block in ends[0] as usize..ends[1] as usize {
                    for at in 0..size * size {
                        let (row, col) = (block_row * size + at / size, at % size);
                        let col = made.block_cols[block] as usize * size + col;
                        found.push((row, col, made.values[block * size * size + at]));
                    }
                }
            }
            assert_eq!(entries(found.into_iter()), csr_entries(&a));
        }
        let fem = Generator::new("fem").unwrap().generate::<f64, u32>().unwrap();
        assert_eq!(count_blocks(&fem, 3) * 9, fem.nnz());
    }
}
