//! Sparse matrices on a device.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use spmv_codegen::{IndexType, KernelConfig, StorageFormat, Types, ValueType};
use spmv_matrix::{CscMatrix, CsrMatrix, Offset, SymmetricCsr, Symmetry};

use crate::backend::{Allocation, Bytes, as_bytes};
use crate::device::Device;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::scalar::Element;
use crate::vector::{Vector, check_length};

/// A matrix in device memory, in CSR or CSC, or one triangle of it in CSR. Several plans share one through an [`Arc`].
pub struct DeviceMatrix {
    device: Device,
    num_rows: usize,
    num_cols: usize,
    nnz: usize,
    storage: StorageFormat,
    value: ValueType,
    offset: IndexType,
    index: IndexType,
    row_offsets: Allocation,
    col_indices: Allocation,
    values: Allocation,
    /// How often the values were replaced.
    updates: AtomicU64,
}

/// The most nonzeros that 32-bit offsets serve: strides past the end of a row then stay in range.
const MAX_NNZ_U32: u64 = i32::MAX as u64;

impl fmt::Debug for DeviceMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceMatrix { device, num_rows, num_cols, nnz, storage, value, offset, index, .. } = self;
        write!(
            f,
            "DeviceMatrix of {num_rows} x {num_cols} with {nnz} nonzeros in {storage}, value={value} offset={offset} \
             index={index}, on {device:?}"
        )
    }
}

impl DeviceMatrix {
    /// Copies a matrix to a device, with row offsets of type `offset` and 32-bit column indices; with narrower ones,
    /// [`MatrixSource::to_device`] does. The matrix was checked when it was made; the memory it takes is known, and
    /// compared with what is free, before anything is allocated.
    ///
    /// # Errors
    /// [`Error::OffsetRange`] where 32-bit offsets do not serve, [`Error::Config`] where `offset` is no type of offsets,
    /// [`Error::OutOfMemory`].
    pub fn upload<V: Element, O: DeviceOffset>(
        device: &Device,
        a: &CsrMatrix<V, O>,
        offset: IndexType,
    ) -> Result<DeviceMatrix, Error> {
        Self::copied(device, a, StorageFormat::Csr, offset, IndexType::U32)
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
        Self::copied(device, a.transpose(), StorageFormat::Csc, offset, IndexType::U32)
    }

    /// Copies the stored triangle of a symmetric, skew-symmetric or Hermitian matrix to a device, as it is.
    ///
    /// # Errors
    /// As [`DeviceMatrix::upload`].
    pub fn upload_symmetric<V: Element, O: DeviceOffset>(
        device: &Device,
        a: &SymmetricCsr<V, O>,
        offset: IndexType,
    ) -> Result<DeviceMatrix, Error> {
        Self::copied(device, a.lower(), MatrixSource::storage(a), offset, IndexType::U32)
    }

    /// The arrays of `a` on a device, which are those of a matrix in `storage`, with column indices of 16 bits or of 32.
    fn copied<V: Element, O: DeviceOffset>(
        device: &Device,
        a: &CsrMatrix<V, O>,
        storage: StorageFormat,
        offset: IndexType,
        index: IndexType,
    ) -> Result<DeviceMatrix, Error> {
        if !IndexType::OFFSETS.contains(&offset) {
            KernelConfig::named("csr_vector")?.offset(offset).build()?;
        }
        if offset == IndexType::U32 && a.nnz() as u64 > MAX_NNZ_U32 {
            return Err(Error::OffsetRange { nnz: a.nnz() as u64 });
        }
        if index == IndexType::U16 {
            check_size(storage, (a.num_rows(), a.num_cols()), (u64::MAX, IndexType::MAX_NARROW_COLUMNS))?;
        }
        let needed = Self::predict_bytes(a.num_rows(), a.nnz(), V::TYPE, offset, index);
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
        let (index, col_indices) = match index {
            IndexType::U16 => {
                let narrow = narrow_indices(a.col_indices());
                (index, Allocation::holding(backend, &narrow, "column indices")?)
            }
            _ => (IndexType::U32, Allocation::holding(backend, a.col_indices(), "column indices")?),
        };
        let (num_rows, num_cols) = match storage {
            StorageFormat::Csc => (a.num_cols(), a.num_rows()),
            _ => (a.num_rows(), a.num_cols()),
        };
        Ok(DeviceMatrix {
            device: device.clone(),
            num_rows,
            num_cols,
            nnz: a.nnz(),
            storage,
            value: V::TYPE,
            offset,
            index,
            row_offsets,
            col_indices,
            values: Allocation::holding(backend, a.values(), "values")?,
            updates: AtomicU64::new(0),
        })
    }

    /// Replaces the values, in the order of the arrays, for all plans of the matrix: products that are launched from now on have
    /// the new ones. A plan whose layout holds copies of the old ones refuses products until
    /// [`Spmv::refresh`](crate::Spmv::refresh), which fails where the layout is for values that repeat and the new ones do not, as
    /// [`Spmv::auto`](crate::Spmv::auto) may choose one for the grid of a constant stencil: plans that are to take any values are
    /// chosen with [`Constraints::values_change`](crate::Constraints::values_change). Waits for the device's own stream; products on
    /// other streams are the user's to order.
    ///
    /// ```no_run
    /// use std::sync::Arc;
    /// use spmv_runtime::{Constraints, Device, DeviceMatrix, IndexType, Operation, Spmv, matrix::CooMatrix};
    ///
    /// let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0f32, 3.0, 2.0, 5.0])?.to_csr::<u32>()?;
    /// let device = Device::open()?;
    /// let matrix = Arc::new(DeviceMatrix::upload(&device, &a, IndexType::U32)?);
    /// let mut constraints = Constraints::default();
    /// constraints.values_change = true;
    /// let mut spmv = Spmv::auto_with(&device, &matrix, Operation::NonTranspose, &constraints)?;
    /// matrix.update_values(&[2.0f32, 6.0, 4.0, 10.0])?;
    /// spmv.refresh()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NewValueType`], [`Error::Length`], [`Error::Fault`].
    pub fn update_values<V: Element>(&self, values: &[V]) -> Result<(), Error> {
        self.check_new(V::TYPE)?;
        check_length("the slice of values", self.nnz, values.len())?;
        if self.nnz > 0 {
            // SAFETY: the allocation was made for so many values of this type.
            unsafe { self.device.backend().write(self.values.address(), as_bytes(values))? };
        }
        self.updates.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// As [`update_values`](Self::update_values), with values that are on the device; waits for nothing.
    ///
    /// # Errors
    /// As [`update_values`](Self::update_values); [`Error::OtherDevice`], and those of [`Vector::copy_from`].
    pub fn update_values_from<V: Element>(&self, values: &Vector<V>) -> Result<(), Error> {
        self.check_new(V::TYPE)?;
        check_length("the vector of values", self.nnz, values.len())?;
        if !values.device().is(&self.device) {
            return Err(Error::OtherDevice { what: "the vector of values", with: "the matrix" });
        }
        // SAFETY: the allocation holds so many values of this type, outlives the copy and is written by nobody else meanwhile.
        let mut own = unsafe { Vector::<V>::from_raw(&self.device, self.values.address(), self.nnz) };
        own.copy_from(values)?;
        self.updates.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// As [`update_values`](Self::update_values), with the values of a matrix of the same structure: for one in CSC its transpose
    /// by rows, for one of which a triangle is stored that. Sizes are compared; where debug assertions are on, the whole
    /// structure is, as [`has_structure_of`](Self::has_structure_of) does.
    ///
    /// # Errors
    /// As [`update_values`](Self::update_values); [`Error::Structure`] where the structure is another one.
    pub fn update_from<V: Element, O: DeviceOffset>(&self, a: &CsrMatrix<V, O>) -> Result<(), Error> {
        let (expected, got) = (self.shape(), (a.num_rows(), a.num_cols(), a.nnz()));
        if expected != got {
            return Err(Error::Structure { expected, got });
        }
        if cfg!(debug_assertions) && !self.has_structure_of(a)? {
            return Err(Error::Structure { expected, got });
        }
        self.update_values(a.values())
    }

    /// Whether a matrix has the same rows, columns and entries in the same order, whatever their values are. Reads both
    /// structures once: this one on the device, the other on the host.
    ///
    /// # Errors
    /// Those of [`fingerprint`](Self::fingerprint).
    pub fn has_structure_of<V: Element, O: DeviceOffset>(&self, a: &CsrMatrix<V, O>) -> Result<bool, Error> {
        let same_size = self.shape() == (a.num_rows(), a.num_cols(), a.nnz());
        Ok(same_size && self.fingerprint()? == Fingerprint::of_arrays(a, self.offset, self.index))
    }

    /// Whether values of this type may take the place of the matrix's.
    fn check_new(&self, got: ValueType) -> Result<(), Error> {
        if self.value == got { Ok(()) } else { Err(Error::NewValueType { expected: self.value, got }) }
    }

    /// Rows, columns and entries of the arrays.
    fn shape(&self) -> (usize, usize, usize) {
        let (num_rows, num_cols) = self.stored_size();
        (num_rows, num_cols, self.nnz)
    }

    /// How often the values were replaced.
    pub(crate) fn updates(&self) -> u64 {
        self.updates.load(Ordering::Acquire)
    }

    /// Bytes of device memory that a matrix in CSR takes; in CSC, with its columns for rows. Of a triangle, `nnz` are the
    /// stored entries. Indices of 16 bits fill up their last word of 32. At most [`u64::MAX`].
    pub fn predict_bytes(
        num_rows: usize,
        nnz: usize,
        value: ValueType,
        offset: IndexType,
        index: IndexType,
    ) -> u64 {
        let (rows, nnz) = (num_rows as u64, nnz as u64);
        let each = |number: u64, bytes: usize| number.saturating_mul(bytes as u64);
        let indices = each(nnz, index.size()).checked_next_multiple_of(4).unwrap_or(u64::MAX);
        let offsets = each(rows.saturating_add(1), offset.size());
        offsets.saturating_add(indices).saturating_add(each(nnz, value.size()))
    }

    /// Bytes of device memory that its arrays take.
    pub fn bytes(&self) -> u64 {
        Self::predict_bytes(self.stored_size().0, self.nnz, self.value, self.offset, self.index)
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

    /// Type of the column indices.
    pub fn index_type(&self) -> IndexType {
        self.index
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
    /// The matrix on `device`, with values, offsets and column indices of these types; indices are narrowed as a matrix on
    /// the host is copied, which stays as it is.
    ///
    /// # Errors
    /// Those of [`DeviceMatrix::upload`]; [`Error::IndexRange`] where there are more columns than narrow indices serve;
    /// [`Error::ValueType`], [`Error::OffsetType`], [`Error::IndexType`] and [`Error::OtherDevice`] where the matrix does
    /// not fit.
    fn to_device(&self, device: &Device, types: Types) -> Result<Arc<DeviceMatrix>, Error>;

    /// How it is stored.
    fn storage(&self) -> StorageFormat;

    /// Type of the values.
    fn value_type(&self) -> ValueType;

    /// Type of the offsets: for a matrix on the host the narrowest that serves, for one on a device what it has.
    fn offset_type(&self) -> IndexType;

    /// Type of the column indices: for a matrix on the host 32 bits, for one on a device what it has.
    fn index_type(&self) -> IndexType {
        IndexType::U32
    }
}

/// The narrowest type that serves for so many entries.
fn narrowest_offset(nnz: usize) -> IndexType {
    if nnz as u64 > MAX_NNZ_U32 { IndexType::U64 } else { IndexType::U32 }
}

impl<V: Element, O: DeviceOffset> MatrixSource for CsrMatrix<V, O> {
    fn to_device(&self, device: &Device, types: Types) -> Result<Arc<DeviceMatrix>, Error> {
        check_value(types.value, V::TYPE)?;
        let csr = StorageFormat::Csr;
        Ok(Arc::new(DeviceMatrix::copied(device, self, csr, types.offset, types.index)?))
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
        let (arrays, csc) = (self.transpose(), StorageFormat::Csc);
        Ok(Arc::new(DeviceMatrix::copied(device, arrays, csc, types.offset, types.index)?))
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
        let (lower, storage) = (self.lower(), self.storage());
        Ok(Arc::new(DeviceMatrix::copied(device, lower, storage, types.offset, types.index)?))
    }

    fn storage(&self) -> StorageFormat {
        match self.symmetry() {
            Symmetry::SkewSymmetric => StorageFormat::SkewSymmetric,
            Symmetry::Hermitian => StorageFormat::Hermitian,
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
        if self.index != types.index {
            return Err(Error::IndexType { expected: types.index, got: self.index });
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

    fn index_type(&self) -> IndexType {
        self.index
    }
}

/// Column indices in 16 bits, which all of them fit in. A last one fills up a word of 32, which hashing takes. All cores take
/// part.
pub(crate) fn narrow_indices(col_indices: &[u32]) -> Vec<u16> {
    const FEWEST_A_CORE: usize = 1 << 16;
    let mut narrow = Vec::with_capacity(col_indices.len().next_multiple_of(2));
    col_indices.par_iter().with_min_len(FEWEST_A_CORE).map(|&col| col as u16).collect_into_vec(&mut narrow);
    narrow.resize(col_indices.len().next_multiple_of(2), 0);
    narrow
}

/// Whether arrays of a matrix in this storage have no more rows and columns than that.
pub(crate) fn check_size(
    storage: StorageFormat,
    arrays: (usize, usize),
    allowed: (u64, u64),
) -> Result<(), Error> {
    let names = match storage {
        StorageFormat::Csc => ["columns", "rows"],
        _ => ["rows", "columns"],
    };
    for (what, found, allowed) in [(names[0], arrays.0, allowed.0), (names[1], arrays.1, allowed.1)] {
        if found as u64 > allowed {
            return Err(Error::IndexRange { what, found: found as u64, allowed });
        }
    }
    Ok(())
}

fn check_value(expected: ValueType, got: ValueType) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::ValueType { what: "value", expected, got }) }
}
