//! The formats of `sym_csr`'s plan, and what the algorithm takes.

use spmv_codegen::{Algorithm, KernelConfig, Operation, StorageFormat, SymCsr, ValueType};
use spmv_matrix::{Complex64, CsrMatrix, SymmetricCsr, Symmetry, cpu_serial_symmetric};
use spmv_runtime::{Device, Element, Scalar, Spmv, Vector};

/// A lower triangle whose row `i` has the columns `columns(i)`, with whole numbers that sums hold exactly: those of
/// `number`, from each entry's row and column.
fn triangle<V: Element>(
    symmetry: Symmetry,
    n: usize,
    number: impl Fn(usize, usize) -> V,
    columns: impl Fn(usize) -> Vec<usize>,
) -> SymmetricCsr<V> {
    let (mut row_offsets, mut cols, mut values) = (vec![0u32], vec![], vec![]);
    for row in 0..n {
        for col in columns(row) {
            cols.push(col as u32);
            values.push(number(row, col));
        }
        row_offsets.push(cols.len() as u32);
    }
    SymmetricCsr::new(symmetry, CsrMatrix::new(n, n, row_offsets, cols, values).unwrap()).unwrap()
}

fn real(row: usize, col: usize) -> f64 {
    ((row * 7 + col * 3) % 9) as f64 - 4.0
}

/// With an imaginary part but on the diagonal.
fn complex(row: usize, col: usize) -> Complex64 {
    let im = if row == col { 0.0 } else { ((row + col * 5) % 7) as f64 - 3.0 };
    Complex64::new(real(row, col), im)
}

/// Multiplies on the simulator, compares, and returns whether the plan's format is the wide one.
fn is_wide<V: Element<Sum = V> + Into<Scalar>>(
    a: &SymmetricCsr<V>,
    number: impl Fn(usize, usize) -> V,
) -> bool {
    let device = Device::simulator();
    let x: Vec<V> = (0..a.num_rows()).map(|i| number(i, i % 11)).collect();
    let (alpha, beta) = (number(5, 2), number(2, 7));
    let mut expected = x.clone();
    cpu_serial_symmetric(alpha, a, &x, beta, &mut expected).unwrap();
    let config = KernelConfig::builder(SymCsr::default()).value(V::TYPE).build().unwrap();
    let mut plan = Spmv::with(&device, a, config).unwrap();
    let mut y = Vector::from_slice(&device, &x).unwrap();
    plan.apply(alpha, &Vector::from_slice(&device, &x).unwrap(), beta, &mut y).unwrap();
    assert!(y.to_vec().unwrap() == expected);
    let wide = plan.counts().find(|(name, _)| *name == "wide").unwrap().1;
    assert!(wide <= 1);
    wide == 1
}

#[test]
fn sixteen_bits_serve_as_far_as_they_reach() {
    let far = |row: usize, reach: usize| match row {
        65_550.. => vec![row - 1, row - reach.min(row)],
        _ => vec![],
    };
    for (reach, wide) in [(65_535, false), (65_536, true)] {
        for symmetry in [Symmetry::Symmetric, Symmetry::SkewSymmetric] {
            let a = triangle(symmetry, 65_600, real, |row| far(row, reach));
            assert_eq!(is_wide(&a, real), wide, "{reach}");
        }
        let a = triangle(Symmetry::Hermitian, 65_600, complex, |row| far(row, reach));
        assert_eq!(is_wide(&a, complex), wide, "{reach}");
    }
}

#[test]
fn long_rows_and_columns_are_the_warps() {
    // Row 700 and column 0 are long in one triangle, rows around 300 just are and just are not.
    let columns = |row: usize| match row {
        700 => (0..700).collect(),
        250..260 => (0..row).rev().collect(),
        1.. => vec![0, row / 2],
        0 => vec![],
    };
    assert!(!is_wide(&triangle(Symmetry::SkewSymmetric, 900, real, columns), real));
    assert!(!is_wide(&triangle(Symmetry::Hermitian, 900, complex, columns), complex));
    // All rows of a slice are long, and their places together reach beyond 16 bits.
    let dense = triangle(Symmetry::Symmetric, 2_250, real, |row| {
        if row >= 2_208 { (0..=row).collect() } else { vec![row] }
    });
    assert!(is_wide(&dense, real));
}

#[test]
fn one_triangle_is_what_it_takes() {
    let spec = Algorithm::from(SymCsr::default()).spec();
    assert_eq!(spec.operations, [Operation::Symmetric, Operation::SkewSymmetric, Operation::Hermitian]);
    for (&operation, storage) in spec.operations.iter().zip([
        StorageFormat::Symmetric,
        StorageFormat::SkewSymmetric,
        StorageFormat::Hermitian,
    ]) {
        let builder = KernelConfig::builder(SymCsr::default()).value(ValueType::C32);
        let config = builder.operation(operation).build().unwrap();
        assert_eq!(config.program().storage, storage);
        assert_eq!(storage.of_arrays(Operation::NonTranspose), Some(operation));
    }
    let full =
        KernelConfig::builder(SymCsr::default()).operation(Operation::NonTranspose).build().unwrap_err();
    assert!(full.to_string().contains("symmetric"), "{full}");
    for (value, x) in [(ValueType::F64, ValueType::F64), (ValueType::F32, ValueType::C32)] {
        let builder = KernelConfig::builder(SymCsr::default()).value(value).x(x).y(x);
        let error = builder.operation(Operation::Hermitian).build().unwrap_err();
        assert_eq!(error.key(), "operation");
        assert_eq!(
            error.to_string(),
            format!(
                "operation = hermitian mirrors conjugates, and value = {value} has no imaginary part: use operation = \
                 symmetric, which is the same there, or value = c32, c64"
            )
        );
    }
}
