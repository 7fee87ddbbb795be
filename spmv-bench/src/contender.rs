//! What takes part: something that computes the product of one matrix, with what that costs beside time.

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Instant;

use spmv_runtime::codegen::IndexType;
use spmv_runtime::matrix::{CsrMatrix, SymmetricCsr, Symmetry};
use spmv_runtime::{Device, DeviceMatrix, RealElement, Vector};

use crate::instruments::{Instruments, Memory};
use crate::request::Operation;

/// Why a contender does not take part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It is not meant for this, or does not fit.
    Skipped(String),
    /// It should have worked.
    Failed(String),
    /// Memory of the device did not suffice beside that of those who are ready.
    NoRoom(String),
}

impl Absent {
    pub(crate) fn status(&self) -> String {
        match self {
            Absent::Skipped(why) => format!("skipped: {why}"),
            Absent::Failed(why) | Absent::NoRoom(why) => format!("failed: {why}"),
        }
    }
}

impl From<spmv_runtime::Error> for Absent {
    fn from(error: spmv_runtime::Error) -> Absent {
        match error {
            spmv_runtime::Error::Fill { .. } | spmv_runtime::Error::Misfit { .. } => {
                Absent::Skipped(error.to_string())
            }
            spmv_runtime::Error::OutOfMemory { .. } => Absent::NoRoom(error.to_string()),
            error => Absent::Failed(error.to_string()),
        }
    }
}

/// The product that all contenders compute: y <- alpha op(A) x + beta y.
pub(crate) struct Task<'a, V: RealElement> {
    pub(crate) a: &'a CsrMatrix<V, u32>,
    pub(crate) operation: Operation,
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    /// Where kernels run: a GPU or the simulator.
    pub(crate) device: Option<OnDevice<'a, V>>,
    /// Formats that several contenders share.
    pub(crate) converted: Converted,
}

/// The operands on a device.
pub(crate) struct OnDevice<'a, V> {
    pub(crate) device: Device,
    pub(crate) matrix: Arc<DeviceMatrix>,
    pub(crate) x: Vector<V>,
    /// Where y is; products are given it to write.
    pub(crate) y_address: u64,
    /// Absent on the simulator.
    pub(crate) instruments: Option<&'a Instruments>,
}

/// Storage formats that several contenders share, with the milliseconds that making them took.
#[derive(Default)]
pub(crate) struct Converted {
    pub(crate) coo_rows: MadeOnce<(Memory, f64)>,
    pub(crate) sell: MadeOnce<Slices>,
    pub(crate) blocks: MadeOnce<BlocksOnDevice>,
    triangle: MadeOnce<(Arc<DeviceMatrix>, f64)>,
}

/// What is made when it is first asked for. Where there was no room for it, it is made when it is asked for again: others may have
/// gone by then.
pub(crate) struct MadeOnce<T>(OnceCell<Result<T, Absent>>);

impl<T> Default for MadeOnce<T> {
    fn default() -> MadeOnce<T> {
        MadeOnce(OnceCell::new())
    }
}

impl<T> MadeOnce<T> {
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> Result<T, Absent>) -> Result<&T, Absent> {
        let made = match self.0.get() {
            Some(made) => made,
            None => match make() {
                Err(no_room @ Absent::NoRoom(_)) => return Err(no_room),
                made => self.0.get_or_init(|| made),
            },
        };
        made.as_ref().map_err(Clone::clone)
    }
}

/// Slices of rows on the device.
#[derive(Debug)]
pub(crate) struct Slices {
    pub(crate) offsets: Memory,
    pub(crate) cols: Memory,
    pub(crate) values: Memory,
    pub(crate) entries: u64,
    pub(crate) convert_ms: f64,
}

/// Dense blocks on the device.
#[derive(Debug)]
pub(crate) struct BlocksOnDevice {
    pub(crate) size: usize,
    pub(crate) count: usize,
    pub(crate) offsets: Memory,
    pub(crate) cols: Memory,
    pub(crate) values: Memory,
    pub(crate) convert_ms: f64,
}

impl<V: RealElement> Task<'_, V> {
    /// Entries of x and y.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        match self.operation {
            Operation::NonTranspose | Operation::Symmetric => (self.a.num_cols(), self.a.num_rows()),
            Operation::Transpose => (self.a.num_rows(), self.a.num_cols()),
        }
    }

    /// Bytes of x once and y once, and y once more where it is read.
    pub(crate) fn vector_bytes(&self) -> u64 {
        let (x, y) = self.lengths();
        let passes = if self.beta == 0.0 { 1 } else { 2 };
        (x + passes * y) as u64 * V::TYPE.size() as u64
    }

    /// The lower triangle on a device, and the milliseconds that this took.
    pub(crate) fn triangle(&self, device: &Device) -> Result<(Arc<DeviceMatrix>, f64), Absent> {
        let make = || {
            let started = Instant::now();
            let lower = SymmetricCsr::from_lower_of(Symmetry::Symmetric, self.a);
            let lower = lower.map_err(|error| Absent::Failed(error.to_string()))?;
            let matrix = DeviceMatrix::upload_symmetric(device, &lower, IndexType::U32)?;
            Ok((Arc::new(matrix), started.elapsed().as_secs_f64() * 1e3))
        };
        self.converted.triangle.get_or_make(make).cloned()
    }

    /// Bytes of row offsets, column indices and values as CSR with 32-bit offsets.
    pub(crate) fn csr_bytes(&self) -> u64 {
        DeviceMatrix::predict_bytes(self.a.num_rows(), self.a.nnz(), V::TYPE, IndexType::U32, IndexType::U32)
    }
}

/// How many roundings a term of a row of so many entries passes through at most.
pub(crate) type Depth<'t> = Box<dyn Fn(u64) -> u64 + Sync + 't>;

/// A contender that is ready.
pub(crate) struct Prepared<'t, V> {
    pub(crate) product: Product<'t, V>,
    pub(crate) facts: Facts,
    pub(crate) depth: Depth<'t>,
}

/// Writes y, given x.
pub(crate) type DeviceProduct<'t, V> = Box<dyn FnMut(&Vector<V>, &mut Vector<V>) -> Result<(), String> + 't>;

/// The same on the host.
pub(crate) type HostProduct<'t, V> = Box<dyn FnMut(&[V], &mut [V]) -> Result<(), String> + 't>;

/// Computes the product once.
pub(crate) enum Product<'t, V> {
    /// On the device, launched and not waited for.
    OnDevice(DeviceProduct<'t, V>),
    /// On the host.
    OnHost(HostProduct<'t, V>),
}

/// What is known of a contender when it is ready.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) prepare_ms: Option<f64>,
    pub(crate) convert_ms: Option<f64>,
    pub(crate) compile_ms: Option<f64>,
    pub(crate) load_ms: Option<f64>,
    pub(crate) extra_bytes: u64,
    pub(crate) moved_bytes: u64,
    /// Whether the same bits are promised; `None` where that is to be seen.
    pub(crate) deterministic: Option<bool>,
    pub(crate) occupancy: Option<f64>,
    pub(crate) registers: Option<u32>,
    /// Parameters that followed from the matrix, with `;` between them.
    pub(crate) params: String,
}

/// Takes part in the measurement of a matrix.
pub(crate) trait Contender<V: RealElement> {
    /// `ours:csr_vector`.
    fn name(&self) -> &str;

    /// Parameters, `key=value` with `;` between them.
    fn params(&self) -> &str;

    /// Gets ready; what that costs is in the facts.
    fn prepare<'t>(&'t self, task: &'t Task<'_, V>) -> Result<Prepared<'t, V>, Absent>;
}

/// Roundings of a term where nothing is known of the order of a sum: the product, the additions of all others, alpha,
/// beta and their sum, and a few for sums of parts that are split and joined again.
pub(crate) fn any_order_depth(row_nnz: u64) -> u64 {
    row_nnz + 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_found_no_room_is_made_again() {
        let no_room = || Absent::NoRoom("full".into());
        let made = MadeOnce::default();
        assert_eq!(made.get_or_make(|| Err(no_room())), Err(no_room()));
        assert_eq!(made.get_or_make(|| Ok(1)), Ok(&1));
        assert_eq!(made.get_or_make(|| Ok(2)), Ok(&1));
        let skipped = || Absent::Skipped("too much fill".into());
        let refused = MadeOnce::default();
        assert_eq!(refused.get_or_make(|| Err(skipped())), Err(skipped()));
        assert_eq!(refused.get_or_make(|| Ok(1)), Err(skipped()));
    }
}
