//! y ← α·A·x + β·y on the processor.

use crate::csr::first_row_within;
use crate::scalar::sealed::{Exact, MulAdd};
use crate::{CsrMatrix, Entry, MatrixError, Number, Offset, parallel};

/// Rows and nonzeros of one task, at least and at most, and how many tasks there should be in between. That
/// divides the work, so it also decides in which order a long row is added up: results depend on it and on
/// the matrix, and not on the number of threads.
const BLOCK: [usize; 2] = [1 << 13, 1 << 17];
const BLOCKS: usize = 256;

/// Up to so many blocks, waking other threads costs more than they save.
const SERIAL: usize = 4;

/// Rows with fewer entries than that are added up in one sum: their additions overlap between rows.
const SHORT: usize = 16;

/// y ← α·A·x + β·y in one thread, row by row, as the definition has it.
///
/// `x` has `num_cols` entries and `y` has `num_rows`. Sums are kept in doubled double precision and rounded
/// once to the type of y, so this is also what other products can be compared with. Sums of integers wrap around in the
/// type that they are in.
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
pub fn cpu_serial<V: Number, O: Offset>(
    alpha: V::Sum,
    a: &CsrMatrix<V, O>,
    x: &[V],
    beta: V::Sum,
    y: &mut [V],
) -> Result<(), MatrixError> {
    check_lengths(a, x, y)?;
    let zero = V::Sum::default();
    for (row, y) in y.iter_mut().enumerate() {
        let mut sum = <V as Exact<V::Sum>>::Total::default();
        if alpha != zero {
            let (cols, values) = a.row(row);
            for (&col, &value) in cols.iter().zip(values) {
                V::add_product(&mut sum, value, x[col as usize]);
            }
        }
        *y = stored(sum, alpha, beta, *y);
    }
    Ok(())
}

/// α times a row's exact sum, which is none where α is 0, and β times what y was, rounded once.
pub(crate) fn stored<V: Number>(
    mut sum: <V as Exact<V::Sum>>::Total,
    alpha: V::Sum,
    beta: V::Sum,
    y: V,
) -> V {
    V::scale(&mut sum, alpha);
    if beta != V::Sum::default() {
        V::add_scaled(&mut sum, beta, y);
    }
    V::round(sum)
}

/// y ← α·A·x + β·y with all threads of the current rayon pool.
///
/// `x` has `num_cols` entries and `y` has `num_rows`. Nonzeros and rows are divided evenly, a long row too,
/// and in the same way for any number of threads: so the result is the same, bit for bit. Small matrices
/// stay in the calling thread. Sums are kept in the type of the values, those of `f16` and `bf16` in `f32`, several
/// partial ones for each row, and with fused multiplications where the processor has them: between processors that differ in that, the
/// last bits may differ.
///
/// # Errors
///
/// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
pub fn cpu_parallel<V: Number, O: Offset>(
    alpha: V::Sum,
    a: &CsrMatrix<V, O>,
    x: &[V],
    beta: V::Sum,
    y: &mut [V],
) -> Result<(), MatrixError> {
    check_lengths(a, x, y)?;
    let zero = V::Sum::default();
    if alpha == zero {
        for y in y {
            *y = V::from_sum(if beta == zero { zero } else { beta.scales(y.to_sum()) });
        }
        return Ok(());
    }
    let places = a.num_rows() + a.nnz();
    let block_size = (places / BLOCKS).clamp(BLOCK[0], BLOCK[1]);
    let blocks = places.div_ceil(block_size);
    let mut pieces = vec![Piece::default(); blocks];
    let product = Product { a, x, alpha, beta, block_size, fused: has_fused() };
    if blocks <= SERIAL || rayon::current_num_threads() == 1 {
        let mut first_row = 0;
        for (block, piece) in pieces.iter_mut().enumerate() {
            let near = first_row..a.num_rows().min(first_row + block_size);
            let next_row = first_row_within(a.row_offsets(), (block + 1) * block_size, near);
            *piece = product.block(block, &mut y[first_row..next_row], first_row);
            first_row = next_row;
        }
    } else {
        product.run(0..blocks, y, 0, &mut pieces);
    }
    product.join(&pieces, y);
    Ok(())
}

/// Whether x and y have as many entries as the matrix has columns and rows.
pub(crate) fn check_lengths<V: Number, O: Offset>(
    a: &CsrMatrix<V, O>,
    x: &[V],
    y: &[V],
) -> Result<(), MatrixError> {
    check_vector_lengths(a.num_rows(), a.num_cols(), x, y)
}

/// Whether x and y have as many entries as there are columns and rows.
pub(crate) fn check_vector_lengths<V>(
    num_rows: usize,
    num_cols: usize,
    x: &[V],
    y: &[V],
) -> Result<(), MatrixError> {
    for (name, found, expected) in [("x", x.len(), num_cols), ("y", y.len(), num_rows)] {
        if found != expected {
            return Err(MatrixError::VectorLength { name, found, expected, num_rows, num_cols });
        }
    }
    Ok(())
}

/// What a block contributes to rows that it shares with other blocks.
#[derive(Clone, Copy, Default)]
struct Piece<V> {
    /// The sum over the part, in this block, of a row that starts before the block.
    head: V,
    /// Whether that row ends in this block.
    closes: bool,
    /// The row that starts in this block and ends behind it.
    open: Option<u32>,
    /// The sum over that row's part in this block.
    tail: V,
}

struct Product<'a, V: Number, O> {
    a: &'a CsrMatrix<V, O>,
    x: &'a [V],
    alpha: V::Sum,
    beta: V::Sum,
    block_size: usize,
    /// Whether the processor multiplies and adds in one instruction.
    fused: bool,
}

impl<V: Number, O: Offset> Product<'_, V, O> {
    /// Multiplies a range of blocks. `y` belongs to the rows that start in them, of which `first_row` is
    /// the first.
    fn run(
        &self,
        blocks: std::ops::Range<usize>,
        y: &mut [V],
        first_row: usize,
        pieces: &mut [Piece<V::Sum>],
    ) {
        if let [piece] = pieces {
            *piece = self.block(blocks.start, y, first_row);
            return;
        }
        let middle = blocks.start + blocks.len() / 2;
        let rows = first_row..first_row + y.len();
        let middle_row = first_row_within(self.a.row_offsets(), middle * self.block_size, rows);
        let (left, right) = y.split_at_mut(middle_row - first_row);
        let (left_pieces, right_pieces) = pieces.split_at_mut(middle - blocks.start);
        let (start, end) = (blocks.start, blocks.end);
        let run_left = || self.run(start..middle, left, first_row, left_pieces);
        let run_right = || self.run(middle..end, right, middle_row, right_pieces);
        parallel::join(run_left, run_right);
    }

    /// Multiplies one block with the instructions that the processor has.
    fn block(&self, block: usize, y: &mut [V], first_row: usize) -> Piece<V::Sum> {
        #[cfg(target_arch = "x86_64")]
        if self.fused {
            // SAFETY: `has_fused` has found these features.
            return unsafe { self.block_x86(block, y, first_row) };
        }
        if cfg!(target_arch = "aarch64") && self.fused {
            return self.block_of::<true>(block, y, first_row);
        }
        self.block_of::<false>(block, y, first_row)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn block_x86(&self, block: usize, y: &mut [V], first_row: usize) -> Piece<V::Sum> {
        self.block_of::<true>(block, y, first_row)
    }

    /// Multiplies one block: the places from `block · block_size` on in the list of all rows' nonzeros, where each
    /// row takes one place more for its end.
    #[inline(always)]
    fn block_of<const FUSED: bool>(&self, block: usize, y: &mut [V], first_row: usize) -> Piece<V::Sum> {
        let offsets = self.a.row_offsets();
        let (start, end) = (block * self.block_size, (block + 1) * self.block_size);
        let mut piece = Piece::default();
        let position = offsets[first_row].to_usize();
        if first_row > 0 && start < position + first_row {
            let row = first_row - 1;
            let stop = position.min(end - row);
            piece.head = self.dot::<FUSED>(start - row, stop);
            piece.closes = stop == position;
        }
        // Of the rows that start in the block, only the last can end behind it.
        let mut complete = y.len();
        let next_row = first_row + complete;
        if complete > 0 && offsets[next_row].to_usize() + next_row - 1 > end {
            complete -= 1;
            let row = next_row - 1;
            piece.open = Some(row as u32);
            piece.tail = self.dot::<FUSED>(offsets[row].to_usize(), end - row);
        }
        let (alpha, beta) = (self.alpha, self.beta);
        let ends = &offsets[first_row + 1..][..complete];
        let rows = y[..complete].iter_mut().zip(ends);
        if beta == V::Sum::default() {
            self.rows::<FUSED>(position, rows, |sum, _| alpha.scales(sum));
        } else {
            self.rows::<FUSED>(position, rows, |sum, y| alpha.scales(sum).plus(beta.scales(y)));
        }
        piece
    }

    /// Multiplies whole rows, of which the first starts at `start`.
    #[inline(always)]
    fn rows<'y, const FUSED: bool>(
        &self,
        mut start: usize,
        rows: impl Iterator<Item = (&'y mut V, &'y O)>,
        finish: impl Fn(V::Sum, V::Sum) -> V::Sum,
    ) {
        for (y, end) in rows {
            let end = end.to_usize();
            *y = V::from_sum(finish(self.dot::<FUSED>(start, end), y.to_sum()));
            start = end;
        }
    }

    /// Finishes the rows that several blocks share, adding their parts in order.
    fn join(&self, pieces: &[Piece<V::Sum>], y: &mut [V]) {
        let mut open: Option<(u32, V::Sum)> = None;
        for piece in pieces {
            if let Some((row, sum)) = open {
                let sum = sum.plus(piece.head);
                open = Some((row, sum));
                if piece.closes {
                    y[row as usize] = V::from_sum(self.finish(sum, y[row as usize].to_sum()));
                    open = None;
                }
            }
            if let Some(row) = piece.open {
                open = Some((row, piece.tail));
            }
        }
        debug_assert!(open.is_none(), "the last block closes the last row");
    }

    #[inline(always)]
    fn finish(&self, sum: V::Sum, y: V::Sum) -> V::Sum {
        let scaled = self.alpha.scales(sum);
        if self.beta == V::Sum::default() { scaled } else { scaled.plus(self.beta.scales(y)) }
    }

    /// The sum of the products of entries `start .. end` with x.
    #[inline(always)]
    fn dot<const FUSED: bool>(&self, start: usize, end: usize) -> V::Sum {
        let (cols, values) = (self.a.col_indices(), self.a.values());
        debug_assert!(start <= end && end <= cols.len());
        // SAFETY: `block` asks for entries between two offsets of the matrix, which never decrease and end
        // at the length of `col_indices` and `values`. The checks cost as much as a product of a short row.
        let (cols, values) = unsafe { (cols.get_unchecked(start..end), values.get_unchecked(start..end)) };
        if cols.len() < SHORT {
            // The check of x[col] is welcome: it keeps the compiler from unrolling the loop, which would make
            // the processor guess twice for each row how long it is.
            let mut sum = V::Sum::default();
            for (&col, &value) in cols.iter().zip(values) {
                sum = fused::<V, FUSED>(value, self.x[col as usize], sum);
            }
            return sum;
        }
        // Independent sums let the additions of one row overlap.
        let mut sums = [V::Sum::default(); 4];
        let (col_chunks, cols) = cols.as_chunks::<4>();
        let (value_chunks, values) = values.as_chunks::<4>();
        for (cols, values) in col_chunks.iter().zip(value_chunks) {
            for lane in 0..4 {
                sums[lane] = self.add::<FUSED>(sums[lane], cols[lane], values[lane]);
            }
        }
        cols.iter()
            .zip(values)
            .fold(sums[0].plus(sums[1]).plus(sums[2].plus(sums[3])), |sum, (&col, &value)| {
                self.add::<FUSED>(sum, col, value)
            })
    }

    /// Adds the product of one entry with x to a sum.
    #[inline(always)]
    fn add<const FUSED: bool>(&self, sum: V::Sum, col: u32, value: V) -> V::Sum {
        debug_assert!((col as usize) < self.x.len());
        // SAFETY: a matrix has no column beyond `num_cols`, and x has that many entries (checked in
        // `cpu_parallel`).
        let x = unsafe { *self.x.get_unchecked(col as usize) };
        fused::<V, FUSED>(value, x, sum)
    }
}

/// value · x + sum, with one rounding or with two.
#[inline(always)]
fn fused<V: Number, const FUSED: bool>(value: V, x: V, sum: V::Sum) -> V::Sum {
    let (value, x) = (value.to_sum(), x.to_sum());
    if FUSED { MulAdd::mul_add(value, x, sum) } else { sum.plus(value.times(x)) }
}

/// Whether the processor multiplies and adds in one instruction.
fn has_fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return cfg!(target_arch = "aarch64");
}
