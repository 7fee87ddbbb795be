//! The plan for one matrix on one device, and the product.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use spmv_codegen::{
    AlgorithmSpec, Arg, Coefficient, KernelConfig, Operation, Pass, Program, StorageFormat, ValueType,
};

use crate::compiler::Provenance;
use crate::device::{Device, Kernel, OrderedStream, Stream, Unordered};
use crate::error::Error;
use crate::factor::{Factor, Passed};
use crate::launcher::{Bindings, BoundPass, Operands};
use crate::matrix_source::{DeviceMatrix, MatrixSource, check_size};
use crate::operands::BoundOperands;
use crate::prepare::{Prepared, Purpose, prepare};
use crate::scalar::{Element, Scalar};
use crate::tuning::Pending;
use crate::vector::{Vector, check_length};

/// A plan: one matrix, one kernel, one device. It owns the kernel's workspace, so two products of one plan
/// cannot be asked for at the same time; plans share matrices and run side by side.
///
/// ```no_run
/// use spmv_runtime::{CsrVector, Device, KernelConfig, Spmv, Vector, matrix::CooMatrix};
///
/// let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0f32, 3.0, 2.0, 5.0])?.to_csr::<u32>()?;
/// let device = Device::open()?;
/// let config = KernelConfig::builder(CsrVector { threads_per_vector: 4, ..CsrVector::default() }).build()?;
/// let mut spmv = Spmv::with(&device, &a, config)?;
/// let x = Vector::from_slice(&device, &[2.0f32, 1.0, 4.0])?;
/// let mut y = Vector::<f32>::zeros(&device, 2)?;
/// spmv.apply(1.0, &x, 0.0, &mut y)?;
/// assert_eq!(y.to_vec()?, [13.0, 5.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Spmv {
    /// The handle that the plan was made with.
    device: Device,
    config: KernelConfig,
    operation: Operation,
    kernel: Arc<Kernel>,
    provenance: Provenance,
    matrix: Arc<DeviceMatrix>,
    multiply: Vec<BoundPass>,
    prepared: Prepared,
    operands: BoundOperands,
    /// Where a product leaves what the configuration's dot adds up.
    dot: Option<Vector<f64>>,
    unordered: Unordered,
    /// Whether the last product failed in its course, and may have left in the workspace what products rely on being zero.
    ended_early: bool,
    /// How often the matrix's values had been replaced when `prepare` passes copied them; `None` where they copy none.
    copied: Option<u64>,
    /// Faster plans that are being looked for.
    pub(crate) pending: Option<Box<Pending>>,
}

impl fmt::Debug for Spmv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spmv")
            .field("config", &format_args!("{}", self.config))
            .field("operation", &self.operation)
            .field("matrix", &self.matrix)
            .finish_non_exhaustive()
    }
}

impl Spmv {
    /// Makes the plan for `a` with this configuration: generates and compiles the kernel or takes it from the
    /// cache, brings the matrix to the device where it is not there, runs the program's `prepare` passes.
    ///
    /// For a matrix in CSR, op(A) is the operation of the configuration. For one in CSC it is A itself: its arrays are
    /// those of Aᵀ in CSR, so an algorithm that computes transposed products does it. The product with Aᵀ is that of
    /// [`CscMatrix::transpose`](crate::matrix::CscMatrix::transpose), or of [`with_operation`](Self::with_operation).
    ///
    /// For a matrix of which one triangle is stored, op(A) is A itself, and the matrix decides between
    /// [`Operation::Symmetric`], [`Operation::SkewSymmetric`] and [`Operation::Hermitian`] for the configuration. Algorithms
    /// that are not for a triangle compute from a copy of the matrix with both, which the plan keeps.
    ///
    /// # Errors
    /// [`Error::Operation`] where the algorithm is not for a matrix in CSC; [`Error::Storage`] where it is for one triangle
    /// and both are stored, or computes transposed products alone and one is; those of [`MatrixSource::to_device`] and
    /// [`Device::kernel`];
    /// [`Error::OutOfMemory`] for the workspace; [`Error::Fill`] where the algorithm's layout would be mostly fill;
    /// [`Error::Misfit`] where the matrix is not what the layout is for, as with `special` and `row_patterns`;
    /// [`Error::IndexRange`] where there are more columns than the configuration's indices serve; [`Error::SharedMemory`] where
    /// a block needs more than the device has; [`Error::GridTooLarge`] where it cannot have as many blocks. Where
    /// [`Error::is_of_one_kernel`], another configuration may do.
    pub fn with(device: &Device, a: &impl MatrixSource, config: KernelConfig) -> Result<Spmv, Error> {
        Self::with_operation(device, a, Self::usual_operation(a.storage(), &config), config)
    }

    /// As [`with`](Self::with), for this op(A).
    ///
    /// # Errors
    /// As [`with`](Self::with); [`Error::Operation`] where the algorithm does not compute op(A) from the matrix as it is
    /// stored, as no algorithm does for the transpose of a skew-symmetric matrix, which is the product with −α, or of a
    /// Hermitian one.
    pub fn with_operation(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
        config: KernelConfig,
    ) -> Result<Spmv, Error> {
        let config = Self::fitted(a.storage(), operation, config)?;
        let (kernel, provenance) = device.kernel(&config)?;
        let matrix = Self::on_device(device, a, &config)?;
        Self::bind(device, matrix, operation, config, kernel, provenance)
    }

    /// As [`with`](Self::with), with this CUDA text in place of the generated one: [`Program::source`] of the same
    /// configuration, edited. It is compiled when the plan is made; its kernels have the names and arguments of the
    /// program's passes, and what the program guarantees is the author's to keep.
    ///
    /// # Safety
    /// Each kernel has the parameters of the generated one, in number, order and types, begins with `await_stream()` as that
    /// does, since it may be launched before what is ahead of it in the stream has ended, and reads and writes no memory but
    /// what these give it, as far as that reaches.
    ///
    /// ```no_run
    /// use spmv_runtime::{Device, KernelConfig, Spmv, matrix::matrix_market};
    ///
    /// let a = matrix_market::read_file::<f32, u32>("A.mtx")?;
    /// let config = KernelConfig::named("csr_vector")?.build()?;
    /// let edited = config.program().source.replace("__ldg(", "*(");
    /// // SAFETY: loads that bypass a cache read what they read before.
    /// let spmv = unsafe { Spmv::with_source(&Device::open()?, &a, config, &edited)? };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`with`](Self::with); [`Error::Compile`] has NVRTC's messages, [`Error::MissingKernel`] names a kernel that is missing.
    pub unsafe fn with_source(
        device: &Device,
        a: &impl MatrixSource,
        config: KernelConfig,
        source: &str,
    ) -> Result<Spmv, Error> {
        let operation = Self::usual_operation(a.storage(), &config);
        let config = Self::fitted(a.storage(), operation, config)?;
        let (kernel, provenance) = device.edited_kernel(&config, source)?;
        let matrix = Self::on_device(device, a, &config)?;
        Self::bind(device, matrix, operation, config, kernel, provenance)
    }

    /// Two plans that share one copy of A on the device: for y ← α·A·x + β·y and for y ← α·Aᵀ·x + β·y, what least
    /// squares, BiCG and HITS ask for. `config` is for the products with A, `config_t` for those with Aᵀ; for a matrix in
    /// CSC the first is that of a transposed product of its arrays and the second is not.
    ///
    /// ```no_run
    /// use spmv_runtime::{Device, KernelConfig, Spmv, Vector, matrix::CooMatrix};
    ///
    /// let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0f32, 3.0, 2.0, 5.0])?.to_csr::<u32>()?;
    /// let device = Device::open()?;
    /// let named = |algorithm| KernelConfig::named(algorithm)?.build();
    /// let (mut a, mut a_t) = Spmv::pair(&device, &a, named("csr_vector")?, named("hola_t")?)?;
    /// let mut y = Vector::<f32>::zeros(&device, 2)?;
    /// a.apply(1.0, &Vector::from_slice(&device, &[2.0f32, 1.0, 4.0])?, 0.0, &mut y)?;
    /// assert_eq!(y.to_vec()?, [13.0, 5.0]);
    /// let mut z = Vector::<f32>::zeros(&device, 3)?;
    /// a_t.apply(1.0, &y, 0.0, &mut z)?;
    /// assert_eq!(z.to_vec()?, [13.0, 64.0, 26.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`with_operation`](Self::with_operation); [`Error::ValueType`], [`Error::OffsetType`] and
    /// [`Error::IndexType`] where the configurations differ in the types that the matrix is stored with.
    pub fn pair(
        device: &Device,
        a: &impl MatrixSource,
        config: KernelConfig,
        config_t: KernelConfig,
    ) -> Result<(Spmv, Spmv), Error> {
        let plain = Self::with_operation(device, a, Operation::NonTranspose, config)?;
        let transposed = Self::with_operation(device, plain.matrix(), Operation::Transpose, config_t)?;
        Ok((plain, transposed))
    }

    /// op(A) where only the configuration says what it is.
    fn usual_operation(storage: StorageFormat, config: &KernelConfig) -> Operation {
        match (storage, config.operation()) {
            (StorageFormat::Csr, operation) if !operation.is_of_triangle() => operation,
            (StorageFormat::Csr | StorageFormat::Csc, _) => Operation::NonTranspose,
            // Of a triangle, which not every symmetry has.
            (_, Operation::Transpose) => Operation::Transpose,
            _ => Operation::NonTranspose,
        }
    }

    /// The configuration for a matrix that is stored like this, where its algorithm computes op(A) from that.
    fn fitted(
        storage: StorageFormat,
        operation: Operation,
        config: KernelConfig,
    ) -> Result<KernelConfig, Error> {
        let algorithm = config.algorithm().name();
        let of_triangle = !matches!(storage, StorageFormat::Csr | StorageFormat::Csc);
        let usual = storage.of_arrays(Operation::NonTranspose).expect("every storage has the plain product");
        let computes_it = match of_triangle {
            true => config.algorithm().spec().operations.contains(&usual),
            false => !config.operation().is_of_triangle(),
        };
        if !computes_it {
            return Err(Error::Storage { algorithm, storage, algorithms: AlgorithmSpec::computing(usual) });
        }
        let of_arrays = storage.of_arrays(operation);
        // The symmetry belongs to the matrix, as its size does.
        let config = match of_arrays {
            Some(of_arrays) if of_triangle => config.to_builder().operation(of_arrays).build()?,
            _ => config,
        };
        if Some(config.operation()) != of_arrays {
            let algorithms = of_arrays.map(AlgorithmSpec::computing).unwrap_or_default();
            return Err(Error::Operation { algorithm, operation, storage, algorithms });
        }
        Ok(config)
    }

    /// The matrix of a source, which may be anyone's, as the kernels of this configuration take it.
    fn on_device(
        device: &Device,
        a: &impl MatrixSource,
        config: &KernelConfig,
    ) -> Result<Arc<DeviceMatrix>, Error> {
        let types = config.types();
        let matrix = a.to_device(device, types)?.to_device(device, types)?;
        let storage = matrix.storage();
        if storage == a.storage() {
            return Ok(matrix);
        }
        let usual = storage.of_arrays(Operation::NonTranspose).expect("every storage has the plain product");
        let algorithm = config.algorithm().name();
        Err(Error::Storage { algorithm, storage, algorithms: AlgorithmSpec::computing(usual) })
    }

    fn bind(
        device: &Device,
        matrix: Arc<DeviceMatrix>,
        operation: Operation,
        config: KernelConfig,
        kernel: Arc<Kernel>,
        provenance: Provenance,
    ) -> Result<Spmv, Error> {
        let (row_offsets, col_indices, values) = matrix.addresses();
        let (num_rows, num_cols) = matrix.stored_size();
        check_size(matrix.storage(), (num_rows, num_cols), config.max_size())?;
        let sizes = Bindings {
            num_rows: num_rows as u64,
            num_cols: num_cols as u64,
            nnz: matrix.nnz() as u64,
            multiprocessors: device.properties().multiprocessors,
            row_offsets,
            col_indices,
            values,
            ..Bindings::default()
        };
        let purpose = Purpose {
            algorithm: config.algorithm().name(),
            matrix_bytes: matrix.bytes(),
            entry_bytes: config.types().index.size() + config.types().value.size(),
        };
        let copies = kernel.program().prepare.iter().any(|pass| pass.args.contains(&Arg::Values));
        let copied = copies.then(|| matrix.updates());
        let mut prepared = prepare(device, &kernel, sizes, purpose)?;
        let operands = BoundOperands::new(kernel.program(), &prepared.workspace);
        let num_operands = operands.len();
        let bindings =
            Bindings { buffers: &prepared.workspace, counts: &prepared.counts, num_operands, ..sizes };
        let bound = |pass| BoundPass::new(pass, &*kernel.module, &bindings);
        let multiply = kernel.program().multiply.iter().map(bound).collect::<Result<_, _>>()?;
        // Where passes are bound, the order of the workspace means nothing.
        let dot = kernel.program().dot.map(|buffer| prepared.workspace.swap_remove(buffer));
        Ok(Spmv {
            device: device.clone(),
            config,
            operation,
            provenance,
            matrix,
            multiply,
            prepared,
            operands,
            dot: dot.map(|memory| Vector::in_allocation(device, 1, memory)),
            unordered: Unordered::default(),
            ended_early: false,
            kernel,
            copied,
            pending: None,
        })
    }

    /// y ← α·op(A)·x + β·y on the device's own stream; x has as many entries as op(A) has columns, y as many as it
    /// has rows. Returns when the kernels are launched, before they have
    /// finished; allocates nothing, waits for nothing, and can be captured in a CUDA graph. β = 0 stores: y is
    /// not read. α = 0 leaves β·y, whatever A and x hold.
    ///
    /// A captured graph holds addresses: the plan, the matrix, x, y and whatever else the product takes from memory must outlive
    /// the graph's launches, which nothing checks. After a product that failed on its way the next one makes the plan's memory
    /// anew, for which it waits and which it cannot do while it is captured; graphs of before must be captured again then.
    ///
    /// Where the configuration has an epilogue, its result is stored: α is 1 and β 0, and what it takes by name is bound
    /// before ([`set_vector`](Self::set_vector), [`set_scalar`](Self::set_scalar)). So it is with a dot, whose sum over the
    /// rows is then in [`dot`](Self::dot).
    ///
    /// Where the configuration's semiring is not plus_times, the products of a row are combined and reduced by it, α is
    /// 1, and the row is stored (β = 0) or reduced with y (β = 1).
    ///
    /// Where the configuration says `alpha = device` or `beta = device`, that one is a reference to a vector of one entry of
    /// the type of sums ([`Factor`]). Kernels read it when they run: a captured graph takes what it holds then, and β = 0
    /// there does not read y either. Over a semiring any β there but 0 reduces with y.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::ValueType`], [`Error::OtherDevice`], [`Error::ScalarType`], [`Error::Scaling`],
    /// [`Error::ScalingIsOnDevice`], [`Error::ScalingIsNumber`], [`Error::ScalingVectorType`],
    /// [`Error::SemiringScaling`], [`Error::EpilogueScaling`], [`Error::UnboundOperand`] and [`Error::OperandIsResult`] where
    /// an operand does not fit, [`Error::StaleValues`] where the matrix has other values than the plan; nothing is launched
    /// then. [`Error::Fault`] where an earlier kernel faulted.
    pub fn apply<'a, X: Element, Y: Element>(
        &mut self,
        alpha: impl Into<Factor<'a>>,
        x: &Vector<X>,
        beta: impl Into<Factor<'a>>,
        y: &mut Vector<Y>,
    ) -> Result<(), Error> {
        self.launch(&OrderedStream::default(), alpha.into(), x, beta.into(), y)
    }

    /// As [`Spmv::apply`], on a stream of the user's. Vectors that other streams write or read are the user's
    /// to order. The plan's own workspace is ordered by the plan where the stream changes between products,
    /// except while one of the streams is being captured: order a captured graph against other products of the
    /// same plan.
    ///
    /// # Errors
    /// As [`Spmv::apply`].
    pub fn apply_on<'a, X: Element, Y: Element>(
        &mut self,
        stream: &Stream,
        alpha: impl Into<Factor<'a>>,
        x: &Vector<X>,
        beta: impl Into<Factor<'a>>,
        y: &mut Vector<Y>,
    ) -> Result<(), Error> {
        if !stream.device().is(self.device()) {
            return Err(Error::OtherDevice { what: "the stream", with: "the plan" });
        }
        self.launch(stream.ordered(), alpha.into(), x, beta.into(), y)
    }

    fn launch<X: Element, Y: Element>(
        &mut self,
        stream: &OrderedStream,
        alpha: Factor<'_>,
        x: &Vector<X>,
        beta: Factor<'_>,
        y: &mut Vector<Y>,
    ) -> Result<(), Error> {
        let types = self.config.types();
        check_type("x", types.x, X::TYPE)?;
        check_type("y", types.y, Y::TYPE)?;
        let (x_length, y_length) = self.vector_lengths();
        check_length("x", x_length, x.len())?;
        check_length("y", y_length, y.len())?;
        let device = &self.device;
        if !x.device().is(device) || !y.device().is(device) {
            return Err(Error::OtherDevice { what: "a vector", with: "the plan" });
        }
        if self.is_stale() {
            return Err(Error::StaleValues { algorithm: self.config.algorithm().name() });
        }
        let scaling = self.config.scaling();
        let alpha = alpha.checked("alpha", scaling.alpha, types.accumulator, device)?;
        let beta = beta.checked("beta", scaling.beta, types.accumulator, device)?;
        check_refused(&self.config, alpha, beta)?;
        check_scaling("alpha", scaling.alpha, alpha)?;
        check_scaling("beta", scaling.beta, beta)?;
        self.operands.check(y.address(), y.len() * size_of::<Y>())?;
        self.launch_on(stream, x.address(), y.address(), alpha, beta)
    }

    /// Launches the product's passes for operands that were checked.
    pub(crate) fn launch_on(
        &mut self,
        stream: &OrderedStream,
        x: u64,
        y: u64,
        alpha: Passed,
        beta: Passed,
    ) -> Result<(), Error> {
        if self.ended_early {
            self.rebuild()?;
        }
        let operands = &Operands { x, y, alpha, beta, beside: self.operands.slots() };
        let backend = self.device.backend();
        if !self.prepared.workspace.is_empty() {
            self.unordered.follow_on(stream, |before, after| backend.order(before, after))?;
        }
        for (place, pass) in self.multiply.iter_mut().enumerate() {
            // SAFETY: types, lengths and device of the operands were checked; matrix and workspace belong to the
            // plan, and freeing device memory waits for what uses it. y was borrowed mutably, so x is another.
            if let Err(error) = unsafe { pass.launch(&**backend, stream.handle, operands) } {
                // A first pass that a GPU refuses to launch has written nothing; one that fails in the simulator has run.
                self.ended_early = place > 0 || self.device.is_simulator();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Whether the plan keeps copies of the matrix's values, so that it must be [refreshed](Self::refresh) where they are
    /// [replaced](DeviceMatrix::update_values).
    pub fn copies_values(&self) -> bool {
        self.copied.is_some()
    }

    /// Copies the matrix's values again, where the plan keeps copies and they were replaced since: runs the program's `prepare`
    /// passes into workspace of its own, and frees that of before. Graphs that captured products before it must be captured
    /// again then, and what a [`dot`](Self::dot) added up before is to be read before. Does nothing otherwise.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the workspace, and [`Error::Misfit`] where the layout is for values that repeat
    /// ([`RowPatterns`](spmv_codegen::RowPatterns)) and the new ones do not: the plan stays as it was, and another one is to be
    /// made, as from the beginning with [`Constraints::values_change`](crate::Constraints::values_change). [`Error::Fault`].
    pub fn refresh(&mut self) -> Result<(), Error> {
        if !self.is_stale() {
            return Ok(());
        }
        self.rebuild()
    }

    /// Makes the plan again, with what is bound to it.
    fn rebuild(&mut self) -> Result<(), Error> {
        let fresh = Self::bind(
            &self.device,
            self.matrix.clone(),
            self.operation,
            self.config,
            self.kernel.clone(),
            self.provenance,
        )?;
        let before = std::mem::replace(self, fresh);
        self.pending = before.pending;
        self.unordered = before.unordered;
        self.operands.keep_bound(before.operands);
        Ok(())
    }

    /// Whether the plan would multiply with values that were replaced.
    fn is_stale(&self) -> bool {
        self.copied.is_some_and(|copied| copied != self.matrix.updates())
    }

    /// Binds a vector to the parameter of this name of the kernel's epilogue or dot, for the products that follow: an entry
    /// for each row, of the type of y. The plan keeps its memory, and products read what it holds when they run.
    ///
    /// ```no_run
    /// use spmv_runtime::{Device, KernelConfig, Spmv, Vector, matrix::CooMatrix};
    ///
    /// let a = CooMatrix::new(2, 2, vec![0, 0, 1], vec![0, 1, 1], vec![4.0f32, 1.0, 2.0])?.to_csr::<u32>()?;
    /// let device = Device::open()?;
    /// let residual = [("epilogue", "|row, sum, y, b, c| c * (b - sum)"), ("vectors", "[b]"), ("scalars", "[c]")];
    /// let mut plan = Spmv::with(&device, &a, KernelConfig::from_settings("csr_vector", residual)?)?;
    /// plan.set_vector("b", &Vector::from_slice(&device, &[10.0f32, 20.0])?)?;
    /// plan.set_scalar("c", 0.5)?;
    /// let mut y = Vector::<f32>::zeros(&device, 2)?;
    /// plan.apply(1.0, &Vector::from_slice(&device, &[1.0f32, 2.0])?, 0.0, &mut y)?;
    /// assert_eq!(y.to_vec()?, [2.0, 8.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownOperand`], [`Error::OperandLength`], [`Error::OperandType`], [`Error::OtherDevice`]. What was bound
    /// before stays then.
    pub fn set_vector<V: Element>(&mut self, name: &str, vector: &Vector<V>) -> Result<(), Error> {
        let num_rows = self.vector_lengths().1;
        if !vector.device().is(self.device()) {
            return Err(Error::OtherDevice { what: "a vector that the kernel takes", with: "the plan" });
        }
        self.operands.set_vector(name, num_rows, vector)
    }

    /// Binds a number to the parameter of this name of the kernel's epilogue or dot, for the products that follow. It is
    /// rounded to the type of the sums.
    ///
    /// # Errors
    /// [`Error::UnknownOperand`]; [`Error::OperandScalar`] where the number is complex. What was bound before stays then.
    pub fn set_scalar(&mut self, name: &str, number: impl Into<Scalar>) -> Result<(), Error> {
        self.operands.set_scalar(name, number.into())
    }

    /// What the configuration's `dot` added up in the last product, in the only entry of a vector: every product
    /// overwrites it, and other kernels may read it where it is; those on another stream than the product's, and the host after
    /// [`apply_on`](Self::apply_on), are the user's to order, as with y. The sum of the rows' terms is exact before it is rounded
    /// to double precision: the same terms give the same bits on every device and in every algorithm. A term that is not
    /// finite makes it infinite or NaN, as adding would; without terms it is 0.
    ///
    /// `None` where the configuration has no `dot`.
    ///
    /// ```no_run
    /// use spmv_runtime::{Device, KernelConfig, Spmv, Vector, matrix::CooMatrix};
    ///
    /// let a = CooMatrix::new(2, 2, vec![0, 0, 1], vec![0, 1, 1], vec![4.0f32, 1.0, 2.0])?.to_csr::<u32>()?;
    /// let device = Device::open()?;
    /// let settings = [("dot", "|row, result, p| result * p"), ("vectors", "[p]")];
    /// let mut plan = Spmv::with(&device, &a, KernelConfig::from_settings("csr_vector", settings)?)?;
    /// let x = Vector::from_slice(&device, &[1.0f32, 2.0])?;
    /// plan.set_vector("p", &x)?;
    /// let mut y = Vector::<f32>::zeros(&device, 2)?;
    /// plan.apply(1.0, &x, 0.0, &mut y)?;
    /// assert_eq!(y.to_vec()?, [6.0, 4.0]);
    /// assert_eq!(plan.dot().expect("it has one").to_vec()?, [14.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn dot(&self) -> Option<&Vector<f64>> {
        self.dot.as_ref()
    }

    /// The configuration.
    pub fn config(&self) -> &KernelConfig {
        &self.config
    }

    /// op(A). For a matrix in CSC, or of which one triangle is stored, it is not the configuration's, which is that of
    /// the arrays.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// The generated program.
    pub fn program(&self) -> &Program {
        self.kernel.program()
    }

    /// The compiled and loaded kernel.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// Where the kernel came from when the plan was made, and what that took.
    pub fn provenance(&self) -> Provenance {
        self.provenance
    }

    /// The matrix on the device.
    pub fn matrix(&self) -> &Arc<DeviceMatrix> {
        &self.matrix
    }

    /// Entries of x and of y: the columns and the rows of op(A).
    pub fn vector_lengths(&self) -> (usize, usize) {
        self.operation.vector_lengths(self.matrix.num_rows(), self.matrix.num_cols())
    }

    /// The device, by the handle that the plan was made with: the matrix may have another.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Bytes of device memory that the plan takes beside the matrix.
    pub fn workspace_bytes(&self) -> u64 {
        self.prepared.buffer_bytes.iter().sum()
    }

    /// The bytes of each of the program's buffers: 0 for what was freed when the plan was made.
    pub fn buffer_bytes(&self) -> &[u64] {
        &self.prepared.buffer_bytes
    }

    /// Bytes of device memory that making the plan took for a while beside what it keeps.
    pub fn scratch_bytes(&self) -> u64 {
        self.prepared.scratch_bytes
    }

    /// What the program's `prepare` passes found out: names and numbers.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let names = self.program().counts.iter().map(|count| count.name);
        names.zip(self.prepared.counts.iter().copied())
    }

    /// Passes that a product launches: those of the program that have anything to do for this matrix.
    pub fn launched(&self) -> impl Iterator<Item = &Pass> {
        let passes = self.program().multiply.iter().zip(&self.multiply);
        passes.filter(|(_, bound)| bound.has_blocks()).map(|(pass, _)| pass)
    }

    /// Slots of the layout that the plan keeps of the matrix, fill counted; `None` where it has none of its own that
    /// may hold fill.
    pub fn slots(&self) -> Option<u64> {
        self.prepared.slots
    }

    /// Of the [`slots`](Self::slots), those that hold no entry.
    pub fn fill(&self) -> Option<u64> {
        self.prepared.slots.map(|slots| slots.saturating_sub(self.prepared.entries))
    }

    /// Of a product that is computed from a copy with both triangles: its entries, and where its row offsets, column indices and
    /// values are.
    pub(crate) fn copied_arrays(&self) -> (u64, (u64, u64, u64)) {
        let address = |name: &str| {
            let place = self.program().buffers.iter().position(|buffer| buffer.name == name);
            self.prepared.workspace[place.expect("the copy has all three")].address()
        };
        let [offsets, indices, values] =
            ["offsets", "indices", "values"].map(|array| address(&format!("expanded_{array}")));
        (self.prepared.entries, (offsets, indices, values))
    }

    /// What the program's `prepare` passes took when the plan was made, allocation and waiting counted; zero where
    /// it has none.
    pub fn prepare_time(&self) -> Duration {
        self.prepared.time
    }
}

fn check_type(what: &'static str, expected: ValueType, got: ValueType) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::ValueType { what, expected, got }) }
}

/// Whether α and β are what a product may have that is no sum of products, or where the user says what is stored. What is
/// on the device nobody knows, and its configuration was allowed.
fn check_refused(config: &KernelConfig, alpha: Passed, beta: Passed) -> Result<(), Error> {
    let known = |factor: Passed, allowed| factor.number().map_or(allowed, |number| number.to_c64().re);
    match (config.refused_scaling(known(alpha, 1.0), known(beta, 0.0)), config.replaces_sums()) {
        (None, _) => Ok(()),
        (Some((what, got, allowed)), Some(over)) if !config.user_functions().stores() => {
            Err(Error::SemiringScaling { what, over, got, allowed })
        }
        (Some((what, got, allowed)), _) => Err(Error::EpilogueScaling { what, got, allowed }),
    }
}

fn check_scaling(what: &'static str, coefficient: Coefficient, got: Passed) -> Result<(), Error> {
    match (coefficient.known(), got.number()) {
        (Some(expected), Some(got)) if !got.is(expected) => Err(Error::Scaling { what, expected, got }),
        _ => Ok(()),
    }
}
