//! Solves min ‖A·x − b‖ with LSQR: products with A and with its transpose from one copy of A on the device.
//!
//! Run with `cargo run --example 04_least_squares [FILE.mtx]`; the matrix must have full column rank. Without a GPU
//! everything runs on the simulator. The method is that of Paige and Saunders, *LSQR: An Algorithm for Sparse Linear
//! Equations and Sparse Least Squares* (ACM TOMS 8, 1982).

use std::path::PathBuf;

use spmv_runtime::matrix::{CsrMatrix, cpu_parallel, matrix_market};
use spmv_runtime::{Device, Error, KernelConfig, Spmv, ValueType, Vector};

/// Of the normal equations' residual, relative to its first.
const TOLERANCE: f64 = 1e-12;
const MAX_ITERATIONS: usize = 10_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // More columns than rows: the transpose of the file's matrix is the one with full column rank.
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/matrices/lp_afiro.mtx"));
    let given = std::env::args_os().nth(1).map(PathBuf::from);
    let file: CsrMatrix<f64> = matrix_market::read_file(given.clone().unwrap_or_else(default))?;
    let a = if given.is_some() { file } else { file.transpose()? };
    println!("{} rows, {} columns, {} nonzeros", a.num_rows(), a.num_cols(), a.nnz());

    // b has a part that no A·x reaches.
    let mut b: Vec<f64> = (0..a.num_rows()).map(|i| (i % 7) as f64 - 3.0).collect();
    cpu_parallel(1.0, &a, &vec![1.0; a.num_cols()], 1.0, &mut b)?;
    let device = Device::open()?;
    let (x, iterations) = solve(&device, &a, &b)?;

    // At the minimum the residual is orthogonal to every column.
    let mut residual = b.clone();
    cpu_parallel(-1.0, &a, &x, 1.0, &mut residual)?;
    let mut gradient = vec![0.0; a.num_cols()];
    cpu_parallel(1.0, &a.transpose()?, &residual, 0.0, &mut gradient)?;
    let largest = gradient.iter().fold(0.0f64, |largest, entry| largest.max(entry.abs()));
    println!(
        "{iterations} iterations on {}, largest entry of the gradient {largest:.1e}",
        device.properties().name
    );
    assert!(largest < 1e-6);
    Ok(())
}

/// LSQR on a device. Only two norms of an iteration come back to the host.
fn solve(device: &Device, a: &CsrMatrix<f64>, b: &[f64]) -> Result<(Vec<f64>, usize), Error> {
    let config = |algorithm| KernelConfig::named(algorithm)?.value(ValueType::F64).build();
    let (mut a, mut a_t) = Spmv::pair(device, a, config("csr_vector")?, config("hola_t")?)?;
    let (num_cols, num_rows) = a.vector_lengths();
    let mut x = Vector::zeros(device, num_cols)?;
    let mut u = Vector::from_slice(device, b)?;
    assert_eq!(u.len(), num_rows);
    let mut beta = normalize(&mut u)?;
    let mut v = Vector::zeros(device, num_cols)?;
    a_t.apply(1.0, &u, 0.0, &mut v)?;
    let mut alpha = normalize(&mut v)?;
    let mut direction = Vector::zeros(device, num_cols)?;
    direction.copy_from(&v)?;
    let (mut phi, mut rho) = (beta, alpha);
    let target = TOLERANCE * alpha * beta;
    let mut iterations = 0;
    while phi * alpha > target && iterations < MAX_ITERATIONS {
        // The next two vectors of the bidiagonalisation: u <- A v - alpha u, v <- A^T u - beta v.
        a.apply(1.0, &v, -alpha, &mut u)?;
        beta = normalize(&mut u)?;
        a_t.apply(1.0, &u, -beta, &mut v)?;
        alpha = normalize(&mut v)?;
        // The rotation that makes the bidiagonal matrix triangular.
        let length = rho.hypot(beta);
        let (cosine, sine) = (rho / length, beta / length);
        let theta = sine * alpha;
        x.axpy(cosine * phi / length, &direction)?;
        direction.aypx(-theta / length, &v)?;
        rho = -cosine * alpha;
        phi *= sine;
        iterations += 1;
        if phi * alpha * cosine.abs() <= target {
            break;
        }
    }
    Ok((x.to_vec()?, iterations))
}

/// Scales a vector to length 1 and gives the length that it had; a zero stays as it is.
fn normalize(vector: &mut Vector<f64>) -> Result<f64, Error> {
    let norm = vector.norm()?;
    if norm > 0.0 {
        vector.scale(1.0 / norm)?;
    }
    Ok(norm)
}
