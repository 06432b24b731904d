//! Why a command that was typed at a Windows prompt did not run in WSL, or did not end there. What is missing is one
//! command away: `yolo setup --wsl`.

use std::borrow::Cow;

use yolo_base::{Hint, format};
use yolo_checks::wsl::exe_output::Trouble;

use crate::setup::WslError;

/// A failure between Windows and the command in WSL.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InWslError {
    /// There is no `wsl.exe`, or only the stub that can install WSL.
    #[error("WSL, in which yolo trains, is not installed")]
    NotInstalled,
    /// No distribution, or only helpers.
    #[error("WSL, in which yolo trains, has no Linux distribution{}", helpers_alone(.helpers))]
    NoDistribution { helpers: Vec<String> },
    /// `--distribution` names none.
    #[error("WSL has no distribution {name}{}", other_names(.others))]
    NoSuchDistribution { name: String, others: Vec<String> },
    /// `--distribution` names a helper.
    #[error("{name} belongs to another program, such as Docker Desktop, and yolo cannot be installed in it")]
    Helper { name: String },
    /// WSL 1 has no GPU.
    #[error("the distribution {distribution} runs under WSL 1, which has neither a Linux kernel nor GPUs")]
    VersionOne { distribution: String },
    /// The Linux program is missing.
    #[error("yolo is not installed in {distribution}")]
    NoProgram { distribution: String },
    /// The Linux program is another version.
    #[error("yolo in {distribution} is version {here}, and yolo.exe is version {windows}")]
    OtherVersion { distribution: String, here: String, windows: String },
    /// `wsl.exe` says why, in the language of Windows.
    #[error("cannot run yolo in {distribution}: {}{}", .trouble.map_or_else(|| "wsl.exe failed".to_owned(), |trouble| trouble.to_string()), quoted(.output))]
    Trouble {
        distribution: String,
        trouble: Option<Trouble>,
        /// The command of `wsl.exe` that wrote this.
        command: String,
        output: String,
        /// The exit status of that command, if it has one.
        status: Option<i32>,
    },
    /// WSL does not answer.
    #[error("WSL did not answer within {}", format::duration(.limit.as_secs_f64()))]
    Hangs { distribution: String, limit: std::time::Duration },
    /// `wsl.exe` cannot be asked.
    #[error(transparent)]
    Exe(#[from] WslError),
    /// WSL does not see the working folder.
    #[error("this command would work in the current folder, {folder}, but {why}")]
    Folder { folder: String, why: String },
    /// A variable that is needed names a path that WSL does not see.
    #[error("the variable {name} is {value}, and {why}")]
    Variable { name: String, value: String, why: String },
    /// A defect of the program in Linux.
    #[error("yolo in {distribution} failed in a way that it should not; what it wrote above says where")]
    Failed { distribution: String },
    /// WSL or the program ended without a word.
    #[error(
        "WSL ended before yolo did ({status}): the distribution {distribution} was stopped, or its window was closed"
    )]
    Stopped {
        distribution: String,
        /// What `wsl.exe` ended with.
        status: String,
        /// Whether the command trains.
        trains: bool,
    },
    /// The program was ended by a signal in Linux.
    #[error("yolo in {distribution} was ended by {signal}")]
    Killed {
        distribution: String,
        signal: String,
        /// Whether the command trains.
        trains: bool,
    },
    /// An option for Windows.
    #[error("--distribution {0} selects a WSL distribution at a Windows prompt; this is Linux")]
    NotWindows(String),
}

/// A command of `wsl.exe` that failed.
#[derive(Debug, Clone)]
pub(crate) struct Said {
    pub(crate) command: String,
    pub(crate) output: String,
    pub(crate) status: Option<i32>,
}

impl InWslError {
    /// The command of `wsl.exe` that failed, and what it wrote.
    pub(crate) fn said(&self) -> Option<Said> {
        match self {
            Self::Trouble { command, output, status, .. } => {
                Some(Said { command: command.clone(), output: output.clone(), status: *status })
            }
            _ => None,
        }
    }

    /// Whether the program ended in the middle of its output, where the cursor may stand in a line of progress.
    pub(crate) fn is_sudden(&self) -> bool {
        matches!(self, Self::Stopped { .. } | Self::Killed { .. } | Self::Failed { .. })
    }

    /// The error where a finding says why. A code that stands for several causes would name another one.
    pub(crate) fn before_finding(self) -> Self {
        match self {
            Self::Trouble { distribution, trouble: Some(trouble), command, output, status }
                if trouble.is_of_disk() =>
            {
                Self::Trouble { distribution, trouble: None, command, output, status }
            }
            other => other,
        }
    }

    /// Whether `yolo setup --wsl` repairs it.
    pub(crate) fn is_for_setup(&self) -> bool {
        matches!(self, Self::Trouble { trouble: Some(trouble), .. } if is_of_setup(*trouble))
    }
}

/// What `yolo setup --wsl` repairs.
fn is_of_setup(trouble: Trouble) -> bool {
    use Trouble::{FeatureOff, KernelMissing, NoDistribution, NotInstalled, VirtualizationOff};
    matches!(trouble, NotInstalled | NoDistribution | KernelMissing | FeatureOff | VirtualizationOff)
}

impl Hint for InWslError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        const SET_UP: &str = "run `yolo setup --wsl`: it shows what it will do, and installs it";
        let resume = |trains: bool| match trains {
            true => {
                "if the run has saved a checkpoint, `yolo train --resume` in this folder continues it; otherwise run the same \
                 command again"
            }
            false => "run the same command again",
        };
        Some(match self {
            Self::NotInstalled | Self::NoDistribution { .. } | Self::NoProgram { .. } => SET_UP.into(),
            Self::Helper { .. } => "omit --distribution for the one that `yolo setup --wsl` has prepared; `wsl.exe -l -v` lists all".into(),
            Self::VersionOne { distribution } => {
                format!("run `yolo setup --wsl --distribution {distribution}`, which converts it and keeps its files")
                    .into()
            }
            Self::OtherVersion { .. } => "run `yolo setup --wsl`, which installs this version in WSL".into(),
            Self::NoSuchDistribution { others, name } => {
                let known = if others.is_empty() { "" } else { "name one of these, or " };
                format!("{known}run `yolo setup --wsl --distribution {name}` to install it").into()
            }
            Self::Trouble { trouble: Some(trouble), .. } if is_of_setup(*trouble) => SET_UP.into(),
            Self::Trouble { .. } => {
                "`yolo doctor` says what is wrong with WSL on this PC; `yolo setup --wsl` repairs what it can".into()
            }
            Self::Hangs { distribution, .. } => format!(
                "stop the distribution with `wsl.exe --terminate {distribution}`, which ends what runs in it, or restart \
                 Windows; then run this again"
            )
            .into(),
            Self::Exe(error) => return error.hint(),
            Self::Folder { .. } => "change into a folder of a drive of this PC, such as with `cd %USERPROFILE%` in cmd or `cd ~` in PowerShell".into(),
            Self::Variable { name, .. } => format!(
                "give {name} another value, or remove it: `set {name}=` in cmd, `Remove-Item Env:{name}` in PowerShell"
            )
            .into(),
            Self::Failed { .. } => {
                "please report this with what was written, and with the file that `yolo doctor --record pc.json` writes".into()
            }
            Self::Stopped { trains, .. } => resume(*trains).into(),
            Self::Killed { trains, signal, .. } if signal.contains("SIGKILL") => format!(
                "Linux ends programs so when WSL has no memory left: `yolo doctor` says how much it has and needs; {}",
                resume(*trains)
            )
            .into(),
            Self::Killed { trains, .. } => resume(*trains).into(),
            Self::NotWindows(_) => "omit it".into(),
        })
    }
}

fn helpers_alone(helpers: &[String]) -> String {
    match helpers {
        [] => String::new(),
        helpers => format!(": only {}, in which programs like Docker run", format::list(helpers)),
    }
}

fn other_names(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!("; it has {}", format::list(names)) }
}

/// What `wsl.exe` wrote, below the message.
fn quoted(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).take(8).collect();
    if lines.is_empty() { String::new() } else { format!(":\n  {}", lines.join("\n  ")) }
}
