//! Finds the fastest kernel for a matrix: measured at once, or while it is being multiplied with.
//!
//! `cargo run --release --example 05_tune`

use spmv_runtime::matrix::{CsrMatrix, generate::Generator};
use spmv_runtime::tuning::Outcome;
use spmv_runtime::{Budget, Constraints, Device, Operation, Spmv, Vector};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let a: CsrMatrix<f32> = Generator::new("stencil_5")?.set("nx", 60.0)?.set("ny", 50.0)?.generate()?;
    let device = Device::open()?;

    // Kernels that keep what the program needs, compared as if 10,000 products were to follow.
    let mut constraints = Constraints::default();
    constraints.deterministic = true;
    constraints.products = 10_000;

    // Starts after one compile; a faster kernel is taken when it is asked for, and at no other time.
    let plain = Operation::NonTranspose;
    let mut spmv = Spmv::tune_in_background(&device, &a, plain, &constraints, Budget::Products(200))?;
    let x = Vector::from_slice(&device, &vec![1.0f32; a.num_cols()])?;
    let mut y = Vector::<f32>::zeros(&device, a.num_rows())?;
    println!("starts with {}", spmv.config());
    while spmv.is_tuning() {
        spmv.apply(1.0, &x, 0.0, &mut y)?;
        if spmv.upgrade()? {
            println!("goes on with {}", spmv.config());
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }

    // Everything at once; what is found is remembered for this structure, device and version.
    let tuned = Spmv::tune_with(&device, &a, plain, &constraints, Budget::Products(200))?;
    for tried in &tuned.report.tried {
        if let Outcome::Measured { product, products, .. } = tried.outcome {
            println!("{product:.4} {} ({products} products) {}", tuned.report.unit.name(), tried.config);
        }
    }
    println!("the fastest is {} ({:?})", tuned.report.config, tuned.report.stop);
    Ok(())
}
