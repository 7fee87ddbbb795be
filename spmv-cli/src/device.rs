//! Where products are computed: a GPU, the simulator, or the CPU without a kernel.

use std::io::{self, Write};

use serde::Serialize;
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, Error};

use crate::failure::{Failure, Kind};
use crate::quantity;
use crate::report::fact;

/// What `--device` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    Auto,
    Cuda(usize),
    Simulator,
    Cpu,
}

/// Reads what `--device` says.
pub fn parse_device(text: &str) -> Result<DeviceChoice, String> {
    match text {
        "auto" => Ok(DeviceChoice::Auto),
        "cuda" => Ok(DeviceChoice::Cuda(0)),
        "sim" => Ok(DeviceChoice::Simulator),
        "cpu" => Ok(DeviceChoice::Cpu),
        _ => {
            let ordinal = text.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok());
            ordinal
                .map(DeviceChoice::Cuda)
                .ok_or_else(|| "allowed: auto, cuda, cuda:0, cuda:1, ..., sim, cpu".into())
        }
    }
}

/// Reads what `--schedule` says.
pub fn parse_schedule(text: &str) -> Result<Schedule, String> {
    match text {
        "natural" => Ok(Schedule::Natural),
        seed => seed
            .parse()
            .map(Schedule::Adversarial)
            .map_err(|_| format!("allowed: natural, or a seed from 0 to {}", u64::MAX)),
    }
}

impl DeviceChoice {
    /// What becomes of the choice where an option asks for what only the simulator does: `auto` means it then.
    pub fn with_simulator_option(self, option: &str, does: &str) -> Result<DeviceChoice, Failure> {
        let device = match self {
            DeviceChoice::Auto | DeviceChoice::Simulator => return Ok(DeviceChoice::Simulator),
            DeviceChoice::Cuda(ordinal) => format!("cuda:{ordinal}"),
            DeviceChoice::Cpu => "cpu".to_owned(),
        };
        let message = format!("{option} with --device {device}: only the simulator {does}");
        Err(Failure::new(Kind::Usage, message).help("with --device sim the same kernel runs there"))
    }
}

/// What `--device` led to.
pub enum Opened {
    /// A device that runs kernels.
    Device(Device, DeviceFacts),
    Cpu(DeviceFacts),
}

/// Opens the device that is asked for; the schedule counts where that is the simulator.
pub fn open(choice: DeviceChoice, schedule: Schedule) -> Result<Opened, Failure> {
    let simulator = |notice| {
        let device = Device::simulator_with(schedule);
        let facts = DeviceFacts::simulator(&device, schedule, notice);
        Opened::Device(device, facts)
    };
    let ordinal = match choice {
        DeviceChoice::Cpu => return Ok(Opened::Cpu(DeviceFacts::cpu())),
        DeviceChoice::Simulator => return Ok(simulator(None)),
        DeviceChoice::Auto => 0,
        DeviceChoice::Cuda(ordinal) => ordinal,
    };
    match Device::cuda(ordinal) {
        Ok(device) => {
            let facts = DeviceFacts::cuda(&device);
            Ok(Opened::Device(device, facts))
        }
        Err(Error::NoDevice { reason, .. }) if choice == DeviceChoice::Auto => {
            Ok(simulator(Some(format!("no GPU here ({reason}): kernels run on the simulator"))))
        }
        Err(error) => Err(error.into()),
    }
}

/// What computes.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceFacts {
    /// `cuda`, `sim` or `cpu`.
    pub kind: &'static str,
    pub name: String,
    /// What kernels are compiled for.
    pub arch: Option<String>,
    pub multiprocessors: Option<u32>,
    pub memory_bytes: Option<u64>,
    pub l2_bytes: Option<u64>,
    pub cuda_version: Option<String>,
    /// The simulator's: `natural`, or the seed of an adversarial one.
    pub schedule: Option<String>,
    /// Why it is the simulator where a GPU would have been taken.
    pub notice: Option<String>,
}

impl DeviceFacts {
    fn cuda(device: &Device) -> DeviceFacts {
        let properties = device.properties();
        let (major, minor) = properties.driver_version;
        DeviceFacts {
            kind: "cuda",
            name: properties.name.clone(),
            arch: Some(properties.arch.clone()),
            multiprocessors: Some(properties.multiprocessors),
            memory_bytes: Some(properties.memory_bytes),
            l2_bytes: Some(properties.l2_bytes),
            cuda_version: Some(format!("{major}.{minor}")),
            schedule: None,
            notice: None,
        }
    }

    fn simulator(device: &Device, schedule: Schedule, notice: Option<String>) -> DeviceFacts {
        let properties = device.properties();
        DeviceFacts {
            kind: "sim",
            name: "ptx-sim, a simulator on the CPU".into(),
            arch: Some(properties.arch.clone()),
            multiprocessors: Some(properties.multiprocessors),
            memory_bytes: Some(properties.memory_bytes),
            l2_bytes: None,
            cuda_version: None,
            schedule: Some(match schedule {
                Schedule::Natural => "natural".into(),
                Schedule::Adversarial(seed) => seed.to_string(),
            }),
            notice,
        }
    }

    fn cpu() -> DeviceFacts {
        let threads = spmv_bench::cpu_threads();
        DeviceFacts {
            kind: "cpu",
            name: format!("CPU, {threads} threads"),
            arch: None,
            multiprocessors: None,
            memory_bytes: None,
            l2_bytes: None,
            cuda_version: None,
            schedule: None,
            notice: None,
        }
    }

    /// One line, and the notice.
    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(notice) = &self.notice {
            fact(out, "notice", notice)?;
        }
        let mut traits: Vec<String> = self.arch.iter().cloned().collect();
        traits.extend(self.multiprocessors.map(|number| format!("{number} multiprocessors")));
        traits.extend(self.memory_bytes.map(quantity::bytes));
        traits.extend(self.l2_bytes.map(|bytes| format!("{} L2", quantity::bytes(bytes))));
        traits.extend(self.cuda_version.iter().map(|version| format!("CUDA {version}")));
        traits.extend(self.schedule.iter().map(|schedule| match schedule.as_str() {
            "natural" => "natural schedule".to_owned(),
            seed => format!("adversarial schedule {seed}"),
        }));
        match traits.is_empty() {
            true => fact(out, "device", &self.name),
            false => fact(out, "device", format_args!("{} ({})", self.name, traits.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_named() {
        assert_eq!(parse_device("auto"), Ok(DeviceChoice::Auto));
        assert_eq!(parse_device("cuda"), Ok(DeviceChoice::Cuda(0)));
        assert_eq!(parse_device("cuda:3"), Ok(DeviceChoice::Cuda(3)));
        assert_eq!(parse_device("sim"), Ok(DeviceChoice::Simulator));
        assert_eq!(parse_device("cpu"), Ok(DeviceChoice::Cpu));
        for wrong in ["gpu", "cuda:", "cuda:-1", "cuda:x", "sim:1", ""] {
            assert!(parse_device(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn schedules_are_natural_or_a_seed() {
        assert_eq!(parse_schedule("natural"), Ok(Schedule::Natural));
        assert_eq!(parse_schedule("7"), Ok(Schedule::Adversarial(7)));
        for wrong in ["", "-1", "adversarial", "1.5"] {
            assert!(parse_schedule(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_of_the_simulator_choose_it() {
        for choice in [DeviceChoice::Auto, DeviceChoice::Simulator] {
            assert_eq!(choice.with_simulator_option("--report", "counts").unwrap(), DeviceChoice::Simulator);
        }
        for choice in [DeviceChoice::Cuda(1), DeviceChoice::Cpu] {
            let failure = choice.with_simulator_option("--report", "counts").unwrap_err();
            assert_eq!(failure.kind(), Kind::Usage);
            assert!(failure.to_string().ends_with("only the simulator counts"), "{failure}");
        }
    }
}
