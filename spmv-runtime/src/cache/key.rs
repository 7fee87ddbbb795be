use std::fmt;

use super::entry::FORMAT;
use crate::artifact::CompileRequest;

const SUFFIX: &str = ".spmv";
const NOTE_SUFFIX: &str = ".note";

/// The name of an entry: BLAKE3 over the tagged, length-prefixed fields of a [`CompileRequest`]. Displays as 64
/// hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub [u8; 32]);

impl Key {
    /// The key of a request. Requests that differ anywhere, the order of options included, have different keys.
    pub fn of(request: &CompileRequest) -> Key {
        Key::of_encoded(&encode(request))
    }

    pub(super) fn of_encoded(request: &[u8]) -> Key {
        // The format is part of the domain, so that two versions of this crate share a folder in peace.
        let mut hasher = blake3::Hasher::new_derive_key("spmv kernel cache: compile request");
        hasher.update(&FORMAT.to_le_bytes());
        hasher.update(request);
        Key(hasher.finalize().into())
    }

    /// The key of a note.
    pub(super) fn of_question(question: &[u8]) -> Key {
        let mut hasher = blake3::Hasher::new_derive_key("spmv kernel cache: question of a note");
        hasher.update(&FORMAT.to_le_bytes());
        hasher.update(question);
        Key(hasher.finalize().into())
    }

    pub(super) fn file_name(self) -> String {
        format!("{self}{SUFFIX}")
    }

    pub(super) fn note_name(self) -> String {
        format!("{self}{NOTE_SUFFIX}")
    }

    /// The key whose note this file is.
    pub(super) fn from_note_name(name: &str) -> Option<Key> {
        Key::from_hex(name.strip_suffix(NOTE_SUFFIX)?)
    }

    /// The key whose file name this is.
    pub(super) fn from_file_name(name: &str) -> Option<Key> {
        Key::from_hex(name.strip_suffix(SUFFIX)?)
    }

    fn from_hex(hex: &str) -> Option<Key> {
        let key = Key(blake3::Hash::from_hex(hex).ok()?.into());
        // Upper-case digits would be a second name for one key.
        (key.to_string() == hex).then_some(key)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

/// Every field behind its tag, everything of variable length behind its length: no two requests have the same
/// encoding. The key hashes it and the entry repeats it.
pub(super) fn encode(request: &CompileRequest) -> Vec<u8> {
    let CompileRequest { source, options, arch, nvrtc_version, nvrtc_bytes, driver_version } = request;
    let mut out = Vec::with_capacity(source.len() + options.iter().map(|o| o.len() + 8).sum::<usize>() + 128);
    out.push(b'S');
    put_bytes(&mut out, source.as_bytes());
    out.push(b'O');
    put_u64(&mut out, options.len() as u64);
    for option in options {
        put_bytes(&mut out, option.as_bytes());
    }
    out.push(b'A');
    put_bytes(&mut out, arch.as_bytes());
    out.push(b'N');
    put_version(&mut out, *nvrtc_version);
    put_u64(&mut out, *nvrtc_bytes);
    match driver_version {
        None => out.push(b'd'),
        Some(version) => {
            out.push(b'D');
            put_version(&mut out, *version);
        }
    }
    out
}

/// The inverse of [`encode`]; `None` where the bytes are not exactly one request.
pub(super) fn decode(bytes: &[u8]) -> Option<CompileRequest> {
    let mut reader = Reader(bytes);
    reader.tag(b'S')?;
    let source = reader.string()?;
    reader.tag(b'O')?;
    let mut options = Vec::new();
    for _ in 0..reader.u64()? {
        options.push(reader.string()?);
    }
    reader.tag(b'A')?;
    let arch = reader.string()?;
    reader.tag(b'N')?;
    let nvrtc_version = reader.version()?;
    let nvrtc_bytes = reader.u64()?;
    let driver_version = match reader.array()? {
        [b'd'] => None,
        [b'D'] => Some(reader.version()?),
        _ => return None,
    };
    reader.end()?;
    Some(CompileRequest { source, options, arch, nvrtc_version, nvrtc_bytes, driver_version })
}

pub(super) fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_u64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_version(out: &mut Vec<u8>, (major, minor): (u32, u32)) {
    out.extend_from_slice(&major.to_le_bytes());
    out.extend_from_slice(&minor.to_le_bytes());
}

/// Takes values off the front of bytes of any origin. A length is compared with what is left before anything is
/// allocated for it.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.u64()?).ok()?;
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn string(&mut self) -> Option<String> {
        Some(str::from_utf8(self.bytes()?).ok()?.to_owned())
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*head)
    }

    pub(super) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }

    fn tag(&mut self, tag: u8) -> Option<()> {
        (self.array()? == [tag]).then_some(())
    }

    fn version(&mut self) -> Option<(u32, u32)> {
        Some((self.u32()?, self.u32()?))
    }
}
