//! The features of a matrix that is on a device, counted there.

use spmv_codegen::{AnalysisProgram, Features, Pass};

use crate::backend::{Allocation, StreamHandle, as_bytes_mut};
use crate::error::Error;
use crate::launcher::{Bindings, BoundPass, Operands};
use crate::matrix_source::DeviceMatrix;

impl DeviceMatrix {
    /// What the time of a product depends on in the structure of the arrays, which for a matrix in CSC are those of its
    /// transpose by rows: the same numbers as [`spmv_matrix::features`] finds on the host. Reads the row offsets and at
    /// most 2²³ column indices and some more, or, where no row is long, all of them twice; waits for that. Takes 976 bytes of device
    /// memory, and for a while a bit a diagonal and 4 bytes a column, 4 MiB at most.
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
        let AnalysisProgram { buffers, structure, diagonals, columns, .. } = &kernels.program;
        let (row_offsets, col_indices, values) = self.addresses();
        let (num_rows, num_cols) = self.stored_size();
        let (num_rows, num_cols, nnz) = (num_rows as u64, num_cols as u64, self.nnz() as u64);
        let sizes = Bindings {
            num_rows,
            num_cols,
            nnz,
            multiprocessors: device.properties().multiprocessors,
            row_offsets,
            col_indices,
            values,
            ..Bindings::default()
        };
        let zeroed = |index: usize| {
            let buffer = &buffers[index];
            Allocation::zeroed(device.backend(), sizes.eval(&buffer.bytes, || 0), buffer.name)
        };
        let nothing = Operands::default();
        let run = |passes: &[Pass], buffers: &[Allocation]| {
            let mut counters = [0u64; AnalysisProgram::NUM_COUNTERS];
            for pass in passes {
                let mut bound = BoundPass::new(pass, &*kernels.module, &Bindings { buffers, ..sizes })?;
                // SAFETY: the pass was bound to this matrix and these buffers, which outlive it: freeing waits for it.
                unsafe { bound.launch(&**device.backend(), StreamHandle::default(), &nothing)? };
            }
            let address = buffers[AnalysisProgram::COUNTERS].address();
            // SAFETY: the program says that the buffer holds so many counters.
            unsafe { device.backend().read(as_bytes_mut(&mut counters), address)? };
            Ok::<_, Error>(counters)
        };
        let [nothing_yet, others] =
            ["diagonals", "lengths"].map(|name| Allocation::new(device.backend(), 0, name));
        let degrees = zeroed(AnalysisProgram::DEGREES)?;
        let mut buffers = [zeroed(AnalysisProgram::COUNTERS)?, nothing_yet?, others?, degrees];
        let mut counters = run(structure, &buffers)?;
        let size = (num_rows, num_cols);
        let mut found = AnalysisProgram::features(size, nnz, &counters, false);
        if Features::may_be_diagonal(num_rows, nnz, found.longest_row, found.group_diagonals) {
            buffers[AnalysisProgram::DIAGONALS] = zeroed(AnalysisProgram::DIAGONALS)?;
            counters = run(diagonals, &buffers)?;
            found = AnalysisProgram::features(size, nnz, &counters, true);
        }
        if !transposed {
            return Ok(found);
        }
        buffers[AnalysisProgram::COUNTERS] = zeroed(AnalysisProgram::COUNTERS)?;
        buffers[AnalysisProgram::LENGTHS] = zeroed(AnalysisProgram::LENGTHS)?;
        Ok(found.transposed(&AnalysisProgram::lengths(&run(columns, &buffers)?)))
    }
}
