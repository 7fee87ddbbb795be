//! How blocks of `sym_dia` walk along the farthest diagonals.

use spmv_codegen::{KernelConfig, SymDia, ValueType};
use spmv_matrix::{CsrMatrix, SymmetricCsr, Symmetry, cpu_serial_symmetric};
use spmv_runtime::{Device, Spmv, Vector};

/// A triangle with entries at these distances from the main diagonal, some left out, whole numbers as values.
fn triangle(n: usize, distances: &[usize]) -> SymmetricCsr<f64> {
    let (mut row_offsets, mut cols, mut values) = (vec![0u32], vec![], vec![]);
    for row in 0..n {
        for distance in distances.iter().filter(|distance| **distance <= row && (row + **distance) % 11 != 3) {
            cols.push((row - distance) as u32);
            values.push(((row * 7 + distance * 3) % 9) as f64 - 4.0);
        }
        row_offsets.push(cols.len() as u32);
    }
    let lower = CsrMatrix::new(n, n, row_offsets, cols, values).unwrap();
    SymmetricCsr::new(Symmetry::Symmetric, lower).unwrap()
}

/// Multiplies on the simulator, compares, and returns the rows of a step and the blocks of both products.
fn walk(a: &SymmetricCsr<f64>, parameters: SymDia, threads_per_block: u32) -> [u64; 3] {
    let device = Device::simulator();
    let x: Vec<f64> = (0..a.num_rows()).map(|i| (i % 13) as f64 - 6.0).collect();
    let mut expected = vec![1.0; a.num_rows()];
    cpu_serial_symmetric(2.0, a, &x, -3.0, &mut expected).unwrap();
    let builder = KernelConfig::builder(parameters).value(ValueType::F64).threads_per_block(threads_per_block);
    let mut plan = Spmv::with(&device, a, builder.build().unwrap()).unwrap();
    let mut y = Vector::from_slice(&device, &vec![1.0; a.num_rows()]).unwrap();
    plan.apply(2.0, &Vector::from_slice(&device, &x).unwrap(), -3.0, &mut y).unwrap();
    assert!(y.to_vec().unwrap() == expected, "{parameters:?}");
    let count = |name| plan.counts().find(|(known, _)| *known == name).unwrap().1;
    ["step", "blocks", "encoded_blocks"].map(count)
}

#[test]
fn a_step_is_as_far_as_the_farthest_diagonals() {
    // A grid of 40 x 30 points: two rows a thread, 128 rows a block of 64 threads. The middle of 1159 to 1241 is 1200, and
    // 1280 the next multiple of 256.
    let a = triangle(9_001, &[1241, 1240, 1200, 1160, 1159, 41, 40, 39, 1, 0]);
    for (steps, stretches) in [(2, 4), (4, 2), (8, 1), (16, 1)] {
        for unroll in [1, 3] {
            let parameters = SymDia { steps, unroll, encoding: 0 };
            assert_eq!(walk(&a, parameters, 64), [1280, 10 * stretches, 10 * stretches], "{steps}");
        }
    }
    // 8 rows a thread where whole numbers are bytes and x has 4 bytes, 4 where it has 8.
    let encoded = SymDia { steps: 4, unroll: 2, encoding: 3 };
    assert_eq!(walk(&a, encoded, 64), [1280, 20, 10]);
}

#[test]
fn nobody_walks_where_diagonals_are_near_or_steps_are_one() {
    let all = 9_001u64.next_multiple_of(256);
    let far = triangle(9_001, &[1200, 1, 0]);
    assert_eq!(walk(&far, SymDia { steps: 1, unroll: 2, encoding: 0 }, 64)[0], all);
    // Two blocks of 512 threads have 2,048 rows.
    assert_eq!(walk(&far, SymDia::default(), 512)[0], all);
    assert_eq!(walk(&triangle(9_001, &[100, 1, 0]), SymDia::default(), 64)[0], all);
    // Nothing is stored, and nothing but the main diagonal.
    assert_eq!(walk(&triangle(300, &[]), SymDia::default(), 64)[0], 512);
    assert_eq!(walk(&triangle(300, &[0]), SymDia::default(), 64)[0], 512);
}
