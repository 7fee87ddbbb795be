//! What the user writes, in every algorithm that takes it, on the simulator and on the GPU where there is one: the same
//! numbers as on the CPU, and what is bound by name.

mod cover;
mod typed;

use spmv_codegen::{Algorithm, KernelConfig};
use spmv_matrix::{Accumulate, CsrMatrix};
use spmv_runtime::{Device, Error, Spmv, Vector};
use typed::AnyVector;

/// Whole numbers from −4 to 4.
fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7 + seed * 13 + i / 5) % 9) as f64 - 4.0).collect()
}

/// Rows of 0 to 4 entries, and one of 200, in 60 columns.
fn matrix() -> CsrMatrix<f64> {
    let (mut offsets, mut cols) = (vec![0u32], vec![]);
    for row in 0..97usize {
        let length = if row == 40 { 200 } else { row * row % 5 };
        cols.extend((0..length).map(|j| ((row * 3 + j * 7) % 60) as u32));
        offsets.push(cols.len() as u32);
    }
    let values = numbers(cols.len(), 1);
    CsrMatrix::new(97, 60, offsets, cols, values).expect("a matrix")
}

#[test]
fn every_algorithm_computes_what_the_cpu_computes() {
    let a = matrix();
    let mut wrong = Vec::new();
    for device in [Some(Device::simulator()), Device::cuda(0).ok()].into_iter().flatten() {
        for config in Algorithm::ALL.iter().flat_map(cover::over_functions) {
            if let Err(problem) = check(&device, &a, &config) {
                wrong.push(format!("{}: {config}: {problem}", device.properties().name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(device: &Device, a: &CsrMatrix<f64>, config: &KernelConfig) -> Result<(), String> {
    let told = |error: Error| error.to_string();
    let n = a.num_rows().max(a.num_cols());
    // One triangle is of a square matrix.
    let square =
        || CsrMatrix::new(n, n, a.row_offsets().to_vec(), a.col_indices().to_vec(), a.values().to_vec());
    let a = if config.operation().is_of_triangle() { square().expect("larger") } else { a.clone() };
    let (mut plan, a) = typed::plan(device, &a, *config).map_err(told)?;
    let op_a = match config.operation() {
        spmv_codegen::Operation::Transpose => a.transpose().expect("no larger"),
        _ => a,
    };
    let (x, y) = (numbers(op_a.num_cols(), 2), numbers(op_a.num_rows(), 3));
    let bound = typed::bind(&mut plan, &numbers(op_a.num_rows(), 4)).map_err(told)?;
    let types = config.types();
    let mut device_y = AnyVector::new(device, types.y, &y).map_err(told)?;
    let device_x = AnyVector::new(device, types.x, &x).map_err(told)?;
    typed::apply(&mut plan, 1.0, &device_x, 0.0, &mut device_y).map_err(told)?;
    let (_, expected) = typed::over_functions(config, &op_a, &x, Accumulate::Store, &bound, &y);
    let found = device_y.to_vec().map_err(told)?;
    match found.iter().zip(&expected).position(|(found, expected)| found != expected) {
        Some(row) => Err(format!("row {row} is {} and must be {}", found[row], expected[row])),
        None => Ok(()),
    }
}

#[test]
fn vectors_and_scalars_are_bound_by_name() -> Result<(), Error> {
    let device = Device::simulator();
    let a = matrix().convert::<f32>();
    let settings = [("epilogue", "|row, sum, y, d, c| sum + c * d"), ("vectors", "[d]"), ("scalars", "[c]")];
    let mut plan = Spmv::with(&device, &a, KernelConfig::from_settings("csr_vector", settings)?)?;
    let x = Vector::<f32>::zeros(&device, 60)?;
    let mut y = Vector::<f32>::zeros(&device, 97)?;
    let said = |result: Result<(), Error>| result.expect_err("it is wrong").to_string();
    assert_eq!(
        said(plan.apply(1.0, &x, 0.0, &mut y)),
        "the epilogue takes the vector `d` and none was bound; call `set_vector(\"d\", …)` before the product"
    );
    let d = Vector::from_slice(&device, &[2.0f32; 97])?;
    assert_eq!(said(plan.set_vector("c", &d)), "the epilogue takes no vector `c`; it takes d");
    assert_eq!(said(plan.set_scalar("e", 1.0)), "the epilogue takes no scalar `e`; it takes c");
    assert_eq!(said(plan.set_vector("d", &x)), "the vector `d` has 60 entries and must have 97, one a row");
    let wide = Vector::<f64>::zeros(&device, 97)?;
    assert_eq!(said(plan.set_vector("d", &wide)), "the vector `d` holds f64 and must hold f32, as y does");
    let elsewhere = Vector::<f32>::zeros(&Device::simulator(), 97)?;
    assert!(said(plan.set_vector("d", &elsewhere)).contains("lives on another device than the plan"));
    plan.set_vector("d", &d)?;
    assert!(
        said(plan.apply(1.0, &x, 0.0, &mut y))
            .starts_with("the epilogue takes the scalar `c` and none was bound")
    );
    plan.set_scalar("c", 3.0)?;
    assert_eq!(
        said(plan.apply(2.0, &x, 0.0, &mut y)),
        "alpha = 2 has no part in what the epilogue stores, which can say it itself; allowed: 1"
    );
    // The plan keeps the vector's memory.
    drop(d);
    plan.apply(1.0, &x, 0.0, &mut y)?;
    assert_eq!(y.to_vec()?, [6.0; 97]);
    plan.set_scalar("c", -1.0)?;
    plan.set_vector("d", &y)?;
    let mut other = Vector::<f32>::zeros(&device, 97)?;
    plan.apply(1.0, &x, 0.0, &mut other)?;
    assert_eq!(other.to_vec()?, [-6.0; 97]);
    assert_eq!(
        said(plan.apply(1.0, &x, 0.0, &mut y)),
        "y shares memory with the vector `d` of the epilogue; the parameter `y` is what it held before"
    );
    Ok(())
}
