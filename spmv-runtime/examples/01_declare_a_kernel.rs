//! Declares a kernel in a line: its CUDA text is generated while Rust compiles and lies in the binary.
//!
//! Run with `cargo run --example 01_declare_a_kernel`; without a GPU the kernel runs on the simulator.

use spmv_runtime::matrix::CooMatrix;
use spmv_runtime::{Device, Vector, spmv_kernel};

/// Eight lanes share a row; single precision throughout.
#[spmv_kernel(algorithm = csr_vector, threads_per_vector = 8, value = f32)]
pub struct Wide;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", Wide::config());
    println!(
        "{} lines of CUDA are in this binary; the constants that specialise it:",
        Wide::SOURCE.lines().count()
    );
    let generated =
        Wide::SOURCE.lines().skip_while(|line| !line.starts_with("#line 1 \"generated\"")).skip(1);
    for line in generated.take_while(|line| !line.starts_with("#line ")) {
        println!("    {line}");
    }

    // [[1, 3, 2], [0, 5, 0]] times (2, 1, 4)
    let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0f32, 3.0, 2.0, 5.0])?
        .to_csr::<u32>()?;
    let device = Device::open()?;
    let x = Vector::from_slice(&device, &[2.0f32, 1.0, 4.0])?;
    let mut y = Vector::<f32>::zeros(&device, 2)?;
    Wide::plan(&device, &a)?.apply(1.0, &x, 0.0, &mut y)?;
    println!("A x = {:?} on {}", y.to_vec()?, device.properties().name);
    assert_eq!(y.to_vec()?, [13.0, 5.0]);
    Ok(())
}
