//! Plans of declared kernels, whose structs implement nothing else.

use std::sync::Arc;

use spmv_runtime::codegen::Operation;
use spmv_runtime::matrix::{CscMatrix, CsrMatrix};
use spmv_runtime::{Device, DeviceMatrix, IndexType, Plan, Vector, spmv_kernel};

#[spmv_kernel(algorithm = naive_t)]
struct Plain;

#[spmv_kernel(algorithm = csr_vector)]
struct Transposed;

#[test]
fn two_kernels_multiply_with_one_matrix_in_csc_and_its_transpose() {
    let device = Device::simulator();
    // [[1, 3, 2], [0, 5, 0]]
    let a = CscMatrix::new(2, 3, vec![0u32, 1, 3, 4], vec![0, 0, 1, 0], vec![1.0f32, 3.0, 5.0, 2.0]).unwrap();
    let a = Arc::new(DeviceMatrix::upload_csc(&device, &a, IndexType::U32).unwrap());
    let mut plain = Plan::<Plain>::with_operation(&device, &a, Operation::NonTranspose).unwrap();
    let mut transposed = Plan::<Transposed>::with_operation(&device, &a, Operation::Transpose).unwrap();
    assert!(Arc::ptr_eq(plain.as_spmv().matrix(), transposed.as_spmv().matrix()));
    assert_eq!(transposed.as_spmv().operation(), Operation::Transpose);
    let mut y = Vector::<f32>::zeros(&device, 2).unwrap();
    plain.apply(1.0, &Vector::from_slice(&device, &[2.0, 1.0, 4.0]).unwrap(), 0.0, &mut y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [13.0, 5.0]);
    let mut z = Vector::<f32>::zeros(&device, 3).unwrap();
    transposed.apply(1.0, &y, 0.0, &mut z).unwrap();
    assert_eq!(z.to_vec().unwrap(), [13.0, 64.0, 26.0]);
    // What a kernel does not compute from these arrays is refused, as for a plan without types.
    let refused = Plan::<Plain>::with_operation(&device, &a, Operation::Transpose).unwrap_err();
    let said = "naive_t does not compute the transpose product of a matrix in csc; these do: csr_scalar, ";
    assert!(refused.to_string().starts_with(said), "{refused}");
}

#[test]
fn a_plan_is_printed_whatever_its_kernel_is() {
    #[derive(Debug)]
    struct Solver {
        _plan: Plan<Transposed>,
    }

    let device = Device::simulator();
    let a = CsrMatrix::<f32>::new(1, 1, vec![0u32, 1], vec![0], vec![1.0]).unwrap();
    let solver = Solver { _plan: Transposed::plan(&device, &a).unwrap() };
    assert!(format!("{solver:?}").starts_with("Solver { _plan: Plan(Spmv { config: csr_vector "));
    let a = CsrMatrix::<f64>::new(1, 1, vec![0u32, 1], vec![0], vec![1.0]).unwrap();
    assert!(format!("{:?}", Transposed::plan(&device, &a).unwrap_err()).starts_with("ValueType"));
}
