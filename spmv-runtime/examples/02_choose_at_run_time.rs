//! Builds kernels from configurations that are known only at run time, compiles them and compares their results.
//!
//! Run with `cargo run --example 02_choose_at_run_time`; without a GPU the kernels run on the simulator, which
//! counts what they do.

use spmv_runtime::matrix::generate::Generator;
use spmv_runtime::matrix::{reference, verify};
use spmv_runtime::{Algorithm, Device, Error, KernelConfig, Operation, Spmv, ValueType, Vector};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let a = Generator::new("stencil_5")?.set("nx", 150.0)?.set("ny", 150.0)?.generate::<f64, u32>()?;
    println!("{} rows, {} nonzeros", a.num_rows(), a.nnz());
    let x: Vec<f64> = (0..a.num_cols()).map(|i| ((i * 37 % 101) as f64 - 50.0) / 64.0).collect();
    // The stencil is square, so x has the right length for A and for its transpose.
    let expected = reference(1.0, &a, &x, 0.0, &vec![0.0; a.num_rows()])?;
    let expected_transposed = reference(1.0, &a.transpose()?, &x, 0.0, &vec![0.0; a.num_cols()])?;
    let device = Device::open()?;
    println!("on {}", device.properties().name);
    for spec in Algorithm::ALL {
        let config = KernelConfig::named(spec.name)?.value(ValueType::F64).threads_per_block(128).build()?;
        if config.operation().is_of_triangle() {
            // Made for matrices of which one triangle is stored.
            continue;
        }
        let mut spmv = match Spmv::with(&device, &a, config) {
            Ok(spmv) => spmv,
            Err(error @ Error::Misfit { .. }) => {
                println!("{:<13} refused: {error}", spec.name);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let (x, mut y) = (Vector::from_slice(&device, &x)?, Vector::<f64>::zeros(&device, a.num_rows())?);
        device.take_counters();
        spmv.apply(1.0, &x, 0.0, &mut y)?;
        let counters = device.take_counters();
        let guarantees = &spmv.program().guarantees;
        let u = ValueType::F64.unit_roundoff();
        let expected = match config.operation() {
            Operation::Transpose => &expected_transposed,
            _ => &expected,
        };
        let verification =
            verify(&y.to_vec()?, expected, |nnz| guarantees.depth(nnz), u, ValueType::F64, 1e-300);
        println!(
            "{:<13} {} from {}, largest error {:.2} of the bound",
            spec.name,
            if verification.passed { "verified" } else { "WRONG" },
            spmv.provenance().origin.name(),
            verification.max_error_over_bound
        );
        if let Some(counters) = counters {
            println!(
                "{:<13} {} warp instructions, {:.0} % of the lanes at work, {:.1} sectors a load",
                "",
                counters.warp_instructions,
                counters.warp_execution_efficiency() * 100.0,
                counters.sectors_per_load_request()
            );
        }
        assert!(verification.passed);
    }
    Ok(())
}
