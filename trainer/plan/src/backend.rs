//! The backend of a run: the library through which its ranks exchange tensors. This is the one place
//! that chooses it. The trainer obeys the plan and refuses a backend that it lacks
//! (`trainer/src/rank/process_group.rs`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::device::Device;

/// A library for collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum Backend {
    Gloo,
    Nccl,
}

impl Backend {
    /// The backend between ranks on these devices; `None` for a single rank.
    pub fn between(devices: &[Device]) -> Option<Self> {
        match devices {
            [] | [_] => None,
            devices if devices.contains(&Device::Cpu) => Some(Self::Gloo),
            _ => Some(Self::Nccl),
        }
    }
}

/// The name, as in plan files and options.
impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gloo => "gloo",
            Self::Nccl => "nccl",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_devices_decide_the_backend() {
        assert_eq!(Backend::between(&[Device::Cpu]), None);
        assert_eq!(Backend::between(&[Device::Cpu; 2]), Some(Backend::Gloo));
        assert_eq!(Backend::between(&[Device::Cuda(0), Device::Cuda(1)]), Some(Backend::Nccl));
        assert_eq!(Backend::between(&[Device::Cuda(0), Device::Cpu]), Some(Backend::Gloo));
    }

    #[test]
    fn a_backend_has_one_name() {
        for backend in [Backend::Gloo, Backend::Nccl] {
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.to_string());
        }
    }
}
