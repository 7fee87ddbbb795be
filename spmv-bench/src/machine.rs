//! Where, when and with what something is measured.

use std::process::Command;
use std::time::SystemTime;

use spmv_runtime::{DeviceProperties, Nvrtc};

use crate::record::Head;
use crate::request::{Place, Request};

/// Threads that products on the CPU run on.
pub fn cpu_threads() -> usize {
    rayon::current_num_threads()
}

/// The head of a record, as far as it is known before anything is measured.
pub(crate) fn head(request: &Request) -> Head {
    let mut head = Head {
        date: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        commit: commit(),
        nvrtc: Nvrtc::find().map(|nvrtc| nvrtc.version().to_string()).unwrap_or_default(),
        cpu: cpu(),
        cpu_threads: cpu_threads(),
        command: request.command.clone(),
        ..Head::default()
    };
    match &request.place {
        Place::Cpu => head.gpu = "cpu".into(),
        Place::Device(device) if device.is_simulator() => {
            head.gpu = "simulator".into();
            head.arch = device.properties().arch.clone();
        }
        Place::Device(device) => {
            let DeviceProperties { name, arch, l2_bytes, driver_version: (major, minor), .. } =
                device.properties();
            head.gpu = name.clone();
            head.arch = arch.clone();
            head.l2_bytes = *l2_bytes;
            head.cuda = format!("{major}.{minor}");
            head.driver = driver();
        }
    }
    head
}

/// `SPMV_COMMIT` where a binary travels without its repository, else what git says of the sources that it was built from, with
/// `-dirty` behind it where they are others than those of the commit.
fn commit() -> String {
    if let Some(commit) = std::env::var("SPMV_COMMIT").ok().filter(|commit| !commit.is_empty()) {
        return commit;
    }
    let describe = ["describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"];
    let git = Command::new("git").args(["-C", env!("CARGO_MANIFEST_DIR")]).args(describe).output();
    let text = git.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".into())
}

fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or_else(|| "unknown".into(), |(_, name)| name.to_owned())
}

fn driver() -> String {
    driver_version(&std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default())
}

/// The first word of dotted numbers in what the kernel module says of itself.
fn driver_version(text: &str) -> String {
    let is_version = |word: &&str| {
        word.split('.').count() > 1
            && word.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
    };
    text.split_whitespace().find(is_version).unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_say_their_version() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\nGCC version:  gcc 13.3.0";
        assert_eq!(driver_version(text), "580.65.06");
        assert_eq!(driver_version("none. at .5 all"), "unknown");
    }

    #[test]
    fn heads_say_where() {
        let head = head(&Request::new(Vec::new(), Place::Cpu));
        assert_eq!((&*head.gpu, head.date.len()), ("cpu", 20));
        assert!(head.cpu_threads > 0 && !head.commit.is_empty());
    }
}
