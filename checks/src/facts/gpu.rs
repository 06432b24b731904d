//! Driver and GPUs, asked through NVML. The library is opened at run time, in WSL from the folder
//! that Windows mounts; every question is asked alone, since WSL answers only some.

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use serde::{Deserialize, Serialize};

use super::Fact;

/// Where Windows mounts the driver's libraries in WSL.
const WSL_NVML: &str = "/usr/lib/wsl/lib/libnvidia-ml.so.1";

/// What the driver tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuFacts {
    /// Version of the driver.
    pub driver: Option<String>,
    /// The CUDA version that the driver supports, as (major, minor).
    pub cuda: Option<(i32, i32)>,
    /// GPUs in nvidia-smi's order.
    pub gpus: Vec<Gpu>,
}

/// One GPU; what the driver did not tell is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Gpu {
    /// nvidia-smi's number.
    pub index: usize,
    /// Such as `NVIDIA H200`.
    pub name: Option<String>,
    /// Bytes.
    pub memory: Option<u64>,
    /// Bytes that processes hold.
    pub memory_used: Option<u64>,
    /// Compute capability, such as (9, 0).
    pub capability: Option<(i32, i32)>,
}

/// Asks NVML for everything.
pub(super) fn ask() -> Fact<GpuFacts> {
    let nvml = match open() {
        Ok(nvml) => nvml,
        Err(error) => return Fact::Unknown(words(&error)),
    };
    let cuda = nvml.sys_cuda_driver_version().ok();
    let count = match nvml.device_count() {
        Ok(count) => count,
        Err(error) => return Fact::Unknown(words(&error)),
    };
    let gpus = (0..count)
        .filter_map(|index| {
            let device = nvml.device_by_index(index).ok()?;
            let memory = device.memory_info().ok();
            Some(Gpu {
                index: index as usize,
                name: device.name().ok(),
                memory: memory.as_ref().map(|memory| memory.total),
                memory_used: memory.as_ref().map(|memory| memory.used),
                capability: device
                    .cuda_compute_capability()
                    .ok()
                    .map(|capability| (capability.major, capability.minor)),
            })
        })
        .collect();
    Fact::Known(GpuFacts {
        driver: nvml.sys_driver_version().ok(),
        cuda: cuda.map(|version| (version / 1000, version % 1000 / 10)),
        gpus,
    })
}

fn open() -> Result<Nvml, NvmlError> {
    Nvml::init().or_else(|error| {
        if std::path::Path::new(WSL_NVML).exists() {
            Nvml::builder().lib_path(WSL_NVML.as_ref()).init()
        } else {
            Err(error)
        }
    })
}

/// NVML's errors in words for the user.
fn words(error: &NvmlError) -> String {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => {
            "there is no NVIDIA driver: libnvidia-ml was not found".to_owned()
        }
        NvmlError::DriverNotLoaded => {
            "the NVIDIA driver is installed, but its kernel module is not loaded".to_owned()
        }
        NvmlError::NoPermission => "this user may not talk to the NVIDIA driver".to_owned(),
        NvmlError::GpuLost => "a GPU has fallen off the bus; the machine must be restarted".to_owned(),
        other => format!("the NVIDIA driver does not answer: {other}"),
    }
}
