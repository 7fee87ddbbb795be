//! The features of a matrix that is on a device, counted there.

use std::sync::PoisonError;

use spmv_codegen::{AnalysisProgram, Expr, Features, Pass};

use crate::backend::{Allocation, StreamHandle, as_bytes_mut};
use crate::error::Error;
use crate::launcher::{Bindings, BoundPass, Operands};
use crate::matrix_source::DeviceMatrix;

impl DeviceMatrix {
    /// What the time of a product depends on in the structure of the arrays, which for a matrix in CSC are those of its
    /// transpose by rows: the same numbers as [`spmv_matrix::features`] finds on the host. Reads the row offsets, at
    /// most 2²² column indices and some more, up to 512 rows in the middle with their values and 2,048 values more, and, where
    /// rows may lie on few diagonals, all row offsets and column indices once more; waits for that. Takes a bit a diagonal,
    /// 4 bytes a column, 4 MiB at most, and 1 MiB at most for samples of device memory; up to 16 MiB of it stay with the device.
    ///
    /// # Errors
    /// Those of [`Device::kernel`](crate::Device::kernel); [`Error::OutOfMemory`], [`Error::Fault`].
    pub fn features(&self) -> Result<Features, Error> {
        self.looked_at(false)
    }

    /// As [`features`](Self::features), of the transpose of the arrays, as far as they follow from those of the arrays and from
    /// the lengths of the columns ([`Features::transposed`]): the same numbers as
    /// [`spmv_matrix::features_of_transpose`]. Reads the column indices once more, and takes 4 bytes of device memory a column
    /// for a while.
    ///
    /// # Errors
    /// As [`features`](Self::features).
    pub fn features_of_transpose(&self) -> Result<Features, Error> {
        self.looked_at(true)
    }

    fn looked_at(&self, transposed: bool) -> Result<Features, Error> {
        let device = self.device();
        let kernels = device.analysis_kernels(self.offset_type(), self.index_type())?;
        let AnalysisProgram { structure_bytes, structure, columns_bytes, columns, .. } = &kernels.program;
        let (row_offsets, col_indices, values) = self.addresses();
        let (num_rows, num_cols) = self.stored_size();
        let (num_rows, num_cols, nnz) = (num_rows as u64, num_cols as u64, self.nnz() as u64);
        let sizes = Bindings {
            num_rows,
            num_cols,
            nnz,
            value_bytes: self.value_type().size() as u64,
            multiprocessors: device.properties().multiprocessors,
            row_offsets,
            col_indices,
            values,
            ..Bindings::default()
        };
        let backend = device.backend();
        let mut workspace = device.analysis_workspace().lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = |bytes: &Expr, passes: &[Pass]| {
            let bytes = sizes.eval(bytes, || 0);
            if workspace.bytes < bytes {
                *workspace = AnalysisWorkspace::default();
                let memory = Allocation::new(backend, bytes, "the workspace of the analysis")?;
                *workspace = AnalysisWorkspace { memory: Some(memory), bytes, zeroed: 0 };
            }
            let zeroed = std::mem::take(&mut workspace.zeroed);
            let buffers = workspace.memory.as_slice();
            let address = buffers[0].address();
            // SAFETY: the memory has room for so many bytes, and nothing else uses it: the lock is held until it was read.
            let zero = || unsafe { backend.zero(address, bytes) };
            if zeroed < bytes {
                zero()?;
            }
            for pass in passes {
                let bindings = Bindings { buffers, ..sizes };
                let mut bound = BoundPass::new(pass, &*kernels.module, &bindings)?;
                // SAFETY: the pass was bound to this matrix and this memory, which outlive it: reading waits for it.
                unsafe { bound.launch(&**backend, StreamHandle::default(), &Operands::default())? };
            }
            let mut counters = [0u64; AnalysisProgram::NUM_COUNTERS];
            // SAFETY: the program says that the memory begins with so many counters.
            unsafe { backend.read(as_bytes_mut(&mut counters), address)? };
            // For the next analysis, which does not wait for it then.
            zero()?;
            workspace.zeroed = zeroed.max(bytes);
            Ok::<_, Error>(counters)
        };
        let counted = count(structure_bytes, structure)?;
        let features =
            AnalysisProgram::features((num_rows, num_cols), nnz, self.value_type().size(), &counted);
        let features = match transposed {
            true => features.transposed(&AnalysisProgram::lengths(&count(columns_bytes, columns)?)),
            false => features,
        };
        if workspace.bytes > AnalysisWorkspace::MAX_KEPT_BYTES {
            *workspace = AnalysisWorkspace::default();
        }
        Ok(features)
    }
}

/// What an analysis counts in. It stays with the device, since allocating and freeing take longer than counting.
#[derive(Debug, Default)]
pub(crate) struct AnalysisWorkspace {
    memory: Option<Allocation>,
    bytes: u64,
    /// Bytes, from the first on, that are zero when the device's stream has come to what is launched next.
    zeroed: u64,
}

impl AnalysisWorkspace {
    /// More is freed when it was used.
    const MAX_KEPT_BYTES: u64 = 16 << 20;
}
