//! CUDA text, compiled by NVRTC as the library compiles it, for kernels that are no part of the library.

#![allow(dead_code, reason = "each program that includes this uses its part")]

pub mod expressions;
pub mod kernels;

use spmv_runtime::{Artifact, CompileRequest, Nvrtc};

/// Machine code and PTX of a source. `#line 1 "file.cu"` in it gives it its name.
pub fn compile(source: &str, arch: &str) -> Result<Artifact, String> {
    let nvrtc = Nvrtc::find().map_err(|error| error.to_string())?;
    let request = CompileRequest {
        source: source.to_owned(),
        options: vec![
            format!("--gpu-architecture={arch}"),
            "--std=c++17".into(),
            "--fmad=false".into(),
            "--generate-line-info".into(),
        ],
        arch: arch.to_owned(),
        nvrtc_version: (nvrtc.version().major, nvrtc.version().minor),
        nvrtc_bytes: nvrtc.bytes(),
        driver_version: None,
    };
    nvrtc.compile(&request).map_err(|error| error.to_string())
}

/// The number of the only line that holds a text, from 1.
pub fn line_of(source: &str, marker: &str) -> u32 {
    let mut lines = source.lines().enumerate().filter(|(_, line)| line.contains(marker));
    let (index, _) = lines.next().unwrap_or_else(|| panic!("no line holds `{marker}`"));
    assert!(lines.next().is_none(), "several lines hold `{marker}`");
    index as u32 + 1
}

/// A source with one place of it changed.
pub fn edited(source: &str, from: &str, to: &str) -> String {
    assert_eq!(source.matches(from).count(), 1, "`{from}` must occur once in the source");
    source.replace(from, to)
}

/// Values as they lie in device memory.
pub trait Plain: Copy + Default + PartialEq + std::fmt::Debug {
    const BYTES: usize;
    fn put(self, bytes: &mut Vec<u8>);
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($T:ty),+) => {
        $(impl Plain for $T {
            const BYTES: usize = size_of::<$T>();
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
            fn get(bytes: &[u8]) -> Self {
                <$T>::from_le_bytes(bytes.try_into().expect("as many bytes as the type has"))
            }
        })+
    };
}
plain!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

pub fn to_bytes<T: Plain>(values: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * T::BYTES);
    values.iter().for_each(|value| value.put(&mut bytes));
    bytes
}

pub fn from_bytes<T: Plain>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(T::BYTES).map(T::get).collect()
}
