//! The steps of setting up a Windows PC: what each needs from the user, the command that a person could type instead, and
//! what `yolo undo` says about it.

use serde::Serialize;
use yolo_checks::wsl::sizing::Proposal;

use crate::setup::wsl::exe::{PROGRAM, WslExe};
use crate::undo::Step;

/// Unpacks the archive from stdin and puts it in the place of an older one, as root.
// Invariant: no double quotes and no backslashes, which the command lines of Windows would change.
pub(super) const UNPACK: &str = "set -e; mkdir -p /opt /usr/local/bin; cd /opt; rm -rf .yolo-new .yolo-old; \
    mkdir .yolo-new; tar -xzf - -C .yolo-new --strip-components=1; if [ -e yolo ]; then mv yolo .yolo-old; fi; \
    mv .yolo-new yolo; rm -rf .yolo-old; ln -sfn /opt/yolo/yolo /usr/local/bin/yolo";

/// One step. Its command is what a person could type instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WindowsStep {
    /// Install WSL and the Windows features that it needs.
    InstallWsl,
    /// Update WSL and its kernel.
    UpdateWsl,
    /// The user restarts Windows.
    RestartWindows,
    /// Make version 2 the default for new distributions.
    DefaultVersion,
    /// Install the distribution of this name.
    InstallDistribution(String),
    /// Convert this distribution to version 2.
    ConvertDistribution(String),
    /// Write values of `.wslconfig`.
    WriteConfig(Vec<Proposal>),
    /// Stop the virtual machine, for this reason.
    Shutdown(String),
    /// Copy the Linux program into this distribution.
    PutProgram(String),
    /// Run `yolo setup` in this distribution.
    SetUpInside(String),
}

/// What a step needs from the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// Administrator rights; Windows asks for them.
    Rights,
    /// A restart of Windows.
    Restart,
    /// Consent to stopping every Linux program on this PC.
    EndOfLinux,
    /// Consent to changing a distribution for good.
    Conversion,
}

/// What `yolo undo` says about a step.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) what: String,
    /// How it is undone.
    pub(super) steps: Vec<Step>,
    /// Why it stays, or what of it.
    pub(super) stays: Option<&'static str>,
    /// What a person can type instead.
    pub(super) by_hand: Option<String>,
}

impl WindowsStep {
    /// A stable name for programs.
    pub(crate) fn id(&self) -> &'static str {
        match self {
            Self::InstallWsl => "install-wsl",
            Self::UpdateWsl => "update-wsl",
            Self::RestartWindows => "restart-windows",
            Self::DefaultVersion => "default-version",
            Self::InstallDistribution(_) => "install-distribution",
            Self::ConvertDistribution(_) => "convert-distribution",
            Self::WriteConfig(_) => "write-config",
            Self::Shutdown(_) => "shutdown-wsl",
            Self::PutProgram(_) => "put-program",
            Self::SetUpInside(_) => "setup-inside",
        }
    }

    /// What it needs from the user.
    pub(crate) fn needs(&self) -> Needs {
        match self {
            Self::InstallWsl => Needs::Rights,
            Self::UpdateWsl => Needs::Rights,
            Self::RestartWindows => Needs::Restart,
            Self::Shutdown(_) => Needs::EndOfLinux,
            Self::ConvertDistribution(_) => Needs::Conversion,
            _ => Needs::Nothing,
        }
    }

    /// What `yolo undo` says about it; `None` for a step that changes nothing by itself.
    pub(super) fn note(&self) -> Option<Note> {
        let note = |what: String, stays: &'static str, by_hand: Option<String>| {
            Some(Note { what, steps: Vec::new(), stays: Some(stays), by_hand })
        };
        match self {
            Self::InstallWsl => note(
                "installed WSL and the Windows features that it needs".to_owned(),
                "other programs and distributions may use WSL by now",
                None,
            ),
            Self::UpdateWsl => {
                note("updated WSL".to_owned(), "Windows has no older version to go back to", None)
            }
            Self::DefaultVersion => note(
                "made version 2 the default for new WSL distributions".to_owned(),
                "distributions that were installed since depend on it",
                Some("wsl.exe --set-default-version 1".to_owned()),
            ),
            Self::InstallDistribution(name) => note(
                format!("installed the WSL distribution {name}"),
                "it may hold your files by now, and unregistering a distribution deletes all of them",
                None,
            ),
            Self::ConvertDistribution(name) => note(
                format!("converted the WSL distribution {name} to version 2"),
                "converting a distribution moves all of its files",
                Some(WslExe::command_line(&["--set-version", name, "1"])),
            ),
            Self::PutProgram(name) => Some(Note {
                what: format!("installed yolo in the WSL distribution {name}"),
                steps: vec![Step::LinuxProgram { distribution: name.clone() }],
                stays: Some(
                    "what `yolo setup` installed inside the distribution; `yolo undo` inside it lists that, as \
                     long as yolo is there",
                ),
                by_hand: None,
            }),
            Self::RestartWindows | Self::WriteConfig(_) | Self::Shutdown(_) | Self::SetUpInside(_) => None,
        }
    }

    /// The arguments of `wsl.exe`, for a step that it runs.
    pub(super) fn arguments(&self) -> Option<Vec<&str>> {
        Some(match self {
            Self::InstallWsl => vec!["--install", "--no-distribution"],
            Self::UpdateWsl => vec!["--update"],
            Self::DefaultVersion => vec!["--set-default-version", "2"],
            Self::InstallDistribution(name) => vec!["--install", "-d", name, "--no-launch"],
            Self::ConvertDistribution(name) => vec!["--set-version", name, "2"],
            Self::Shutdown(_) => vec!["--shutdown"],
            Self::PutProgram(name) => vec!["-d", name, "-u", "root", "--exec", "sh", "-c", UNPACK],
            Self::SetUpInside(name) => vec!["-d", name, "--cd", "~", "--exec", PROGRAM, "setup"],
            Self::RestartWindows | Self::WriteConfig(_) => return None,
        })
    }

    /// The command as a person would type it.
    pub(crate) fn command(&self) -> Option<String> {
        match self {
            Self::PutProgram(name) => {
                Some(format!("wsl.exe -d {name} -u root --exec sh -c \"… tar -xzf - …\""))
            }
            Self::RestartWindows => Some("shutdown.exe /r /t 0".to_owned()),
            step => step.arguments().map(|arguments| WslExe::command_line(&arguments)),
        }
    }

    /// What it does, without a period.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::InstallWsl => "install WSL and the Windows features that it needs".to_owned(),
            Self::UpdateWsl => "update WSL and its Linux kernel".to_owned(),
            Self::RestartWindows => "restart Windows, then run `yolo setup --wsl` again".to_owned(),
            Self::DefaultVersion => "make WSL 2 the default for new distributions".to_owned(),
            Self::InstallDistribution(name) => format!("download and install the Linux distribution {name}"),
            Self::ConvertDistribution(name) => {
                format!("convert {name} from WSL 1 to WSL 2, which takes minutes and keeps its files")
            }
            Self::WriteConfig(values) => {
                let values: Vec<_> = values.iter().map(|one| format!("{}={}", one.key, one.value)).collect();
                format!("set {} in .wslconfig, leaving the rest of the file unchanged", values.join(", "))
            }
            Self::Shutdown(why) => format!("stop all Linux programs on this PC, so that {why}"),
            Self::PutProgram(name) => format!("install yolo {} in {name}", env!("CARGO_PKG_VERSION")),
            Self::SetUpInside(name) => format!("run `yolo setup` in {name}"),
        }
    }
}
