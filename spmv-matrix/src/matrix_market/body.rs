//! Entries, read fast.
//!
//! Threads take turns to fetch a piece of whole lines and parse it on their own. This parser only says that
//! something is wrong: what and where is for [`diagnose`](super::diagnose) to find out, which reads the
//! text again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::diagnose::{FIELD, SYMMETRY, diagnose, header_fault};
use super::error::{Problem, ReadError};
use super::header::{Field, Format, Header, Symmetry};
use super::lines::Lines;
use super::source::{NoPiece, Rest, Source};
use super::token::{blanks, index, separator, value};
use super::{Progress, ReadOptions};
use crate::assemble::{self, Buckets, Chunk, Keyed};
use crate::csr::check_offset_type;
use crate::{CsrMatrix, Entry, MatrixError, Offset, SymmetricCsr, parallel};

/// Bytes of text that a thread takes at a time, at least and at most.
const PIECE: [u64; 2] = [256 << 10, 1 << 20];

/// The most threads that read: beyond, fetching the text is what takes the time.
const MAX_THREADS: usize = 16;

/// Entries of a dense matrix that a task places at a time.
const BLOCK: usize = 1 << 15;

/// The bit of a held position that says that the entry is a mirror image.
const MIRRORED: u64 = 1 << 63;

/// Why reading stopped.
enum Stop {
    /// The text is wrong somewhere.
    Wrong,
    /// Something else.
    Error(ReadError),
}

impl From<MatrixError> for Stop {
    fn from(error: MatrixError) -> Self {
        Stop::Error(error.into())
    }
}

/// Reads a matrix from a source.
pub(super) fn read<V: Entry, O: Offset>(
    source: &Source,
    options: &ReadOptions,
) -> Result<CsrMatrix<V, O>, ReadError> {
    let mut lines = Lines::new(source.open()?);
    let header = Header::parse(&mut lines)?;
    read_body(source, options, header, lines.into_rest(), false)
}

/// Reads the lower triangle of a matrix that the source says is symmetric.
pub(super) fn read_symmetric<V: Entry, O: Offset>(
    source: &Source,
    options: &ReadOptions,
) -> Result<SymmetricCsr<V, O>, ReadError> {
    let mut lines = Lines::new(source.open()?);
    let header = Header::parse(&mut lines)?;
    let symmetry = match header.symmetry {
        Symmetry::Symmetric => crate::Symmetry::Symmetric,
        Symmetry::SkewSymmetric => crate::Symmetry::SkewSymmetric,
        Symmetry::Hermitian => crate::Symmetry::Hermitian,
        found => return Err(ReadError::Symmetry { found }),
    };
    let lower = read_body(source, options, header, lines.into_rest(), true)?;
    Ok(SymmetricCsr::from_checked(symmetry, lower))
}

fn read_body<V: Entry, O: Offset>(
    source: &Source,
    options: &ReadOptions,
    header: Header,
    text: Text,
    lower_only: bool,
) -> Result<CsrMatrix<V, O>, ReadError> {
    let problem = match header.field {
        Field::Complex if !V::COMPLEX => Some(Problem::Complex(V::NAME)),
        Field::Real if !V::FRACTIONS => Some(Problem::Fractions(V::NAME)),
        _ => None,
    };
    if let Some(problem) = problem {
        return Err(header_fault(source, FIELD, problem)?);
    }
    let is_skew = header.symmetry == Symmetry::SkewSymmetric && !V::FRACTIONS;
    check_size::<V, O>(&header, header.num_stored, options)?;
    let reader = Reader { header, options, lower_only, total: source.len() };
    let result = match header.format {
        Format::Array => reader.array(text),
        // An entry in waiting takes 16 bytes at most: wider values wait as text.
        Format::Coordinate if size_of::<V>() > 8 => reader.wide_coordinate(text),
        Format::Coordinate => reader.coordinate(text),
    };
    match result {
        Ok(matrix) if is_skew && !matrix.values().iter().all(|value: &V| value.has_negative()) => {
            Err(header_fault(source, SYMMETRY, Problem::NoNegative(V::NAME))?)
        }
        Ok(matrix) => Ok(matrix),
        Err(Stop::Wrong) => Err(diagnose::<V>(source)?),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// Whether a matrix of that many nonzeros keeps to the limit.
fn check_size<V: Entry, O: Offset>(
    header: &Header,
    nnz: u64,
    options: &ReadOptions,
) -> Result<(), ReadError> {
    let offsets = (header.num_rows as u64 + 1) * size_of::<O>() as u64;
    let bytes = nnz.saturating_mul(4 + size_of::<V>() as u64).saturating_add(offsets);
    match options.max_bytes {
        Some(max_bytes) if bytes > max_bytes => Err(ReadError::TooLarge { bytes, max_bytes }),
        _ => Ok(()),
    }
}

/// What all threads that read one file know.
struct Reader<'a> {
    header: Header,
    options: &'a ReadOptions<'a>,
    /// Whether mirror images take the place of what lies above the diagonal, and are left out below.
    lower_only: bool,
    total: Option<u64>,
}

/// The text after the header.
type Text<'a> = Rest<std::io::BufReader<Box<dyn std::io::Read + Send + 'a>>>;

impl Reader<'_> {
    fn coordinate<V: Entry, O: Offset>(&self, text: Text) -> Result<CsrMatrix<V, O>, Stop> {
        let buckets = self.buckets();
        let symmetry = self.header.symmetry;
        let hold = |value, _, mirrored| if mirrored { mirror(value, symmetry) } else { value };
        let chunks = self.gather(text, Vec::new, |text, entries: &mut Vec<Keyed<V>>| {
            let stored = self.parse(text, entries, hold)?;
            Some((buckets.sort(entries), stored))
        })?;
        self.assemble(&buckets, chunks, |_, value| value)
    }

    /// As [`Self::coordinate`], but what waits to be placed is the position of a value in its text.
    fn wide_coordinate<V: Entry, O: Offset>(&self, text: Text) -> Result<CsrMatrix<V, O>, Stop> {
        let buckets = self.buckets();
        let Header { field, symmetry, .. } = self.header;
        let hold = |_: V, at, mirrored| at as u64 | if mirrored { MIRRORED } else { 0 };
        let pieces = self.gather(text, Vec::new, |text, entries: &mut Vec<Keyed<u64>>| {
            let stored = self.parse(text, entries, hold)?;
            let text = text.as_slice().into();
            Some(((buckets.sort(entries), text), stored))
        })?;
        let (chunks, texts): (Vec<_>, Vec<Box<[u8]>>) = pieces.into_iter().unzip();
        self.assemble(&buckets, chunks, |chunk, held| {
            let mut at = (held & !MIRRORED) as usize;
            let value = value(&texts[chunk], &mut at, field).unwrap_or_default();
            if held & MIRRORED == 0 { value } else { mirror(value, symmetry) }
        })
    }

    fn assemble<T: Copy + Send + Sync, V: Entry, O: Offset>(
        &self,
        buckets: &Buckets,
        chunks: Vec<Chunk<T>>,
        value: impl Fn(usize, T) -> V + Sync,
    ) -> Result<CsrMatrix<V, O>, Stop> {
        let Header { num_rows, num_cols, .. } = self.header;
        let nnz: usize = chunks.iter().map(Chunk::len).sum();
        check_size::<V, O>(&self.header, nnz as u64, self.options).map_err(Stop::Error)?;
        Ok(assemble::assemble(num_rows, num_cols, buckets, chunks, value)?)
    }

    fn array<V: Entry, O: Offset>(&self, text: Text) -> Result<CsrMatrix<V, O>, Stop> {
        let Header { field, symmetry, num_rows, num_cols, .. } = self.header;
        let pieces: Vec<Box<[V]>> = self.gather(text, Vec::new, |text, values: &mut Vec<V>| {
            values.clear();
            let mut at = 0;
            while next_line(text, &mut at) {
                values.push(value(text, &mut at, field)?);
                line_end(text, &mut at)?;
            }
            Some((values.as_slice().into(), values.len() as u64))
        })?;
        let nnz = match self.lower_only {
            false => num_rows as u64 * num_cols as u64,
            true => num_rows as u64 * (num_rows as u64 + 1) / 2,
        };
        check_offset_type::<O>(nnz)?;
        check_size::<V, O>(&self.header, nnz, self.options).map_err(Stop::Error)?;

        let mut stored: Vec<V> = Vec::new();
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let bytes = (len * size_of::<V>()) as u64;
        stored.try_reserve_exact(len).map_err(|_| MatrixError::OutOfMemory { bytes, what: "values" })?;
        for piece in pieces {
            stored.extend_from_slice(&piece);
        }
        if symmetry == Symmetry::Hermitian {
            let mut diagonal = (0..num_rows).map(|row| dense(&stored, symmetry, num_rows, row, row));
            if diagonal.any(|value| value.im() != V::Real::default()) {
                return Err(Stop::Wrong);
            }
        }
        if self.lower_only {
            return lower_array(&stored, symmetry, num_rows, nnz as usize).map_err(Stop::from);
        }
        let nnz = nnz as usize;
        let mut row_offsets: Vec<O> = assemble::zeroed(num_rows + 1, "row_offsets")?;
        let mut col_indices: Vec<u32> = assemble::zeroed(nnz, "col_indices")?;
        let mut values: Vec<V> = assemble::zeroed(nnz, "values")?;
        for (row, offset) in row_offsets.iter_mut().enumerate() {
            *offset = O::of(row * num_cols);
        }
        let blocks = col_indices.chunks_mut(BLOCK).zip(values.chunks_mut(BLOCK)).enumerate();
        parallel::for_each(blocks, |(block, (cols, values))| {
            let (mut row, mut col) = (block * BLOCK / num_cols, block * BLOCK % num_cols);
            for (index, value) in cols.iter_mut().zip(values) {
                *index = col as u32;
                *value = dense(&stored, symmetry, num_rows, row, col);
                col += 1;
                if col == num_cols {
                    (row, col) = (row + 1, 0);
                }
            }
        });
        Ok(CsrMatrix::from_checked(num_cols, row_offsets, col_indices, values))
    }

    fn buckets(&self) -> Buckets {
        let pieces = self.total.unwrap_or(0) / PIECE[1];
        Buckets::new(self.header.num_rows, pieces as usize)
    }

    /// Lets threads fetch and parse pieces of text, and returns what `parse` makes of them, in order.
    /// `parse` returns the number of entries too, or none where the text is wrong.
    fn gather<S: Send, T: Send>(
        &self,
        text: Text,
        scratch: impl Fn() -> S + Sync,
        parse: impl Fn(&mut Vec<u8>, &mut S) -> Option<(T, u64)> + Sync,
    ) -> Result<Vec<T>, Stop> {
        let size = (self.total.unwrap_or(0) / 4096).clamp(PIECE[0], PIECE[1]) as usize;
        let text = Mutex::new(text);
        let promised = self.header.num_stored;
        let found = AtomicU64::new(0);
        let wrong = AtomicBool::new(false);
        let failure = Mutex::new(None);
        let worker = || {
            let mut piece = Vec::new();
            let mut scratch = scratch();
            let mut results = Vec::new();
            while !wrong.load(Ordering::Relaxed) {
                let fetched = {
                    let mut text = text.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    let fetched = text.piece(&mut piece, size);
                    if let (Ok(Some(_)), Some(progress)) = (&fetched, self.options.progress) {
                        progress(Progress { done: text.stored(), total: self.total });
                    }
                    // Entries of pieces that are being parsed are not counted yet, so there is some grace.
                    let grace = 4 * MAX_THREADS as u64 * size as u64;
                    if text.is_filler(found.load(Ordering::Relaxed).saturating_add(grace)) {
                        wrong.store(true, Ordering::Relaxed);
                    }
                    fetched
                };
                let number = match fetched {
                    Ok(Some(number)) => number,
                    Ok(None) => break,
                    Err(NoPiece::Line) => {
                        wrong.store(true, Ordering::Relaxed);
                        break;
                    }
                    Err(NoPiece::Read(error)) => {
                        *failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(error);
                        break;
                    }
                };
                let Some((result, entries)) = parse(&mut piece, &mut scratch) else {
                    wrong.store(true, Ordering::Relaxed);
                    break;
                };
                results.push((number, result));
                if found.fetch_add(entries, Ordering::Relaxed) + entries > promised {
                    wrong.store(true, Ordering::Relaxed);
                }
            }
            results
        };
        let threads = rayon::current_num_threads().min(MAX_THREADS);
        let results = parallel::map(0..threads, |_| worker());
        if wrong.into_inner() {
            return Err(Stop::Wrong);
        }
        if let Some(error) = failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            return Err(Stop::Error(error));
        }
        if found.into_inner() != promised {
            return Err(Stop::Wrong);
        }
        let mut results: Vec<_> = results.into_iter().flatten().collect();
        results.sort_unstable_by_key(|&(number, _)| number);
        Ok(results.into_iter().map(|(_, result)| result).collect())
    }

    /// Parses a piece of a coordinate file into entries, mirror images included, and returns how many were
    /// stored. `hold(value, at, mirrored)` is what an entry holds as its value, whose text starts at `at`.
    #[inline(always)]
    fn parse<V: Entry, T>(
        &self,
        text: &[u8],
        entries: &mut Vec<Keyed<T>>,
        hold: impl Fn(V, usize, bool) -> T,
    ) -> Option<u64> {
        let Header { field, symmetry, num_rows, num_cols, .. } = self.header;
        entries.clear();
        let mut stored = 0;
        let mut at = 0;
        while next_line(text, &mut at) {
            let row = index(text, &mut at)?.wrapping_sub(1);
            separator(text, &mut at)?;
            let col = index(text, &mut at)?.wrapping_sub(1);
            if row >= num_rows as u64 || col >= num_cols as u64 {
                return None;
            }
            if field != Field::Pattern {
                separator(text, &mut at)?;
            }
            let start = at;
            let value = value(text, &mut at, field)?;
            line_end(text, &mut at)?;
            let (row, col) = (row as u32, col as u32);
            let is_above = row < col;
            if !(self.lower_only && is_above) {
                entries.push(Keyed { row, col, value: hold(value, start, false) });
            }
            if symmetry != Symmetry::General {
                let off_symmetry = match symmetry {
                    Symmetry::SkewSymmetric => true,
                    Symmetry::Hermitian => value.im() != V::Real::default(),
                    _ => false,
                };
                if row == col && off_symmetry {
                    return None;
                }
                if row != col && (is_above || !self.lower_only) {
                    entries.push(Keyed { row: col, col: row, value: hold(value, start, true) });
                }
            }
            stored += 1;
        }
        Some(stored)
    }
}

/// Goes to the first word of the next line that is neither blank nor a comment; false at the end.
#[inline(always)]
fn next_line(text: &[u8], at: &mut usize) -> bool {
    while *at < text.len() {
        blanks(text, at);
        match text[*at] {
            b'\n' => *at += 1,
            b'%' => *at += memchr::memchr(b'\n', &text[*at..]).unwrap_or(0) + 1,
            _ => return true,
        }
    }
    false
}

/// Passes over the end of a line with nothing else on it.
#[inline(always)]
fn line_end(text: &[u8], at: &mut usize) -> Option<()> {
    blanks(text, at);
    (text[*at] == b'\n').then(|| *at += 1)
}

/// The mirror image of an entry.
#[inline(always)]
fn mirror<V: Entry>(value: V, symmetry: Symmetry) -> V {
    match symmetry {
        Symmetry::General | Symmetry::Symmetric => value,
        Symmetry::SkewSymmetric => value.negated(),
        Symmetry::Hermitian => value.conj(),
    }
}

/// The lower triangle of an array of which it is stored, diagonal included.
fn lower_array<V: Entry, O: Offset>(
    stored: &[V],
    symmetry: Symmetry,
    num_rows: usize,
    nnz: usize,
) -> Result<CsrMatrix<V, O>, MatrixError> {
    let mut row_offsets: Vec<O> = assemble::zeroed(num_rows + 1, "row_offsets")?;
    let mut col_indices: Vec<u32> = assemble::zeroed(nnz, "col_indices")?;
    let mut values: Vec<V> = assemble::zeroed(nnz, "values")?;
    let mut place = 0;
    for row in 0..num_rows {
        for col in 0..=row {
            col_indices[place] = col as u32;
            values[place] = dense(stored, symmetry, num_rows, row, col);
            place += 1;
        }
        row_offsets[row + 1] = O::of(place);
    }
    Ok(CsrMatrix::from_checked(num_rows, row_offsets, col_indices, values))
}

/// An entry of an array, of which a symmetric one stores the lower triangle column by column.
fn dense<V: Entry>(stored: &[V], symmetry: Symmetry, num_rows: usize, row: usize, col: usize) -> V {
    // Where column `col` of the lower triangle starts, less the rows above the diagonal.
    let triangle = |row: usize, col: usize| row + col * num_rows - col * (col + 1) / 2;
    match symmetry {
        Symmetry::General => stored[row + col * num_rows],
        Symmetry::SkewSymmetric if row == col => V::default(),
        Symmetry::SkewSymmetric if row > col => stored[triangle(row, col) - col - 1],
        Symmetry::SkewSymmetric => stored[triangle(col, row) - row - 1].negated(),
        _ if row >= col => stored[triangle(row, col)],
        _ => mirror(stored[triangle(col, row)], symmetry),
    }
}
