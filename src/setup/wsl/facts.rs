//! What `yolo setup --wsl` knows of a Windows PC before it decides anything.

use std::path::PathBuf;

use yolo_checks::wsl::exe_output::{Distribution, Trouble, Version, Versions};
use yolo_checks::wsl::sizing::Pc;
use yolo_checks::wsl::vm::Vm;

/// A Windows PC. `None` is what could not be found out.
#[derive(Debug, Clone, Default)]
pub(super) struct PcFacts {
    /// `x86_64`, `aarch64`.
    pub(super) architecture: String,
    /// Memory, processors, Windows' build.
    pub(super) pc: Option<Pc>,
    /// Whether the firmware lets virtual machines run.
    pub(super) virtualization: Option<bool>,
    /// The answers of `wsl.exe`.
    pub(super) wsl: WslFacts,
    /// Whether features were installed after Windows last started.
    pub(super) restart_due: bool,
    /// The file, as it is.
    pub(super) config: ConfigFacts,
    /// The virtual machine, when it runs.
    pub(super) vm: Option<Vm>,
    /// The version of `yolo` in the chosen distribution.
    pub(super) program: Option<String>,
}

/// What `wsl.exe` answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WslFacts {
    /// Whether the program is there at all.
    pub(super) exe: bool,
    /// Whether `--status` succeeded with an answer that makes sense.
    pub(super) status: bool,
    /// Whether it is older than `wsl --install`.
    pub(super) too_old: bool,
    /// From `--version`, which WSL that came with Windows does not know.
    pub(super) versions: Option<Versions>,
    /// The version, 1 or 2, of new distributions.
    pub(super) default_version: Option<u8>,
    /// From `-l -v`.
    pub(super) distributions: Vec<Distribution>,
    /// Why WSL 2 cannot run, by `--status`.
    pub(super) trouble: Option<Trouble>,
}

/// `.wslconfig`.
#[derive(Debug, Clone, Default)]
pub(super) struct ConfigFacts {
    /// Where it is, or would be.
    pub(super) path: PathBuf,
    /// Its bytes, if it is there.
    pub(super) bytes: Option<Vec<u8>>,
    /// A file that was meant to be it, such as `.wslconfig.txt`.
    pub(super) misnamed: Option<PathBuf>,
}

/// The first build of Windows on which `wsl --install` and WSL 2 work: Windows 10 version 2004.
pub(super) const LEAST_BUILD: u32 = 19041;

/// The first WSL whose `--install --no-launch` leaves a distribution that can be used: before, it
/// became one when it was first launched (release notes of WSL 2.4.4).
pub(super) const REGISTERS_WITHOUT_LAUNCH: Version = Version([2, 4, 4, 0]);

/// The kernel that NVIDIA asks for (CUDA on WSL user guide, section 5).
pub(super) const LEAST_KERNEL: Version = Version([5, 10, 16, 3]);
