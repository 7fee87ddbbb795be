//! Text line by line, with places for errors.

use std::io::BufRead;
use std::ops::Range;

use super::error::{Fault, Problem, ReadError};
use super::source::{Input, Rest};
use super::token::is_blank;

/// The most bytes a line may have, comments above the line of sizes excepted.
pub const MAX_LINE: usize = 1 << 20;

/// How much of an offending text an error repeats, in characters.
const SHOWN: usize = 40;

/// A word of a line.
#[derive(Clone, Copy)]
pub(super) struct Word {
    pub start: usize,
    pub len: usize,
}

impl Word {
    /// An empty word: the place where one is missing.
    pub fn here(start: usize) -> Self {
        Word { start, len: 0 }
    }

    pub fn range(self) -> Range<usize> {
        self.start..self.start + self.len
    }
}

/// Reads one line at a time; the newline, and the carriage return before it, are not part of it.
pub(super) struct Lines<R> {
    input: Input<R>,
    number: u64,
    text: Vec<u8>,
    entries: u64,
    /// Whether the line of sizes is above: comments are then as long as lines may be.
    in_body: bool,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: Input<R>) -> Self {
        Self { input, number: 0, text: Vec::new(), entries: 0, in_body: false }
    }

    /// The line read last.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The line of sizes has been read.
    pub fn begin_body(&mut self) {
        self.in_body = true;
    }

    /// Counts an entry, which earns a compressed file some room for text.
    pub fn count_entry(&mut self) {
        self.entries += 1;
    }

    /// The words of the line.
    pub fn words(&self) -> impl Iterator<Item = Word> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = at + self.text[at..].iter().position(|&byte| !is_blank(byte))?;
            let len = self.text[start..].iter().position(|&byte| is_blank(byte));
            let len = len.unwrap_or(self.text.len() - start);
            at = start + len;
            Some(Word { start, len })
        })
    }

    /// The place behind the last word.
    pub fn end(&self) -> Word {
        Word::here(self.words().last().map_or(0, |word| word.start + word.len))
    }

    /// Goes to the next line that is neither blank nor a comment, and says whether there is one. Comments above the
    /// line of sizes are passed over without being held.
    pub fn next_data(&mut self) -> Result<bool, ReadError> {
        loop {
            if !self.in_body && self.peek()? == Some(b'%') {
                self.number += 1;
                self.text.clear();
                self.skip_line()?;
                continue;
            }
            if !self.next_line()? {
                return Ok(false);
            }
            match self.text.iter().find(|&&byte| !is_blank(byte)) {
                None | Some(b'%') => {}
                Some(_) => return Ok(true),
            }
        }
    }

    /// The next byte; none at the end of the text.
    fn peek(&mut self) -> Result<Option<u8>, ReadError> {
        let buffer = self.input.text.fill_buf().map_err(|error| self.input.origin.error(error))?;
        Ok(buffer.first().copied())
    }

    /// Goes to the next line, and says whether there is one.
    pub fn next_line(&mut self) -> Result<bool, ReadError> {
        self.text.clear();
        self.number += 1;
        loop {
            let (ended, used) = {
                let buffer = self.input.text.fill_buf().map_err(|error| self.input.origin.error(error))?;
                if buffer.is_empty() {
                    let any = !self.text.is_empty();
                    self.trim();
                    return Ok(any);
                }
                let (line, ended) = match memchr::memchr(b'\n', buffer) {
                    Some(end) => (&buffer[..end], true),
                    None => (buffer, false),
                };
                let room = MAX_LINE + 1 - self.text.len();
                self.text.extend_from_slice(&line[..line.len().min(room)]);
                (ended, line.len() + usize::from(ended))
            };
            self.consume(used)?;
            if self.text.len() > MAX_LINE {
                return Err(self.fault(Word { start: 0, len: SHOWN }, Problem::LineTooLong));
            }
            if ended {
                self.trim();
                return Ok(true);
            }
        }
    }

    /// Passes over the rest of the line.
    fn skip_line(&mut self) -> Result<(), ReadError> {
        loop {
            let (ended, used) = {
                let buffer = self.input.text.fill_buf().map_err(|error| self.input.origin.error(error))?;
                match memchr::memchr(b'\n', buffer) {
                    Some(end) => (true, end + 1),
                    None => (buffer.is_empty(), buffer.len()),
                }
            };
            self.consume(used)?;
            if ended {
                return Ok(());
            }
        }
    }

    fn consume(&mut self, bytes: usize) -> Result<(), ReadError> {
        self.input.text.consume(bytes);
        self.input.origin.bytes += bytes as u64;
        if self.input.origin.is_filler(self.entries) {
            return Err(self.fault(Word::here(0), Problem::Filler));
        }
        Ok(())
    }

    fn trim(&mut self) {
        if self.text.last() == Some(&b'\r') {
            self.text.pop();
        }
    }

    /// What is wrong with a word of the line.
    pub fn fault(&self, word: Word, problem: Problem) -> ReadError {
        let text = &self.text[word.start.min(self.text.len())..];
        let text = &text[..word.len.min(text.len()).min(4 * SHOWN)];
        let text = String::from_utf8_lossy(text);
        let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
        if text.chars().count() > SHOWN {
            shown.push('…');
        }
        let line = self.number.max(1);
        Box::new(Fault { line, column: word.start as u64 + 1, text: shown, problem }).into()
    }

    /// What comes after the line.
    pub fn into_rest(self) -> Rest<R> {
        Rest::new(self.input)
    }
}
