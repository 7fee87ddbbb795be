//! Where text comes from: a file or bytes, compressed or not.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

use super::error::ReadError;
use super::lines::MAX_LINE;
use super::{Progress, ReadOptions};

/// Text that a compressed file may have without any entry, in bytes.
const FILLER: u64 = 64 << 20;

/// Text that a compressed file may have for each entry, in bytes.
const FILLER_PER_ENTRY: u64 = 4 << 10;

/// Something that can be read more than once.
pub(super) enum Source<'a> {
    File { path: &'a Path, file: &'a File },
    Bytes(&'a [u8]),
}

/// The text of a source from its beginning.
pub(super) struct Input<R> {
    pub text: R,
    pub origin: Origin,
    /// Bytes read so far of what is stored.
    stored: Arc<AtomicU64>,
}

/// What is known of a text besides the text.
pub(super) struct Origin {
    /// Bytes of text taken so far.
    pub bytes: u64,
    compressed: bool,
    path: Option<PathBuf>,
}

type Boxed<'a> = BufReader<Box<dyn Read + Send + 'a>>;

impl<'a> Source<'a> {
    /// Bytes of the source as it is stored.
    pub fn len(&self) -> Option<u64> {
        match self {
            Source::File { file, .. } => {
                file.metadata().ok().filter(|data| data.is_file()).map(|data| data.len())
            }
            Source::Bytes(bytes) => Some(bytes.len() as u64),
        }
    }

    /// The text from its beginning, decompressed where it starts like gzip.
    pub fn open(&self) -> Result<Input<Boxed<'a>>, ReadError> {
        let stored = Arc::new(AtomicU64::new(0));
        let (mut raw, path): (Box<dyn Read + Send + 'a>, _) = match *self {
            Source::File { path, mut file } => {
                let io = |source| ReadError::Io { path: Some(path.to_owned()), source };
                if file.metadata().map_err(io)?.is_file() {
                    file.seek(SeekFrom::Start(0)).map_err(io)?;
                }
                (Box::new(file), Some(path.to_owned()))
            }
            Source::Bytes(bytes) => (Box::new(bytes), None),
        };
        let mut magic = Vec::with_capacity(2);
        (&mut raw)
            .take(2)
            .read_to_end(&mut magic)
            .map_err(|source| ReadError::Io { path: path.clone(), source })?;
        let compressed = magic == [0x1f, 0x8b];
        let counted = Counted { inner: io::Cursor::new(magic).chain(raw), count: Arc::clone(&stored) };
        let text: Box<dyn Read + Send + 'a> = if compressed {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, counted)))
        } else {
            Box::new(counted)
        };
        let text = BufReader::with_capacity(1 << 16, text);
        Ok(Input { text, origin: Origin { bytes: 0, compressed, path }, stored })
    }
}

impl Origin {
    /// Whether so much text for so few entries is out of proportion.
    pub fn is_filler(&self, entries: u64) -> bool {
        self.compressed && self.bytes > FILLER.saturating_add(entries.saturating_mul(FILLER_PER_ENTRY))
    }

    /// What an error while reading means.
    pub fn error(&self, source: io::Error) -> ReadError {
        use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
        if self.compressed && matches!(source.kind(), InvalidData | InvalidInput | UnexpectedEof) {
            return ReadError::Gzip { bytes: self.bytes, source };
        }
        ReadError::Io { path: self.path.clone(), source }
    }
}

/// The text after the header, in pieces of whole lines.
pub(super) struct Rest<R> {
    input: Input<R>,
    carry: Vec<u8>,
    ended: bool,
    next: usize,
}

/// A piece of text that cannot be had.
pub(super) enum NoPiece {
    /// The text cannot be read.
    Read(ReadError),
    /// A line is too long.
    Line,
}

impl<R: BufRead> Rest<R> {
    pub fn new(input: Input<R>) -> Self {
        Self { input, carry: Vec::new(), ended: false, next: 0 }
    }

    /// Bytes of the source that have been read, as it is stored.
    pub fn stored(&self) -> u64 {
        self.input.stored.load(Ordering::Relaxed)
    }

    /// Whether so much text for so few entries is out of proportion.
    pub fn is_filler(&self, entries: u64) -> bool {
        self.input.origin.is_filler(entries)
    }

    /// Puts about `size` bytes of whole lines, the last with its newline, in `piece`, and returns the
    /// piece's number; none at the end.
    pub fn piece(&mut self, piece: &mut Vec<u8>, size: usize) -> Result<Option<usize>, NoPiece> {
        piece.clear();
        piece.append(&mut self.carry);
        while !self.ended {
            let searched = piece.len();
            piece.reserve(size);
            let mut text = (&mut self.input.text).take(size as u64);
            let read =
                text.read_to_end(piece).map_err(|error| NoPiece::Read(self.input.origin.error(error)))?;
            self.input.origin.bytes += read as u64;
            self.ended = read < size;
            if self.ended {
                break;
            }
            if let Some(last) = memchr::memrchr(b'\n', &piece[searched..]) {
                self.carry.extend_from_slice(&piece[searched + last + 1..]);
                piece.truncate(searched + last + 1);
                break;
            }
            if piece.len() > MAX_LINE + 1 {
                return Err(NoPiece::Line);
            }
        }
        if piece.is_empty() {
            return Ok(None);
        }
        if piece.last() != Some(&b'\n') {
            piece.push(b'\n');
        }
        self.next += 1;
        Ok(Some(self.next - 1))
    }
}

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// All bytes of something that can be read only once.
pub(super) fn drain(mut file: &File, options: &ReadOptions) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let read = file.by_ref().take(1 << 18).read_to_end(&mut text)?;
        if let Some(progress) = options.progress {
            progress(Progress { done: text.len() as u64, total: None });
        }
        if read == 0 {
            return Ok(text);
        }
    }
}
