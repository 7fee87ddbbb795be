//! The features of a matrix that is on a device, counted there.

use std::sync::{Arc, PoisonError};

use spmv_codegen::{AnalysisProgram, CsrScalar, Features, KernelConfig, Operation, Pass};

use crate::backend::{self, Allocation, Backend, Inbox, StreamHandle};
use crate::device::Device;
use crate::error::Error;
use crate::launcher::{Bindings, BoundPass, Found, Operands};
use crate::matrix_source::DeviceMatrix;
use crate::planner::{typed, usual_types};
use crate::spmv::Spmv;

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
        self.features_by(self.device())
    }

    /// As [`features`](Self::features), with the kernels of this handle.
    pub(crate) fn features_by(&self, device: &Device) -> Result<Features, Error> {
        self.looked_at(device, self.arrays(), false)
    }

    /// As [`features`](Self::features), of the transpose of the arrays, as far as they follow from those of the arrays and from
    /// the lengths of the columns ([`Features::transposed`]): the same numbers as
    /// [`spmv_matrix::features_of_transpose`]. Reads the column indices once more, and takes 4 bytes of device memory a column
    /// for a while.
    ///
    /// # Errors
    /// As [`features`](Self::features).
    pub fn features_of_transpose(&self) -> Result<Features, Error> {
        self.features_of_transpose_by(self.device())
    }

    pub(crate) fn features_of_transpose_by(&self, device: &Device) -> Result<Features, Error> {
        self.looked_at(device, self.arrays(), true)
    }

    /// As [`features`](Self::features), of the whole matrix where one triangle of it is stored: those of both, of which a copy is
    /// made for a while.
    ///
    /// # Errors
    /// As [`features`](Self::features), and those of [`Spmv::with`].
    pub fn features_of_both_triangles(self: &Arc<Self>) -> Result<Features, Error> {
        self.features_of_both_triangles_by(self.device())
    }

    pub(crate) fn features_of_both_triangles_by(
        self: &Arc<Self>,
        device: &Device,
    ) -> Result<Features, Error> {
        let of_arrays = self.storage().of_arrays(Operation::NonTranspose);
        let Some(of_triangle) = of_arrays.filter(|of_arrays| of_arrays.is_of_triangle()) else {
            return self.features_by(device);
        };
        let config = KernelConfig::builder(CsrScalar::default()).build()?;
        let plan = Spmv::with(device, self, typed(config, usual_types(self)?, of_triangle)?)?;
        let (nnz, addresses) = plan.copied_arrays();
        self.looked_at(device, Arrays { nnz, addresses }, false)
    }

    fn arrays(&self) -> Arrays {
        Arrays { nnz: self.nnz() as u64, addresses: self.addresses() }
    }

    fn looked_at(&self, device: &Device, arrays: Arrays, transposed: bool) -> Result<Features, Error> {
        let kernels = device.analysis_kernels(self.offset_type(), self.index_type())?;
        let program = &kernels.program;
        let Arrays { nnz, addresses: (row_offsets, col_indices, values) } = arrays;
        let (num_rows, num_cols) = self.stored_size();
        let (num_rows, num_cols) = (num_rows as u64, num_cols as u64);
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
        let mut kept = device.analysis_workspace().lock().unwrap_or_else(PoisonError::into_inner);
        // It comes back when all has gone well, and is as kernels leave it then.
        let mut workspace = match kept.take() {
            Some(workspace) => workspace,
            None => AnalysisWorkspace::new(device.backend())?,
        };
        let bytes = [&program.structure_bytes, &program.diagonals_bytes].map(|bytes| sizes.eval(bytes, || 0));
        let counted = workspace.count(device, bytes, &sizes, &program.structure, &kernels.structure)?;
        let features =
            AnalysisProgram::features((num_rows, num_cols), nnz, self.value_type().size(), &counted);
        let features = match transposed {
            true => {
                let bytes = [sizes.eval(&program.columns_bytes, || 0), 0];
                let counted = workspace.count(device, bytes, &sizes, &program.columns, &kernels.columns)?;
                features.transposed(&AnalysisProgram::lengths(&counted))
            }
            false => features,
        };
        *kept = Some(workspace).filter(AnalysisWorkspace::is_small);
        Ok(features)
    }
}

/// Row offsets, column indices and values that are looked at, and how many of the latter.
#[derive(Clone, Copy, Debug)]
struct Arrays {
    nnz: u64,
    addresses: (u64, u64, u64),
}

/// What an analysis counts in. It stays with the device, since allocating and freeing take longer than counting.
#[derive(Debug)]
pub(crate) struct AnalysisWorkspace {
    /// The counters and what is behind them, zero between analyses; and diagonals.
    buffers: [Allocation; 2],
    bytes: [u64; 2],
    inbox: Box<dyn Inbox>,
}

impl AnalysisWorkspace {
    /// More is freed when it was used.
    const MAX_KEPT_BYTES: u64 = 16 << 20;

    fn new(backend: &Arc<dyn Backend>) -> Result<AnalysisWorkspace, Error> {
        let none = || Allocation::new(backend, 0, "the workspace of the analysis");
        let inbox = backend::inbox(backend, AnalysisProgram::NUM_COUNTERS)?;
        Ok(AnalysisWorkspace { buffers: [none()?, none()?], bytes: [0; 2], inbox })
    }

    fn is_small(&self) -> bool {
        self.bytes.iter().sum::<u64>() <= Self::MAX_KEPT_BYTES
    }

    /// What these passes count for a matrix of these sizes, for which the buffers need so many bytes.
    fn count(
        &mut self,
        device: &Device,
        bytes: [u64; 2],
        sizes: &Bindings<'_>,
        passes: &[Pass; 2],
        found: &[Found; 2],
    ) -> Result<[u64; AnalysisProgram::NUM_COUNTERS], Error> {
        let backend = device.backend();
        for ((buffer, has), needed) in self.buffers.iter_mut().zip(&mut self.bytes).zip(bytes) {
            if *has < needed {
                (*has, *buffer) = (0, Allocation::zeroed(backend, needed, "the workspace of the analysis")?);
                *has = needed;
            }
        }
        self.inbox.clear()?;
        let bindings = Bindings { buffers: &self.buffers, inbox: self.inbox.address(), ..*sizes };
        for (pass, found) in passes.iter().zip(found) {
            let mut bound = BoundPass::of(pass, *found, &bindings)?;
            // SAFETY: the pass was bound to this matrix and this memory, which outlive it: it is waited for, or the memory is
            // freed, which waits.
            unsafe { bound.launch(&**backend, StreamHandle::default(), &Operands::default())? };
        }
        let mut counters = [0; AnalysisProgram::NUM_COUNTERS];
        self.inbox.wait(&mut counters)?;
        Ok(counters)
    }
}
