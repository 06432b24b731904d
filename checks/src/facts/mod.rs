//! The facts of a host that checks judge. Every fact may be unknown, with the reason: a check that
//! needs it then says so and never guesses. [`Facts::of_this_host`] collects them; tests write
//! them by hand.

mod gpu;
mod live;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use gpu::{Gpu, GpuFacts};

/// A fact, or why it is not known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fact<T> {
    /// It was found out.
    Known(T),
    /// It could not be found out, because of this.
    Unknown(String),
}

impl<T> Fact<T> {
    /// The value, if it is known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }
}

/// Everything that is known of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Operating system.
    pub system: System,
    /// Driver and GPUs.
    pub gpus: Fact<GpuFacts>,
    /// The libtorch that a run would use; the caller knows where that is.
    pub libtorch: Fact<LibtorchFacts>,
    /// Memory of the machine and of this process's limits.
    pub memory: Fact<Memory>,
    /// The disks of the folders that a run writes to.
    pub disks: Vec<DiskFacts>,
    /// Whether a port of the loopback address can be opened, or why not.
    pub loopback: Fact<u16>,
}

/// Operating system and processor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct System {
    /// `Debian GNU/Linux 12`, `Windows 11`.
    pub name: String,
    /// The kernel's release.
    pub kernel: String,
    /// `linux`, `windows`, `macos`.
    pub family: String,
    /// `x86_64`, `aarch64`.
    pub architecture: String,
    /// 1 or 2 inside WSL.
    pub wsl: Option<u8>,
    /// Cores that this process may use.
    pub cores: usize,
}

/// A libtorch as it lies on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LibtorchFacts {
    /// Its folder; `None` when none is installed.
    pub folder: Option<PathBuf>,
    /// Its version, such as `2.11.0`.
    pub version: Option<String>,
    /// Whether libtorch_cuda is among its libraries.
    pub has_cuda: bool,
    /// Whether LIBTORCH names it.
    pub from_environment: bool,
}

/// Memory in bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Of the machine, or of the WSL virtual machine.
    pub total: u64,
    /// What programs can still take.
    pub available: u64,
    /// The limit of this process's control group, when it is below `total`.
    pub limit: Option<u64>,
    /// Swap.
    pub swap: u64,
}

/// The disk under one folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DiskFacts {
    /// What the folder is for: `libtorch and data sets`, `runs`.
    pub purpose: String,
    /// The folder.
    pub folder: PathBuf,
    /// Bytes that this user can still write.
    pub available: Fact<u64>,
}

/// What the caller knows and the host does not tell by itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    /// The libtorch that a run would use.
    pub libtorch: Fact<LibtorchFacts>,
    /// Folders that a run writes to, with their purpose.
    pub folders: Vec<(String, PathBuf)>,
}
