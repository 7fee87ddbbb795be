//! The power method for the eigenvalue of largest magnitude: x ← A·x / ‖x‖, the norm added up by the product that stores x;
//! and the same with a plain product and vector operations behind it: results compared with each other and with the CPU,
//! times printed.
//!
//! Run with `cargo run --release --example 09_power_method [FILE.mtx]`; the matrix must be square. Without a GPU everything
//! runs on the simulator.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use spmv_runtime::matrix::{CsrMatrix, cpu_parallel, matrix_market};
use spmv_runtime::{Device, Error, Vector, spmv_kernel};

/// The squares of what is stored are added up exactly, whatever the order.
#[spmv_kernel(
    algorithm = sell_c_sigma,
    epilogue = |row, sum, _before, scale| scale * sum,
    dot = |row, result| result * result,
    scalars = [scale],
)]
struct Step;

#[spmv_kernel(algorithm = sell_c_sigma, alpha = 1, beta = 0)]
struct Product;

const ROUNDS: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/matrices/jagmesh7.mtx"));
    let path = std::env::args_os().nth(1).map_or_else(default, PathBuf::from);
    let a: CsrMatrix<f32> = matrix_market::read_file(&path)?;
    if a.num_rows() != a.num_cols() {
        return Err("the matrix must be square".into());
    }
    let device = Device::open()?;
    println!("{} rows, {} nonzeros, {ROUNDS} rounds on {}", a.num_rows(), a.nnz(), device.properties().name);
    let (fused, fused_time) = fused(&device, &a)?;
    let (unfused, unfused_time) = unfused(&device, &a)?;
    let gain = unfused_time.as_secs_f64() / fused_time.as_secs_f64();
    println!(
        "fused {fused_time:.2?}, a product and vector operations {unfused_time:.2?}: {gain:.2} times as fast"
    );
    let expected = on_cpu(&a)?;
    println!("eigenvalue {fused:.6e}, {unfused:.6e} and {expected:.6e}");
    let agrees = |eigenvalue: f64| (eigenvalue - expected).abs() <= 1e-4 * expected;
    assert!(agrees(fused) && agrees(unfused));
    Ok(())
}

/// One product a round, and the small pass behind it.
fn fused(device: &Device, a: &CsrMatrix<f32>) -> Result<(f64, Duration), Error> {
    let mut plan = Step::plan(device, a)?;
    let mut x = Vector::from_slice(device, &vec![1.0; a.num_cols()])?;
    let mut next = Vector::zeros(device, a.num_rows())?;
    let mut norm = x.norm()?;
    let mut started = Instant::now();
    // The first round compiles and loads.
    for round in 0..=ROUNDS {
        plan.set_scalar("scale", norm.recip() as f32)?;
        plan.apply(1.0, &x, 0.0, &mut next)?;
        norm = plan.dot().expect("the kernel has one").to_vec()?[0].sqrt();
        std::mem::swap(&mut x, &mut next);
        if round == 0 {
            started = Instant::now();
        }
    }
    Ok((norm, started.elapsed()))
}

/// Three launches a round: y ← A·x; ‖y‖; y ← y / ‖y‖.
fn unfused(device: &Device, a: &CsrMatrix<f32>) -> Result<(f64, Duration), Error> {
    let mut plan = Product::plan(device, a)?;
    let mut x = Vector::from_slice(device, &vec![1.0; a.num_cols()])?;
    let mut next = Vector::zeros(device, a.num_rows())?;
    let mut norm = x.norm()?;
    x.scale(norm.recip() as f32)?;
    let mut started = Instant::now();
    for round in 0..=ROUNDS {
        plan.apply(1.0, &x, 0.0, &mut next)?;
        norm = next.norm()?;
        next.scale(norm.recip() as f32)?;
        std::mem::swap(&mut x, &mut next);
        if round == 0 {
            started = Instant::now();
        }
    }
    Ok((norm, started.elapsed()))
}

fn on_cpu(a: &CsrMatrix<f32>) -> Result<f64, Box<dyn std::error::Error>> {
    let a = a.convert::<f64>();
    let mut x = vec![1.0; a.num_cols()];
    let mut norm = 0.0;
    for _ in 0..=ROUNDS {
        let squares: f64 = x.iter().map(|entry| entry * entry).sum();
        x.iter_mut().for_each(|entry| *entry /= squares.sqrt());
        let mut next = vec![0.0; a.num_rows()];
        cpu_parallel(1.0, &a, &x, 0.0, &mut next)?;
        norm = next.iter().map(|entry| entry * entry).sum::<f64>().sqrt();
        x = next;
    }
    Ok(norm)
}
