//! Damped Jacobi, x ← x + ω·(b − A·x)/d with the diagonal d of A, in one kernel; and the same with a plain product and
//! vector operations behind it: results compared with each other and with the CPU, times printed.
//!
//! Run with `cargo run --release --example 08_jacobi [FILE.mtx | CLASS[:KEY=VALUE,…]]`; the diagonal is made to dominate
//! every row, so that the iteration converges. Without a GPU everything runs on the simulator.

use std::time::{Duration, Instant};

use spmv_runtime::matrix::generate::Generator;
use spmv_runtime::matrix::{CsrMatrix, cpu_parallel, matrix_market};
use spmv_runtime::{Device, Error, Vector, spmv_kernel};

/// x, b and d pass by once, with the rows.
#[spmv_kernel(
    algorithm = sell_c_sigma,
    epilogue = |row, image, _before, x, b, d, omega| x + omega * ((b - image) / d),
    vectors = [x, b, d],
    scalars = [omega],
)]
struct Step;

#[spmv_kernel(algorithm = sell_c_sigma, alpha = -1, beta = 1)]
struct Residual;

const OMEGA: f32 = 0.75;
const ROUNDS: usize = 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1);
    let (a, d) = dominated(&matrix(name.as_deref(), "jagmesh7.mtx")?)?;
    let solution: Vec<f32> = (0..a.num_rows()).map(|row| 1.0 + (row % 7) as f32 / 8.0).collect();
    let mut b = vec![0.0; a.num_rows()];
    cpu_parallel(1.0, &a, &solution, 0.0, &mut b)?;
    let device = Device::open()?;
    println!("{} rows, {} nonzeros, {ROUNDS} rounds on {}", a.num_rows(), a.nnz(), device.properties().name);

    let (fused, fused_time) = fused(&device, &a, &b, &d)?;
    let (unfused, unfused_time) = unfused(&device, &a, &b, &d)?;
    let gain = unfused_time.as_secs_f64() / fused_time.as_secs_f64();
    println!(
        "fused {fused_time:.2?}, a product and vector operations {unfused_time:.2?}: {gain:.2} times as fast"
    );

    let expected = on_cpu(&a, &b, &d);
    let error = |x: &[f32], other: &[f64]| {
        x.iter().zip(other).map(|(x, other)| (f64::from(*x) - other).abs()).fold(0.0, f64::max)
    };
    assert!(error(&fused, &expected) < 1e-4 && error(&unfused, &expected) < 1e-4);
    let solution: Vec<f64> = solution.into_iter().map(f64::from).collect();
    let remaining = error(&fused, &solution);
    println!("the solution is known to {remaining:.1e}");
    assert!(remaining < 1e-2);
    Ok(())
}

/// A matrix by its file, or by the class that generates it.
fn matrix(name: Option<&str>, default: &str) -> Result<CsrMatrix<f32>, Box<dyn std::error::Error>> {
    let default = format!("{}/../tests/matrices/{default}", env!("CARGO_MANIFEST_DIR"));
    let name = name.unwrap_or(&default);
    if name.ends_with(".mtx") {
        return Ok(matrix_market::read_file(name)?);
    }
    Ok(name.parse::<Generator>()?.generate()?)
}

/// The matrix with diagonal entries that are 1.5 times the sum of the magnitudes beside them, and 1 where there are none;
/// and these entries.
fn dominated(a: &CsrMatrix<f32>) -> Result<(CsrMatrix<f32>, Vec<f32>), Box<dyn std::error::Error>> {
    let n = a.num_rows();
    if n != a.num_cols() {
        return Err("the matrix must be square".into());
    }
    let (mut offsets, mut cols, mut values, mut d) = (vec![0u32], Vec::new(), Vec::new(), Vec::new());
    for row in 0..n {
        let (row_cols, row_values) = a.row(row);
        let beside = || row_cols.iter().zip(row_values).filter(|(col, _)| **col as usize != row);
        let sum: f32 = beside().map(|(_, value)| value.abs()).sum();
        d.push(if sum == 0.0 { 1.0 } else { 1.5 * sum });
        cols.push(row as u32);
        values.push(d[row]);
        cols.extend(beside().map(|(col, _)| *col));
        values.extend(beside().map(|(_, value)| *value));
        offsets.push(cols.len() as u32);
    }
    Ok((CsrMatrix::new(n, n, offsets, cols, values)?, d))
}

/// One launch a round.
fn fused(device: &Device, a: &CsrMatrix<f32>, b: &[f32], d: &[f32]) -> Result<(Vec<f32>, Duration), Error> {
    let mut plan = Step::plan(device, a)?;
    plan.set_vector("b", &Vector::from_slice(device, b)?)?;
    plan.set_vector("d", &Vector::from_slice(device, d)?)?;
    plan.set_scalar("omega", OMEGA)?;
    let mut x = Vector::zeros(device, b.len())?;
    let mut next = Vector::zeros(device, b.len())?;
    plan.set_vector("x", &x)?;
    let started = warm(device, || plan.apply(1.0, &x, 0.0, &mut next))?;
    for _ in 0..ROUNDS {
        plan.set_vector("x", &x)?;
        plan.apply(1.0, &x, 0.0, &mut next)?;
        std::mem::swap(&mut x, &mut next);
    }
    device.synchronize()?;
    let time = started.elapsed();
    Ok((x.to_vec()?, time))
}

/// Four launches a round: r ← b; r ← r − A·x; r ← r · d⁻¹; x ← x + ω·r.
fn unfused(device: &Device, a: &CsrMatrix<f32>, b: &[f32], d: &[f32]) -> Result<(Vec<f32>, Duration), Error> {
    let mut plan = Residual::plan(device, a)?;
    let inverse: Vec<f32> = d.iter().map(|d| d.recip()).collect();
    let (b, inverse) = (Vector::from_slice(device, b)?, Vector::from_slice(device, &inverse)?);
    let mut x = Vector::zeros(device, b.len())?;
    let mut r = Vector::zeros(device, b.len())?;
    let started = warm(device, || {
        r.copy_from(&b)?;
        plan.apply(-1.0, &x, 1.0, &mut r)?;
        r.multiply(&inverse)?;
        r.axpy(0.0, &b)
    })?;
    for _ in 0..ROUNDS {
        r.copy_from(&b)?;
        plan.apply(-1.0, &x, 1.0, &mut r)?;
        r.multiply(&inverse)?;
        x.axpy(OMEGA, &r)?;
    }
    device.synchronize()?;
    let time = started.elapsed();
    Ok((x.to_vec()?, time))
}

/// Does a round once, whose result is overwritten, so that everything is compiled and loaded; the time after it.
fn warm(device: &Device, round: impl FnOnce() -> Result<(), Error>) -> Result<Instant, Error> {
    round()?;
    device.synchronize()?;
    Ok(Instant::now())
}

fn on_cpu(a: &CsrMatrix<f32>, b: &[f32], d: &[f32]) -> Vec<f64> {
    let mut x = vec![0.0f64; b.len()];
    for _ in 0..ROUNDS {
        let next = (0..b.len()).map(|row| {
            let (cols, values) = a.row(row);
            let terms = cols.iter().zip(values).map(|(&col, &value)| f64::from(value) * x[col as usize]);
            let image: f64 = terms.sum();
            x[row] + f64::from(OMEGA) * (f64::from(b[row]) - image) / f64::from(d[row])
        });
        x = next.collect();
    }
    x
}
