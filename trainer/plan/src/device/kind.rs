//! What a rank can run on: the CPU, a GPU, or a MIG instance of one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The device of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// The CPU.
    Cpu,
    /// A CUDA device, numbered as nvidia-smi does.
    Cuda(usize),
    /// A MIG instance.
    Mig {
        /// The GPU that it is a part of, numbered as nvidia-smi does.
        gpu: usize,
        /// Its UUID, the only name that CUDA takes.
        uuid: MigUuid,
    },
}

impl Device {
    /// The name of this device in CUDA_VISIBLE_DEVICES.
    pub fn visible(self) -> String {
        match self {
            Self::Cpu => String::new(),
            Self::Cuda(index) => index.to_string(),
            Self::Mig { uuid, .. } => uuid.to_string(),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("CPU"),
            Self::Cuda(index) => write!(f, "CUDA device {index}"),
            Self::Mig { gpu, uuid } => write!(f, "MIG instance {uuid} of GPU {gpu}"),
        }
    }
}

/// The UUID of a MIG instance, as `nvidia-smi -L` lists it: `MIG-` and a UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MigUuid(u128);

impl FromStr for MigUuid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text} is not the UUID of a MIG instance");
        let uuid = text.strip_prefix("MIG-").ok_or_else(invalid)?;
        let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
        if lengths != [8, 4, 4, 4, 12] || !uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        u128::from_str_radix(&uuid.replace('-', ""), 16).map(Self).map_err(|_| invalid())
    }
}

impl fmt::Display for MigUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        let (a, b, c, d, e) = (&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
        write!(f, "MIG-{a}-{b}-{c}-{d}-{e}")
    }
}

impl TryFrom<String> for MigUuid {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<MigUuid> for String {
    fn from(uuid: MigUuid) -> Self {
        uuid.to_string()
    }
}

/// The GPU that most ranks share, by its number, and how many; `None` if each rank has its own. MIG
/// instances are separate, also those of one GPU.
pub fn shared(devices: &[Device]) -> Option<(usize, usize)> {
    let ranks = |one: &Device| devices.iter().filter(|device| *device == one).count();
    let gpus = devices.iter().filter_map(|device| match device {
        Device::Cuda(index) | Device::Mig { gpu: index, .. } => Some((*index, ranks(device))),
        Device::Cpu => None,
    });
    gpus.filter(|(_, ranks)| *ranks > 1).max_by_key(|(index, ranks)| (*ranks, std::cmp::Reverse(*index)))
}

/// The value of CUDA_VISIBLE_DEVICES with which a process sees these devices only, each once: CUDA hides
/// all devices if one is named twice.
pub fn visible(devices: &[Device]) -> String {
    let names: Vec<String> = distinct(devices).into_iter().map(Device::visible).collect();
    names.join(",")
}

/// The number that each of these devices has among the CUDA devices of a process that sees only them;
/// `None` for the CPU.
pub fn cuda_numbers(devices: &[Device]) -> Vec<Option<usize>> {
    let distinct = distinct(devices);
    devices.iter().map(|device| distinct.iter().position(|one| one == device)).collect()
}

/// The GPUs and MIG instances among the devices, each once, in the order of their first mention.
fn distinct(devices: &[Device]) -> Vec<Device> {
    let mut distinct: Vec<Device> = Vec::new();
    for &device in devices {
        if device != Device::Cpu && !distinct.contains(&device) {
            distinct.push(device);
        }
    }
    distinct
}

/// The devices as the argument of `--device`: `cpu`, `0,1`, or the UUIDs of MIG instances.
pub fn argument(devices: &[Device]) -> String {
    let argument = |device: &Device| match device {
        Device::Cpu => "cpu".to_owned(),
        Device::Cuda(_) | Device::Mig { .. } => device.visible(),
    };
    devices.iter().map(argument).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_keeps_the_uuid_of_an_instance() {
        let text = "MIG-0a0b0c0d-1111-2222-3333-444455556666";
        let device = Device::Mig { gpu: 3, uuid: text.parse().unwrap() };
        let json = serde_json::to_value(device).unwrap();
        assert_eq!(json, serde_json::json!({ "mig": { "gpu": 3, "uuid": text } }));
        assert_eq!(serde_json::from_value::<Device>(json).unwrap(), device);
        assert_eq!(
            (device.visible(), argument(&[device, Device::Cuda(1)])),
            (text.into(), format!("{text},1"))
        );
        for wrong in
            ["MIG-1", "GPU-0a0b0c0d-1111-2222-3333-444455556666", "MIG-+a0b0c0d-1111-2222-3333-444455556666"]
        {
            assert!(wrong.parse::<MigUuid>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_process_sees_each_of_its_gpus_once() {
        let devices = [3, 1, 3].map(Device::Cuda);
        assert_eq!(
            (visible(&devices).as_str(), cuda_numbers(&devices)),
            ("3,1", vec![Some(0), Some(1), Some(0)])
        );
        assert_eq!((visible(&[Device::Cpu; 2]).as_str(), cuda_numbers(&[Device::Cpu])), ("", vec![None]));
    }

    #[test]
    fn instances_of_one_gpu_are_not_shared() {
        let instance = |number| Device::Mig {
            gpu: 0,
            uuid: format!("MIG-00000000-0000-0000-0000-00000000000{number}").parse().unwrap(),
        };
        assert_eq!(shared(&[instance(1), instance(2)]), None);
        assert_eq!(shared(&[instance(1), instance(1)]), Some((0, 2)));
    }
}
