//! Reads a Matrix Market file and solves A·x = b with conjugate gradients: products by a generated kernel,
//! vectors that stay on the device.
//!
//! Run with `cargo run --example 03_solve [FILE.mtx]`; the matrix must be symmetric and definite. Without a GPU
//! everything runs on the simulator.

use std::path::PathBuf;

use spmv_runtime::matrix::{CsrMatrix, cpu_parallel, matrix_market};
use spmv_runtime::{Device, Error, Vector, spmv_kernel};

/// Rows of about four nonzeros, double precision; p·A·p comes with A·p.
#[spmv_kernel(
    algorithm = csr_vector,
    threads_per_vector = 4,
    value = f64,
    dot = |row, image, direction| image * direction,
    vectors = [direction],
)]
struct Product;

/// Of the residual, relative to b.
const TOLERANCE: f64 = 1e-10;
const MAX_ITERATIONS: usize = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/matrices/sherman1.mtx"));
    let path = std::env::args_os().nth(1).map_or_else(default, PathBuf::from);
    let a: CsrMatrix<f64> = matrix_market::read_file(&path)?;
    println!("{}: {} rows, {} nonzeros", path.display(), a.num_rows(), a.nnz());
    let ones = vec![1.0; a.num_cols()];
    let mut b = vec![0.0; a.num_rows()];
    cpu_parallel(1.0, &a, &ones, 0.0, &mut b)?;

    let device = Device::open()?;
    let (x, iterations) = solve(&device, &a, &b)?;
    let error = x.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
    println!("{iterations} iterations on {}, largest error {error:.1e}", device.properties().name);
    assert!(error < 1e-4);
    Ok(())
}

/// Conjugate gradients on a device. Only two numbers of an iteration come back to the host.
fn solve(device: &Device, a: &CsrMatrix<f64>, b: &[f64]) -> Result<(Vec<f64>, usize), Error> {
    let mut product = Product::plan(device, a)?;
    let mut x = Vector::zeros(device, b.len())?;
    let mut residual = Vector::from_slice(device, b)?;
    let mut direction = Vector::from_slice(device, b)?;
    let mut image = Vector::zeros(device, b.len())?;
    let mut squares = residual.dot(&residual)?;
    product.set_vector("direction", &direction)?;
    let target = squares * TOLERANCE * TOLERANCE;
    let mut iterations = 0;
    while squares > target && iterations < MAX_ITERATIONS {
        product.apply(1.0, &direction, 0.0, &mut image)?;
        let step = squares / product.dot().expect("the kernel has one").to_vec()?[0];
        x.axpy(step, &direction)?;
        residual.axpy(-step, &image)?;
        let previous = std::mem::replace(&mut squares, residual.dot(&residual)?);
        direction.aypx(squares / previous, &residual)?;
        iterations += 1;
    }
    Ok((x.to_vec()?, iterations))
}
