//! The arrays of an archive.

use std::io::{self, Read, Seek};

use zip::ZipArchive;
use zip::result::ZipError;

use super::error::ReadError;
use super::npy::{NoHeader, Npy};
use super::{Progress, ReadOptions};
use crate::MatrixError;

/// Values that are decoded at a time.
const CHUNK: usize = 1 << 14;

/// A file of arrays.
pub(super) struct Archive<R> {
    zip: ZipArchive<R>,
    /// Bytes of values read so far.
    pub done: u64,
}

impl<R: Read + Seek> Archive<R> {
    pub fn open(input: R) -> Result<Self, ReadError> {
        Ok(Self { zip: ZipArchive::new(input).map_err(broken)?, done: 0 })
    }

    /// What an array says of itself, where there is one.
    pub fn find(&mut self, array: &'static str) -> Result<Option<Npy>, ReadError> {
        self.open_array(array).map(|found| found.map(|(npy, _)| npy))
    }

    /// All values of an array; `decode` is told their positions.
    pub fn read<T>(
        &mut self,
        array: &'static str,
        options: &ReadOptions,
        total: u64,
        decode: impl Fn(u64, &[u8]) -> Result<T, ReadError>,
    ) -> Result<Vec<T>, ReadError> {
        let done = self.done;
        let Some((npy, mut input)) = self.open_array(array)? else {
            return Err(ReadError::Missing { array, needed: array });
        };
        let (len, size) = (npy.len(), npy.dtype.size);
        let damaged = |values, source| ReadError::Damaged { array, values, source };
        let mut values: Vec<T> = Vec::new();
        let mut bytes = vec![0; CHUNK * size];
        let mut position = 0;
        while position < len {
            let count = (len - position).min(CHUNK as u64);
            let chunk = &mut bytes[..count as usize * size];
            input.read_exact(chunk).map_err(|source| damaged(position, source))?;
            values.try_reserve(count as usize).map_err(|_| MatrixError::OutOfMemory {
                bytes: len.saturating_mul(size_of::<T>() as u64),
                what: array,
            })?;
            for (position, value) in (position..).zip(chunk.chunks_exact(size)) {
                values.push(decode(position, value)?);
            }
            position += count;
            if let Some(progress) = options.progress {
                progress(Progress { done: done + position * size as u64, total: Some(total) });
            }
        }
        // The checksum is compared at the end.
        match input.read(&mut [0]) {
            Ok(0) => {}
            Ok(_) => return Err(ReadError::Excess { array, values: len }),
            Err(source) => return Err(damaged(len, source)),
        }
        drop(input);
        self.done = done + len * size as u64;
        Ok(values)
    }

    fn open_array(&mut self, array: &'static str) -> Result<Option<(Npy, impl Read)>, ReadError> {
        let mut input = match self.zip.by_name(&format!("{array}.npy")) {
            Err(ZipError::FileNotFound) => return Ok(None),
            input => input.map_err(broken)?,
        };
        match Npy::read(&mut input) {
            Ok(npy) => Ok(Some((npy, input))),
            Err(NoHeader::Problem(problem)) => Err(ReadError::Header { array, problem }),
            Err(NoHeader::Io(source)) => Err(ReadError::Damaged { array, values: 0, source }),
        }
    }
}

fn broken(error: ZipError) -> ReadError {
    match error {
        ZipError::Io(source) if source.kind() != io::ErrorKind::UnexpectedEof => {
            ReadError::Io { path: None, source }
        }
        error => ReadError::Archive(error.to_string()),
    }
}
