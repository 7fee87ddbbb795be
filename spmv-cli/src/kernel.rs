//! Facts of a kernel: its configuration, what became of it, what it takes.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use spmv_runtime::codegen::KernelConfig;
use spmv_runtime::{Artifact, KernelResources, Origin};

use crate::quantity;
use crate::report::fact;

/// Every setting with its value, in the order of the documentation; a JSON object.
#[derive(Clone, Debug)]
pub struct SettingFacts(pub Vec<(&'static str, String)>);

impl Serialize for SettingFacts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// A compiled kernel.
#[derive(Clone, Debug, Serialize)]
pub struct CompiledFacts {
    /// `memory`, `disk` or `compiled`.
    pub origin: &'static str,
    pub arch: String,
    pub cubin_bytes: usize,
    pub ptx_bytes: usize,
    pub resources: Vec<ResourceFacts>,
}

/// What one kernel takes of a multiprocessor.
#[derive(Clone, Debug, Serialize)]
pub struct ResourceFacts {
    pub kernel: String,
    /// A thread.
    pub registers: u32,
    /// A thread, because registers ran out.
    pub spill_store_bytes: u32,
    pub spill_load_bytes: u32,
    /// A block.
    pub shared_bytes: u32,
}

impl From<&KernelResources> for ResourceFacts {
    fn from(resources: &KernelResources) -> ResourceFacts {
        let KernelResources { name, registers, spill_store_bytes, spill_load_bytes, shared_bytes } =
            resources.clone();
        ResourceFacts { kernel: name, registers, spill_store_bytes, spill_load_bytes, shared_bytes }
    }
}

impl CompiledFacts {
    pub fn new(arch: &str, origin: Origin, artifact: &Artifact) -> CompiledFacts {
        CompiledFacts {
            origin: origin.name(),
            arch: arch.to_owned(),
            cubin_bytes: artifact.images.iter().map(|image| image.cubin.len()).sum(),
            ptx_bytes: artifact.images.iter().map(|image| image.ptx.len()).sum(),
            resources: artifact.kernels.iter().map(ResourceFacts::from).collect(),
        }
    }

    /// Where the machine code came from.
    pub fn origin_text(&self) -> &'static str {
        match self.origin {
            "disk" => "loaded from the disk cache",
            "memory" => "taken from memory",
            _ => "compiled by NVRTC",
        }
    }

    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let [cubin, ptx] = [self.cubin_bytes, self.ptx_bytes].map(|bytes| quantity::bytes(bytes as u64));
        let made = format!("{} for {}", self.origin_text(), self.arch);
        match self.cubin_bytes {
            // The simulator takes no more.
            0 => fact(out, "PTX", format_args!("{made}: {ptx}"))?,
            _ => fact(out, "machine code", format_args!("{made}: {cubin} of machine code, {ptx} of PTX"))?,
        }
        for resources in &self.resources {
            fact(out, "resources", resources)?;
        }
        Ok(())
    }
}

impl std::fmt::Display for ResourceFacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ResourceFacts { kernel, registers, spill_store_bytes, spill_load_bytes, shared_bytes } = self;
        write!(f, "{kernel}: {registers} registers a thread, {shared_bytes} B shared memory a block, ")?;
        match (spill_store_bytes, spill_load_bytes) {
            (0, 0) => f.write_str("no spills"),
            _ => write!(f, "spills {spill_store_bytes} B out and {spill_load_bytes} B in"),
        }
    }
}

/// A configuration in one line: the algorithm, its parameters, the block size and the types.
pub fn config_text(config: &KernelConfig) -> String {
    config_words(config).join(" ")
}

/// The words of that line.
pub fn config_words(config: &KernelConfig) -> Vec<String> {
    let parameters = config.algorithm().spec().parameters.len();
    let settings = config.settings();
    let own = settings[..parameters].iter().map(|(key, value)| format!("{key}={value}"));
    let common = settings[parameters..].iter().filter(|(key, value)| !is_usual(config, key, value));
    let common = common.map(|(key, value)| format!("{key}={value}"));
    std::iter::once(config.algorithm().name().to_owned()).chain(own).chain(common).collect()
}

/// What the configurations with these words have in common, and of each its algorithm and what else it has.
pub fn in_common(configs: &[&[String]]) -> (String, Vec<[String; 2]>) {
    let [first, ..] = configs else { return Default::default() };
    let is_shared = |word: &String| configs.iter().all(|words| words.contains(word));
    let shared: Vec<String> = first.iter().skip(1).filter(|word| is_shared(word)).cloned().collect();
    let others = |words: &[String]| {
        let others: Vec<_> = words.iter().skip(1).filter(|word| !shared.contains(word)).cloned().collect();
        [words.first().cloned().unwrap_or_default(), others.join(" ")]
    };
    let others = configs.iter().map(|words| others(words)).collect();
    (shared.join(" "), others)
}

/// Whether a common setting goes without saying.
fn is_usual(config: &KernelConfig, key: &str, value: &str) -> bool {
    match key {
        "x" | "y" | "accumulator" => value == config.types().value.name(),
        "offset" | "index" => value == "u32",
        "operation" => value == config.algorithm().spec().operations[0].name(),
        _ => false,
    }
}
