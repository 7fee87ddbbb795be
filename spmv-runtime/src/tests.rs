//! The runtime above the backend, on a backend that records what it is asked for. NVRTC is the real one.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use spmv_codegen::{
    Arg, Buffer, Coefficient, Count, CsrScalar, Expr, IndexType, KernelConfig, LightVector, Pass, Program,
    Slots, ValueType, Variable,
};
use spmv_matrix::CsrMatrix;

use crate::artifact::{Artifact, Image};
use crate::backend::{
    self, Backend, DeviceProperties, Function, Launch, LoadError, Module, Order, StreamHandle,
};
use crate::cache::{CacheLocation, DiskCache};
use crate::compiler::{Compiler, Origin, ProgramKey, SingleFlight, Target};
use crate::device::{Kernel, Native, OrderedStream};
use crate::launcher::{Bindings, BoundPass, Operands};
use crate::prepare::{Purpose, prepare};
use crate::{Device, DeviceMatrix, Error, ErrorKind, Scalar, Spmv, Vector};

/// One launch as it was asked for.
#[derive(Clone, Debug, PartialEq)]
struct Launched {
    kernel: String,
    grid: u32,
    threads: u32,
    args: Vec<u64>,
    stream: StreamHandle,
}

/// A device of 10 multiprocessors with 4 resident blocks each, whose memory is a map.
#[derive(Debug)]
struct Recorder {
    properties: DeviceProperties,
    memory: Mutex<HashMap<u64, Vec<u8>>>,
    next_address: AtomicU64,
    capacity: u64,
    rejections: AtomicUsize,
    loads: Mutex<Vec<bool>>,
    functions: Arc<Mutex<Vec<String>>>,
    launches: Mutex<Vec<Launched>>,
    ordered: Mutex<Vec<(StreamHandle, StreamHandle)>>,
    /// The stream that is being captured.
    captured: AtomicU64,
    found: Mutex<Vec<Vec<u64>>>,
}

impl Recorder {
    fn new(arch: &str) -> Arc<Recorder> {
        Arc::new(Recorder {
            properties: DeviceProperties {
                name: "recorder".into(),
                arch: arch.into(),
                multiprocessors: 10,
                memory_bytes: 1 << 20,
                l2_bytes: 0,
                driver_version: (13, 0),
            },
            memory: Mutex::default(),
            next_address: AtomicU64::new(256),
            capacity: 1 << 20,
            rejections: AtomicUsize::new(0),
            loads: Mutex::default(),
            captured: AtomicU64::new(u64::MAX),
            functions: Arc::default(),
            launches: Mutex::default(),
            ordered: Mutex::default(),
            found: Mutex::default(),
        })
    }

    fn device(self: &Arc<Self>) -> Device {
        let compiler = Compiler::new(DiskCache::open(&CacheLocation::off()));
        Device::new(self.clone(), Native::Recorder, Arc::new(compiler))
    }

    fn used(&self) -> u64 {
        self.memory.lock().unwrap().values().map(|bytes| bytes.len() as u64).sum()
    }

    fn words(&self, address: u64) -> Vec<u32> {
        let memory = self.memory.lock().unwrap();
        memory[&address].chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

impl Backend for Recorder {
    fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    fn free_bytes(&self) -> Result<u64, Error> {
        Ok(self.capacity - self.used())
    }

    fn allocate(&self, bytes: u64) -> Result<u64, Error> {
        let free = self.capacity - self.used();
        if bytes > free {
            return Err(Error::OutOfMemory { what: String::new(), needed: 0, free });
        }
        let address = self.next_address.fetch_add(bytes.next_multiple_of(256), Ordering::Relaxed);
        // Fresh memory holds anything but zeros.
        self.memory.lock().unwrap().insert(address, vec![0xa5; bytes as usize]);
        Ok(address)
    }

    unsafe fn free(&self, address: u64) {
        self.memory.lock().unwrap().remove(&address).expect("freed memory was allocated");
    }

    unsafe fn write(&self, address: u64, source: &[u8]) -> Result<(), Error> {
        self.memory.lock().unwrap().get_mut(&address).unwrap().copy_from_slice(source);
        Ok(())
    }

    unsafe fn read(&self, target: &mut [u8], address: u64) -> Result<(), Error> {
        let memory = self.memory.lock().unwrap();
        let holds =
            |(start, bytes): &(&u64, &Vec<u8>)| (**start..**start + bytes.len() as u64).contains(&address);
        let (start, bytes) = memory.iter().find(holds).expect("read memory is allocated");
        target.copy_from_slice(&bytes[(address - start) as usize..][..target.len()]);
        Ok(())
    }

    unsafe fn zero(&self, address: u64, bytes: u64) -> Result<(), Error> {
        self.memory.lock().unwrap().get_mut(&address).unwrap()[..bytes as usize].fill(0);
        Ok(())
    }

    fn synchronize(&self, _: StreamHandle) -> Result<(), Error> {
        Ok(())
    }

    fn order(&self, before: StreamHandle, after: StreamHandle) -> Result<Order, Error> {
        let captured = self.captured.load(Ordering::Relaxed);
        if after.0 == captured {
            return Ok(Order::AfterIsCaptured);
        }
        if before.0 == captured {
            return Ok(Order::BeforeIsCaptured);
        }
        self.ordered.lock().unwrap().push((before, after));
        Ok(Order::Made)
    }

    fn load(&self, image: &Image) -> Result<Arc<dyn Module>, LoadError> {
        self.loads.lock().unwrap().push(!image.cubin.is_empty());
        let left = self.rejections.load(Ordering::Relaxed);
        if left > 0 {
            self.rejections.store(left - 1, Ordering::Relaxed);
            let error = Error::Driver { call: "load", name: "REJECTED".into(), message: "no".into() };
            return Err(LoadError::Rejected(error));
        }
        Ok(Arc::new(RecorderModule { ptx: image.ptx.clone(), functions: self.functions.clone() }))
    }

    unsafe fn launch(&self, launch: Launch<'_>, stream: StreamHandle) -> Result<(), Error> {
        let _outside = Uncounted::new();
        // What the kernels of a preparation find out is for its test to say.
        if let Some(numbers) = self.found.lock().unwrap().pop() {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            self.memory.lock().unwrap().get_mut(&launch.args[0]).unwrap().copy_from_slice(&bytes);
        }
        self.launches.lock().unwrap().push(Launched {
            kernel: self.functions.lock().unwrap()[launch.function.handle as usize].clone(),
            grid: launch.grid,
            threads: launch.threads_per_block,
            args: launch.arguments().map(|slots| slots[0]).collect(),
            stream,
        });
        Ok(())
    }

    fn time(
        &self,
        untimed: u32,
        times: u32,
        work: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<f64, Error> {
        (0..untimed + times).try_for_each(|_| work()).map(|()| 1.0)
    }
}

#[derive(Debug)]
struct RecorderModule {
    ptx: String,
    functions: Arc<Mutex<Vec<String>>>,
}

impl Module for RecorderModule {
    fn function(&self, name: &str) -> Result<Function, Error> {
        assert!(self.ptx.contains(&format!(".entry {name}(")), "{name} is a kernel of the module");
        let mut functions = self.functions.lock().unwrap();
        functions.push(name.to_owned());
        Ok(Function { handle: functions.len() as u64 - 1, awaits_stream: false })
    }

    fn allow_shared(&self, _: Function, _: &Pass) -> Result<(), Error> {
        Ok(())
    }

    fn resident_blocks(&self, _: Function, _: u32, _: u32) -> Result<u32, Error> {
        Ok(4)
    }
}

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static COUNTING: Cell<bool> = const { Cell::new(true) };
}

/// Counts this thread's host allocations.
struct Counting;

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if COUNTING.get() {
            ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        }
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What the recorder itself allocates is not the runtime's.
struct Uncounted;

impl Uncounted {
    fn new() -> Uncounted {
        COUNTING.set(false);
        Uncounted
    }
}

impl Drop for Uncounted {
    fn drop(&mut self) {
        COUNTING.set(true);
    }
}

/// [[1,3,2],[0,5,0]]
fn matrix() -> CsrMatrix<f32> {
    CsrMatrix::new(2, 3, vec![0, 3, 4], vec![0, 1, 2, 1], vec![1.0, 3.0, 2.0, 5.0]).unwrap()
}

fn config(algorithm: &str) -> KernelConfig {
    KernelConfig::named(algorithm).unwrap().build().unwrap()
}

fn vectors(device: &Device) -> (Vector<f32>, Vector<f32>) {
    (Vector::from_slice(device, &[2.0, 1.0, 4.0]).unwrap(), Vector::zeros(device, 2).unwrap())
}

#[test]
fn a_product_patches_its_operands_and_nothing_else() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let mut plan = Spmv::with(&device, &matrix(), config("csr_vector")).unwrap();
    let (x, mut y) = vectors(&device);
    plan.apply(1.5, &x, -2.0, &mut y).unwrap();
    plan.apply(0.25f32, &x, 0.0, &mut y).unwrap();
    let launches = recorder.launches.lock().unwrap().clone();
    assert_eq!(launches.len(), 2);
    let [first, second] = [&launches[0], &launches[1]];
    assert_eq!((first.kernel.as_str(), first.grid, first.threads), ("spmv_csr_vector", 1, 256));
    assert_eq!(first.args[0], 2);
    assert_eq!(recorder.words(first.args[1]), [0, 3, 4]);
    assert_eq!(recorder.words(first.args[2]), [0, 1, 2, 1]);
    assert_eq!(recorder.words(first.args[3]), [1.0f32, 3.0, 2.0, 5.0].map(f32::to_bits));
    let scalars = |alpha: f32, beta: f32| [u64::from(alpha.to_bits()), u64::from(beta.to_bits())];
    assert_eq!(first.args[4..], [&[x.address(), y.address()][..], &scalars(1.5, -2.0)].concat());
    assert_eq!(second.args[..6], first.args[..6]);
    assert_eq!(second.args[6..], scalars(0.25, 0.0));
}

#[test]
fn a_product_allocates_nothing() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    for algorithm in ["csr_scalar", "csr_vector", "light_vector"] {
        let mut plan = Spmv::with(&device, &matrix(), config(algorithm)).unwrap();
        let (x, mut y) = vectors(&device);
        let (device_bytes, host) = (recorder.used(), ALLOCATIONS.get());
        plan.apply(1.0, &x, 0.0, &mut y).unwrap();
        assert_eq!((recorder.used(), ALLOCATIONS.get()), (device_bytes, host), "{algorithm}");
    }
    assert_eq!(recorder.launches.lock().unwrap().len(), 3);
}

#[test]
fn a_persistent_grid_is_what_is_resident_or_less() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    for (rows, grid) in [(1, 1), (32, 1), (33, 2), (1280, 40), (100_000, 40)] {
        let offsets = vec![0u32; rows + 1];
        let a = CsrMatrix::<f32>::new(rows, 3, offsets, vec![], vec![]).unwrap();
        let mut plan = Spmv::with(&device, &a, config("light_vector")).unwrap();
        let (x, mut y) =
            (Vector::<f32>::zeros(&device, 3).unwrap(), Vector::<f32>::zeros(&device, rows).unwrap());
        plan.apply(1.0, &x, 0.0, &mut y).unwrap();
        let launched = recorder.launches.lock().unwrap().pop().unwrap();
        assert_eq!(launched.grid, grid, "{rows} rows");
        // The workspace is zero when the plan is made, whatever the memory held before.
        assert_eq!(recorder.words(launched.args[8]), [0]);
        assert_eq!(plan.workspace_bytes(), 4);
    }
}

/// A program of two preparing passes and one that multiplies, each of which needs what the one before found out.
fn program_that_counts() -> Program {
    let pass = |kernel: &str, grid: Expr, args| Pass {
        kernel: kernel.into(),
        grid,
        threads_per_block: 32,
        shared_bytes: 0,
        args,
    };
    let count = |name, entry, after| Count { name, buffer: 0, entry, after };
    let [first, second] = [0, 1].map(|index| Expr::from(Variable::Count(index)));
    Program {
        prepare: vec![
            pass("first", 1.into(), vec![Arg::Buffer(0)]),
            pass("second", first.clone(), vec![Arg::Buffer(0), Arg::Buffer(1)]),
        ],
        multiply: vec![pass("third", second.clone() + 1, vec![Arg::Buffer(2)])],
        buffers: vec![
            Buffer::new("counts", 16).zeroed().scratch(),
            Buffer::new("sized_by_first", first * 4).scratch(),
            Buffer::new("sized_by_second", second * 8),
        ],
        counts: vec![count("rows_found", 0, 0), count("tiles_found", 1, 1)],
        ..config("csr_scalar").program()
    }
}

const PURPOSE: Purpose = Purpose { algorithm: "a_test", matrix_bytes: 1234, entry_bytes: 8 };

#[test]
fn preparing_reads_counts_back_before_what_depends_on_them() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let (compiled, _) = device.kernel(&config("csr_scalar")).unwrap();
    let functions = recorder.functions.clone();
    let ptx = [".entry first(", ".entry second(", ".entry third("].concat();
    let module = Arc::new(RecorderModule { ptx, functions });
    let kernel = Kernel::of(program_that_counts(), Arc::new(compiled.artifact().clone()), module);
    *recorder.found.lock().unwrap() = vec![vec![3, 5], vec![3, 99]];
    let before = recorder.used();
    let prepared = prepare(&device, &kernel, Bindings::default(), PURPOSE).unwrap();
    assert_eq!(prepared.counts, [3, 5]);
    assert_eq!((prepared.buffer_bytes.iter().sum::<u64>(), prepared.scratch_bytes), (40, 16 + 12));
    assert_eq!(recorder.used() - before, 40, "scratch is freed");
    let grids: Vec<_> = recorder.launches.lock().unwrap().iter().map(|launch| launch.grid).collect();
    assert_eq!(grids, [1, 3]);
    let bindings = Bindings { buffers: &prepared.workspace, counts: &prepared.counts, ..Bindings::default() };
    let mut third = BoundPass::new(&kernel.program().multiply[0], &*kernel.module, &bindings).unwrap();
    // SAFETY: the recorder runs nothing.
    unsafe { third.launch(&*recorder, StreamHandle::default(), &Operands::default()).unwrap() };
    assert_eq!(recorder.launches.lock().unwrap()[2].grid, 6);
}

#[test]
fn a_count_that_needs_too_much_memory_is_refused_before_it_is_allocated() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let (compiled, _) = device.kernel(&config("csr_scalar")).unwrap();
    let ptx = [".entry first(", ".entry second(", ".entry third("].concat();
    let module = Arc::new(RecorderModule { ptx, functions: recorder.functions.clone() });
    let kernel = Kernel::of(program_that_counts(), Arc::new(compiled.artifact().clone()), module);
    *recorder.found.lock().unwrap() = vec![vec![3, u64::MAX / 8], vec![3, 99]];
    let used = recorder.used();
    let error = prepare(&device, &kernel, Bindings::default(), PURPOSE).unwrap_err();
    assert!(
        matches!(&error, Error::OutOfMemory { what, .. } if what == "the workspace of a_test"),
        "{error}"
    );
    assert_eq!(recorder.used(), used);
}

/// Slots that grow with both counts are refused by the first where that is enough, before what depends on it is there;
/// none are where they are few for the nonzeros, or few bytes.
#[test]
fn a_layout_that_is_mostly_fill_is_refused_as_soon_as_its_counts_tell() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let (compiled, _) = device.kernel(&config("csr_scalar")).unwrap();
    let ptx = [".entry first(", ".entry second(", ".entry third("].concat();
    let [first, second] = [0, 1].map(|index| Expr::from(Variable::Count(index)));
    let attempt = |found: [u64; 2], nnz: u64| {
        let module = Arc::new(RecorderModule { ptx: ptx.clone(), functions: recorder.functions.clone() });
        let number = first.clone().max(second.clone()) * (1 << 20);
        let program = Program { slots: Some(Slots { number, bytes: 8 }), ..program_that_counts() };
        let kernel = Kernel::of(program, Arc::new(compiled.artifact().clone()), module);
        *recorder.found.lock().unwrap() = vec![vec![found[0], found[1]], vec![found[0], 99]];
        recorder.launches.lock().unwrap().clear();
        let prepared = prepare(&device, &kernel, Bindings { nnz, ..Bindings::default() }, PURPOSE);
        (prepared.map(|prepared| prepared.slots), recorder.launches.lock().unwrap().len())
    };
    let mib = 1 << 20;
    // Eight slots a nonzero, and 64 MiB of fill, are allowed.
    assert_eq!(attempt([16, 2], 2 * mib).0.unwrap(), Some(16 * mib));
    assert_eq!(attempt([8, 8], 1).0.unwrap(), Some(8 * mib));
    let used = recorder.used();
    for (found, launches, slots) in [([17, 2], 1, 17), ([2, 17], 2, 17)] {
        let (refused, launched) = attempt(found, 2 * mib);
        assert_eq!(launched, launches);
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let (slots, bytes) = (slots * mib, slots * mib * 8);
        assert_eq!(
            error.to_string(),
            format!(
                "a_test would store {slots} slots or more for 2097152 nonzeros: {bytes} bytes, and the matrix takes \
                 1234 in CSR; a layout of more than 8 slots a nonzero may hold 67108864 bytes of fill; these store \
                 none, or little: {}",
                Slots::WITHOUT_FILL.join(", ")
            )
        );
        assert_eq!(recorder.used(), used);
    }
}

#[test]
fn a_matrix_without_rows_launches_nothing() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    for algorithm in ["csr_scalar", "csr_vector", "light_vector"] {
        let a = CsrMatrix::<f32>::new(0, 3, vec![0u32], vec![], vec![]).unwrap();
        let mut plan = Spmv::with(&device, &a, config(algorithm)).unwrap();
        let (x, mut y) =
            (Vector::<f32>::zeros(&device, 3).unwrap(), Vector::<f32>::zeros(&device, 0).unwrap());
        plan.apply(1.0, &x, 0.0, &mut y).unwrap();
    }
    assert!(recorder.launches.lock().unwrap().is_empty());
}

#[test]
fn scalars_are_rounded_to_the_accumulator() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let wide = config("csr_scalar").to_builder().accumulator(ValueType::F64).build().unwrap();
    let mut plan = Spmv::with(&device, &matrix(), wide).unwrap();
    let (x, mut y) = vectors(&device);
    plan.apply(0.1, &x, 0.1f32, &mut y).unwrap();
    let launched = recorder.launches.lock().unwrap().pop().unwrap();
    assert_eq!(launched.args[6..], [0.1f64.to_bits(), f64::from(0.1f32).to_bits()]);
    assert_eq!(Scalar::from(0.1f64).bits(ValueType::F32), [u64::from(0.1f32.to_bits()), 0]);
}

#[test]
fn operands_that_do_not_fit_are_refused_before_anything_is_launched() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let other = Recorder::new("sm_90").device();
    let mut plan = Spmv::with(&device, &matrix(), config("csr_scalar")).unwrap();
    let (x, mut y) = vectors(&device);
    let mut long = Vector::<f32>::zeros(&device, 3).unwrap();
    let mut wide = Vector::<f64>::zeros(&device, 2).unwrap();
    let mut elsewhere = Vector::<f32>::zeros(&other, 2).unwrap();
    let messages = [
        plan.apply(1.0, &y, 0.0, &mut long).unwrap_err(),
        plan.apply(1.0, &x, 0.0, &mut long).unwrap_err(),
        plan.apply(1.0, &x, 0.0, &mut wide).unwrap_err(),
        plan.apply(1.0, &x, 0.0, &mut elsewhere).unwrap_err(),
        x.dot(&y).unwrap_err(),
        y.copy_from(&elsewhere).unwrap_err(),
        x.copy_to_slice(&mut [0.0; 2]).unwrap_err(),
    ];
    assert!(messages.iter().all(|error| error.kind() == ErrorKind::Usage));
    let expected = [
        "x has 2 entries and must have 3",
        "y has 3 entries and must have 2",
        "y holds f64 and the kernel was generated for f32; set `y` in the configuration, or convert",
        "a vector lives on another device than the plan; upload it to that one, or share clones of one `Device`",
        "a vector has 2 entries and must have 3",
        "a vector lives on another device than the vector it is combined with; upload it to that one, or share clones of one `Device`",
        "the slice has 2 entries and must have 3",
    ];
    assert_eq!(messages.map(|error| error.to_string()), expected);

    let zero = config("csr_scalar").to_builder().beta(Coefficient::Zero).build().unwrap();
    let error = Spmv::with(&device, &matrix(), zero).unwrap().apply(1.0, &x, 0.5, &mut y).unwrap_err();
    let expected = "the kernel was generated for beta = 0 and the product asks for 0.5; set `beta = any` in the \
                    configuration";
    assert_eq!(error.to_string(), expected);
    let double = config("csr_scalar").to_builder().x(ValueType::F32).build().unwrap();
    let a = matrix().convert::<f64>();
    let error = Spmv::with(&device, &a, double).unwrap_err();
    assert!(error.to_string().starts_with("value holds f64 and the kernel was generated for f32"), "{error}");
    assert!(recorder.launches.lock().unwrap().is_empty());
}

#[test]
fn plans_share_a_matrix() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let shared = Arc::new(DeviceMatrix::upload(&device, &matrix(), IndexType::U64).unwrap());
    let used = recorder.used();
    let wide = config("csr_scalar").to_builder().offset(IndexType::U64).build().unwrap();
    let plans: Vec<_> = (0..3).map(|_| Spmv::with(&device, &shared, wide).unwrap()).collect();
    assert_eq!(recorder.used(), used);
    assert!(plans.iter().all(|plan| Arc::ptr_eq(plan.matrix(), &shared)));
    let error = Spmv::with(&device, &shared, config("csr_scalar")).unwrap_err().to_string();
    assert!(
        error.starts_with("the matrix on the device has u64 offsets and the kernel was generated for u32")
    );
    let error = Spmv::with(&Recorder::new("sm_90").device(), &shared, wide).unwrap_err().to_string();
    assert!(error.starts_with("the matrix lives on another device than the plan"), "{error}");
    drop((plans, shared));
    assert_eq!(recorder.used(), 0);
}

#[test]
fn offsets_are_uploaded_in_the_width_that_the_kernel_reads() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let wide_host = matrix().to_offsets::<u64>().unwrap();
    for (offset, words) in [(IndexType::U32, vec![0, 3, 4]), (IndexType::U64, vec![0, 0, 3, 0, 4, 0])] {
        let check = |uploaded: DeviceMatrix| {
            assert_eq!(recorder.words(uploaded.addresses().0), words);
            assert_eq!(
                recorder.used(),
                DeviceMatrix::predict_bytes(2, 4, ValueType::F32, offset, IndexType::U32)
            );
        };
        check(DeviceMatrix::upload(&device, &matrix(), offset).unwrap());
        check(DeviceMatrix::upload(&device, &wide_host, offset).unwrap());
    }
}

#[test]
fn memory_is_predicted_before_anything_is_allocated() {
    let most =
        DeviceMatrix::predict_bytes(usize::MAX, usize::MAX, ValueType::F32, IndexType::U64, IndexType::U16);
    assert_eq!(most, u64::MAX);
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let ballast = Vector::<f32>::zeros(&device, (1 << 18) - 8).unwrap();
    let used = recorder.used();
    let error = Spmv::with(&device, &matrix(), config("light_vector")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Memory);
    assert_eq!(error.to_string(), "the matrix needs 44 bytes of device memory and 32 are free");
    assert_eq!(recorder.used(), used);
    let error = Vector::<f64>::zeros(&device, 5).unwrap_err();
    assert_eq!(error.to_string(), "a vector needs 40 bytes of device memory and 32 are free");
    drop(ballast);
    Spmv::with(&device, &matrix(), config("light_vector")).unwrap();
}

#[test]
fn the_workspace_follows_a_change_of_stream() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let (x, y) = vectors(&device);
    let (x, y) = (x.address(), y.address());
    let run = |plan: &mut Spmv, stream| {
        plan.launch_on(
            &OrderedStream::unowned(stream),
            x,
            y,
            Scalar::F64(1.0).into(),
            Scalar::F64(0.0).into(),
        )
        .unwrap();
    };
    let mut with_workspace = Spmv::with(&device, &matrix(), config("light_vector")).unwrap();
    for stream in [0, 7, 7, 9, 0, 0] {
        run(&mut with_workspace, stream);
    }
    let ordered: Vec<_> = recorder.ordered.lock().unwrap().drain(..).map(|(a, b)| (a.0, b.0)).collect();
    assert_eq!(ordered, [(0, 7), (7, 9), (9, 0)]);
    // What is captured does not run, so what follows is ordered behind the product before it.
    run(&mut with_workspace, 0);
    recorder.captured.store(7, Ordering::Relaxed);
    run(&mut with_workspace, 7);
    recorder.captured.store(u64::MAX, Ordering::Relaxed);
    run(&mut with_workspace, 7);
    let ordered: Vec<_> = recorder.ordered.lock().unwrap().drain(..).map(|(a, b)| (a.0, b.0)).collect();
    assert_eq!(ordered, [(0, 7)]);
    // What runs while the stream before it is captured is waited for as well as what ran before that.
    recorder.captured.store(7, Ordering::Relaxed);
    run(&mut with_workspace, 9);
    run(&mut with_workspace, 9);
    recorder.captured.store(u64::MAX, Ordering::Relaxed);
    run(&mut with_workspace, 7);
    recorder.captured.store(7, Ordering::Relaxed);
    run(&mut with_workspace, 9);
    recorder.captured.store(u64::MAX, Ordering::Relaxed);
    run(&mut with_workspace, 0);
    run(&mut with_workspace, 0);
    let ordered: Vec<_> = recorder.ordered.lock().unwrap().drain(..).map(|(a, b)| (a.0, b.0)).collect();
    assert_eq!(ordered, [(9, 7), (7, 0), (9, 0)]);
    recorder.launches.lock().unwrap().drain(6..);
    let mut without = Spmv::with(&device, &matrix(), config("csr_scalar")).unwrap();
    for stream in [0, 7, 9] {
        run(&mut without, stream);
    }
    assert!(recorder.ordered.lock().unwrap().is_empty());
    let streams: Vec<_> = recorder.launches.lock().unwrap().iter().map(|launch| launch.stream.0).collect();
    assert_eq!(streams, [0, 7, 7, 9, 0, 0, 0, 7, 9]);
}

#[test]
fn what_others_run_on_a_simulated_device_costs_a_race_nothing() {
    let device = Device::simulator();
    let (x, mut y) = vectors(&device);
    let plan = || Spmv::with(&device, &matrix(), config("csr_scalar")).unwrap();
    let (mut plan, mut other) = (plan(), plan());
    let mut cost = |meanwhile: &mut dyn FnMut()| {
        let mut work = || {
            meanwhile();
            plan.apply(1.0, &x, 0.0, &mut y)
        };
        device.backend().time(0, 1, &mut work).unwrap()
    };
    let alone = cost(&mut || ());
    let (x, mut y) = vectors(&device);
    let beside = cost(&mut || {
        std::thread::scope(|scope| {
            scope.spawn(|| other.apply(1.0, &x, 0.0, &mut y).unwrap()).join().unwrap()
        });
    });
    assert!(alone > 0.0 && beside == alone, "{alone} {beside}");
}

#[test]
fn kernels_come_from_memory_the_second_time() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let first = Spmv::with(&device, &matrix(), config("csr_vector")).unwrap();
    let second = Spmv::with(&device, &matrix(), config("csr_vector")).unwrap();
    assert_eq!((first.provenance().origin, second.provenance().origin), (Origin::Compiled, Origin::Memory));
    assert!(Arc::ptr_eq(first.kernel(), second.kernel()));
    assert_eq!(recorder.loads.lock().unwrap().len(), 1);
    // The text that runs is the text that the configuration generates.
    assert_eq!(first.program(), &config("csr_vector").program());
}

#[test]
fn kernels_come_from_disk_in_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let compiler =
        || Arc::new(Compiler::new(DiskCache::open(&CacheLocation::folder(folder.path().join("cache")))));
    let recorder = Recorder::new("sm_90");
    let origin = |compiler| {
        let device = Device::new(recorder.clone(), Native::Recorder, compiler);
        device.kernel(&config("csr_scalar")).unwrap().1.origin
    };
    assert_eq!(origin(compiler()), Origin::Compiled);
    assert_eq!(origin(compiler()), Origin::Disk);
    let other = compiler();
    assert_eq!([origin(other.clone()), origin(other)], [Origin::Disk, Origin::Memory]);
}

#[test]
fn kernels_are_looked_for_where_they_are() {
    let recorder = Recorder::new("sm_90");
    let image = |ptx: &str| Image { cubin: vec![1], ptx: ptx.into() };
    let images = vec![image(".entry first(\n.entry first_and_last("), image(".visible .entry second(")];
    let artifact = Arc::new(Artifact { images, ..Artifact::default() });
    let modules = artifact.images.iter().map(|image| recorder.load(image).unwrap()).collect();
    let module = backend::together(&artifact, modules);
    for kernel in ["second", "first_and_last", "first"] {
        let function = module.function(kernel).unwrap();
        assert_eq!(recorder.functions.lock().unwrap()[function.handle as usize], kernel);
        assert_eq!(module.resident_blocks(function, 32, 0).unwrap(), 4);
    }
    for kernel in ["last", "third", ""] {
        let error = module.function(kernel).unwrap_err();
        assert!(matches!(error, Error::MissingKernel { kernel: named } if named == kernel), "{kernel}");
    }
}

#[test]
fn a_rejected_entry_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let compiler =
        || Arc::new(Compiler::new(DiskCache::open(&CacheLocation::folder(folder.path().join("cache")))));
    compiler().compile(&config("csr_scalar"), "sm_90").unwrap();
    let recorder = Recorder::new("sm_90");
    recorder.rejections.store(1, Ordering::Relaxed);
    let device = Device::new(recorder.clone(), Native::Recorder, compiler());
    let (_, provenance) = device.kernel(&config("csr_scalar")).unwrap();
    assert_eq!(provenance.origin, Origin::Compiled);
    assert_eq!(*recorder.loads.lock().unwrap(), [true, true]);
}

#[test]
fn what_was_rejected_is_not_read_from_a_folder_that_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let [cache, kept] = ["cache", "kept"].map(|name| CacheLocation::folder(folder.path().join(name)));
    let opened = |location: &CacheLocation| Compiler::new(DiskCache::open(location));
    let (config, target) = (config("csr_scalar"), Target::Real("sm_90".into()));
    let key = || ProgramKey::Product(config);
    // Two folders with the same entry, so that one outlives what removes the other's.
    for location in [&cache, &kept] {
        opened(location).artifact(key(), target.clone()).unwrap();
    }
    let compiler = opened(&cache);
    assert_eq!(compiler.artifact(key(), target.clone()).unwrap().1, Origin::Disk);
    compiler.forget(key(), target.clone());
    let entries =
        |name: &str| std::fs::read_dir(folder.path().join(name)).unwrap().map(|entry| entry.unwrap());
    for entry in entries("kept").filter(|entry| entry.path().is_file()) {
        std::fs::copy(entry.path(), folder.path().join("cache").join(entry.file_name())).unwrap();
    }
    assert_eq!(opened(&cache).artifact(key(), target.clone()).unwrap().1, Origin::Disk, "it is there");
    assert_eq!(compiler.artifact(key(), target).unwrap().1, Origin::Compiled);
}

#[test]
fn machine_code_that_is_rejected_gives_way_to_ptx() {
    let recorder = Recorder::new("sm_90");
    recorder.rejections.store(1, Ordering::Relaxed);
    let (kernel, _) = recorder.device().kernel(&config("csr_scalar")).unwrap();
    // Fresh machine code, rejected; then PTX.
    assert_eq!(*recorder.loads.lock().unwrap(), [true, false]);
    let image = &kernel.artifact().images[0];
    assert!(image.cubin.is_empty() && image.ptx.contains(".target sm_"));
}

#[test]
fn a_device_newer_than_nvrtc_gets_ptx() {
    let recorder = Recorder::new("sm_999");
    recorder.device().kernel(&config("csr_scalar")).unwrap();
    assert_eq!(*recorder.loads.lock().unwrap(), [false]);
}

#[test]
fn a_driver_that_rejects_everything_is_an_error() {
    let recorder = Recorder::new("sm_90");
    recorder.rejections.store(usize::MAX, Ordering::Relaxed);
    let error = recorder.device().kernel(&config("csr_scalar")).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Environment, "load failed: REJECTED (no)")
    );
}

#[test]
fn one_compile_however_many_ask() {
    let compiler = Arc::new(Compiler::new(DiskCache::open(&CacheLocation::off())));
    let origins = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let config = KernelConfig::builder(CsrScalar { unroll: 2, min_blocks: 0 }).build().unwrap();
                let (_, origin) = compiler.compile(&config, "sm_90").unwrap();
                origins.lock().unwrap().push(origin);
            });
        }
    });
    let origins = origins.into_inner().unwrap();
    assert_eq!(origins.iter().filter(|origin| **origin == Origin::Compiled).count(), 1);
    assert_eq!(origins.len(), 8);
}

#[test]
fn nothing_in_a_plan_keeps_it_on_its_thread() {
    fn sendable<T: Send>() {}
    fn shareable<T: Send + Sync>() {}
    sendable::<Spmv>();
    shareable::<Device>();
    shareable::<Vector<f32>>();
    shareable::<DeviceMatrix>();
    shareable::<Compiler>();
    shareable::<SingleFlight<Target, u8>>();
}

#[test]
fn rows_per_fetch_shrinks_the_grid() {
    let recorder = Recorder::new("sm_90");
    let device = recorder.device();
    let a = CsrMatrix::<f32>::new(1000, 3, vec![0u32; 1001], vec![], vec![]).unwrap();
    let config = KernelConfig::builder(LightVector {
        threads_per_vector: 32,
        rows_per_fetch: 16,
        ..LightVector::default()
    })
    .build()
    .unwrap();
    let mut plan = Spmv::with(&device, &a, config).unwrap();
    let (x, mut y) =
        (Vector::<f32>::zeros(&device, 3).unwrap(), Vector::<f32>::zeros(&device, 1000).unwrap());
    plan.apply(1.0, &x, 0.0, &mut y).unwrap();
    // 8 groups a block, 16 rows each.
    assert_eq!(recorder.launches.lock().unwrap()[0].grid, 8);
}
