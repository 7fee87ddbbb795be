//! What the host does, with nothing of a GPU: reading, converting and generating matrices, generating kernels, taking
//! them from the cache, and one product on the simulator. criterion tells how each changed since it last ran.
//!
//! usage: cargo bench --bench host [-- PATTERN]; with `-- --test` each runs once, to see that it works

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use spmv_codegen::{Algorithm, KernelConfig, ValueType};
use spmv_matrix::generate::Generator;
use spmv_matrix::{CooMatrix, CsrMatrix, matrix_market};
use spmv_runtime::cache::{CacheLocation, DiskCache};
use spmv_runtime::{Compiler, Device, Error, Nvrtc, Origin, Spmv, Vector};

criterion_group!(host, reading, converting, generating_matrices, generating_kernels, caching, simulating);
criterion_main!(host);

/// The architecture that kernels are compiled for; no GPU is asked.
const ARCH: &str = "sm_90";

fn matrix(class: &str, settings: &[(&str, f64)]) -> CsrMatrix<f64, u32> {
    let generator = Generator::new(class).expect("the class exists");
    let set = |generator: Generator, &(name, value): &(&str, f64)| generator.set(name, value);
    let generator = settings.iter().try_fold(generator, set).expect("the settings are allowed");
    generator.generate().expect("the matrix fits in memory")
}

/// 1 M nonzeros.
fn gaussian() -> CsrMatrix<f64, u32> {
    matrix("gaussian", &[("n", 125e3), ("per_row", 8.0), ("sigma", 1e4)])
}

fn row_indices(a: &CsrMatrix<f64, u32>) -> Vec<u32> {
    let offsets = a.row_offsets();
    let of_row = |(row, ends): (usize, &[u32])| std::iter::repeat_n(row as u32, (ends[1] - ends[0]) as usize);
    offsets.windows(2).enumerate().flat_map(of_row).collect()
}

fn reading(criterion: &mut Criterion) {
    let a = gaussian();
    let mut text = Vec::new();
    matrix_market::write(&mut text, &a).expect("memory can be written");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("gaussian.mtx");
    std::fs::write(&path, &text).expect("the temporary folder can be written");

    let mut group = criterion.benchmark_group("read");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(20);
    group.bench_function("mtx, 1 M nonzeros, f64", |bencher| {
        bencher.iter(|| matrix_market::read_file::<f64, u32>(&path).expect("it was written just now"));
    });
    group.bench_function("mtx in memory, 1 M nonzeros, f64", |bencher| {
        bencher.iter(|| {
            matrix_market::read_bytes::<f64, u32>(black_box(&text)).expect("it was written just now")
        });
    });
    group.finish();
}

fn converting(criterion: &mut Criterion) {
    let a = gaussian();
    let (rows, cols, values) = (row_indices(&a), a.col_indices().to_vec(), a.values().to_vec());
    let coo = |order: &[usize]| {
        let pick = |from: &[u32]| order.iter().map(|&at| from[at]).collect();
        let values = order.iter().map(|&at| values[at]).collect();
        CooMatrix::new(a.num_rows(), a.num_cols(), pick(&rows), pick(&cols), values).expect("it was a matrix")
    };
    let sorted: Vec<usize> = (0..a.nnz()).collect();
    // A stride that shares no factor with the number of entries visits each once, far from the one before.
    let stride = 611_953;
    let shuffled: Vec<usize> = (0..a.nnz()).map(|at| at * stride % a.nnz()).collect();

    let mut group = criterion.benchmark_group("COO to CSR");
    group.throughput(Throughput::Elements(a.nnz() as u64)).sample_size(20);
    for (order, coo) in [("sorted", coo(&sorted)), ("shuffled", coo(&shuffled))] {
        let csr = coo.to_csr::<u32>().expect("it was a matrix");
        assert_eq!(csr.row_offsets(), a.row_offsets(), "{order}");
        group.bench_function(format!("{order}, 1 M nonzeros, f64"), |bencher| {
            bencher.iter(|| black_box(&coo).to_csr::<u32>().expect("it was a matrix"));
        });
    }
    group.finish();
}

fn generating_matrices(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("generate a matrix");
    let classes: [(&str, &[(&str, f64)]); 3] = [
        ("stencil_27", &[("nx", 34.0), ("ny", 34.0), ("nz", 34.0)]),
        ("gaussian", &[("n", 125e3), ("per_row", 8.0), ("sigma", 1e4)]),
        ("rmat", &[("scale", 16.0), ("per_row", 16.0)]),
    ];
    for (class, settings) in classes {
        let nnz = matrix(class, settings).nnz() as u64;
        group.throughput(Throughput::Elements(nnz)).sample_size(20);
        group.bench_function(class, |bencher| bencher.iter(|| matrix(class, black_box(settings))));
    }
    group.finish();
}

fn generating_kernels(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("generate a kernel's source");
    for spec in Algorithm::ALL {
        group.bench_function(spec.name, |bencher| {
            bencher.iter(|| {
                let config = KernelConfig::named(black_box(spec.name)).expect("it is registered");
                config.value(ValueType::F64).build().expect("defaults are allowed").program()
            });
        });
    }
    group.finish();
}

/// A kernel that was compiled before, taken from the folder by a compiler that has nothing in memory yet, then from
/// memory.
fn caching(criterion: &mut Criterion) {
    if let Err(error) = Nvrtc::find() {
        println!("nothing to cache: {error}");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let compiler = || Compiler::new(DiskCache::open(&CacheLocation::folder(folder.path())));
    let config =
        KernelConfig::named("csr_vector").and_then(|config| config.build()).expect("defaults are allowed");
    let filled = compiler();
    let (_, origin) = filled.compile(&config, ARCH).expect("the kernel compiles");
    assert_ne!(origin, Origin::Disk, "the folder was empty");

    let mut group = criterion.benchmark_group("cache hit");
    group.bench_function("disk", |bencher| {
        let take = |fresh: Compiler| {
            let (artifact, origin) = fresh.compile(&config, ARCH).expect("the kernel is there");
            assert_eq!(origin, Origin::Disk);
            (artifact, fresh)
        };
        bencher.iter_batched(compiler, take, BatchSize::SmallInput);
    });
    group.bench_function("memory", |bencher| {
        bencher.iter(|| {
            let (artifact, origin) = filled.compile(black_box(&config), ARCH).expect("the kernel is there");
            assert_eq!(origin, Origin::Memory);
            artifact
        });
    });
    group.finish();
}

fn simulating(criterion: &mut Criterion) {
    if let Err(error) = Nvrtc::find() {
        println!("nothing to simulate: {error}");
        return;
    }
    let a = matrix("stencil_5", &[("nx", 64.0), ("ny", 64.0)]);
    let uncached = Arc::new(Compiler::new(DiskCache::open(&CacheLocation::off())));
    let device = Device::simulator().with_compiler(uncached);
    let x = Vector::from_slice(&device, &vec![1.0; a.num_cols()]).expect("the simulator has memory");
    let mut y = Vector::<f64>::zeros(&device, a.num_rows()).expect("the simulator has memory");

    let mut group = criterion.benchmark_group("simulate a product");
    group.throughput(Throughput::Elements(a.nnz() as u64)).sample_size(20).sampling_mode(SamplingMode::Flat);
    for spec in Algorithm::ALL {
        let config = KernelConfig::named(spec.name).map(|config| config.value(ValueType::F64));
        let config = config.and_then(|config| config.build()).expect("defaults are allowed");
        if config.operation().is_of_triangle() {
            continue;
        }
        let mut plan = match Spmv::with(&device, &a, config) {
            Err(Error::Misfit { .. }) => continue,
            plan => plan.expect("the kernel compiles"),
        };
        group.bench_function(spec.name, |bencher| {
            bencher.iter(|| {
                plan.apply(1.0, &x, 0.0, &mut y).expect("the kernel has no fault");
                device.synchronize().expect("the kernel has no fault");
            });
        });
    }
    group.finish();
}
