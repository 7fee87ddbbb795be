//! Sparse matrices on a device.

use std::sync::Arc;

use spmv_codegen::{IndexType, StorageFormat, Types, ValueType};
use spmv_matrix::{CscMatrix, CsrMatrix, Offset, SymmetricCsr, Symmetry};

use crate::backend::{Allocation, Bytes};
use crate::device::Device;
use crate::error::Error;
use crate::scalar::Element;

/// A matrix in device memory, in CSR or CSC, or one triangle of it in CSR. Several plans share one through an [`Arc`].
#[derive(Debug)]
pub struct DeviceMatrix {
    device: Device,
    num_rows: usize,
    num_cols: usize,
    nnz: usize,
    storage: StorageFormat,
    value: ValueType,
    offset: IndexType,
    row_offsets: Allocation,
    col_indices: Allocation,
    values: Allocation,
}

/// The most nonzeros that 32-bit offsets serve: strides past the end of a row then stay in range.
const MAX_NNZ_U32: u64 = i32::MAX as u64;

impl DeviceMatrix {
    /// Copies a matrix to a device, with row offsets of type `offset`. The matrix was checked when it was made;
    /// the memory it takes is known, and compared with what is free, before anything is allocated.
    ///
    /// # Errors
    /// [`Error::OffsetRange`] where 32-bit offsets do not serve, [`Error::OutOfMemory`].
    pub fn upload<V: Element, O: DeviceOffset>(
        device: &Device,
        a: &CsrMatrix<V, O>,
        offset: IndexType,
    ) -> Result<DeviceMatrix, Error> {
        if offset == IndexType::U32 && a.nnz() as u64 > MAX_NNZ_U32 {
            return Err(Error::OffsetRange { nnz: a.nnz() as u64 });
        }
        let needed = Self::predict_bytes(a.num_rows(), a.nnz(), V::TYPE, offset);
        let free = device.free_bytes()?;
        if needed > free {
            return Err(Error::OutOfMemory { what: "the matrix".into(), needed, free });
        }
        let backend = device.backend();
        let row_offsets = match (O::TYPE, offset) {
            (from, to) if from == to => Allocation::holding(backend, a.row_offsets(), "row offsets")?,
            (_, IndexType::U32) => {
                let narrow: Vec<u32> = a.row_offsets().iter().map(|o| o.to_usize() as u32).collect();
                Allocation::holding(backend, &narrow, "row offsets")?
            }
            _ => {
                let wide: Vec<u64> = a.row_offsets().iter().map(|o| o.to_usize() as u64).collect();
                Allocation::holding(backend, &wide, "row offsets")?
            }
        };
        Ok(DeviceMatrix {
            device: device.clone(),
            num_rows: a.num_rows(),
            num_cols: a.num_cols(),
            nnz: a.nnz(),
            storage: StorageFormat::Csr,
            value: V::TYPE,
            offset,
            row_offsets,
            col_indices: Allocation::holding(backend, a.col_indices(), "column indices")?,
            values: Allocation::holding(backend, a.values(), "values")?,
        })
    }

    /// Copies a matrix in compressed sparse columns to a device, as it is.
    ///
    /// # Errors
    /// As [`DeviceMatrix::upload`].
    pub fn upload_csc<V: Element, O: DeviceOffset>(
        device: &Device,
        a: &CscMatrix<V, O>,
        offset: IndexType,
    ) -> Result<DeviceMatrix, Error> {
        let transpose = Self::upload(device, a.transpose(), offset)?;
        let (num_rows, num_cols) = (a.num_rows(), a.num_cols());
        Ok(DeviceMatrix { num_rows, num_cols, storage: StorageFormat::Csc, ..transpose })
    }

    /// Copies the stored triangle of a symmetric or skew-symmetric matrix to a device, as it is.
    ///
    /// # Errors
    /// As [`DeviceMatrix::upload`].
    pub fn upload_symmetric<V: Element, O: DeviceOffset>(
        device: &Device,
        a: &SymmetricCsr<V, O>,
        offset: IndexType,
    ) -> Result<DeviceMatrix, Error> {
        let lower = Self::upload(device, a.lower(), offset)?;
        Ok(DeviceMatrix { storage: MatrixSource::storage(a), ..lower })
    }

    /// Bytes of device memory that a matrix in CSR takes; in CSC, with its columns for rows. Of a triangle, `nnz` are the
    /// stored entries.
    pub fn predict_bytes(num_rows: usize, nnz: usize, value: ValueType, offset: IndexType) -> u64 {
        let (rows, nnz) = (num_rows as u64, nnz as u64);
        (rows + 1) * offset.size() as u64 + nnz * (IndexType::U32.size() + value.size()) as u64
    }

    /// The device that holds the matrix.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Number of rows.
    pub fn num_rows(&self) -> usize {
        self.num_rows
    }

    /// Number of columns.
    pub fn num_cols(&self) -> usize {
        self.num_cols
    }

    /// Number of stored entries, those of the triangle where one is stored.
    pub fn nnz(&self) -> usize {
        self.nnz
    }

    /// How it is stored.
    pub fn storage(&self) -> StorageFormat {
        self.storage
    }

    /// Rows and columns of the matrix that the arrays hold by rows.
    pub(crate) fn stored_size(&self) -> (usize, usize) {
        match self.storage {
            StorageFormat::Csc => (self.num_cols, self.num_rows),
            _ => (self.num_rows, self.num_cols),
        }
    }

    /// Type of the values.
    pub fn value_type(&self) -> ValueType {
        self.value
    }

    /// Type of the row offsets.
    pub fn offset_type(&self) -> IndexType {
        self.offset
    }

    /// Where row offsets, column indices and values are in device memory, of the triangle where one is stored; in CSC column offsets, row indices and values.
    pub fn addresses(&self) -> (u64, u64, u64) {
        (self.row_offsets.address(), self.col_indices.address(), self.values.address())
    }
}

/// Row offsets that can be copied to a device: `u32` or `u64`.
pub trait DeviceOffset: Offset + Bytes {}

impl DeviceOffset for u32 {}
impl DeviceOffset for u64 {}

/// What a plan can be made for: a matrix on the host, which is copied to the device, or one that is there.
pub trait MatrixSource {
    /// The matrix on `device`, with values and offsets of these types.
    ///
    /// # Errors
    /// Those of [`DeviceMatrix::upload`]; [`Error::ValueType`], [`Error::OffsetType`] and
    /// [`Error::OtherDevice`] where the matrix does not fit.
    fn to_device(&self, device: &Device, types: Types) -> Result<Arc<DeviceMatrix>, Error>;

    /// How it is stored.
    fn storage(&self) -> StorageFormat;

    /// Type of the values.
    fn value_type(&self) -> ValueType;

    /// Type of the offsets: for a matrix on the host the narrowest that serves, for one on a device what it has.
    fn offset_type(&self) -> IndexType;
}

/// The narrowest type that serves for so many entries.
fn narrowest_offset(nnz: usize) -> IndexType {
    if nnz as u64 > MAX_NNZ_U32 { IndexType::U64 } else { IndexType::U32 }
}

impl<V: Element, O: DeviceOffset> MatrixSource for CsrMatrix<V, O> {
    fn to_device(&self, device: &Device, types: Types) -> Result<Arc<DeviceMatrix>, Error> {
        check_value(types.value, V::TYPE)?;
        Ok(Arc::new(DeviceMatrix::upload(device, self, types.offset)?))
    }

    fn storage(&self) -> StorageFormat {
        StorageFormat::Csr
    }

    fn value_type(&self) -> ValueType {
        V::TYPE
    }

    fn offset_type(&self) -> IndexType {
        narrowest_offset(self.nnz())
    }
}

impl<V: Element, O: DeviceOffset> MatrixSource for CscMatrix<V, O> {
    fn to_device(&self, device: &Device, types: Types) -> Result<Arc<DeviceMatrix>, Error> {
        check_value(types.value, V::TYPE)?;
        Ok(Arc::new(DeviceMatrix::upload_csc(device, self, types.offset)?))
    }

    fn storage(&self) -> StorageFormat {
        StorageFormat::Csc
    }

    fn value_type(&self) -> ValueType {
        V::TYPE
    }

    fn offset_type(&self) -> IndexType {
        narrowest_offset(self.nnz())
    }
}

impl<V: Element, O: DeviceOffset> MatrixSource for SymmetricCsr<V, O> {
    fn to_device(&self, device: &Device, types: Types) -> Result<Arc<DeviceMatrix>, Error> {
        check_value(types.value, V::TYPE)?;
        Ok(Arc::new(DeviceMatrix::upload_symmetric(device, self, types.offset)?))
    }

    fn storage(&self) -> StorageFormat {
        match self.symmetry() {
            Symmetry::SkewSymmetric => StorageFormat::SkewSymmetric,
            _ => StorageFormat::Symmetric,
        }
    }

    fn value_type(&self) -> ValueType {
        V::TYPE
    }

    fn offset_type(&self) -> IndexType {
        narrowest_offset(self.lower().nnz())
    }
}

impl MatrixSource for Arc<DeviceMatrix> {
    fn to_device(&self, device: &Device, types: Types) -> Result<Arc<DeviceMatrix>, Error> {
        check_value(types.value, self.value)?;
        if self.offset != types.offset {
            return Err(Error::OffsetType { expected: types.offset, got: self.offset });
        }
        if !self.device.is(device) {
            return Err(Error::OtherDevice { what: "the matrix", with: "the plan" });
        }
        Ok(self.clone())
    }

    fn storage(&self) -> StorageFormat {
        self.storage
    }

    fn value_type(&self) -> ValueType {
        self.value
    }

    fn offset_type(&self) -> IndexType {
        self.offset
    }
}

fn check_value(expected: ValueType, got: ValueType) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::ValueType { what: "value", expected, got }) }
}
