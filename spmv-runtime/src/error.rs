//! What can go wrong between a matrix and a product, and what to do about it.

use std::sync::Arc;

use spmv_codegen::{ConfigError, IndexType, Operation, Slots, StorageFormat, ValueType};
use spmv_matrix::MatrixError;

use crate::nvrtc::{CompileError, NvrtcError};
use crate::scalar::{Scalar, numbers};

/// What a fault leaves, and what helps.
const LOST: &str = "nothing on it can be used any more; start a new process and open the device there";

/// An error of the runtime.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration is not allowed.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The matrix is not valid.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    /// NVRTC cannot be used.
    #[error(transparent)]
    Nvrtc(#[from] NvrtcError),
    /// NVRTC refused the source.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// There is no usable CUDA device.
    #[error("no CUDA device: {reason}; {help}")]
    NoDevice {
        /// What was looked for and what was found.
        reason: String,
        /// What to do.
        help: String,
    },
    /// There is a driver, and it does not start: what it would say of devices is not known.
    #[error("the CUDA driver does not start: cuInit failed with {name}, error {code} ({message}); {help}")]
    DriverNotStarted {
        /// The driver's number of the error.
        code: u32,
        /// The driver's name of the error, for example `CUDA_ERROR_SYSTEM_DRIVER_MISMATCH`.
        name: String,
        /// The driver's description.
        message: String,
        /// What to do.
        help: &'static str,
    },
    /// The driver reported an error that is not one of the others.
    #[error("{call} failed: {name} ({message})")]
    Driver {
        /// What was being done.
        call: &'static str,
        /// The driver's name of the error, for example `CUDA_ERROR_INVALID_VALUE`.
        name: String,
        /// The driver's description.
        message: String,
    },
    /// A kernel faulted, or the hardware did, and the device is lost to the process: what comes after is [`Error::DeviceLost`]. A GPU runs behind
    /// the process, so the call that saw it may be a later one than the one that launched the kernel.
    #[error("{call} failed: {name} ({message}){}; the device is lost, and {LOST}", after(kernel.as_deref()))]
    Fault {
        /// What was being done when the fault was seen.
        call: &'static str,
        /// The driver's name of the error, for example `CUDA_ERROR_ILLEGAL_ADDRESS`.
        name: String,
        /// The driver's description.
        message: String,
        /// The kernel that was launched last: on the stream of the call, or on the device where nothing was on that one.
        kernel: Option<Arc<str>>,
    },
    /// An earlier call saw a fault, [`Error::Fault`], and nothing runs on the device any more in this process.
    #[error("the device is lost since {name}{}; {LOST}", after(kernel.as_deref()))]
    DeviceLost {
        /// The driver's name of the fault.
        name: String,
        /// The kernel that was launched last before it was seen.
        kernel: Option<Arc<str>>,
    },
    /// A kernel faulted on the simulated device, which stays usable.
    #[error(transparent)]
    SimulatedFault(Box<ptx_sim::Fault>),
    /// The device has too little memory. Nothing was changed, and the device stays usable.
    #[error("{what} needs {needed} bytes of device memory and {free} are free")]
    OutOfMemory {
        /// What was to be placed there.
        what: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
    },
    /// The algorithm's layout of this matrix would be mostly fill: more than [`Slots::MAX_SLOTS_PER_NONZERO`] slots a
    /// nonzero, and more than [`Slots::MAX_FILL_BYTES`] of it. It was not made.
    #[error(
        "{algorithm} would store {slots} slots or more for {nnz} nonzeros: {bytes} bytes, and the matrix takes \
         {matrix_bytes} in CSR; a layout of more than {} slots a nonzero may hold {} bytes of fill; these store \
         none, or little: {}",
        Slots::MAX_SLOTS_PER_NONZERO, Slots::MAX_FILL_BYTES, alternatives.join(", ")
    )]
    Fill {
        /// The algorithm.
        algorithm: &'static str,
        /// Slots that the layout would have, at least.
        slots: u64,
        /// Nonzeros of the matrix.
        nnz: u64,
        /// Bytes of the slots.
        bytes: u64,
        /// Bytes of the matrix as it is stored.
        matrix_bytes: u64,
        /// Algorithms that suit it.
        alternatives: Vec<&'static str>,
    },
    /// The algorithm's layout is for matrices of one kind, and this is none. It was not made.
    #[error("{number} or more parts of the matrix are not what {algorithm} is set for, {wanted}")]
    Misfit {
        /// The algorithm.
        algorithm: &'static str,
        /// Parts of the matrix that do not fit; there may be more.
        number: u64,
        /// What they would have to be.
        wanted: &'static str,
    },
    /// The algorithm does not compute this operation from the arrays of the matrix.
    #[error("{}", not_computed(algorithm, *operation, *storage, algorithms))]
    Operation {
        /// The algorithm.
        algorithm: &'static str,
        /// op(A) that was asked for.
        operation: Operation,
        /// How the matrix is stored.
        storage: StorageFormat,
        /// The algorithms that compute it; none where there is no such product.
        algorithms: Vec<&'static str>,
    },
    /// No kernel keeps the constraints that a choice is under.
    #[error(
        "no kernel for the {operation} product keeps the constraints{}",
        refused.as_ref().map_or("; allow more extra bytes or sums in any order, whichever they limit".into(), |refused| format!(": {refused}"))
    )]
    Constraints {
        /// op(A) that was asked for.
        operation: Operation,
        /// The last that was asked, and why it does not; `None` where none was.
        refused: Option<String>,
    },
    /// The algorithm is for matrices that are stored in another way: with both triangles, or with one.
    #[error(
        "{algorithm} is not for a matrix in {storage} storage, of which {} stored; for it: {}",
        if matches!(storage, StorageFormat::Csr | StorageFormat::Csc) { "both triangles are" } else { "one triangle is" },
        algorithms.join(", ")
    )]
    Storage {
        /// The algorithm.
        algorithm: &'static str,
        /// How the matrix is stored.
        storage: StorageFormat,
        /// The algorithms for a matrix that is stored so.
        algorithms: Vec<&'static str>,
    },
    /// A vector has another length than the matrix asks for.
    #[error("{what} has {got} entries and must have {expected}")]
    Length {
        /// Which vector.
        what: &'static str,
        /// The length that fits.
        expected: usize,
        /// The length given.
        got: usize,
    },
    /// Values have another type than the configuration says.
    #[error(
        "{what} holds {got} and the kernel was generated for {expected}; set `{what}` in the configuration, or convert"
    )]
    ValueType {
        /// What holds them: `value`, `x` or `y`.
        what: &'static str,
        /// The configuration's type.
        expected: ValueType,
        /// The type given.
        got: ValueType,
    },
    /// New values have another type than those of the matrix.
    #[error("the matrix on the device holds {expected} and the new values are {got}; convert them")]
    NewValueType {
        /// The type of the matrix's values.
        expected: ValueType,
        /// The type given.
        got: ValueType,
    },
    /// Row offsets have another type than the configuration says.
    #[error(
        "the matrix on the device has {got} offsets and the kernel was generated for {expected}; set `offset` in the configuration"
    )]
    OffsetType {
        /// The configuration's type.
        expected: IndexType,
        /// The type given.
        got: IndexType,
    },
    /// Column indices have another type than the configuration says.
    #[error(
        "the matrix on the device has {got} column indices and the kernel was generated for {expected}; set `index` in the configuration"
    )]
    IndexType {
        /// The configuration's type.
        expected: IndexType,
        /// The type given.
        got: IndexType,
    },
    /// The matrix has more columns than the configuration's indices tell apart; in CSC and for a transposed copy rows count.
    #[error("the matrix has {found} {what} and 16-bit indices serve up to {allowed} here; set `index = u32`")]
    IndexRange {
        /// `rows` or `columns`.
        what: &'static str,
        /// How many the matrix has.
        found: u64,
        /// The most that there may be.
        allowed: u64,
    },
    /// The matrix has more nonzeros than the configuration's offsets can count.
    #[error("the matrix has {nnz} nonzeros and 32-bit offsets serve up to 2147483647; set `offset = u64`")]
    OffsetRange {
        /// Nonzeros of the matrix.
        nnz: u64,
    },
    /// The values of the matrix were replaced, and the plan's layout holds copies of those before.
    #[error(
        "the values of the matrix were replaced, and {algorithm} keeps copies of them; `refresh` the plan first, or where its \
         layout cannot have the new ones make another, by `Constraints::values_change`"
    )]
    StaleValues {
        /// The algorithm.
        algorithm: &'static str,
    },
    /// Values come with another structure than the matrix has.
    #[error(
        "the matrix on the device has {} rows, {} columns and {} entries, and values come with {}; upload that matrix",
        expected.0,
        expected.1,
        expected.2,
        match got == expected {
            true => "as many that are elsewhere".to_owned(),
            false => format!("another structure ({} x {}, {} entries)", got.0, got.1, got.2),
        }
    )]
    Structure {
        /// Rows, columns and entries of the matrix.
        expected: (usize, usize, usize),
        /// Those of the matrix that the values come with.
        got: (usize, usize, usize),
    },
    /// A matrix or vector lives on another device than the plan. Each that is opened is another, of the same GPU too.
    #[error(
        "{what} lives on another device than {with}; upload it to that one, or share clones of one `Device`"
    )]
    OtherDevice {
        /// What was passed.
        what: &'static str,
        /// What it was passed to.
        with: &'static str,
    },
    /// CUDA's default stream of each thread, which is another one on each.
    #[error(
        "the per-thread default stream is another one on each thread, so nothing orders products on it; allowed: any other stream, as `CudaContext::new_stream` makes"
    )]
    PerThreadStream,
    /// α or β differs from what the kernel was generated for.
    #[error(
        "the kernel was generated for {what} = {expected} and the product asks for {got}; set `{what} = any` in the configuration"
    )]
    Scaling {
        /// `alpha` or `beta`.
        what: &'static str,
        /// The configuration's value.
        expected: f64,
        /// The value given.
        got: Scalar,
    },
    /// α or β is no number of the type that sums are in.
    #[error("{what} = {got} is no number of type {accumulator}, which sums are in; allowed: {}", numbers(*accumulator))]
    ScalarType {
        /// `alpha` or `beta`.
        what: &'static str,
        /// The value given.
        got: Scalar,
        /// The type of sums.
        accumulator: ValueType,
    },
    /// The kernel reads α or β from device memory, and the product was given a number.
    #[error(
        "the kernel reads {what} from device memory and the product was given {got}; pass a reference to a vector of one {accumulator}, or set `{what} = any` in the configuration"
    )]
    ScalingIsOnDevice {
        /// `alpha` or `beta`.
        what: &'static str,
        /// The number given.
        got: Scalar,
        /// The type of sums, which the vector must hold.
        accumulator: ValueType,
    },
    /// The kernel is passed α or β by value or knows it, and the product was given a vector.
    #[error(
        "the kernel was generated for {what} = {configured} and the product was given a vector; pass a number, or set `{what} = device` in the configuration"
    )]
    ScalingIsNumber {
        /// `alpha` or `beta`.
        what: &'static str,
        /// What the configuration says of it.
        configured: &'static str,
    },
    /// The vector that α or β is read from holds another type than sums are in.
    #[error("the vector of {what} holds {got} and must hold {expected}, which sums are in")]
    ScalingVectorType {
        /// `alpha` or `beta`.
        what: &'static str,
        /// The type of sums.
        expected: ValueType,
        /// The type given.
        got: ValueType,
    },
    /// α or β would scale a product that is not one of sums of products.
    #[error(
        "{what} = {got} would scale a product over {over}, which is stored or reduced with y; allowed: {allowed}"
    )]
    SemiringScaling {
        /// `alpha` or `beta`.
        what: &'static str,
        /// What the product reduces with: a semiring, or functions of the user's.
        over: &'static str,
        /// The value given.
        got: f64,
        /// The values that are allowed.
        allowed: &'static str,
    },
    /// α or β would scale what is stored with an epilogue or a dot.
    #[error(
        "{what} = {got} has no part in what is stored with an epilogue or a dot; an epilogue can say it itself; allowed: {allowed}"
    )]
    EpilogueScaling {
        /// `alpha` or `beta`.
        what: &'static str,
        /// The value given.
        got: f64,
        /// The value that is allowed.
        allowed: &'static str,
    },
    /// The kernel's epilogue and dot take no such vector or scalar.
    #[error(
        "the kernel takes no {kind} `{name}`; {}",
        if allowed.is_empty() { "it takes none".into() } else { format!("it takes {}", allowed.join(", ")) }
    )]
    UnknownOperand {
        /// `vector` or `scalar`.
        kind: &'static str,
        /// The name that was given.
        name: String,
        /// The names of that kind that it takes.
        allowed: Vec<String>,
    },
    /// A vector or scalar that the kernel's epilogue or dot takes was not bound to the plan.
    #[error(
        "the kernel takes the {kind} `{name}` and none was bound; call `{method}(\"{name}\", …)` before the product"
    )]
    UnboundOperand {
        /// `vector` or `scalar`.
        kind: &'static str,
        /// The name of the parameter.
        name: String,
        /// What binds it.
        method: &'static str,
    },
    /// A vector that is bound to the kernel has another length than y.
    #[error("the vector `{name}` has {got} entries and must have {expected}, one a row")]
    OperandLength {
        /// The name of the parameter.
        name: String,
        /// Rows.
        expected: usize,
        /// The length given.
        got: usize,
    },
    /// A vector that is bound to the kernel holds another type than y.
    #[error("the vector `{name}` holds {got} and must hold {expected}, as y does")]
    OperandType {
        /// The name of the parameter.
        name: String,
        /// The type of y.
        expected: ValueType,
        /// The type given.
        got: ValueType,
    },
    /// A number for the kernel's epilogue or dot is none of the type that it computes in.
    #[error("the scalar `{name}` takes a number of type {expected}, and {got} is none")]
    OperandScalar {
        /// The name of the parameter.
        name: String,
        /// The type of sums.
        expected: ValueType,
        /// The number given.
        got: Scalar,
    },
    /// The product would write to a vector that its epilogue or dot reads.
    #[error(
        "y shares memory with the vector `{name}` that the kernel takes; an epilogue's parameter `y` is what it held before"
    )]
    OperandIsResult {
        /// The name of the parameter.
        name: String,
    },
    /// The compiled text lacks a kernel that a pass launches.
    #[error(
        "the compiled text has no kernel `{kernel}`; it must have one of this name, `extern \"C\" __global__`"
    )]
    MissingKernel {
        /// The kernel.
        kernel: String,
    },
    /// A kernel's blocks need more shared memory than the device gives to a block.
    #[error(
        "{kernel} needs {needed} bytes of shared memory a block and the device has {available}; lower its tile"
    )]
    SharedMemory {
        /// The kernel.
        kernel: String,
        /// Bytes that it needs beside its static ones.
        needed: u32,
        /// Bytes that a block may have.
        available: u32,
    },
    /// A launch would need more blocks than CUDA allows.
    #[error("{kernel} would need {blocks} blocks and CUDA allows 2147483647; raise threads_per_block")]
    GridTooLarge {
        /// The kernel.
        kernel: String,
        /// Blocks needed.
        blocks: u64,
    },
}

/// What kind of thing went wrong; the command's exit code follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A configuration or call that is not allowed.
    Usage,
    /// Input data that is not valid.
    Input,
    /// The machine lacks something: driver, device, NVRTC.
    Environment,
    /// Too little memory.
    Memory,
    /// The GPU faulted.
    Fault,
}

impl Error {
    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Config(_)
            | Error::Operation { .. }
            | Error::Constraints { .. }
            | Error::Fill { .. }
            | Error::Misfit { .. }
            | Error::Storage { .. }
            | Error::Length { .. }
            | Error::ValueType { .. }
            | Error::NewValueType { .. }
            | Error::OffsetType { .. }
            | Error::OffsetRange { .. }
            | Error::IndexType { .. }
            | Error::IndexRange { .. }
            | Error::StaleValues { .. }
            | Error::Structure { .. }
            | Error::OtherDevice { .. }
            | Error::PerThreadStream
            | Error::Scaling { .. }
            | Error::ScalarType { .. }
            | Error::ScalingIsOnDevice { .. }
            | Error::ScalingIsNumber { .. }
            | Error::ScalingVectorType { .. }
            | Error::SemiringScaling { .. }
            | Error::EpilogueScaling { .. }
            | Error::UnknownOperand { .. }
            | Error::UnboundOperand { .. }
            | Error::OperandLength { .. }
            | Error::OperandType { .. }
            | Error::OperandScalar { .. }
            | Error::OperandIsResult { .. }
            | Error::MissingKernel { .. }
            | Error::SharedMemory { .. }
            | Error::GridTooLarge { .. } => ErrorKind::Usage,
            Error::Matrix(_) => ErrorKind::Input,
            Error::Nvrtc(_)
            | Error::Compile(_)
            | Error::NoDevice { .. }
            | Error::DriverNotStarted { .. }
            | Error::Driver { .. } => ErrorKind::Environment,
            Error::OutOfMemory { .. } => ErrorKind::Memory,
            Error::Fault { .. } | Error::DeviceLost { .. } | Error::SimulatedFault(_) => ErrorKind::Fault,
        }
    }

    /// Whether it says no more than that a kernel does not go with this matrix on this device: another one may.
    pub fn is_of_one_kernel(&self) -> bool {
        matches!(
            self,
            Error::Fill { .. }
                | Error::IndexRange { .. }
                | Error::Misfit { .. }
                | Error::OutOfMemory { .. }
                | Error::SharedMemory { .. }
        )
    }
}

fn not_computed(
    algorithm: &str,
    operation: Operation,
    storage: StorageFormat,
    algorithms: &[&str],
) -> String {
    let product = format!("the {operation} product of a matrix in {storage}");
    if algorithms.contains(&algorithm) {
        let of_arrays = storage.of_arrays(operation).unwrap_or(operation);
        return format!(
            "this configuration of {algorithm} does not compute {product}; set `operation = {of_arrays}` in it"
        );
    }
    if !algorithms.is_empty() {
        return format!("{algorithm} does not compute {product}; these do: {}", algorithms.join(", "));
    }
    let products = Operation::ALL.iter().filter(|operation| storage.of_arrays(**operation).is_some());
    let products: Vec<_> = products.map(ToString::to_string).collect();
    let instead = match (storage, operation) {
        (StorageFormat::SkewSymmetric, Operation::Transpose) => ", with -alpha for the transpose",
        (StorageFormat::Hermitian, Operation::Transpose) => ", which is that of the conjugate transpose too",
        _ => "",
    };
    format!("no algorithm computes {product}; allowed: {}{instead}", products.join(", "))
}

fn after(kernel: Option<&str>) -> String {
    kernel.map_or_else(String::new, |kernel| format!(" after the kernel `{kernel}`"))
}
