//! What the user writes, in every algorithm that takes it, on the simulator and on the GPU where there is one: the same
//! numbers as on the CPU, and what is bound by name.

mod cover;
mod typed;

use rayon::prelude::*;
use spmv_codegen::{Algorithm, KernelConfig, ValueType};
use spmv_matrix::{Accumulate, CsrMatrix, ExactSum};
use spmv_runtime::{Device, Error, MatrixSource, Spmv, Vector};
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
    let devices: Vec<_> = [Some(Device::simulator()), Device::cuda(0).ok()].into_iter().flatten().collect();
    let (mut total, mut wrong) = (0, Vec::new());
    for spec in Algorithm::ALL {
        let configs = cover::over_functions(spec);
        let problem = |device: &Device, config: &KernelConfig| {
            let problem = check(device, &a, config).err()?;
            Some(format!("{}: {config}: {problem}", device.properties().name))
        };
        let pairs =
            configs.par_iter().flat_map_iter(|config| devices.iter().map(move |device| (device, config)));
        let problems: Vec<String> = pairs.filter_map(|(device, config)| problem(device, config)).collect();
        println!("{}: {} configurations, {} wrong", spec.name, configs.len(), problems.len());
        total += configs.len();
        wrong.extend(problems);
    }
    println!("{total} configurations on {} devices", devices.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Blocks of `special` have one column each, and `map_x` is asked with that of an entry.
#[test]
fn map_x_has_the_columns_of_entries_of_blocks() {
    for device in [Some(Device::simulator()), Device::cuda(0).ok()].into_iter().flatten() {
        for block in [2u32, 3, 4, 6] {
            let (rows, mut offsets, mut cols) = (40 * block, vec![0u32], vec![]);
            for row in 0..rows {
                let begins = (0..1 + row / block % 3).map(|k| (row / block + 13 * k) % 40 * block);
                let mut begins: Vec<u32> = begins.collect();
                begins.sort_unstable();
                cols.extend(begins.into_iter().flat_map(|begin| begin..begin + block));
                offsets.push(cols.len() as u32);
            }
            let values = numbers(cols.len(), 1);
            let a = CsrMatrix::new(rows as usize, rows as usize, offsets, cols, values).expect("a matrix");
            for value in ["f32", "f64"] {
                let map_x = format!("|x, col| if col % 5 == 2 {{ x - col as {value} }} else {{ x }}");
                let settings = [("block", &*block.to_string()), ("value", value), ("map_x", &map_x)];
                let config = KernelConfig::from_settings("special", settings).expect("it is allowed");
                check(&device, &a, &config).unwrap_or_else(|problem| panic!("{config}: {problem}"));
            }
        }
    }
}

/// Sums that only an exact one has: what cancels, what is tiny beside it, what is not finite; and none before a product.
#[test]
fn a_dot_is_exact() -> Result<(), Error> {
    let rows = 3_000;
    let powers = |row: usize| match row % 7 {
        0 => 1e30,
        1 => -1e30,
        2 => 1.5e-40,
        3 => -1.0,
        4 => 0.1,
        5 => f32::MAX / 4.0,
        _ => -f32::MAX / 4.0,
    };
    for device in [Some(Device::simulator()), Device::cuda(0).ok()].into_iter().flatten() {
        let offsets = (0..=rows as u32).collect();
        let cols = (0..rows as u32).collect();
        let diagonal: Vec<f32> = (0..rows).map(powers).collect();
        let exact = |a: &[f32]| a.iter().map(|&term| f64::from(term)).collect::<ExactSum>().value();
        let a = CsrMatrix::new(rows, rows, offsets, cols, diagonal.clone())?;
        let ones = Vector::from_slice(&device, &vec![1.0f32; rows])?;
        let mut y = Vector::<f32>::zeros(&device, rows)?;
        for algorithm in ["csr_vector", "sell_c_sigma", "merge_path", "csr_scalar"] {
            let dot = [("dot", "|row, result| result")];
            let mut plan = Spmv::with(&device, &a, KernelConfig::from_settings(algorithm, dot)?)?;
            let read = |plan: &Spmv| Ok::<f64, Error>(plan.dot().expect("it has one").to_vec()?[0]);
            assert_eq!(read(&plan)?, 0.0);
            for _ in 0..2 {
                plan.apply(1.0, &ones, 0.0, &mut y)?;
                assert_eq!(read(&plan)?, exact(&diagonal), "{algorithm}");
            }
            // Where x is infinite, so is a term.
            let mut x = vec![1.0f32; rows];
            x[7] = f32::INFINITY;
            plan.apply(1.0, &Vector::from_slice(&device, &x)?, 0.0, &mut y)?;
            assert_eq!(read(&plan)?, f64::INFINITY, "{algorithm}");
            x[8] = f32::INFINITY;
            plan.apply(1.0, &Vector::from_slice(&device, &x)?, 0.0, &mut y)?;
            assert!(read(&plan)?.is_nan(), "{algorithm}");
            plan.apply(1.0, &ones, 0.0, &mut y)?;
            assert_eq!(read(&plan)?, exact(&diagonal), "{algorithm}");
        }
        // The same in double precision, at the ends of its range.
        let wide: Vec<f64> =
            (0..rows).map(|row| [f64::MAX / 2.0, 5e-324, -f64::MAX / 2.0, 1e-300, 0.3][row % 5]).collect();
        let a = CsrMatrix::new(rows, rows, a.row_offsets().to_vec(), a.col_indices().to_vec(), wide.clone())?;
        let config =
            KernelConfig::from_settings("csr_vector", [("value", "f64"), ("dot", "|row, result| result")])?;
        let mut plan = Spmv::with(&device, &a, config)?;
        let mut y = Vector::<f64>::zeros(&device, rows)?;
        plan.apply(1.0, &Vector::from_slice(&device, &vec![1.0f64; rows])?, 0.0, &mut y)?;
        assert_eq!(
            plan.dot().expect("it has one").to_vec()?,
            [wide.iter().copied().collect::<ExactSum>().value()]
        );
    }
    Ok(())
}

/// What was bound stays bound where a plan copies new values.
#[test]
fn a_refreshed_plan_keeps_what_is_bound() -> Result<(), Error> {
    let device = Device::simulator();
    let a = matrix().convert::<f32>();
    let settings = [
        ("epilogue", "|row, sum, y, d| sum + d"),
        ("dot", "|row, r, c| c * r"),
        ("vectors", "[d]"),
        ("scalars", "[c]"),
    ];
    let config = KernelConfig::from_settings("sell_c_sigma", settings)?;
    let matrix = a.to_device(&device, config.types())?;
    let mut plan = Spmv::with(&device, &matrix, config)?;
    plan.set_vector("d", &Vector::from_slice(&device, &[2.0f32; 97])?)?;
    plan.set_scalar("c", 3.0)?;
    matrix.update_values(&vec![0.0f32; a.nnz()])?;
    plan.refresh()?;
    let mut y = Vector::<f32>::zeros(&device, 97)?;
    plan.apply(1.0, &Vector::<f32>::zeros(&device, 60)?, 0.0, &mut y)?;
    assert_eq!(y.to_vec()?, [2.0; 97]);
    assert_eq!(plan.dot().expect("it has one").to_vec()?, [97.0 * 6.0]);
    Ok(())
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
    let expected = match types.accumulator {
        ValueType::F32 | ValueType::F64 => {
            typed::over_functions(config, &op_a, &x, Accumulate::Store, &bound, &y).1
        }
        _ => typed::over_semiring(config, &op_a, &x, Accumulate::Store, &y),
    };
    let found = device_y.to_vec().map_err(told)?;
    typed::check_dot(&plan, &bound, &found)?;
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
        "the kernel takes the vector `d` and none was bound; call `set_vector(\"d\", …)` before the product"
    );
    let d = Vector::from_slice(&device, &[2.0f32; 97])?;
    assert_eq!(said(plan.set_vector("c", &d)), "the kernel takes no vector `c`; it takes d");
    assert_eq!(said(plan.set_scalar("e", 1.0)), "the kernel takes no scalar `e`; it takes c");
    assert_eq!(said(plan.set_vector("d", &x)), "the vector `d` has 60 entries and must have 97, one a row");
    let wide = Vector::<f64>::zeros(&device, 97)?;
    assert_eq!(said(plan.set_vector("d", &wide)), "the vector `d` holds f64 and must hold f32, as y does");
    let elsewhere = Vector::<f32>::zeros(&Device::simulator(), 97)?;
    assert!(said(plan.set_vector("d", &elsewhere)).contains("lives on another device than the plan"));
    plan.set_vector("d", &d)?;
    assert!(
        said(plan.apply(1.0, &x, 0.0, &mut y))
            .starts_with("the kernel takes the scalar `c` and none was bound")
    );
    plan.set_scalar("c", 3.0)?;
    assert_eq!(
        said(plan.apply(2.0, &x, 0.0, &mut y)),
        "alpha = 2 has no part in what is stored with an epilogue or a dot; an epilogue can say it itself; allowed: 1"
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
        "y shares memory with the vector `d` that the kernel takes; an epilogue's parameter `y` is what it held before"
    );
    Ok(())
}
