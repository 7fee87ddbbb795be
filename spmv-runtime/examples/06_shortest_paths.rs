//! Shortest paths from one airport to all others: products over min-plus until no distance changes, verified with
//! Dijkstra's algorithm on the CPU.
//!
//! Run with `cargo run --example 06_shortest_paths [FILE.mtx]`; the entry in row u and column v is the length of the way from u to v and
//! must not be negative. Without a GPU everything runs on the simulator.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use spmv_runtime::matrix::{CsrMatrix, matrix_market};
use spmv_runtime::{Device, Error, Vector, spmv_kernel};

/// A row of the transpose holds the ways that lead to a place: distance\[v\] ← min over u of length\[u, v\] + distance\[u\].
#[spmv_kernel(algorithm = csr_vector, operation = transpose, semiring = min_plus, beta = 1)]
struct Relax;

const SOURCE: usize = 0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let default = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/matrices/USAir97.mtx"));
    let path = std::env::args_os().nth(1).map_or_else(default, PathBuf::from);
    let lengths: CsrMatrix<f32> = matrix_market::read_file(&path)?;
    let is_length = |length: &f32| *length >= 0.0;
    if lengths.num_rows() != lengths.num_cols() || !lengths.values().iter().all(is_length) {
        return Err("the matrix must be square, and no length negative".into());
    }

    let device = Device::open()?;
    let (distances, rounds) = shortest_paths(&device, &lengths)?;
    let reached = distances.iter().filter(|distance| distance.is_finite()).count();
    let farthest = distances.iter().copied().filter(|distance| distance.is_finite()).fold(0.0, f32::max);
    println!("{}: {} places, {} ways", path.display(), lengths.num_rows(), lengths.nnz());
    println!(
        "{reached} reached in {rounds} rounds on {}, the farthest {farthest} away",
        device.properties().name
    );
    // Sums along a path are rounded in its order by both, so the distances are the same numbers.
    assert_eq!(distances, dijkstra(&lengths));
    Ok(())
}

/// Distances from the source, infinite where no way leads, and how many products it took.
fn shortest_paths(device: &Device, lengths: &CsrMatrix<f32>) -> Result<(Vec<f32>, usize), Error> {
    let mut relax = Relax::plan(device, lengths)?;
    let mut known = vec![f32::INFINITY; lengths.num_rows()];
    if let Some(source) = known.get_mut(SOURCE) {
        *source = 0.0;
    }
    let mut from = Vector::from_slice(device, &known)?;
    let mut to = Vector::from_slice(device, &known)?;
    // A path of n places has n - 1 ways, so after n rounds nothing changes.
    for round in 1.. {
        relax.apply(1.0, &from, 1.0, &mut to)?;
        let found = to.to_vec()?;
        if found == known {
            return Ok((found, round));
        }
        from.copy_from(&to)?;
        known = found;
    }
    unreachable!("distances fall, and there are finitely many")
}

fn dijkstra(lengths: &CsrMatrix<f32>) -> Vec<f32> {
    let mut distances = vec![f32::INFINITY; lengths.num_rows()];
    // Bits of floating-point numbers that are not negative are in their order.
    let mut open = BinaryHeap::new();
    if let Some(source) = distances.get_mut(SOURCE) {
        *source = 0.0;
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
