//! The matrix as a kernel gets it: what `--storage` says.

use std::path::Path;
use std::sync::Arc;

use spmv_runtime::codegen::{Features, KernelConfig, Operation, StorageFormat, Types};
use spmv_runtime::matrix::{CscMatrix, CsrMatrix, SymmetricCsr, features, features_of_transpose};
use spmv_runtime::{Device, DeviceMatrix, DeviceOffset, Element, Error, Fingerprint, MatrixSource};

use crate::failure::{Failure, Kind};
use crate::reading;

#[derive(Debug, clap::Args)]
pub struct StorageArgs {
    /// How the kernel gets the matrix: by rows, by columns, or the lower triangle alone of one that is symmetric,
    /// skew-symmetric or hermitian
    #[arg(long, value_name = "csr|csc|symmetric", default_value = "csr", hide_possible_values = true)]
    pub storage: Storage,
}

/// What `--storage` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Storage {
    Csr,
    Csc,
    Symmetric,
}

/// The matrix as a kernel gets it, beside the whole of it by rows.
pub enum Stored<V, O> {
    ByRows,
    ByColumns(CscMatrix<V, O>),
    Triangle(SymmetricCsr<V, O>),
}

/// What came of reading, and the milliseconds that it took.
pub struct Read<V, O> {
    pub by_rows: CsrMatrix<V, O>,
    pub stored: Stored<V, O>,
    pub ms: f64,
}

impl Storage {
    pub fn read<V: Element, O: DeviceOffset>(self, path: &Path) -> Result<Read<V, O>, Failure> {
        if self == Storage::Symmetric {
            let (triangle, ms) = reading::read_symmetric::<V, O>(path)?;
            return Ok(Read { by_rows: triangle.to_csr()?, stored: Stored::Triangle(triangle), ms });
        }
        let (a, ms) = reading::read::<V, O>(path)?;
        let stored = match self {
            Storage::Csc => Stored::ByColumns(CscMatrix::from_csr(&a)?),
            _ => Stored::ByRows,
        };
        Ok(Read { by_rows: a, stored, ms })
    }

    /// Refuses kernels for one triangle where they would get the whole matrix.
    pub fn check(self, config: &KernelConfig) -> Result<(), Failure> {
        if self != Storage::Csr || !config.operation().is_of_triangle() {
            return Ok(());
        }
        let (spec, operation) = (config.algorithm().spec(), config.operation());
        let who = match spec.takes_a_copy(operation) {
            true => format!("{} with operation = {operation}", spec.name),
            false => spec.name.to_owned(),
        };
        let message = format!("{who} multiplies with one triangle of a matrix");
        Err(Failure::new(Kind::Usage, message).help("with --storage symmetric it gets one"))
    }
}

/// What a kernel computes with the arrays of a matrix in this storage, for the operation on the matrix.
pub fn of_arrays(storage: StorageFormat, operation: Operation) -> Result<Operation, Failure> {
    storage.of_arrays(operation).ok_or_else(|| {
        let message = format!("there is no {operation} product of a matrix in {storage} storage");
        Failure::new(Kind::Usage, message).help(match (storage, operation) {
            (StorageFormat::SkewSymmetric, Operation::Transpose) => {
                "leave out --transpose and --set operation, and negate --alpha: the transpose is -A"
            }
            (StorageFormat::Hermitian, Operation::Transpose) => {
                "leave out --storage, or --transpose for the conjugate transpose"
            }
            (StorageFormat::Csr, operation) if operation.is_of_triangle() => {
                "leave out --set operation; with --storage symmetric a kernel gets one triangle"
            }
            _ => "leave out --transpose and --set operation",
        })
    })
}

impl<V: Element, O: DeviceOffset> Stored<V, O> {
    pub fn format(&self) -> StorageFormat {
        match self {
            Stored::ByRows => StorageFormat::Csr,
            Stored::ByColumns(a) => a.storage(),
            Stored::Triangle(a) => a.storage(),
        }
    }

    /// The features of the arrays, or of their transpose where that is multiplied with; of the whole matrix where a triangle is
    /// stored.
    pub fn features(&self, by_rows: &CsrMatrix<V, O>, of_arrays: Operation) -> Features {
        let features = match of_arrays {
            Operation::Transpose => features_of_transpose,
            _ => features,
        };
        match self {
            Stored::ByRows => features(by_rows),
            Stored::ByColumns(a) => features(a.transpose()),
            Stored::Triangle(_) => features(by_rows),
        }
    }

    /// The fingerprint of the arrays, with offsets as they are.
    pub fn fingerprint(&self, by_rows: &CsrMatrix<V, O>) -> Fingerprint {
        match self {
            Stored::ByRows => Fingerprint::of(by_rows, O::TYPE),
            Stored::ByColumns(a) => Fingerprint::of(a.transpose(), O::TYPE),
            Stored::Triangle(a) => Fingerprint::of(a.lower(), O::TYPE),
        }
    }

    pub fn upload(
        &self,
        device: &Device,
        by_rows: &CsrMatrix<V, O>,
        types: Types,
    ) -> Result<Arc<DeviceMatrix>, Error> {
        match self {
            Stored::ByRows => by_rows.to_device(device, types),
            Stored::ByColumns(a) => a.to_device(device, types),
            Stored::Triangle(a) => a.to_device(device, types),
        }
    }
}
