//! Why `yolo setup --wsl` stops, with what to do next.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use yolo_base::Hint;
use yolo_checks::facts::Unknown;
use yolo_checks::wsl::config::EditError;
use yolo_checks::wsl::exe_output::Trouble;

use crate::fetch::FetchError;

/// A failure of `yolo setup --wsl`.
#[derive(Debug, thiserror::Error)]
pub enum WslError {
    /// Neither Windows nor WSL.
    #[error("`--wsl` works only on Windows and inside WSL; this is {0}")]
    Elsewhere(String),
    /// WSL 1 has no kernel of its own, and no GPU.
    #[error("this distribution runs under WSL 1, which has neither a Linux kernel nor GPUs")]
    VersionOne,
    /// WSL 2 cannot run on this PC.
    #[error("WSL 2 cannot run on this PC: {why}")]
    Blocked {
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// Windows must be restarted first.
    #[error("Windows must be restarted before WSL can be used")]
    Restart,
    /// The user declined, or could not be asked.
    #[error("{what} was not run: it needs your confirmation")]
    Consent {
        /// The command.
        what: String,
        /// Whether the user was asked.
        asked: bool,
    },
    /// `wsl.exe` could not be started.
    #[error("cannot run {program}: {source}", program = .program.display())]
    NoExe {
        /// The program.
        program: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A fact that the plan needs is not known, such as when `wsl.exe` hangs.
    #[error("cannot examine WSL: {0}")]
    Unknown(Unknown),
    /// A command of `wsl.exe` failed.
    #[error("`{command}` failed ({status}){}", indented(.output))]
    Failed {
        /// The command.
        command: String,
        /// Its exit status.
        status: String,
        /// Its output.
        output: String,
        /// What the code in its output means.
        trouble: Option<Trouble>,
    },
    /// A step succeeded, but nothing has changed.
    #[error("`{command}` succeeded but had no effect: {still}")]
    NoEffect {
        /// The command.
        command: String,
        /// What is unchanged.
        still: String,
    },
    /// The Linux program is not next to this one.
    #[error("the Linux program is missing: {} does not exist", .0.display())]
    NoArchive(PathBuf),
    /// The archive is not the one of this release.
    #[error("{} is damaged: {why}", path.display())]
    BadArchive {
        /// The archive.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Inside WSL, the Windows user's folder is not known.
    #[error("cannot find the Windows user's folder from inside WSL: {0}")]
    NoProfile(Unknown),
    /// A value cannot be written.
    #[error("cannot change {}: {source}", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: EditError,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FetchError),
}

impl WslError {
    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let disk = FetchError::disk(action, path);
        move |source| disk(source).into()
    }
}

impl Hint for WslError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Elsewhere(_) => "run `yolo setup` without `--wsl` to install what this machine needs",
            Self::VersionOne => {
                "convert it from Windows with `wsl.exe --set-version NAME 2`; `wsl.exe -l -v` lists the names"
            }
            Self::Blocked { remedy, .. } => remedy,
            Self::Restart => "restart Windows, then run `yolo setup --wsl` again: it continues from there",
            Self::Consent { asked: true, .. } => {
                "run that command yourself, or run `yolo setup --wsl` again and answer yes"
            }
            Self::Consent { asked: false, .. } => {
                "there is no terminal to ask on: review the steps with `--dry-run`, then pass `--yes`"
            }
            Self::NoExe { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "WSL needs Windows 10 version 2004 or newer; update Windows first"
            }
            Self::NoExe { .. } => "run this again; if it still cannot be started, restart Windows",
            Self::Unknown(_) => {
                "if WSL hangs, run `wsl.exe --shutdown` or restart Windows, then run this again"
            }
            Self::Failed { trouble, .. } => return trouble.map(|trouble| remedy(trouble).into()),
            Self::NoEffect { .. } => "restart Windows, then run this again",
            Self::NoArchive(_) => {
                "unpack the whole release archive into one folder, and run yolo.exe from there"
            }
            Self::BadArchive { .. } => "download and unpack the release archive again",
            Self::NoProfile(_) => {
                "run `yolo setup --wsl` in Windows, or set USERPROFILE in WSL to that folder's path"
            }
            Self::Edit { .. } => "fix that line in an editor, or delete it, then run this again",
            Self::File(error) => return error.hint(),
        };
        Some(hint.into())
    }
}

/// What to do about a trouble of `wsl.exe`.
pub(super) fn remedy(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::VirtualizationOff => {
            "in an administrator's terminal, run `wsl.exe --install --no-distribution` and `bcdedit /set \
             hypervisorlaunchtype auto`, then restart Windows; if WSL says the same again, enable virtualization (Intel \
             VT-x, AMD SVM) in the PC's firmware"
        }
        Trouble::FeatureOff | Trouble::NotInstalled => {
            "run `wsl.exe --install --no-distribution` in an administrator's terminal, then restart Windows"
        }
        Trouble::ServiceDisabled => {
            "run `yolo doctor` in Windows, which names the service, or in an administrator's terminal \
             `sc.exe config WSLService start= demand`; then run this again"
        }
        Trouble::KernelMissing => "run `wsl.exe --update`, then run this again",
        Trouble::NoDistribution => {
            "`wsl.exe --install -d Ubuntu` installs one; `wsl.exe -l -v` lists those that are installed"
        }
        Trouble::NeedsRights => {
            "run it in an administrator's terminal (right click, \"Run as administrator\")"
        }
        Trouble::Damaged => {
            "run the installer (.msi) of https://github.com/microsoft/WSL/releases, then run this again"
        }
        Trouble::NeedsRestart => "restart Windows, then run this again",
        Trouble::Network => "check the network and the proxy settings of Windows, then run this again",
        Trouble::DiskFull => "free some space on the Windows disk, then run this again",
        Trouble::Forbidden => "ask the administrator of this PC to allow WSL (group policy or Intune)",
        Trouble::DiskBroken => {
            "run `wsl.exe --shutdown`, then this again; if it fails again, see Microsoft's page on repairing a WSL disk"
        }
    }
}

/// The first lines of a program's output, below the message.
fn indented(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).take(8).collect();
    if lines.is_empty() { String::new() } else { format!(":\n  {}", lines.join("\n  ")) }
}
