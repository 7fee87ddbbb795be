//! What tells structures apart: BLAKE3 over row offsets and column indices, found where they are.

use std::fmt;

use blake3::hazmat::{Mode, merge_subtrees_non_root, merge_subtrees_root};
use spmv_codegen::{FingerprintProgram, IndexType};
use spmv_matrix::CsrMatrix;

use crate::backend::{Allocation, StreamHandle, as_bytes, as_bytes_mut};
use crate::device::Device;
use crate::error::Error;
use crate::launcher::{Bindings, BoundPass, Operands};
use crate::matrix_source::{DeviceMatrix, DeviceOffset, narrow_indices};
use crate::scalar::Element;

/// The hash of a structure: of size, row offsets and column indices, whatever the values are. Two structures with one
/// fingerprint are the same. Displays as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of a matrix on the host, which is the same on a device with offsets of this type: the type counts. All cores
    /// take part.
    pub fn of<V: Element, O: DeviceOffset>(a: &CsrMatrix<V, O>, offset: IndexType) -> Fingerprint {
        Self::of_arrays(a, offset, IndexType::U32)
    }

    /// As [`of`](Self::of), with column indices of this type, which counts too.
    pub(crate) fn of_arrays<V: Element, O: DeviceOffset>(
        a: &CsrMatrix<V, O>,
        offset: IndexType,
        index: IndexType,
    ) -> Fingerprint {
        let row_offsets = match offset {
            to if to == O::TYPE => on_host(as_bytes(a.row_offsets())),
            IndexType::U32 => {
                let narrow: Vec<u32> =
                    a.row_offsets().iter().map(|offset| offset.to_usize() as u32).collect();
                on_host(as_bytes(&narrow))
            }
            _ => {
                let wide: Vec<u64> = a.row_offsets().iter().map(|offset| offset.to_usize() as u64).collect();
                on_host(as_bytes(&wide))
            }
        };
        let col_indices = match index {
            IndexType::U16 => on_host(as_bytes(&narrow_indices(a.col_indices()))),
            _ => on_host(as_bytes(a.col_indices())),
        };
        Self::joined([a.num_rows(), a.num_cols(), a.nnz()], offset, [row_offsets, col_indices])
    }

    /// The fingerprint that displays so.
    pub(crate) fn from_hex(hex: &str) -> Option<Fingerprint> {
        let fingerprint = Fingerprint(blake3::Hash::from_hex(hex).ok()?.into());
        (fingerprint.to_string() == hex).then_some(fingerprint)
    }

    fn joined(size: [usize; 3], offset: IndexType, arrays: [blake3::Hash; 2]) -> Fingerprint {
        let mut hasher = blake3::Hasher::new_derive_key("spmv: structure of a sparse matrix in CSR");
        for number in size {
            hasher.update(&(number as u64).to_le_bytes());
        }
        hasher.update(&[offset.size() as u8]);
        for array in arrays {
            hasher.update(array.as_bytes());
        }
        Fingerprint(hasher.finalize().into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl DeviceMatrix {
    /// The fingerprint of the arrays: for a matrix in CSC of its transpose by rows, for one of which a triangle is stored of
    /// that. Reads row offsets and column indices once, on the device, and waits for that.
    ///
    /// # Errors
    /// Those of [`Device::kernel`]; [`Error::OutOfMemory`], [`Error::Fault`].
    pub fn fingerprint(&self) -> Result<Fingerprint, Error> {
        self.fingerprint_by(self.device())
    }

    /// As [`fingerprint`](Self::fingerprint), with the kernel of this handle.
    pub(crate) fn fingerprint_by(&self, device: &Device) -> Result<Fingerprint, Error> {
        let (num_rows, num_cols) = self.stored_size();
        let (row_offsets, col_indices, _) = self.addresses();
        let offset = self.offset_type();
        let arrays = [
            on_device(device, row_offsets, (num_rows + 1) * offset.size())?,
            on_device(device, col_indices, (self.nnz() * self.index_type().size()).next_multiple_of(4))?,
        ];
        Ok(Fingerprint::joined([num_rows, num_cols, self.nnz()], offset, arrays))
    }
}

fn on_host(bytes: &[u8]) -> blake3::Hash {
    blake3::Hasher::new().update_rayon(bytes).finalize()
}

/// The hash of so many bytes of device memory. What is no more than a subtree is hashed on the host, as are the values that
/// subtrees leave.
fn on_device(device: &Device, address: u64, bytes: usize) -> Result<blake3::Hash, Error> {
    let backend = device.backend();
    if bytes <= FingerprintProgram::SUBTREE_BYTES {
        let mut content = vec![0u32; bytes / size_of::<u32>()];
        if bytes > 0 {
            // SAFETY: the caller says that so many bytes are there.
            unsafe { backend.read(as_bytes_mut(&mut content), address)? };
        }
        return Ok(blake3::hash(as_bytes(&content)));
    }
    let kernel = device.fingerprint_kernel()?;
    let subtrees = bytes.div_ceil(FingerprintProgram::SUBTREE_BYTES);
    let mut values = vec![0u32; subtrees * FingerprintProgram::VALUE_BYTES / size_of::<u32>()];
    let there = Allocation::new(backend, (subtrees * FingerprintProgram::VALUE_BYTES) as u64, "hashes")?;
    let bindings = Bindings { length: (bytes / size_of::<u32>()) as u64, ..Bindings::default() };
    let mut pass = BoundPass::new(&kernel.program.pass, &*kernel.module, &bindings)?;
    let operands = Operands { x: address, y: there.address(), ..Operands::default() };
    // SAFETY: the kernel reads the caller's bytes and writes a value for each subtree; the values are alive until they are read.
    unsafe {
        pass.launch(&**backend, StreamHandle::default(), &operands)?;
        backend.read(as_bytes_mut(&mut values), there.address())?;
    }
    let bytes = as_bytes(&values);
    let mut level: Vec<[u8; 32]> =
        bytes.chunks_exact(32).map(|value| std::array::from_fn(|byte| value[byte])).collect();
    // Neighbours are joined; one that is left over goes up as it is.
    while level.len() > 2 {
        let join = |pair: &[[u8; 32]]| match pair {
            [left, right] => merge_subtrees_non_root(left, right, Mode::Hash),
            [alone, ..] => *alone,
            [] => unreachable!("chunks are not empty"),
        };
        level = level.chunks(2).map(join).collect();
    }
    Ok(merge_subtrees_root(&level[0], &level[1], Mode::Hash))
}
