//! What can stop `yolo setup --wsl`, each with what to do next.

use std::io;
use std::path::PathBuf;

use yolo_checks::wsl::config::EditError;
use yolo_checks::wsl::exe_output::Trouble;

/// A failure of `yolo setup --wsl`.
#[derive(Debug, thiserror::Error)]
pub enum WslError {
    /// Neither Windows nor WSL.
    #[error("`--wsl` is for Windows PCs and for Linux inside WSL, and this is {0}")]
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
    /// Windows must be restarted before anything else.
    #[error("Windows must be restarted before WSL can be used")]
    Restart,
    /// The user said no, or could not be asked.
    #[error("not done: {what} needs your consent")]
    Consent {
        /// The command.
        what: String,
        /// Whether the user was asked.
        asked: bool,
    },
    /// `wsl.exe` could not be started.
    #[error("{program} cannot be run: {source}", program = .program.display())]
    NoExe {
        /// The program.
        program: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// `wsl.exe` did not answer.
    #[error("`{command}` has not answered for {seconds} s")]
    Silent {
        /// The command.
        command: String,
        /// How long was waited.
        seconds: u64,
    },
    /// A command of `wsl.exe` failed.
    #[error("`{command}` failed ({status}){}", said(.answer))]
    Failed {
        /// The command.
        command: String,
        /// How it ended.
        status: String,
        /// What it said.
        answer: String,
        /// What its code means.
        trouble: Option<Trouble>,
    },
    /// A step ended well, but nothing has changed.
    #[error("`{command}` ended without an error, but it has not taken effect: {still}")]
    NoEffect {
        /// The command.
        command: String,
        /// What is still so.
        still: String,
    },
    /// The Linux program does not lie beside this one.
    #[error("the Linux program is not beside this one: {} is not there", .0.display())]
    NoArchive(PathBuf),
    /// The archive is not the one of this release.
    #[error("{} is damaged: {why}", path.display())]
    BadArchive {
        /// The archive.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Inside WSL, the Windows user's folder cannot be told.
    #[error("the Windows user's folder cannot be found from inside WSL: {0}")]
    NoProfile(String),
    /// A value cannot be written.
    #[error("{} cannot be changed: {source}", path.display())]
    Edit {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: EditError,
    },
    /// A file.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl WslError {
    /// What the user can do next.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Elsewhere(_) => Some("leave `--wsl` out: `yolo setup` installs what this machine needs"),
            Self::VersionOne => Some(
                "in Windows, `wsl.exe --set-version <its name> 2` converts it; `wsl.exe -l -v` lists names",
            ),
            Self::Blocked { remedy, .. } => Some(remedy),
            Self::Restart => {
                Some("restart Windows, then type `yolo setup --wsl` again: it goes on from there")
            }
            Self::Consent { asked: true, .. } => {
                Some("run the command yourself, or run this again and say yes")
            }
            Self::Consent { asked: false, .. } => {
                Some("there is no terminal to ask in: `--yes` agrees to every step that `--dry-run` shows")
            }
            Self::NoExe { .. } => Some("WSL needs Windows 10 version 2004 or newer; update Windows first"),
            Self::Silent { .. } => Some(
                "WSL hangs: `wsl.exe --shutdown` ends it, and if that hangs too, restart Windows; then run this again",
            ),
            Self::Failed { trouble, .. } => trouble.map(remedy),
            Self::NoEffect { .. } => Some("restart Windows, then run this again"),
            Self::NoArchive(_) => {
                Some("unpack the whole release archive into one folder, and run yolo.exe from there")
            }
            Self::BadArchive { .. } => Some("download and unpack the release archive again"),
            Self::NoProfile(_) => Some(
                "in Windows, run `yolo setup --wsl` there, or set USERPROFILE to that folder's path in WSL",
            ),
            Self::Edit { .. } => Some("repair that line in an editor, or delete it, then run this again"),
            Self::File { .. } => None,
        }
    }

    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}

/// What to do about a trouble of `wsl.exe`.
pub(super) fn remedy(trouble: Trouble) -> &'static str {
    match trouble {
        Trouble::VirtualizationOff => {
            "enable virtualization in the PC's firmware (Intel VT-x, AMD SVM) and, in an administrator's \
             terminal, `bcdedit /set hypervisorlaunchtype auto`; then restart"
        }
        Trouble::FeatureOff | Trouble::NotInstalled => {
            "in an administrator's terminal, `wsl.exe --install --no-distribution`; then restart Windows"
        }
        Trouble::KernelMissing => "`wsl.exe --update` installs it; then run this again",
        Trouble::NoDistribution => {
            "`wsl.exe --install -d Ubuntu` installs one; `wsl.exe -l -v` lists those that are there"
        }
        Trouble::NeedsRights => {
            "run it in an administrator's terminal (right click, \"Run as administrator\")"
        }
        Trouble::NeedsRestart => "restart Windows, then run this again",
        Trouble::Network => "check the network and Windows' proxy settings, then run this again",
        Trouble::DiskFull => "free some space on the Windows disk, then run this again",
        Trouble::DiskBroken => {
            "`wsl.exe --shutdown`, then run this again; if it stays, see Microsoft's page on repairing a WSL disk"
        }
    }
}

fn said(answer: &str) -> String {
    let lines: Vec<&str> = answer.lines().map(str::trim).filter(|line| !line.is_empty()).take(8).collect();
    if lines.is_empty() { String::new() } else { format!(":\n  {}", lines.join("\n  ")) }
}
