//! Shortest paths from one place to all others: products over min-plus until no distance changes, with the minimum and the number of
//! distances that changed in the kernel; and the same with a plain product and vector operations behind it: verified with each
//! other and with Dijkstra's algorithm on the CPU, times printed.
//!
//! Run with `cargo run --release --example 06_shortest_paths [FILE.mtx | CLASS[:KEY=VALUE,…]]`; the entry in row u and column v is the
//! length of the way from u to v. Lengths of a file must not be negative; of those that are generated the magnitude counts.
//! Without a GPU everything runs on the simulator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use spmv_runtime::matrix::generate::Generator;
use spmv_runtime::matrix::{CsrMatrix, matrix_market};
use spmv_runtime::{Device, Error, Vector, spmv_kernel};

/// A row of the transpose holds the ways that lead to a place: next\[v\] ← min(known\[v\], min over u of length\[u, v\] + known\[u\]),
/// and beside it how many places are nearer than was known.
#[spmv_kernel(
    algorithm = csr_adaptive,
    operation = transpose,
    semiring = min_plus,
    epilogue = |place, found, _before, known| found.min(known),
    dot = |place, next, known| if next < known { 1.0 } else { 0.0 },
    vectors = [known],
)]
struct Relax;

#[spmv_kernel(algorithm = csr_adaptive, operation = transpose, semiring = min_plus, beta = 1)]
struct Plain;

const SOURCE: usize = 0;

/// Where no way is known yet: so far that nothing is farther, and that a difference is a number.
const FAR: f32 = f32::MAX;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1);
    let lengths = matrix(name.as_deref(), "USAir97.mtx")?;
    let is_length = |length: &f32| *length >= 0.0;
    if lengths.num_rows() != lengths.num_cols() || !lengths.values().iter().all(is_length) {
        return Err("the matrix must be square, and no length negative".into());
    }

    let device = Device::open()?;
    println!("{} places, {} ways on {}", lengths.num_rows(), lengths.nnz(), device.properties().name);
    let (distances, rounds, fused_time) = fused(&device, &lengths)?;
    let (others, other_rounds, unfused_time) = unfused(&device, &lengths)?;
    let gain = unfused_time.as_secs_f64() / fused_time.as_secs_f64();
    println!(
        "fused {fused_time:.2?}, a product and vector operations {unfused_time:.2?}: {gain:.2} times as fast"
    );

    // Sums along a path are rounded in its order by all, so the distances are the same numbers.
    assert_eq!((&distances, rounds), (&others, other_rounds));
    assert_eq!(distances, dijkstra(&lengths));
    let reached = distances.iter().copied().filter(|distance| *distance < FAR);
    let farthest = reached.clone().fold(0.0, f32::max);
    println!("{} reached in {rounds} rounds, the farthest {farthest} away", reached.count());
    Ok(())
}

/// A matrix by its file, or by the class that generates it.
fn matrix(name: Option<&str>, default: &str) -> Result<CsrMatrix<f32>, Box<dyn std::error::Error>> {
    let default = format!("{}/../tests/matrices/{default}", env!("CARGO_MANIFEST_DIR"));
    let name = name.unwrap_or(&default);
    if name.ends_with(".mtx") {
        return Ok(matrix_market::read_file(name)?);
    }
    let mut lengths: CsrMatrix<f32> = name.parse::<Generator>()?.generate()?;
    lengths.values_mut().iter_mut().for_each(|length| *length = length.abs());
    Ok(lengths)
}

/// What is known before the first round.
fn source_alone(places: usize) -> Vec<f32> {
    let mut known = vec![FAR; places];
    if let Some(source) = known.get_mut(SOURCE) {
        *source = 0.0;
    }
    known
}

/// Distances from the source, how many rounds it took, and how long; a launch a round, and a number that is read back.
fn fused(device: &Device, lengths: &CsrMatrix<f32>) -> Result<(Vec<f32>, usize, Duration), Error> {
    let mut relax = Relax::plan(device, lengths)?;
    let mut known = Vector::from_slice(device, &source_alone(lengths.num_rows()))?;
    let mut next = Vector::zeros(device, lengths.num_rows())?;
    relax.set_vector("known", &known)?;
    let started = warm(device, || {
        relax.apply(1.0, &known, 0.0, &mut next)?;
        relax.dot().map(Vector::to_vec).transpose().map(drop)
    })?;
    // A path of n places has n - 1 ways, so after n rounds nothing changes.
    for round in 1.. {
        relax.set_vector("known", &known)?;
        relax.apply(1.0, &known, 0.0, &mut next)?;
        let nearer = relax.dot().expect("the kernel has one").to_vec()?[0];
        if nearer == 0.0 {
            let time = started.elapsed();
            return Ok((next.to_vec()?, round, time));
        }
        std::mem::swap(&mut known, &mut next);
    }
    unreachable!("distances fall, and there are finitely many")
}

/// The same, six launches a round: the minimum by a product that adds to what was there, and what changed by the squares of a
/// difference.
fn unfused(device: &Device, lengths: &CsrMatrix<f32>) -> Result<(Vec<f32>, usize, Duration), Error> {
    let mut relax = Plain::plan(device, lengths)?;
    let mut known = Vector::from_slice(device, &source_alone(lengths.num_rows()))?;
    let mut next = Vector::zeros(device, lengths.num_rows())?;
    let mut change = Vector::zeros(device, lengths.num_rows())?;
    let mut round_on = |known: &Vector<f32>, next: &mut Vector<f32>| {
        next.copy_from(known)?;
        relax.apply(1.0, known, 1.0, next)?;
        change.copy_from(next)?;
        change.axpy(-1.0, known)?;
        change.dot(&change)
    };
    let started = warm(device, || round_on(&known, &mut next).map(drop))?;
    for round in 1.. {
        if round_on(&known, &mut next)? == 0.0 {
            let time = started.elapsed();
            return Ok((next.to_vec()?, round, time));
        }
        std::mem::swap(&mut known, &mut next);
    }
    unreachable!("distances fall, and there are finitely many")
}

/// Does a round once, whose result is overwritten, so that everything is compiled and loaded; the time after it.
fn warm(device: &Device, round: impl FnOnce() -> Result<(), Error>) -> Result<Instant, Error> {
    round()?;
    device.synchronize()?;
    Ok(Instant::now())
}

fn dijkstra(lengths: &CsrMatrix<f32>) -> Vec<f32> {
    let mut distances = source_alone(lengths.num_rows());
    // Bits of floating-point numbers that are not negative are in their order.
    let mut open = BinaryHeap::new();
    if SOURCE < distances.len() {
        open.push(Reverse((0.0f32.to_bits(), SOURCE)));
    }
    while let Some(Reverse((bits, place))) = open.pop() {
        let distance = f32::from_bits(bits);
        if distance > distances[place] {
            continue;
        }
        let (next, lengths) = lengths.row(place);
        for (&next, &length) in next.iter().zip(lengths) {
            let next = next as usize;
            if distance + length < distances[next] {
                distances[next] = distance + length;
                open.push(Reverse((distances[next].to_bits(), next)));
            }
        }
    }
    distances
}
