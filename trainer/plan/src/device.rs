//! The devices of a run, one per rank: `--device` and `--nproc-per-node` against what the machine
//! has. The inventory is passed in, so that eight GPUs can be tested where there is none.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::PlanError;

/// More CPU ranks than this are a mistake.
const MAX_CPU_RANKS: usize = 1024;

/// The device of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// The CPU.
    Cpu,
    /// A CUDA device, numbered as nvidia-smi does.
    Cuda(usize),
}

/// The resources of the machine that a plan needs to know.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inventory {
    /// Cores this process may use.
    pub cores: usize,
    /// GPUs that the driver reports, with nvidia-smi's numbers; empty without a working driver.
    pub gpus: Vec<Gpu>,
    /// Why there is no GPU, as a phrase for messages, if `gpus` is empty.
    pub no_gpu_reason: Option<String>,
    /// Whether a libtorch with CUDA is installed or named by LIBTORCH.
    pub cuda_libtorch: bool,
    /// Why NCCL is not available, as a phrase for messages; `None` if it is or can be built.
    pub no_nccl: Option<String>,
}

/// One GPU of the machine.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "standard terms")]
pub struct Gpu {
    pub index: usize,
    pub name: String,
    /// Bytes.
    pub memory: u64,
}

/// The devices of the local ranks, and a note for the user if they were chosen automatically.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// One device per rank.
    pub devices: Vec<Device>,
    /// What was chosen and why, if `--device` did not name it.
    pub note: Option<String>,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("CPU"),
            Self::Cuda(index) => write!(f, "CUDA device {index}"),
        }
    }
}

/// Chooses the devices of a run. `device` is `cpu`, `0`, `0,1,3`, `cuda:0`, or empty for the best
/// available; `ranks_on_cpu` is `--nproc-per-node`. Whether a libtorch with CUDA is installed matters
/// only for the automatic choice: for a named device, setup can still install it.
///
/// # Errors
/// When `device` is not one of these, or a device does not exist.
pub fn choose(
    device: Option<&str>,
    ranks_on_cpu: Option<usize>,
    inventory: &Inventory,
) -> Result<Choice, PlanError> {
    let argument = device.unwrap_or_default().trim().to_ascii_lowercase();
    let choice = match argument.as_str() {
        "" => automatic(inventory, ranks_on_cpu.is_some_and(|ranks| ranks > 1)),
        "cpu" => Choice { devices: vec![Device::Cpu], note: None },
        _ => Choice { devices: cuda(&argument, inventory)?, note: None },
    };
    let Some(ranks) = ranks_on_cpu else {
        return Ok(choice);
    };
    if ranks == 0 || ranks > MAX_CPU_RANKS {
        return Err(PlanError::new(format!(
            "--nproc-per-node {ranks} is not a number of ranks from 1 to {MAX_CPU_RANKS}"
        )));
    }
    if choice.devices != [Device::Cpu] {
        return if ranks == choice.devices.len() {
            Ok(choice)
        } else {
            Err(PlanError::new(format!(
                "--nproc-per-node {ranks} is for ranks on the CPU; on GPUs there is one rank per device, and the devices are {}",
                list(&choice.devices)
            ))
            .with_hint("add --device cpu, or omit --nproc-per-node"))
        };
    }
    Ok(Choice { devices: vec![Device::Cpu; ranks], note: choice.note })
}

/// As [`choose`], for a command that runs on one device. `command` is its name in messages.
///
/// # Errors
/// As [`choose`], and when `device` names several devices.
pub fn choose_one(device: Option<&str>, command: &str, inventory: &Inventory) -> Result<Choice, PlanError> {
    let choice = choose(device, None, inventory)?;
    if let [first, _, ..] = choice.devices.as_slice() {
        return Err(PlanError::new(format!(
            "--device {} names {} devices, but `{command}` runs on one",
            argument(&choice.devices),
            choice.devices.len()
        ))
        .with_hint(format!("use one of them: --device {}", argument(&[*first]))));
    }
    Ok(choice)
}

/// The best available device. Several ranks imply the CPU.
fn automatic(inventory: &Inventory, several: bool) -> Choice {
    let (devices, note) = match inventory.gpus.first() {
        Some(_) if several => {
            (Device::Cpu, "using the CPU, because --nproc-per-node starts ranks on the CPU".to_owned())
        }
        Some(gpu) if inventory.cuda_libtorch => {
            (Device::Cuda(gpu.index), format!("using CUDA device {}: {}", gpu.index, gpu.name))
        }
        Some(gpu) => (
            Device::Cpu,
            format!("using the CPU, because the installed libtorch has no CUDA support for the {}", gpu.name),
        ),
        None => {
            let reason = inventory.no_gpu_reason.as_deref().unwrap_or("no GPU was found");
            (Device::Cpu, format!("using the CPU: {reason}"))
        }
    };
    Choice { devices: vec![devices], note: Some(note) }
}

fn cuda(argument: &str, inventory: &Inventory) -> Result<Vec<Device>, PlanError> {
    let invalid = || {
        PlanError::new(format!("--device {argument} is not a device")).with_hint(
            "use cpu or the number of a GPU that nvidia-smi shows (0), or omit --device for the best available",
        )
    };
    let numbers = match argument.strip_prefix("cuda") {
        Some("") => "0",
        Some(rest) => rest.strip_prefix(':').ok_or_else(invalid)?,
        None => argument,
    };
    let mut indices = Vec::new();
    for part in numbers.split(',').map(str::trim) {
        let part = part.strip_prefix("cuda:").unwrap_or(part);
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(invalid());
        }
        let index: usize = part.parse().map_err(|_| invalid())?;
        indices.push(index);
    }
    for &index in &indices {
        if inventory.gpus.iter().any(|gpu| gpu.index == index) {
            continue;
        }
        if inventory.gpus.is_empty() {
            let reason = inventory.no_gpu_reason.as_deref().unwrap_or("no GPU was found");
            return Err(PlanError::new(format!(
                "--device {argument} needs a GPU, but there is none: {reason}"
            ))
            .with_hint(format!(
                "`yolo doctor -- --device {argument}` shows what is missing; --device cpu needs no GPU"
            )));
        }
        let there: Vec<String> =
            inventory.gpus.iter().map(|gpu| format!("{} ({})", gpu.index, gpu.name)).collect();
        return Err(PlanError::new(format!(
            "--device {argument} needs GPU {index}, but this machine has only {}: {}",
            if there.len() == 1 { "one".to_owned() } else { there.len().to_string() },
            there.join(", ")
        ))
        .with_hint(format!("use --device {}", inventory.gpus[0].index)));
    }
    Ok(indices.into_iter().map(Device::Cuda).collect())
}

/// The GPU that most ranks share, by its number, and how many; `None` if each rank has its own.
pub fn shared(devices: &[Device]) -> Option<(usize, usize)> {
    let ranks = |index: usize| devices.iter().filter(|device| **device == Device::Cuda(index)).count();
    let gpus = devices.iter().filter_map(|device| match device {
        Device::Cuda(index) => Some((*index, ranks(*index))),
        Device::Cpu => None,
    });
    gpus.filter(|(_, ranks)| *ranks > 1).max_by_key(|(index, ranks)| (*ranks, std::cmp::Reverse(*index)))
}

/// The devices as the argument of `--device`: `cpu`, or `0,1`.
pub fn argument(devices: &[Device]) -> String {
    let argument = |device: &Device| match device {
        Device::Cpu => "cpu".to_owned(),
        Device::Cuda(index) => index.to_string(),
    };
    devices.iter().map(argument).collect::<Vec<_>>().join(",")
}

fn list(devices: &[Device]) -> String {
    devices.iter().map(Device::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(gpus: usize, cuda_libtorch: bool) -> Inventory {
        Inventory {
            cores: 8,
            gpus: (0..gpus).map(|index| Gpu { index, name: "NVIDIA H200".into(), memory: 1 << 37 }).collect(),
            no_gpu_reason: (gpus == 0).then(|| "the NVIDIA driver is not installed".into()),
            cuda_libtorch,
            no_nccl: None,
        }
    }

    fn error(device: &str, ranks: Option<usize>, gpus: usize) -> String {
        choose(Some(device), ranks, &machine(gpus, true)).unwrap_err().to_string()
    }

    #[test]
    fn the_best_device_is_chosen_with_a_note() {
        let best = |gpus, cuda| choose(None, None, &machine(gpus, cuda)).unwrap();
        assert_eq!(best(2, true).devices, [Device::Cuda(0)]);
        assert_eq!(best(2, true).note.unwrap(), "using CUDA device 0: NVIDIA H200");
        assert_eq!(best(1, false).devices, [Device::Cpu]);
        assert!(best(1, false).note.unwrap().contains("no CUDA support"));
        assert_eq!(best(0, false).note.unwrap(), "using the CPU: the NVIDIA driver is not installed");
        assert_eq!(choose(Some(""), Some(2), &machine(1, true)).unwrap().devices, [Device::Cpu; 2]);
    }

    #[test]
    fn devices_are_named_as_in_yolov5() {
        let two = choose(Some("1,0"), None, &machine(2, true)).unwrap();
        assert_eq!(two.devices, [Device::Cuda(1), Device::Cuda(0)]);
        for argument in ["0", "cuda:0", "cuda", " 0 ", "CUDA:0"] {
            assert_eq!(
                choose(Some(argument), None, &machine(1, false)).unwrap().devices,
                [Device::Cuda(0)],
                "{argument}"
            );
        }
        assert_eq!(choose(Some("cpu"), Some(3), &machine(1, true)).unwrap().devices, [Device::Cpu; 3]);
        assert_eq!(choose(Some("0"), Some(1), &machine(1, true)).unwrap().devices, [Device::Cuda(0)]);
    }

    #[test]
    fn a_gpu_named_twice_gets_two_ranks() {
        let devices = choose(Some("0,1,0"), None, &machine(2, true)).unwrap().devices;
        assert_eq!(devices, [Device::Cuda(0), Device::Cuda(1), Device::Cuda(0)]);
        assert_eq!(shared(&devices), Some((0, 2)));
        assert_eq!(shared(&[Device::Cuda(1), Device::Cuda(0)]), None);
        assert_eq!(shared(&[Device::Cpu; 2]), None);
    }

    #[test]
    fn errors_name_the_missing_device() {
        assert_eq!(
            error("0", None, 0),
            "--device 0 needs a GPU, but there is none: the NVIDIA driver is not installed"
        );
        assert_eq!(
            error("7", None, 2),
            "--device 7 needs GPU 7, but this machine has only 2: 0 (NVIDIA H200), 1 (NVIDIA H200)"
        );
        assert!(error("0,0,2", None, 2).contains("needs GPU 2"));
        assert!(error("0", Some(2), 2).contains("one rank per device"));
        assert!(error("cpu", Some(0), 2).contains("--nproc-per-node 0"));
        for junk in ["gpu", "0,", "-1", "0 1", "cuda0", "mps", "99999999999999999999", "٣"] {
            assert!(error(junk, None, 1).contains("is not a device"), "{junk}");
        }
    }
}
