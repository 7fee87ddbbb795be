//! The generated kernel that hashes the arrays of a structure on a device.

use crate::expr::{Expr, Variable};
use crate::program::{Arg, Pass};
use crate::source::fingerprint_source;
use crate::types::IndexType;

/// Generated CUDA text that hashes 32-bit words with BLAKE3, up to subtrees of [`FingerprintProgram::SUBTREE_BYTES`], and how to
/// run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintProgram {
    /// CUDA C++17 text, complete in itself.
    pub source: String,
    /// The pass over [`Variable::Length`] words: they are x, and y gets [`FingerprintProgram::VALUE_BYTES`] a subtree.
    pub pass: Pass,
}

const THREADS_PER_BLOCK: u32 = 256;

/// Words of a chunk, which a thread hashes.
const WORDS_PER_CHUNK: u32 = 256;

impl FingerprintProgram {
    /// Bytes of a subtree.
    pub const SUBTREE_BYTES: usize = (THREADS_PER_BLOCK * WORDS_PER_CHUNK * 4) as usize;

    /// Bytes of a subtree's chaining value.
    pub const VALUE_BYTES: usize = 32;

    /// Generates the program.
    pub fn new() -> FingerprintProgram {
        let words = || Expr::from(Variable::Length);
        let pass = Pass {
            kernel: "spmv_fingerprint".to_owned(),
            grid: words().div_ceil(WORDS_PER_CHUNK).div_ceil(THREADS_PER_BLOCK),
            threads_per_block: THREADS_PER_BLOCK,
            shared_bytes: 0,
            args: vec![Arg::Size(words(), IndexType::U64), Arg::X, Arg::Y],
        };
        FingerprintProgram { source: fingerprint_source(THREADS_PER_BLOCK), pass }
    }
}

impl Default for FingerprintProgram {
    fn default() -> Self {
        Self::new()
    }
}
