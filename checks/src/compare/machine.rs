//! One of the machines that are compared.

use yolo_base::format;

use crate::checks::cores;
use crate::facts::Host;
use crate::intent::Intent;

/// A machine, with the name by which the comparison refers to it.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a> {
    /// Such as the file of its recording. Every machine of a comparison has a different one.
    pub name: &'a str,
    /// Its facts.
    pub host: &'a Host,
    /// The run that it is to take part in.
    pub intent: &'a Intent,
}

impl Machine<'_> {
    /// The system, GPUs, cores and memory, as far as they are known.
    pub(super) fn summary(&self) -> Vec<String> {
        let host = self.host;
        let system = host.system().ok().and_then(|system| system.name).or_else(|| host.os().ok());
        let gpus = self.gpu_names().map(|names| match names.as_slice() {
            [] => "no GPU".to_owned(),
            [first, ..] if names.iter().all(|name| name == first) => {
                if names.len() == 1 {
                    first.clone()
                } else {
                    format!("{} × {first}", names.len())
                }
            }
            _ => format::count(names.len(), "GPU"),
        });
        let cores = cores(host).map(|cores| format::count(cores, "core"));
        let memory = host.memory().ok().map(|memory| format::memory(memory.total));
        [system, gpus, cores, memory].into_iter().flatten().collect()
    }

    fn gpu_names(&self) -> Option<Vec<String>> {
        if self.has_no_driver() {
            return Some(Vec::new());
        }
        let gpus = self.host.gpus().ok()?;
        Some(gpus.iter().map(|gpu| gpu.name().unwrap_or_else(|_| "unknown GPU".to_owned())).collect())
    }

    /// Whether it is certain that this is not Linux, and so cannot train.
    pub(super) fn is_not_linux(&self) -> bool {
        self.host.os().is_ok_and(|os| os != "linux")
    }

    /// Whether it is certain that there is no NVIDIA driver, and so no usable GPU.
    pub(super) fn has_no_driver(&self) -> bool {
        self.host.nvml_state() == Ok(crate::facts::NvmlState::NoLibrary)
    }
}
