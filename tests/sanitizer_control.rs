//! The positive control of the sanitizers: a kernel for each that it must complain of. With the name of a sanitizer
//! the kernel runs on the GPU, under that sanitizer; without one all run in the simulator, which must stop each.

mod cuda;

use std::error::Error;
use std::ffi::{CString, c_void};
use std::process::ExitCode;

use ptx_sim::{Arg, Launch, Module, Simulator};
use spmv_runtime::Device;
use spmv_runtime::cudarc::driver::result;

/// Words of the one argument of each kernel; only the first half is written before.
const WORDS: usize = 512;

/// Sanitizer and kernel `broken`, launched with a block of 64 threads. The second warp's part is what is wrong.
const CONTROLS: [(&str, &str); 4] = [
    ("memcheck", "data[threadIdx.x < 32 ? 0 : 512 + threadIdx.x] = 1;"),
    (
        "racecheck",
        "__shared__ unsigned shared[64]; shared[threadIdx.x] = data[threadIdx.x]; data[threadIdx.x] = shared[63 - threadIdx.x];",
    ),
    ("initcheck", "data[threadIdx.x] = data[threadIdx.x < 32 ? 0 : 448 + threadIdx.x];"),
    ("synccheck", "if (threadIdx.x % 2 == 1) __syncwarp(0x55555555u);"),
];

fn main() -> ExitCode {
    let chosen = std::env::args().nth(1).filter(|name| CONTROLS.iter().any(|(control, _)| control == name));
    for (name, body) in CONTROLS {
        let outcome = match &chosen {
            Some(chosen) if chosen != name => continue,
            Some(_) => on_gpu(body),
            None => in_simulator(body),
        };
        match outcome {
            Ok(told) => println!("{name}: {told}"),
            Err(error) => {
                eprintln!("{name}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn source(body: &str) -> String {
    format!("extern \"C\" __global__ void broken(unsigned* data) {{\n{body}\n}}\n")
}

fn in_simulator(body: &str) -> Result<String, Box<dyn Error>> {
    let module = Module::load(&cuda::compile(&source(body), "sm_90")?.images[0].ptx)?;
    let mut simulator = Simulator::new();
    let data = simulator.allocate(WORDS as u64 * 4)?;
    simulator.write(data, &vec![0; WORDS / 2 * 4])?;
    match simulator.launch(&module, "broken", &Launch::new(1, 64).arg(Arg::U64(data))) {
        Err(ptx_sim::Error::Fault(fault)) => Ok(format!("stopped, {fault}")),
        Err(other) => Err(other.into()),
        Ok(_) => Err("the broken kernel ran to its end".into()),
    }
}

fn on_gpu(body: &str) -> Result<String, Box<dyn Error>> {
    let device = Device::cuda(0)?;
    let (context, stream) = device.as_cuda().ok_or("not a CUDA device")?;
    context.bind_to_thread()?;
    let artifact = cuda::compile(&source(body), &device.properties().arch)?;
    // SAFETY: the image is a complete cubin, and the argument has the size of the parameter. What the kernel does
    // wrong is for the sanitizer to see: it stays inside of what the driver maps, or is stopped.
    unsafe {
        let module = result::module::load_data(artifact.images[0].cubin.as_ptr().cast::<c_void>())?;
        let function = result::module::get_function(module, CString::new("broken")?)?;
        let mut data = result::malloc_sync(WORDS * 4)?;
        result::memset_d8_async(data, 0, WORDS / 2 * 4, stream.cu_stream())?;
        let argument: *mut c_void = (&raw mut data).cast();
        result::launch_kernel(function, (1, 1, 1), (64, 1, 1), 0, stream.cu_stream(), &mut [argument])?;
        stream.synchronize()?;
    }
    Ok("ran on the GPU".into())
}
