//! The formats of `sym_csr`'s plan, and what the algorithm takes.

use spmv_codegen::{Algorithm, KernelConfig, Operation, StorageFormat, SymCsr};
use spmv_matrix::{CsrMatrix, SymmetricCsr, Symmetry, cpu_serial_symmetric};
use spmv_runtime::{Device, Spmv, Vector};

/// A lower triangle whose row `i` has the columns `columns(i)`, with whole numbers that sums hold exactly.
fn triangle(symmetry: Symmetry, n: usize, columns: impl Fn(usize) -> Vec<usize>) -> SymmetricCsr<f64> {
    let (mut row_offsets, mut cols, mut values) = (vec![0u32], vec![], vec![]);
    for row in 0..n {
        for col in columns(row) {
            cols.push(col as u32);
            values.push(((row * 7 + col * 3) % 9) as f64 - 4.0);
        }
        row_offsets.push(cols.len() as u32);
    }
    SymmetricCsr::new(symmetry, CsrMatrix::new(n, n, row_offsets, cols, values).unwrap()).unwrap()
}

/// Multiplies on the simulator, compares, and returns whether the plan's format is the wide one.
fn is_wide(a: &SymmetricCsr<f64>) -> bool {
    let device = Device::simulator();
    let x: Vec<f64> = (0..a.num_rows()).map(|i| (i % 11) as f64 - 5.0).collect();
    let mut expected = vec![1.0; x.len()];
    cpu_serial_symmetric(2.0, a, &x, -1.0, &mut expected).unwrap();
    let config =
        KernelConfig::builder(SymCsr::default()).value(spmv_codegen::ValueType::F64).build().unwrap();
    let mut plan = Spmv::with(&device, a, config).unwrap();
    let mut y = Vector::from_slice(&device, &vec![1.0; x.len()]).unwrap();
    plan.apply(2.0, &Vector::from_slice(&device, &x).unwrap(), -1.0, &mut y).unwrap();
    assert!(y.to_vec().unwrap() == expected);
    let wide = plan.counts().find(|(name, _)| *name == "wide").unwrap().1;
    assert!(wide <= 1);
    wide == 1
}

#[test]
fn sixteen_bits_serve_as_far_as_they_reach() {
    for (reach, wide) in [(65_535, false), (65_536, true)] {
        for symmetry in [Symmetry::Symmetric, Symmetry::SkewSymmetric] {
            let a = triangle(symmetry, 65_600, |row| match row {
                65_550.. => vec![row - 1, row - reach.min(row)],
                _ => vec![],
            });
            assert_eq!(is_wide(&a), wide, "{reach}");
        }
    }
}

#[test]
fn long_rows_and_columns_are_the_warps() {
    // Row 700 and column 0 are long in one triangle, rows around 300 just are and just are not.
    let a = triangle(Symmetry::SkewSymmetric, 900, |row| match row {
        700 => (0..700).collect(),
        250..260 => (0..row).rev().collect(),
        1.. => vec![0, row / 2],
        0 => vec![],
    });
    assert!(!is_wide(&a));
    // All rows of a slice are long, and their places together reach beyond 16 bits.
    let dense =
        triangle(
            Symmetry::Symmetric,
            2_250,
            |row| if row >= 2_208 { (0..=row).collect() } else { vec![row] },
        );
    assert!(is_wide(&dense));
}

#[test]
fn one_triangle_is_what_it_takes() {
    let spec = Algorithm::from(SymCsr::default()).spec();
    assert_eq!(spec.operations, [Operation::Symmetric, Operation::SkewSymmetric]);
    for (&operation, storage) in
        spec.operations.iter().zip([StorageFormat::Symmetric, StorageFormat::SkewSymmetric])
    {
        let config = KernelConfig::builder(SymCsr::default()).operation(operation).build().unwrap();
        assert_eq!(config.program().storage, storage);
        assert_eq!(storage.of_arrays(Operation::NonTranspose), Some(operation));
    }
    let full =
        KernelConfig::builder(SymCsr::default()).operation(Operation::NonTranspose).build().unwrap_err();
    assert!(full.to_string().contains("symmetric"), "{full}");
}
