//! Devices, ranks and how ranks talk: `--device` and `--nproc-per-node` against what the machine
//! has. The inventory is handed in, so that eight GPUs can be tested where there is none.

use serde::{Deserialize, Serialize};

/// The device of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Device {
    /// The processor.
    Cpu,
    /// A CUDA device, numbered as nvidia-smi does.
    Cuda(usize),
}

/// The library through which ranks exchange tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "standard terms")]
pub enum Backend {
    Gloo,
    Nccl,
}

/// What the machine has, as far as a plan needs it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Inventory {
    /// Cores this process may use.
    pub cores: usize,
    /// GPUs that the driver shows, by nvidia-smi's number; empty without a working driver.
    pub gpus: Vec<Gpu>,
    /// Why there is no GPU, in words for the user, when `gpus` is empty.
    pub no_gpu_reason: Option<String>,
    /// Whether a libtorch with CUDA is installed or named by LIBTORCH.
    pub cuda_libtorch: bool,
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
