//! Column indices of 16 bits: the same products from fewer bytes, and what is refused.

use std::sync::Arc;

use spmv_codegen::{
    Algorithm, AlgorithmSpec, IndexType, KernelConfig, KernelConfigBuilder, Operation, ValueType,
};
use spmv_matrix::{CscMatrix, CsrMatrix, cpu_serial};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Constraints, Device, Error, MatrixSource, Spmv, Vector};

/// Rows of 0 to 38 nonzeros, with the first and the last columns among them, and one long enough for several blocks.
fn matrix(num_cols: usize) -> CsrMatrix<f64> {
    let (mut row_offsets, mut cols, mut values) = (vec![0u32], vec![], vec![]);
    for row in 0..300usize {
        let length = if row == 150 { 5_001 } else { row * 7 % 39 };
        for k in 0..length {
            let col = match k {
                0 => num_cols - 1,
                1 => 0,
                _ => (row * 7919 + k * 104_729) % num_cols,
            };
            cols.push(col as u32);
            values.push(((row + 3 * k) % 9) as f64 - 4.0);
        }
        row_offsets.push(cols.len() as u32);
    }
    CsrMatrix::new(300, num_cols, row_offsets, cols, values).unwrap()
}

/// The algorithms whose kernels read columns as the matrix has them, with the most that 16 bits are enough for.
fn narrow() -> impl Iterator<Item = (&'static AlgorithmSpec, usize)> {
    let narrow = Algorithm::ALL.iter().filter(|spec| spec.narrow_columns > 0);
    narrow.map(|spec| (spec, spec.narrow_columns as usize))
}

fn configured(spec: &AlgorithmSpec, operation: Operation) -> KernelConfigBuilder {
    KernelConfig::builder((spec.default)()).value(ValueType::F64).index(IndexType::U16).operation(operation)
}

/// Multiplies numbers that sums hold exactly, on a device, and compares.
fn check(device: &Device, plan: &mut Spmv, a: &CsrMatrix<f64>) {
    let op_a = match plan.operation() {
        Operation::Transpose => a.transpose().unwrap(),
        _ => a.clone(),
    };
    let x: Vec<f64> = (0..op_a.num_cols()).map(|i| (i % 11) as f64 - 5.0).collect();
    let mut expected = vec![1.0; op_a.num_rows()];
    let mut y = Vector::from_slice(device, &expected).unwrap();
    cpu_serial(2.0, &op_a, &x, -1.0, &mut expected).unwrap();
    plan.apply(2.0, &Vector::from_slice(device, &x).unwrap(), -1.0, &mut y).unwrap();
    assert!(y.to_vec().unwrap() == expected, "{}", plan.config());
}

#[test]
fn products_are_right_up_to_the_last_column() {
    // Transposed copies have the same kernels: one schedule is enough for them.
    for (schedule, num_operations) in [(Schedule::Natural, 2), (Schedule::Adversarial(1), 1)] {
        let device = Device::simulator_with(schedule);
        for (spec, most) in narrow() {
            let a = matrix(most);
            // What else the kernels do with columns.
            let variants: &[&[(&str, &str)]] = match spec.name {
                "hola" => &[&[], &[("sort_columns", "1")]],
                "hola_t" => &[&[], &[("combine", "0")], &[("combine", "0"), ("sort_columns", "1")]],
                _ => &[&[]],
            };
            for &operation in spec.operations.iter().take(num_operations) {
                for settings in variants {
                    let mut builder = configured(spec, operation);
                    settings.iter().for_each(|(key, value)| builder.set(key, value).unwrap());
                    let mut plan = match Spmv::with(&device, &a, builder.build().unwrap()) {
                        // A column with an entry in every row is a long row of the transpose.
                        Err(Error::Fill { .. }) if operation == Operation::Transpose => continue,
                        plan => plan.unwrap(),
                    };
                    check(&device, &mut plan, &a);
                    let matrix = plan.matrix();
                    assert_eq!(matrix.index_type(), IndexType::U16);
                    let indices = (a.nnz() * 2).next_multiple_of(4);
                    assert_eq!(matrix.bytes(), (indices + a.nnz() * 8 + 301 * 4) as u64);
                }
            }
        }
    }
}

#[test]
fn one_column_more_is_refused_with_the_limit() {
    let device = Device::simulator();
    for (spec, most) in narrow() {
        let config = configured(spec, spec.operations[0]).build().unwrap();
        match Spmv::with(&device, &matrix(most + 1), config) {
            Err(Error::IndexRange { what: "columns", found, allowed }) => {
                assert_eq!((found, allowed), (most as u64 + 1, most as u64), "{config}");
            }
            other => panic!("{config}: {other:?}"),
        }
    }
}

/// The columns of a transposed copy are rows, and those of a matrix in CSC too.
#[test]
fn rows_that_become_columns_are_limited_too() {
    let device = Device::simulator();
    let tall = matrix(65_537).transpose().unwrap();
    let copied =
        configured(AlgorithmSpec::find("csr_vector").unwrap(), Operation::Transpose).build().unwrap();
    let refused = |error: Error| match error {
        Error::IndexRange { what, found, allowed } => (what, found, allowed),
        other => panic!("{other}"),
    };
    assert_eq!(refused(Spmv::with(&device, &tall, copied).unwrap_err()), ("rows", 65_537, 65_536));
    let by_columns = CscMatrix::from_csr(&tall).unwrap();
    let naive = configured(AlgorithmSpec::find("naive_t").unwrap(), Operation::Transpose).build().unwrap();
    assert_eq!(refused(Spmv::with(&device, &by_columns, naive).unwrap_err()), ("rows", 65_537, 65_536));

    let a = matrix(65_536);
    let mut plan = Spmv::with(&device, &CscMatrix::from_csr(&a).unwrap(), naive).unwrap();
    check(&device, &mut plan, &a);
}

/// A narrow matrix on a device is looked at, chosen for and told apart as others are; an odd number of indices is padded.
#[test]
fn a_narrow_matrix_is_looked_at_as_others_are() {
    let device = Device::simulator();
    let mut a = matrix(1_000);
    for _ in 0..2 {
        let types =
            configured(AlgorithmSpec::find("csr_scalar").unwrap(), Operation::NonTranspose).build().unwrap();
        let narrow = a.to_device(&device, types.types()).unwrap();
        let wide = types.to_builder().index(IndexType::U32).build().unwrap();
        let wide = a.to_device(&device, wide.types()).unwrap();
        assert_eq!(narrow.features().unwrap(), wide.features().unwrap());
        assert_eq!(narrow.features_of_transpose().unwrap(), wide.features_of_transpose().unwrap());
        assert!(narrow.has_structure_of(&a).unwrap());
        assert_ne!(narrow.fingerprint().unwrap(), wide.fingerprint().unwrap());
        for operation in [Operation::NonTranspose, Operation::Transpose] {
            let mut plan = Spmv::auto_with(&device, &narrow, operation, &Constraints::default()).unwrap();
            assert_eq!(plan.config().types().index, IndexType::U16);
            check(&device, &mut plan, &a);
        }
        assert!(matches!(
            Spmv::with(&device, &Arc::clone(&wide), types),
            Err(Error::IndexType { expected: IndexType::U16, got: IndexType::U32 })
        ));
        // The same with one nonzero more in the last row.
        let (mut row_offsets, mut cols, mut values) = a.clone().into_parts();
        *row_offsets.last_mut().unwrap() += 1;
        cols.push(7);
        values.push(1.0);
        let longer = CsrMatrix::new(300, 1_000, row_offsets, cols, values).unwrap();
        assert!(!narrow.has_structure_of(&longer).unwrap());
        a = longer;
    }
}

#[test]
fn what_has_no_use_for_narrow_indices_says_so() {
    for spec in Algorithm::ALL {
        let config = configured(spec, spec.operations[0]).build();
        assert_eq!(config.is_ok(), spec.narrow_columns > 0, "{}", spec.name);
        if let Err(error) = config {
            let said = error.to_string();
            assert!(
                error.key() == "index" && said.contains("use index = u32, or one of csr_scalar"),
                "{said}"
            );
        }
    }
    let error = KernelConfig::named("csr_vector").unwrap().set("index", "u64").unwrap_err();
    assert_eq!(
        error.to_string(),
        "`index` cannot be `u64`: a matrix has fewer than 2^31 columns, so no index needs 64 bits; allowed: u16, u32"
    );
}
