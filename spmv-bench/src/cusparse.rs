//! cuSPARSE at its best: every algorithm and format, with and without preprocess, a descriptor of its own for each.

mod library;

use std::ffi::{c_int, c_void};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::ptr::null_mut;
use std::time::Instant;

use spmv_runtime::RealElement;
use spmv_runtime::codegen::ValueType;
use spmv_runtime::matrix::CsrMatrix;

use crate::contender::{
    Absent, BlocksOnDevice, Contender, Facts, Prepared, Product, Slices, Task, any_order_depth,
};
use crate::instruments::{Instruments, Memory};
use crate::layout;
use crate::request::Operation;
use library::{CallError, Handle, Library, Op, OpSizes};

/// Enumerators of `cusparse.h` and `library_types.h`.
const INDEX_32I: c_int = 2;
const INDEX_BASE_ZERO: c_int = 0;
const ORDER_ROW: c_int = 2;
const OPERATION_NON_TRANSPOSE: c_int = 0;
const OPERATION_TRANSPOSE: c_int = 1;
const R_16F: c_int = 2;
const R_16BF: c_int = 14;
const R_32F: c_int = 0;
const R_64F: c_int = 1;

/// Rows of a slice of sliced ELLPACK.
const ROWS_PER_SLICE: usize = 32;

/// The most entries, padding included, over the nonzeros that slices are made for.
const MAX_PADDING: f64 = 3.0;

/// The most entries over the nonzeros that blocks are made for.
const MAX_FILL: f64 = 1.5;

const BLOCK_SIZES: RangeInclusive<usize> = 2..=8;

/// How the matrix is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Csr,
    /// The arrays of A as CSR are those of its transpose as CSC.
    Csc,
    Coo,
    SlicedEll,
    Blocks,
    /// CSR through the plans of `cusparseSpMVOp`.
    Op,
}

/// A way to compute the product, before it has a library.
#[derive(Debug)]
struct Path {
    name: &'static str,
    format: Format,
    /// `cusparseSpMVAlg_t`, or `cusparseSpMVOpAlg_t` for plans.
    algorithm: c_int,
    preprocess: bool,
    params: &'static str,
    non_transpose: bool,
    transpose: bool,
}

const fn path(name: &'static str, format: Format, algorithm: c_int) -> Path {
    Path { name, format, algorithm, preprocess: false, params: "", non_transpose: true, transpose: true }
}

const PATHS: &[Path] = &[
    path("cusparse:csr_alg1", Format::Csr, 2),
    Path { preprocess: true, ..path("cusparse:csr_alg1", Format::Csr, 2) },
    path("cusparse:csr_alg2", Format::Csr, 3),
    Path { preprocess: true, ..path("cusparse:csr_alg2", Format::Csr, 3) },
    Path { non_transpose: false, ..path("cusparse:csc", Format::Csc, 0) },
    path("cusparse:coo_alg1", Format::Coo, 1),
    path("cusparse:coo_alg2", Format::Coo, 4),
    Path { transpose: false, ..path("cusparse:sell", Format::SlicedEll, 5) },
    Path { transpose: false, preprocess: true, ..path("cusparse:sell", Format::SlicedEll, 5) },
    Path { transpose: false, ..path("cusparse:bsr", Format::Blocks, 6) },
    Path { transpose: false, params: ";alg=1", ..path("cusparse:op", Format::Op, 1) },
    Path { transpose: false, params: ";alg=2", ..path("cusparse:op", Format::Op, 2) },
];

/// The names of all contenders.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    PATHS.iter().map(|path| path.name)
}

/// The libraries of a run.
pub(crate) struct Libraries {
    loaded: Vec<Loaded>,
}

struct Loaded {
    library: Library,
    handle: Handle,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the handle came from this library and is destroyed once.
        let _ = unsafe { (self.library.destroy)(self.handle) };
    }
}

impl Libraries {
    /// Loads the named libraries, or the one that the loader finds, for use on the instruments' stream. The notes say
    /// what is missing.
    pub(crate) fn load(named: &[PathBuf], instruments: &Instruments) -> (Libraries, Vec<String>) {
        let (libraries, mut notes) = library::load_all(named);
        let mut loaded = Vec::new();
        for library in libraries {
            match Loaded::new(library, instruments) {
                Ok(ready) => loaded.push(ready),
                Err(problem) => notes.push(format!("cuSPARSE is left out: {problem}")),
            }
        }
        (Libraries { loaded }, notes)
    }

    pub(crate) fn versions(&self) -> Vec<String> {
        self.loaded.iter().map(|loaded| loaded.library.version_text()).collect()
    }

    /// Every way of every library to compute an operation.
    pub(crate) fn contenders(&self, operation: Operation) -> Vec<Way<'_>> {
        let fits = |path: &&Path| match operation {
            Operation::NonTranspose | Operation::Symmetric => path.non_transpose,
            Operation::Transpose => path.transpose,
        };
        let ways = |loaded| PATHS.iter().filter(fits).map(move |path| Way::new(path, loaded));
        self.loaded.iter().flat_map(ways).collect()
    }
}

impl Loaded {
    fn new(library: Library, instruments: &Instruments) -> Result<Loaded, String> {
        instruments.bind()?;
        let mut handle = null_mut();
        // SAFETY: one handle is written through a valid pointer; the stream is alive as long as the device.
        let made = unsafe {
            let created = library.check("cusparseCreate", (library.create)(&mut handle));
            created.and_then(|()| {
                library.check("cusparseSetStream", (library.set_stream)(handle, instruments.raw_stream()))
            })
        };
        match made {
            Ok(()) => Ok(Loaded { library, handle }),
            Err(error) => Err(error.into_text()),
        }
    }
}

/// One way of one library.
pub(crate) struct Way<'l> {
    path: &'static Path,
    loaded: &'l Loaded,
    params: String,
}

impl<'l> Way<'l> {
    pub(crate) fn name(&self) -> &'static str {
        self.path.name
    }

    fn new(path: &'static Path, loaded: &'l Loaded) -> Way<'l> {
        let preprocess = match path.format {
            Format::Op => "",
            _ if path.preprocess => ";preprocess=yes",
            _ => ";preprocess=no",
        };
        let params = format!("library={}{preprocess}{}", loaded.library.version_text(), path.params);
        Way { path, loaded, params }
    }
}

/// A descriptor, destroyed when dropped.
struct Owned {
    handle: Handle,
    destroy: unsafe extern "C" fn(Handle) -> c_int,
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle was made by the library of `destroy`, which stays loaded, and is destroyed once.
            let _ = unsafe { (self.destroy)(self.handle) };
        }
    }
}

/// alpha or beta in the compute type; its address is what cuSPARSE takes.
enum Coefficient {
    F32(f32),
    F64(f64),
}

impl Coefficient {
    fn new(value: ValueType, number: f64) -> Coefficient {
        match value.narrowest_accumulator() {
            ValueType::F32 => Coefficient::F32(number as f32),
            _ => Coefficient::F64(number),
        }
    }

    fn pointer(&self) -> *const c_void {
        match self {
            Coefficient::F32(number) => std::ptr::from_ref(number).cast(),
            Coefficient::F64(number) => std::ptr::from_ref(number).cast(),
        }
    }
}

fn absent(error: CallError) -> Absent {
    match error {
        CallError::NotSupported(text) => Absent::Skipped(text),
        CallError::NoRoom(text) => Absent::NoRoom(text),
        CallError::Failed(text) => Absent::Failed(text),
    }
}

fn pointer(address: u64) -> *mut c_void {
    address as *mut c_void
}

/// The matrix as cuSPARSE knows it, and what storing it so costs.
struct Described {
    matrix: Owned,
    convert_ms: Option<f64>,
    extra_bytes: u64,
    matrix_bytes: u64,
    params: String,
}

impl Way<'_> {
    fn describe<V: RealElement>(
        &self,
        task: &Task<'_, V>,
        instruments: &Instruments,
    ) -> Result<Described, Absent> {
        let library = &self.loaded.library;
        let Some(on_device) = &task.device else {
            return Err(Absent::Skipped("cuSPARSE needs a GPU".into()));
        };
        let (row_offsets, col_indices, values) = on_device.matrix.addresses();
        let (rows, cols, nnz) = (task.a.num_rows() as i64, task.a.num_cols() as i64, task.a.nnz() as i64);
        let value = cuda_type(V::TYPE);
        let mut matrix = Owned { handle: null_mut(), destroy: library.destroy_matrix };
        let mut described = Described {
            matrix: Owned { handle: null_mut(), destroy: library.destroy_matrix },
            convert_ms: None,
            extra_bytes: 0,
            matrix_bytes: task.csr_bytes(),
            params: String::new(),
        };
        // SAFETY: every call below writes one descriptor through a valid pointer. The arrays are those of the task's
        // matrix and of formats that live as long as the task; 32-bit offsets and indices are below 2^31, so they are
        // the same numbers when they are signed.
        let (call, status) = unsafe {
            match self.path.format {
                Format::Csr | Format::Op => (
                    "cusparseCreateCsr",
                    (library.create_csr)(
                        &mut matrix.handle,
                        rows,
                        cols,
                        nnz,
                        pointer(row_offsets),
                        pointer(col_indices),
                        pointer(values),
                        INDEX_32I,
                        INDEX_32I,
                        INDEX_BASE_ZERO,
                        value,
                    ),
                ),
                Format::Csc => (
                    "cusparseCreateCsc",
                    (library.create_csc)(
                        &mut matrix.handle,
                        cols,
                        rows,
                        nnz,
                        pointer(row_offsets),
                        pointer(col_indices),
                        pointer(values),
                        INDEX_32I,
                        INDEX_32I,
                        INDEX_BASE_ZERO,
                        value,
                    ),
                ),
                Format::Coo => {
                    let made = task.converted.coo_rows.get_or_make(|| coo_rows(task, instruments));
                    let (coo_rows, convert_ms) = made?;
                    described.convert_ms = Some(*convert_ms);
                    described.extra_bytes = coo_rows.bytes();
                    described.matrix_bytes = task.a.nnz() as u64 * (8 + V::TYPE.size() as u64);
                    (
                        "cusparseCreateCoo",
                        (library.create_coo)(
                            &mut matrix.handle,
                            rows,
                            cols,
                            nnz,
                            pointer(coo_rows.address()),
                            pointer(col_indices),
                            pointer(values),
                            INDEX_32I,
                            INDEX_BASE_ZERO,
                            value,
                        ),
                    )
                }
                Format::SlicedEll => {
                    let Some(create) = library.create_sliced_ell else {
                        return Err(Absent::Skipped("this cuSPARSE has no sliced ELLPACK".into()));
                    };
                    let slices = task.converted.sell.get_or_make(|| slices(task, instruments))?;
                    described.convert_ms = Some(slices.convert_ms);
                    described.extra_bytes =
                        slices.offsets.bytes() + slices.cols.bytes() + slices.values.bytes();
                    described.matrix_bytes = described.extra_bytes;
                    (
                        "cusparseCreateSlicedEll",
                        create(
                            &mut matrix.handle,
                            rows,
                            cols,
                            nnz,
                            slices.entries as i64,
                            ROWS_PER_SLICE as i64,
                            pointer(slices.offsets.address()),
                            pointer(slices.cols.address()),
                            pointer(slices.values.address()),
                            INDEX_32I,
                            INDEX_32I,
                            INDEX_BASE_ZERO,
                            value,
                        ),
                    )
                }
                Format::Blocks => {
                    let Some(create) = library.create_bsr else {
                        return Err(Absent::Skipped("this cuSPARSE has no generic blocks".into()));
                    };
                    let blocks = task.converted.blocks.get_or_make(|| blocks(task, instruments))?;
                    described.params = format!("block={}", blocks.size);
                    described.convert_ms = Some(blocks.convert_ms);
                    described.extra_bytes =
                        blocks.offsets.bytes() + blocks.cols.bytes() + blocks.values.bytes();
                    described.matrix_bytes = described.extra_bytes;
                    let size = blocks.size as i64;
                    (
                        "cusparseCreateBsr",
                        create(
                            &mut matrix.handle,
                            rows / size,
                            cols / size,
                            blocks.count as i64,
                            size,
                            size,
                            pointer(blocks.offsets.address()),
                            pointer(blocks.cols.address()),
                            pointer(blocks.values.address()),
                            INDEX_32I,
                            INDEX_32I,
                            INDEX_BASE_ZERO,
                            value,
                            ORDER_ROW,
                        ),
                    )
                }
            }
        };
        library.check(call, status).map_err(absent)?;
        described.matrix = matrix;
        Ok(described)
    }

    fn vector(&self, address: u64, len: usize, value: ValueType) -> Result<Owned, Absent> {
        let library = &self.loaded.library;
        let mut vector = Owned { handle: null_mut(), destroy: library.destroy_vector };
        // SAFETY: one descriptor is written through a valid pointer; the vector lives as long as the task.
        let status = unsafe {
            (library.create_vector)(&mut vector.handle, len as i64, pointer(address), cuda_type(value))
        };
        library.check("cusparseCreateDnVec", status).map_err(absent)?;
        Ok(vector)
    }
}

impl<V: RealElement> Contender<V> for Way<'_> {
    fn name(&self) -> &str {
        self.path.name
    }

    fn params(&self) -> &str {
        &self.params
    }

    fn prepare<'t>(&'t self, task: &'t Task<'_, V>) -> Result<Prepared<'t, V>, Absent> {
        let library = &self.loaded.library;
        let Some((on_device, instruments)) = task.device.as_ref().and_then(|on| Some((on, on.instruments?)))
        else {
            return Err(Absent::Skipped("cuSPARSE needs a GPU".into()));
        };
        instruments.bind().map_err(Absent::Failed)?;
        let described = self.describe(task, instruments)?;
        let (x_len, y_len) = task.lengths();
        let x = self.vector(on_device.x.address(), x_len, V::TYPE)?;
        let y = self.vector(on_device.y_address, y_len, V::TYPE)?;
        let coefficients =
            Box::new([Coefficient::new(V::TYPE, task.alpha), Coefficient::new(V::TYPE, task.beta)]);
        let mut facts = Facts {
            convert_ms: described.convert_ms,
            extra_bytes: described.extra_bytes,
            moved_bytes: described.matrix_bytes + task.vector_bytes(),
            params: described.params,
            ..Facts::default()
        };
        let call = Call {
            library,
            handle: self.loaded.handle,
            // The transpose as CSC is multiplied as it is.
            operation: match (task.operation, self.path.format) {
                (Operation::Transpose, Format::Csc) => OPERATION_NON_TRANSPOSE,
                (Operation::Transpose, _) => OPERATION_TRANSPOSE,
                (Operation::NonTranspose | Operation::Symmetric, _) => OPERATION_NON_TRANSPOSE,
            },
            algorithm: self.path.algorithm,
            compute: cuda_type(V::TYPE.narrowest_accumulator()),
            coefficients,
            matrix: described.matrix,
            x,
            y,
        };
        let product = match (self.path.format, &library.op) {
            (Format::Op, Err(why)) => return Err(Absent::Skipped(why.clone())),
            (Format::Op, Ok(op)) => call.planned(op, instruments, &mut facts)?,
            _ => call.usual(self.path.preprocess, instruments, &mut facts)?,
        };
        let bind = move || instruments.bind();
        let mut product = product;
        Ok(Prepared {
            product: Product::OnDevice(Box::new(move |_, _| {
                bind()?;
                product()
            })),
            facts,
            depth: Box::new(any_order_depth),
        })
    }
}

/// Everything that a product's calls take.
struct Call<'t> {
    library: &'t Library,
    handle: Handle,
    operation: c_int,
    algorithm: c_int,
    compute: c_int,
    coefficients: Box<[Coefficient; 2]>,
    matrix: Owned,
    x: Owned,
    y: Owned,
}

type Launch<'t> = Box<dyn FnMut() -> Result<(), String> + 't>;

impl<'t> Call<'t> {
    /// `cusparseSpMV`.
    fn usual(
        self,
        preprocess: bool,
        instruments: &'t Instruments,
        facts: &mut Facts,
    ) -> Result<Launch<'t>, Absent> {
        let library = self.library;
        let [alpha, beta] = [0, 1].map(|which: usize| self.coefficients[which].pointer());
        let mut bytes = 0usize;
        // SAFETY: handle, descriptors and coefficients are alive; one size is written through a valid pointer.
        let status = unsafe {
            (library.buffer_size)(
                self.handle,
                self.operation,
                alpha,
                self.matrix.handle,
                self.x.handle,
                beta,
                self.y.handle,
                self.compute,
                self.algorithm,
                &mut bytes,
            )
        };
        library.check("cusparseSpMV_bufferSize", status).map_err(absent)?;
        let buffer = instruments.allocate(bytes as u64).map_err(Absent::NoRoom)?;
        facts.extra_bytes += bytes as u64;
        if preprocess {
            let Some(preprocess) = library.preprocess else {
                return Err(Absent::Skipped("this cuSPARSE has no cusparseSpMV_preprocess".into()));
            };
            instruments.synchronize().map_err(Absent::Failed)?;
            let started = Instant::now();
            // SAFETY: as above; the buffer has the size that was asked for.
            let status = unsafe {
                preprocess(
                    self.handle,
                    self.operation,
                    alpha,
                    self.matrix.handle,
                    self.x.handle,
                    beta,
                    self.y.handle,
                    self.compute,
                    self.algorithm,
                    pointer(buffer.address()),
                )
            };
            library.check("cusparseSpMV_preprocess", status).map_err(absent)?;
            instruments.synchronize().map_err(Absent::Failed)?;
            facts.prepare_ms = Some(started.elapsed().as_secs_f64() * 1e3);
        }
        // Moved as a whole: a closure that named handles alone would copy them and leave their owners behind.
        let parts = (self, buffer);
        Ok(Box::new(move || {
            let (call, buffer) = &parts;
            // SAFETY: as above; x, y and the matrix live as long as the task, the rest as long as this closure.
            let status = unsafe {
                (library.multiply)(
                    call.handle,
                    call.operation,
                    call.coefficients[0].pointer(),
                    call.matrix.handle,
                    call.x.handle,
                    call.coefficients[1].pointer(),
                    call.y.handle,
                    call.compute,
                    call.algorithm,
                    pointer(buffer.address()),
                )
            };
            told(library, "cusparseSpMV", status)
        }))
    }

    /// `cusparseSpMVOp` with the usual epilogue: z <- alpha A x + beta y, where y and z are the same vector.
    fn planned(
        self,
        op: &'t Op,
        instruments: &'t Instruments,
        facts: &mut Facts,
    ) -> Result<Launch<'t>, Absent> {
        let library = self.library;
        let (handle, matrix, x, y) = (self.handle, self.matrix.handle, self.x.handle, self.y.handle);
        let mut bytes = 0usize;
        // SAFETY: handle and descriptors are alive; one size is written through a valid pointer.
        let status = unsafe {
            match op.sizes {
                OpSizes::WithAlgorithm { buffer_size, .. } => buffer_size(
                    handle,
                    self.operation,
                    matrix,
                    x,
                    y,
                    y,
                    self.compute,
                    self.algorithm,
                    &mut bytes,
                ),
                OpSizes::Without { buffer_size, .. } => {
                    buffer_size(handle, self.operation, matrix, x, y, y, self.compute, &mut bytes)
                }
            }
        };
        library.check("cusparseSpMVOp_bufferSize", status).map_err(absent)?;
        let buffer: Memory = instruments.allocate(bytes as u64).map_err(Absent::NoRoom)?;
        facts.extra_bytes += bytes as u64;
        instruments.synchronize().map_err(Absent::Failed)?;
        let started = Instant::now();
        let mut descr = Owned { handle: null_mut(), destroy: op.destroy_descr };
        // SAFETY: as above; the buffer has the size that was asked for and lives as long as the plan.
        let status = unsafe {
            match op.sizes {
                OpSizes::WithAlgorithm { create_descr, .. } => create_descr(
                    handle,
                    &mut descr.handle,
                    self.operation,
                    matrix,
                    x,
                    y,
                    y,
                    self.compute,
                    self.algorithm,
                    pointer(buffer.address()),
                ),
                OpSizes::Without { create_descr, .. } => create_descr(
                    handle,
                    &mut descr.handle,
                    self.operation,
                    matrix,
                    x,
                    y,
                    y,
                    self.compute,
                    pointer(buffer.address()),
                ),
            }
        };
        library.check("cusparseSpMVOp_createDescr", status).map_err(absent)?;
        instruments.synchronize().map_err(Absent::Failed)?;
        facts.prepare_ms = Some(started.elapsed().as_secs_f64() * 1e3);
        let started = Instant::now();
        let mut plan = Owned { handle: null_mut(), destroy: op.destroy_plan };
        // SAFETY: the descriptor is alive; no code means the usual epilogue.
        let status = unsafe { (op.create_plan)(handle, descr.handle, &mut plan.handle, std::ptr::null(), 0) };
        library.check("cusparseSpMVOp_createPlan", status).map_err(absent)?;
        instruments.synchronize().map_err(Absent::Failed)?;
        facts.compile_ms = Some(started.elapsed().as_secs_f64() * 1e3);
        // Dropped in this order: the plan, its descriptor, the buffer, the descriptors of matrix and vectors.
        let parts = (plan, descr, buffer, self);
        Ok(Box::new(move || {
            let (plan, _, _, call) = &parts;
            // SAFETY: plan, descriptors and coefficients are alive; x and y live as long as the task.
            let status = unsafe {
                (op.multiply)(
                    handle,
                    plan.handle,
                    call.coefficients[0].pointer(),
                    call.coefficients[1].pointer(),
                    call.x.handle,
                    call.y.handle,
                    call.y.handle,
                )
            };
            told(library, "cusparseSpMVOp", status)
        }))
    }
}

fn told(library: &Library, call: &str, status: c_int) -> Result<(), String> {
    library.check(call, status).map_err(CallError::into_text)
}

fn cuda_type(value: ValueType) -> c_int {
    match value {
        ValueType::F16 => R_16F,
        ValueType::Bf16 => R_16BF,
        ValueType::F32 => R_32F,
        _ => R_64F,
    }
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn coo_rows<V: RealElement>(task: &Task<'_, V>, instruments: &Instruments) -> Result<(Memory, f64), Absent> {
    let started = Instant::now();
    let rows = layout::coo_rows(task.a);
    let convert_ms = ms(started);
    Ok((instruments.upload(&rows).map_err(Absent::NoRoom)?, convert_ms))
}

fn slices<V: RealElement>(task: &Task<'_, V>, instruments: &Instruments) -> Result<Slices, Absent> {
    let entries = layout::sliced_ell_entries(task.a, ROWS_PER_SLICE);
    let padding = entries as f64 / task.a.nnz().max(1) as f64;
    if padding > MAX_PADDING {
        return Err(Absent::Skipped(format!(
            "slices of {ROWS_PER_SLICE} rows would hold {padding:.1} times the nonzeros, and {MAX_PADDING} are the limit"
        )));
    }
    if entries > i32::MAX as u64 {
        return Err(Absent::Skipped("slices would hold more than 2147483647 entries".into()));
    }
    let started = Instant::now();
    let sell = layout::sliced_ell(task.a, ROWS_PER_SLICE);
    let convert_ms = ms(started);
    Ok(Slices {
        offsets: instruments.upload(&sell.slice_offsets).map_err(Absent::NoRoom)?,
        cols: instruments.upload(&sell.col_indices).map_err(Absent::NoRoom)?,
        values: instruments.upload(&sell.values).map_err(Absent::NoRoom)?,
        entries,
        convert_ms,
    })
}

/// The size of blocks that store the fewest bytes of those that do not hold too much fill, and how many they are. Larger blocks than some that hold too much fill hold no
/// less, where they are made of these.
fn best_blocks<V: RealElement>(a: &CsrMatrix<V, u32>) -> Option<(usize, usize)> {
    let fits = |size: &usize| a.num_rows().is_multiple_of(*size) && a.num_cols().is_multiple_of(*size);
    let mut counted: Vec<(usize, usize)> = Vec::new();
    for size in BLOCK_SIZES.filter(fits) {
        let is_filled = |&(smaller, blocks): &(usize, usize)| {
            size.is_multiple_of(smaller) && fill(a, smaller, blocks) > MAX_FILL
        };
        if !counted.iter().any(is_filled) {
            counted.push((size, layout::count_blocks(a, size)));
        }
    }
    let bytes = |size: usize, blocks: usize| blocks * (size_of::<u32>() + size * size * V::TYPE.size());
    let cost = |&(size, blocks): &(usize, usize)| (fill(a, size, blocks) > MAX_FILL, bytes(size, blocks));
    counted.into_iter().min_by_key(cost)
}

/// Entries of so many blocks over the nonzeros.
fn fill<V: RealElement>(a: &CsrMatrix<V, u32>, size: usize, blocks: usize) -> f64 {
    (blocks * size * size) as f64 / a.nnz().max(1) as f64
}

fn blocks<V: RealElement>(task: &Task<'_, V>, instruments: &Instruments) -> Result<BlocksOnDevice, Absent> {
    let a = task.a;
    let Some((size, blocks)) = best_blocks(a) else {
        let [first, last] = [BLOCK_SIZES.start(), BLOCK_SIZES.end()];
        return Err(Absent::Skipped(format!(
            "rows and columns have no divisor from {first} to {last} in common"
        )));
    };
    let fill = fill(a, size, blocks);
    if fill > MAX_FILL {
        return Err(Absent::Skipped(format!(
            "blocks of {size}x{size} would hold {fill:.1} times the nonzeros, and {MAX_FILL} are the limit"
        )));
    }
    let started = Instant::now();
    let made = layout::blocks(a, size);
    let convert_ms = ms(started);
    Ok(BlocksOnDevice {
        size,
        count: made.block_cols.len(),
        offsets: instruments.upload(&made.block_offsets).map_err(Absent::NoRoom)?,
        cols: instruments.upload(&made.block_cols).map_err(Absent::NoRoom)?,
        values: instruments.upload(&made.values).map_err(Absent::NoRoom)?,
        convert_ms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Full blocks of `size` on the diagonal, `count` of them.
    fn full_blocks(size: usize, count: usize) -> CsrMatrix<f32, u32> {
        let rows = count * size;
        let offsets = (0..=rows).map(|row| (row * size) as u32).collect();
        let cols = (0..rows * size).map(|i| (i / (size * size) * size + i % size) as u32).collect();
        CsrMatrix::new(rows, rows, offsets, cols, vec![1.0; rows * size]).unwrap()
    }

    #[test]
    fn blocks_have_the_size_that_stores_the_fewest_bytes() {
        for (size, best) in [(2, 2), (3, 3), (4, 4), (6, 6), (8, 8), (9, 3)] {
            let blocks = 840;
            let found = best_blocks(&full_blocks(size, blocks));
            assert_eq!(found, Some((best, blocks * (size / best).pow(2))), "blocks of {size}");
        }
        // A diagonal is stored in 8 bytes an entry without blocks, in 10 with those of 2, in more with larger ones.
        assert_eq!(best_blocks(&full_blocks(1, 840)), Some((2, 420)));
        assert_eq!(best_blocks(&full_blocks(1, 11)), None);
    }
}
