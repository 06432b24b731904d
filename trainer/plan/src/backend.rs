//! The backend of a run: the library through which its ranks exchange tensors. Only this file chooses
//! it, and refuses devices for which there is none. The trainer obeys the plan
//! (`trainer/src/rank/process_group.rs`).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::device::{self, Device};
use crate::error::PlanError;

/// The file name of the NCCL plugin, which is next to the trainer.
pub const NCCL_PLUGIN: &str = "libtch_nccl.so";

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

    /// Refuses devices whose backend the trainer does not have.
    ///
    /// # Errors
    /// For several GPUs: NCCL is not built yet.
    pub fn check(devices: &[Device]) -> Result<(), PlanError> {
        let [first, ..] = devices else { return Ok(()) };
        match Self::between(devices) {
            None | Some(Self::Gloo) => Ok(()),
            Some(Self::Nccl) => Err(PlanError::new(format!(
                "--device {} names {} GPUs, but a run on several GPUs is not supported yet: it needs the NCCL plugin",
                device::argument(devices),
                devices.len()
            ))
            .with_hint(format!("use one of them: --device {}", device::argument(&[*first])))),
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
    use yolo_base::Hint as _;

    use super::*;

    #[test]
    fn the_devices_decide_the_backend() {
        assert_eq!(Backend::between(&[Device::Cpu]), None);
        assert_eq!(Backend::between(&[Device::Cpu; 2]), Some(Backend::Gloo));
        assert_eq!(Backend::between(&[Device::Cuda(0), Device::Cuda(1)]), Some(Backend::Nccl));
        assert_eq!(Backend::between(&[Device::Cuda(0), Device::Cpu]), Some(Backend::Gloo));
    }

    #[test]
    fn several_gpus_are_refused_with_a_hint() {
        let error = Backend::check(&[Device::Cuda(3), Device::Cuda(1)]).unwrap_err();
        assert!(
            error.to_string().starts_with("--device 3,1 names 2 GPUs, but a run on several GPUs"),
            "{error}"
        );
        assert_eq!(error.hint().as_deref(), Some("use one of them: --device 3"));
        for supported in [&[][..], &[Device::Cuda(1)], &[Device::Cpu; 2]] {
            assert!(Backend::check(supported).is_ok(), "{supported:?}");
        }
    }

    #[test]
    fn a_backend_has_one_name() {
        for backend in [Backend::Gloo, Backend::Nccl] {
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.to_string());
        }
    }
}
