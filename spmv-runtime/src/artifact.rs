//! What one compile takes and gives. Printed with `{:?}`, texts and machine code are so many bytes.

use std::fmt;

/// Everything that decides what NVRTC produces.
#[derive(Clone, PartialEq, Eq)]
pub struct CompileRequest {
    /// CUDA C++ text, complete in itself.
    pub source: String,
    /// Options in the order in which they are passed, the architecture among them.
    pub options: Vec<String>,
    /// The real architecture, for example `sm_90`.
    pub arch: String,
    /// NVRTC's version as (major, minor).
    pub nvrtc_version: (u32, u32),
    /// Bytes of NVRTC's file, by which builds of one version are told apart; 0 where they are not known.
    pub nvrtc_bytes: u64,
    /// The driver's CUDA version as (major, minor) where the driver compiles PTX itself; it decides then too.
    pub driver_version: Option<(u32, u32)>,
}

impl fmt::Debug for CompileRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompileRequest")
            .field("source", &bytes(&self.source))
            .field("options", &self.options)
            .field("arch", &self.arch)
            .field("nvrtc_version", &self.nvrtc_version)
            .field("nvrtc_bytes", &self.nvrtc_bytes)
            .field("driver_version", &self.driver_version)
            .finish()
    }
}

/// What came of a request, with what the compiler said.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Artifact {
    /// One or more; every kernel is in one of them.
    pub images: Vec<Image>,
    /// NVRTC's log, warnings and resource report included; one after the other where there are several images.
    pub log: String,
    /// Resources of every kernel, in the order of the source.
    pub kernels: Vec<KernelResources>,
}

impl fmt::Debug for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Artifact")
            .field("images", &self.images)
            .field("log", &bytes(&self.log))
            .field("kernels", &self.kernels.len())
            .finish()
    }
}

/// Machine code and PTX of one call of the compiler.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// Machine code for the requested architecture; empty where that is a virtual one.
    pub cubin: Vec<u8>,
    /// PTX of the same compile.
    pub ptx: String,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").field("cubin", &bytes(&self.cubin)).field("ptx", &bytes(&self.ptx)).finish()
    }
}

/// What is printed of something long.
fn bytes(long: &impl AsRef<[u8]>) -> impl fmt::Debug {
    fmt::from_fn(|f| write!(f, "{} bytes", long.as_ref().len()))
}

/// What one kernel takes of a multiprocessor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelResources {
    /// The kernel's name.
    pub name: String,
    /// Registers a thread.
    pub registers: u32,
    /// Bytes a thread stores to local memory because registers ran out.
    pub spill_store_bytes: u32,
    /// Bytes a thread loads back.
    pub spill_load_bytes: u32,
    /// Static shared memory a block, in bytes.
    pub shared_bytes: u32,
}
