//! PageRank in one kernel that reads no values, and the same with a plain product and vector operations behind it: results
//! compared with each other and with the CPU, times printed.
//!
//! Run with `cargo run --release --example 07_page_rank [FILE.mtx | CLASS[:KEY=VALUE,…]]`; an entry in row u and column v
//! is a link from u to v, whatever its value. Without a GPU everything runs on the simulator.

use std::time::{Duration, Instant};

use spmv_runtime::matrix::generate::Generator;
use spmv_runtime::matrix::{CsrMatrix, matrix_market};
use spmv_runtime::{Device, Error, Vector, spmv_kernel};

/// x is what a page gives to each that it links to, so values are not read; y the same after the round: the page's rank, of
/// which some is there from the start, shared out among its links.
#[spmv_kernel(
    algorithm = merge_path,
    operation = transpose,
    combine = |_value, given| given,
    epilogue = |page, received, _before, links, damping, rest| (damping * received + rest) / links,
    vectors = [links],
    scalars = [damping, rest],
)]
struct Damped;

/// The product that a library has: a row of the transpose holds the parts of their ranks that pages give to one.
#[spmv_kernel(algorithm = merge_path, operation = transpose, alpha = 1, beta = 0)]
struct Plain;

const DAMPING: f32 = 0.85;
const ROUNDS: usize = 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1);
    let links = matrix(name.as_deref(), "USAir97.mtx")?;
    let shares = shares(&links)?;
    let device = Device::open()?;
    println!(
        "{} pages, {} links, {ROUNDS} rounds on {}",
        links.num_rows(),
        shares.nnz(),
        device.properties().name
    );

    let (fused, fused_time) = fused(&device, &shares)?;
    let (unfused, unfused_time) = unfused(&device, &shares)?;
    let gain = unfused_time.as_secs_f64() / fused_time.as_secs_f64();
    println!(
        "fused {fused_time:.2?}, a product and vector operations {unfused_time:.2?}: {gain:.2} times as fast"
    );

    let expected = on_cpu(&shares);
    let near = |rank: &f32, expected: &f64| (f64::from(*rank) - expected).abs() <= 1e-4 * expected;
    assert!(fused.iter().zip(&expected).all(|(rank, expected)| near(rank, expected)));
    assert!(unfused.iter().zip(&expected).all(|(rank, expected)| near(rank, expected)));
    let best = (0..fused.len()).max_by(|a, b| fused[*a].total_cmp(&fused[*b])).unwrap_or_default();
    println!(
        "page {} has the highest rank, {:.2} times the mean",
        best + 1,
        fused[best] * fused.len() as f32
    );
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

/// What a page gives to each that it links to; a page without links keeps its rank.
fn shares(links: &CsrMatrix<f32>) -> Result<CsrMatrix<f32>, Box<dyn std::error::Error>> {
    let n = links.num_rows();
    if n != links.num_cols() {
        return Err("the matrix must be square: a row and a column a page".into());
    }
    let (mut offsets, mut cols, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for page in 0..n {
        let (targets, _) = links.row(page);
        if targets.is_empty() {
            cols.push(page as u32);
            values.push(1.0);
        } else {
            cols.extend_from_slice(targets);
            values.resize(cols.len(), 1.0 / targets.len() as f32);
        }
        offsets.push(cols.len() as u32);
    }
    Ok(CsrMatrix::new(n, n, offsets, cols, values)?)
}

/// One launch a round.
fn fused(device: &Device, shares: &CsrMatrix<f32>) -> Result<(Vec<f32>, Duration), Error> {
    let n = shares.num_rows();
    let links: Vec<f32> = (0..n).map(|page| shares.row(page).0.len() as f32).collect();
    let mut plan = Damped::plan(device, shares)?;
    plan.set_vector("links", &Vector::from_slice(device, &links)?)?;
    plan.set_scalar("damping", DAMPING)?;
    plan.set_scalar("rest", (1.0 - DAMPING) / n as f32)?;
    let given: Vec<f32> = links.iter().map(|links| 1.0 / n as f32 / links).collect();
    let mut given = Vector::from_slice(device, &given)?;
    let mut next = Vector::zeros(device, n)?;
    let started = warm(device, || plan.apply(1.0, &given, 0.0, &mut next))?;
    for _ in 0..ROUNDS {
        plan.apply(1.0, &given, 0.0, &mut next)?;
        std::mem::swap(&mut given, &mut next);
    }
    device.synchronize()?;
    let time = started.elapsed();
    let rank = given.to_vec()?.iter().zip(&links).map(|(given, links)| given * links).collect();
    Ok((rank, time))
}

/// Three launches a round, each of which passes over the ranks again.
fn unfused(device: &Device, shares: &CsrMatrix<f32>) -> Result<(Vec<f32>, Duration), Error> {
    let n = shares.num_rows();
    let mut plan = Plain::plan(device, shares)?;
    let ones = Vector::from_slice(device, &vec![1.0f32; n])?;
    let mut rank = Vector::from_slice(device, &vec![1.0 / n as f32; n])?;
    let mut next = Vector::zeros(device, n)?;
    let rest = (1.0 - DAMPING) / n as f32;
    let started = warm(device, || {
        plan.apply(1.0, &rank, 0.0, &mut next)?;
        next.scale(DAMPING)?;
        next.axpy(rest, &ones)
    })?;
    for _ in 0..ROUNDS {
        plan.apply(1.0, &rank, 0.0, &mut next)?;
        next.scale(DAMPING)?;
        next.axpy(rest, &ones)?;
        std::mem::swap(&mut rank, &mut next);
    }
    device.synchronize()?;
    let time = started.elapsed();
    Ok((rank.to_vec()?, time))
}

/// Does a round once, whose result is overwritten, so that everything is compiled and loaded; the time after it.
fn warm(device: &Device, round: impl FnOnce() -> Result<(), Error>) -> Result<Instant, Error> {
    round()?;
    device.synchronize()?;
    Ok(Instant::now())
}

fn on_cpu(shares: &CsrMatrix<f32>) -> Vec<f64> {
    let n = shares.num_rows();
    let mut rank = vec![1.0 / n as f64; n];
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; n];
        for (page, rank) in rank.iter().enumerate() {
            let (targets, values) = shares.row(page);
            for (&target, &share) in targets.iter().zip(values) {
                next[target as usize] += f64::from(share) * rank;
            }
        }
        let damping = f64::from(DAMPING);
        next.iter_mut().for_each(|next| *next = damping * *next + (1.0 - damping) / n as f64);
        rank = next;
    }
    rank
}
