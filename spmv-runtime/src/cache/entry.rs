//! The file format of an entry: eight bytes of magic, the format's version, a BLAKE3 checksum over everything
//! after it, the request, the artifact; of a note the question and the answer. Integers are little endian.

use thiserror::Error;

use super::key::{self, Reader, put_bytes, put_u64};
use crate::artifact::{Artifact, CompileRequest, Image, KernelResources};

const MAGIC: [u8; 8] = *b"spmvKERN";

/// What a note starts with.
const NOTE_MAGIC: [u8; 8] = *b"spmvNOTE";

/// Goes up whenever the bytes change, or what is derived from them when they are made (the resources that are
/// read out of the compiler's log).
pub(super) const FORMAT: u32 = 3;

const CHECKSUM_AT: usize = MAGIC.len() + size_of::<u32>();
const PAYLOAD_AT: usize = CHECKSUM_AT + blake3::OUT_LEN;

/// Why an entry cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Damage {
    /// Shorter than a header.
    #[error("it is {bytes} bytes long, and a header alone is {PAYLOAD_AT}")]
    Truncated {
        /// The file's length.
        bytes: u64,
    },
    /// Not a file of ours.
    #[error("it does not start as a cache entry does")]
    Foreign,
    /// Written in another version of the format.
    #[error("it has format {found}, and this is format {FORMAT}")]
    OtherFormat {
        /// The version it says.
        found: u32,
    },
    /// Something between the header and the end changed.
    #[error("its checksum does not match: bytes changed, are missing or were added")]
    Checksum,
    /// The checksum is right and the content is not what this format holds.
    #[error("its content is malformed")]
    Malformed,
    /// A whole entry of another request, under this name.
    #[error("it belongs to another compile request")]
    OtherRequest,
    /// A symbolic link, which is not followed.
    #[error("it is a symbolic link")]
    Symlink,
    /// A folder, pipe, socket or device.
    #[error("it is not a regular file")]
    NotAFile,
    /// Written by another user.
    #[error("it belongs to user {owner}, and this process runs as user {user}")]
    ForeignOwner {
        /// The file's owner.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Anyone could have written it.
    #[error("others may write it (mode {mode:04o})")]
    WritableByOthers {
        /// The file's permissions.
        mode: u32,
    },
    /// Too large to be an entry.
    #[error("it is {bytes} bytes long, and an entry has at most {max_bytes}")]
    TooLarge {
        /// The file's length.
        bytes: u64,
        /// The longest that is read.
        max_bytes: u64,
    },
}

pub(super) fn encode(request: &[u8], artifact: &Artifact) -> Vec<u8> {
    let Artifact { images, log, kernels } = artifact;
    let image_bytes = images.iter().map(|image| image.cubin.len() + image.ptx.len() + 16).sum::<usize>();
    let kernel_bytes = kernels.iter().map(|k| k.name.len() + 24).sum::<usize>();
    let mut out = Vec::with_capacity(
        PAYLOAD_AT + request.len() + image_bytes + log.len() + kernel_bytes + 4 * size_of::<u64>(),
    );
    begin(&mut out, MAGIC);
    put_bytes(&mut out, request);
    put_u64(&mut out, images.len() as u64);
    for Image { cubin, ptx } in images {
        put_bytes(&mut out, cubin);
        put_bytes(&mut out, ptx.as_bytes());
    }
    put_bytes(&mut out, log.as_bytes());
    put_u64(&mut out, kernels.len() as u64);
    for KernelResources { name, registers, spill_store_bytes, spill_load_bytes, shared_bytes } in kernels {
        put_bytes(&mut out, name.as_bytes());
        for count in [registers, spill_store_bytes, spill_load_bytes, shared_bytes] {
            out.extend_from_slice(&count.to_le_bytes());
        }
    }
    seal(&mut out);
    out
}

pub(super) fn encode_note(question: &[u8], answer: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(PAYLOAD_AT + question.len() + answer.len() + 2 * size_of::<u64>());
    begin(&mut out, NOTE_MAGIC);
    put_bytes(&mut out, question);
    put_bytes(&mut out, answer);
    seal(&mut out);
    out
}

/// Question and answer of a file that must be a note.
pub(super) fn decode_note(file: &[u8]) -> Result<(Vec<u8>, Vec<u8>), Damage> {
    let mut reader = Reader(payload(file, NOTE_MAGIC)?);
    let mut decode = || {
        let (question, answer) = (reader.bytes()?.to_vec(), reader.bytes()?.to_vec());
        reader.end()?;
        Some((question, answer))
    };
    decode().ok_or(Damage::Malformed)
}

/// The header, without its checksum.
fn begin(out: &mut Vec<u8>, magic: [u8; 8]) {
    out.extend_from_slice(&magic);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&[0; blake3::OUT_LEN]);
}

/// Puts the checksum of all that follows the header into it.
fn seal(out: &mut [u8]) {
    let checksum = blake3::hash(&out[PAYLOAD_AT..]);
    out[CHECKSUM_AT..PAYLOAD_AT].copy_from_slice(checksum.as_bytes());
}

/// The artifact of a file that must be the entry of exactly this encoded request.
pub(super) fn decode_for(file: &[u8], request: &[u8]) -> Result<Artifact, Damage> {
    let (found, artifact) = split(payload(file, MAGIC)?).ok_or(Damage::Malformed)?;
    // The encoding is injective: equal bytes are equal in every field.
    if found != request {
        return Err(Damage::OtherRequest);
    }
    decode_artifact(artifact).ok_or(Damage::Malformed)
}

pub(super) type Content = (CompileRequest, Artifact);

/// What a file holds, whatever request that is.
pub(super) fn decode(file: &[u8]) -> Result<Content, Damage> {
    decode_payload(payload(file, MAGIC)?).ok_or(Damage::Malformed)
}

fn payload(file: &[u8], expected: [u8; 8]) -> Result<&[u8], Damage> {
    let truncated = Damage::Truncated { bytes: file.len() as u64 };
    let mut reader = Reader(file);
    let magic: [u8; 8] = reader.array().ok_or(truncated.clone())?;
    let format = reader.u32().ok_or(truncated.clone())?;
    let checksum: [u8; blake3::OUT_LEN] = reader.array().ok_or(truncated)?;
    if magic != expected {
        return Err(Damage::Foreign);
    }
    if format != FORMAT {
        return Err(Damage::OtherFormat { found: format });
    }
    if blake3::hash(reader.0) != checksum {
        return Err(Damage::Checksum);
    }
    Ok(reader.0)
}

fn decode_payload(payload: &[u8]) -> Option<Content> {
    let (request, artifact) = split(payload)?;
    Some((key::decode(request)?, decode_artifact(artifact)?))
}

fn split(payload: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader(payload);
    Some((reader.bytes()?, reader.0))
}

fn decode_artifact(bytes: &[u8]) -> Option<Artifact> {
    let mut reader = Reader(bytes);
    let mut images = Vec::new();
    for _ in 0..reader.u64()? {
        images.push(Image { cubin: reader.bytes()?.to_vec(), ptx: reader.string()? });
    }
    let log = reader.string()?;
    let mut kernels = Vec::new();
    for _ in 0..reader.u64()? {
        kernels.push(KernelResources {
            name: reader.string()?,
            registers: reader.u32()?,
            spill_store_bytes: reader.u32()?,
            spill_load_bytes: reader.u32()?,
            shared_bytes: reader.u32()?,
        });
    }
    reader.end()?;
    Some(Artifact { images, log, kernels })
}
