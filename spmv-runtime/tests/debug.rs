//! What `{:?}` prints says which it is, in a line or a few: no sources, no machine code, no memory.

use std::fmt::Debug;
use std::sync::Arc;

use spmv_runtime::codegen::Operation;
use spmv_runtime::matrix::CsrMatrix;
use spmv_runtime::{
    CompileRequest, Device, DeviceMatrix, Factor, IndexType, KernelConfig, Spmv, Vector, spmv_kernel,
};

#[spmv_kernel(algorithm = csr_vector, beta = 0, dot = |row, result| result)]
struct WithDot;

/// Whether this is printed in few characters, with these words.
fn prints(value: &dyn Debug, words: &[&str]) {
    let (line, lines) = (format!("{value:?}"), format!("{value:#?}"));
    for printed in [&line, &lines] {
        assert!(printed.len() < 1000, "{} characters: {}", printed.len(), &printed[..1000]);
        assert!(!printed.contains("__global__") && !printed.contains(".visible .entry"), "{printed}");
    }
    for word in words {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn everything_is_printed_in_short() {
    let device = Device::simulator();
    let _large = Vector::from_slice(&device, &vec![1u32; 1 << 18]).unwrap();
    let a =
        CsrMatrix::<f32>::new(2, 3, vec![0u32, 3, 4], vec![0, 1, 2, 1], vec![1.0, 3.0, 2.0, 5.0]).unwrap();
    let x = Vector::from_slice(&device, &[2.0f32, 1.0, 4.0]).unwrap();
    let mut y = Vector::<f32>::zeros(&device, 2).unwrap();
    let mut plan = WithDot::plan(&device, &a).unwrap();
    plan.apply(1.0, &x, 0.0, &mut y).unwrap();
    assert_eq!(x.dot(&x).unwrap(), 21.0);
    let mut auto = Spmv::auto(&device, &a).unwrap();
    auto.apply(1.0, &x, 0.0, &mut y).unwrap();

    let simulator = "ptx-sim (simulated on the CPU)";
    let matrix = Arc::new(DeviceMatrix::upload(&device, &a, IndexType::U32).unwrap());
    prints(&device, &[simulator, "sm_90"]);
    prints(&device.properties(), &[simulator]);
    prints(&x, &["Vector of 3 f32", simulator]);
    prints(&Factor::from(&x), &["OnDevice", simulator]);
    prints(&Factor::from(2.5f32), &["2.5"]);
    prints(&matrix, &["2 x 3", "4 nonzeros in csr", "value=f32 offset=u32 index=u32", simulator]);
    prints(&auto, &["Spmv", auto.config().algorithm().name(), "2 x 3", "NonTranspose", simulator]);
    prints(&plan.as_spmv().kernel(), &["Kernel", "csr_vector", "ptx: "]);
    prints(&plan.as_spmv().kernel().artifact().images, &["Image", "cubin: 0 bytes, ptx: "]);
    prints(&plan.dot(), &["Vector of 1 f64"]);
    prints(&plan, &["Plan", "csr_vector", "dot=|row, result| result"]);
    prints(&device.compiler(), &["Compiler"]);
    let request = CompileRequest {
        source: plan.as_spmv().program().source.clone(),
        options: vec!["--std=c++17".into()],
        arch: "sm_90".into(),
        nvrtc_version: (13, 0),
        nvrtc_bytes: 0,
        driver_version: None,
    };
    prints(&request, &["source: ", " bytes", "--std=c++17", "sm_90"]);
}

#[test]
fn an_edited_source_is_not_printed() {
    let device = Device::simulator();
    let a = CsrMatrix::<f32>::new(1, 1, vec![0u32, 1], vec![0], vec![1.0]).unwrap();
    let config = KernelConfig::named("csr_scalar").unwrap().build().unwrap();
    // SAFETY: the text is the generated one.
    let spmv = unsafe { Spmv::with_source(&device, &a, config, &config.program().source).unwrap() };
    assert_eq!(spmv.operation(), Operation::NonTranspose);
    prints(&spmv, &["csr_scalar"]);
    prints(&device.compiler(), &["Compiler"]);
}
