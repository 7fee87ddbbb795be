//! What kernels are compiled for, and what must be true of what comes of it.

use ptx_sim::Module;
use spmv_codegen::KernelConfig;
use spmv_runtime::Artifact;

/// One of each generation that has instructions of its own; the first is what the simulator is where nothing is said.
pub const ARCHS: [&str; 4] = ["sm_90", "sm_75", "sm_80", "sm_100"];

/// Whether this is the configuration's machine code for an architecture, and its PTX loads in the simulator.
pub fn check(config: &KernelConfig, arch: &str, artifact: &Artifact) -> Result<(), String> {
    let kernel = config.program().multiply[0].kernel.clone();
    let file = format!("\"{}.cu\"", config.algorithm().name());
    let image = &artifact.images[0];
    match artifact.kernels.iter().find(|resources| resources.name == kernel) {
        None => Err("no resource report".into()),
        Some(resources) if resources.registers == 0 => Err("no registers in the resource report".into()),
        _ if !image.ptx.contains(&file) => Err("the PTX does not name the template by its plain name".into()),
        _ if !image.cubin.starts_with(b"\x7fELF") => Err("the machine code is no ELF file".into()),
        _ if !image.ptx.contains(&format!(".entry {kernel}(")) => Err("the PTX lacks the kernel".into()),
        _ => check_ptx(&image.ptx, arch),
    }
}

/// Whether the PTX loads in the simulator, and its kernels wait for what is ahead of them in their stream before they touch
/// memory. Later architectures launch them while that still ends, and a compiler may move a load that it takes for one
/// of constants.
pub fn check_ptx(ptx: &str, arch: &str) -> Result<(), String> {
    Module::load(ptx).map_err(|error| format!("the simulator says: {error}"))?;
    let launches_early = arch.trim_start_matches("sm_").parse::<u32>().is_ok_and(|number| number >= 90);
    for entry in ptx.split(".entry ").skip(1) {
        let name = entry.split('(').next().unwrap_or_default();
        let is_first = |line: &&str| {
            let opcode = line.split('.').next().unwrap_or_default();
            ["ld", "st", "atom", "red", "cp", "griddepcontrol"].contains(&opcode)
                && !line.starts_with("ld.param")
        };
        // Without the guard of an instruction.
        let mut instructions = entry.lines().map(|line| match line.trim_start() {
            line if line.starts_with('@') => {
                line.split_once([' ', '\t']).map_or("", |(_, rest)| rest.trim_start())
            }
            line => line,
        });
        let first = instructions.find(is_first);
        let waits = first.is_some_and(|line| line.starts_with("griddepcontrol.wait"));
        if waits != launches_early {
            return Err(format!("{name} begins with {first:?}"));
        }
    }
    Ok(())
}
