//! What is wrong with a file, and where: its text read again, slowly, line by line.

use super::error::{Problem, ReadError};
use super::header::{Field, Format, Header, Symmetry};
use super::lines::{Lines, Word};
use super::source::Source;
use super::token;
use crate::Entry;
use crate::scalar::sealed::Decimal;

/// The first thing that is wrong with a file that [`body`](super::body) could not read.
pub(super) fn diagnose<V: Entry>(source: &Source) -> Result<ReadError, ReadError> {
    let mut lines = Lines::new(source.open()?);
    let header = Header::parse(&mut lines)?;
    lines.begin_body();
    let mut found = 0;
    // Where the array of a triangle has the next entry of its diagonal, and how many rows are left there.
    let (mut diagonal, mut rows_left) = (0, header.num_rows as u64);
    while lines.next_data()? {
        if found == header.num_stored {
            let first = lines.words().next().unwrap_or(Word::here(0));
            return Ok(lines.fault(first, Problem::TooMany(found)));
        }
        let words: Vec<Word> = lines.words().take(5).collect();
        let starts_column = header.format == Format::Array && found == diagonal;
        if starts_column {
            diagonal += rows_left;
            rows_left = rows_left.saturating_sub(1);
        }
        if let Err((word, problem)) = entry::<V>(&header, lines.text(), &words, starts_column) {
            return Ok(lines.fault(word.unwrap_or_else(|| lines.end()), problem));
        }
        found += 1;
        lines.count_entry();
    }
    if found < header.num_stored {
        return Ok(lines.fault(Word::here(0), Problem::TooFew { promised: header.num_stored, found }));
    }
    Ok(ReadError::Changed)
}

/// Words of the header.
pub(super) const FIELD: usize = 3;
pub(super) const SYMMETRY: usize = 4;

/// The error of a file whose header says what entries cannot be read from.
pub(super) fn header_fault(source: &Source, word: usize, problem: Problem) -> Result<ReadError, ReadError> {
    let mut lines = Lines::new(source.open()?);
    lines.next_line()?;
    let word = lines.words().nth(word).unwrap_or(Word::here(0));
    Ok(lines.fault(word, problem))
}

/// What is wrong with one line of entries; no word where one is missing. `on_diagonal` is said of an array's entry.
fn entry<V: Entry>(
    header: &Header,
    text: &[u8],
    words: &[Word],
    mut on_diagonal: bool,
) -> Result<(), (Option<Word>, Problem)> {
    let Header { format, field, symmetry, num_rows, num_cols, .. } = *header;
    let incomplete = (None, Problem::Incomplete { format, field });
    let mut words = words.iter().copied();
    if format == Format::Coordinate {
        let mut position = |count: usize, problem| {
            let word = words.next().ok_or(incomplete)?;
            match token::whole_number(&text[word.range()]) {
                Some(_) if num_rows == 0 || num_cols == 0 => {
                    Err((Some(word), Problem::NoPlace { num_rows, num_cols }))
                }
                Some(index) if (1..=count as u64).contains(&index) => Ok((index, word)),
                _ => Err((Some(word), problem)),
            }
        };
        let (row, _) = position(num_rows, Problem::Row(num_rows))?;
        let (col, word) = position(num_cols, Problem::Column(num_cols))?;
        if symmetry == Symmetry::SkewSymmetric && row == col {
            return Err((Some(word), Problem::SkewDiagonal));
        }
        on_diagonal = row == col;
    }
    let values = match field {
        Field::Pattern => 0,
        Field::Complex => 2,
        _ => 1,
    };
    for part in 0..values {
        let word = words.next().ok_or(incomplete)?;
        if let Some(problem) = value::<V>(&text[word.range()], field) {
            return Err((Some(word), problem));
        }
        if symmetry == Symmetry::Hermitian && on_diagonal && part == 1 && !is_zero::<V>(&text[word.range()]) {
            return Err((Some(word), Problem::HermitianDiagonal));
        }
    }
    match words.next() {
        Some(word) => Err((Some(word), Problem::Excess { format, field })),
        None => Ok(()),
    }
}

/// Whether a word is a number that is zero in the type of entries.
fn is_zero<V: Entry>(word: &[u8]) -> bool {
    let text = [word, b"\n"].concat();
    token::value::<V>(&text, &mut 0, Field::Real).is_some_and(|value| value == V::default())
}

/// What is wrong with a word that should be a value.
fn value<V: Entry>(word: &[u8], field: Field) -> Option<Problem> {
    let text = [word, b"\n"].concat();
    let mut at = 0;
    let part = if field == Field::Integer { Field::Integer } else { Field::Real };
    if token::value::<V>(&text, &mut at, part).is_some() && at == word.len() {
        return None;
    }
    let number = f64::parse_prefix(word).filter(|&(_, len)| len == word.len());
    let digits = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
    let in_field = field != Field::Integer || digits.iter().all(u8::is_ascii_digit);
    // What is a number, and of the field, can only be too large.
    Some(if number.is_some() && in_field { Problem::ValueTooLarge(V::NAME) } else { Problem::Value(field) })
}
