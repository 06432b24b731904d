//! An entry of the catalogue: what is the same about a finding on every host.

use serde::Serialize;

use crate::intent::NOT_YET_OF_TRAIN;
use crate::status::Status;

/// The reference page, relative to the root of the repository.
pub const REFERENCE: &str = "docs/findings.md";

/// The groups of the report, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Area {
    /// Operating system and CPU.
    System,
    /// Driver and GPUs.
    Gpu,
    /// CUDA, cuDNN, NCCL and libtorch.
    Libraries,
    /// Memory and shared memory.
    Memory,
    /// Disk and data set.
    Disk,
    /// Network and ports.
    Network,
    /// Windows Subsystem for Linux.
    Wsl,
    /// Windows itself.
    Windows,
    /// Containers.
    Container,
    /// Environment variables and the PATH.
    Shell,
    /// The planned run.
    Run,
}

impl Area {
    /// All groups, in the order in which they are shown.
    pub const ALL: [Self; 11] = [
        Self::System,
        Self::Gpu,
        Self::Libraries,
        Self::Memory,
        Self::Disk,
        Self::Network,
        Self::Wsl,
        Self::Windows,
        Self::Container,
        Self::Shell,
        Self::Run,
    ];

    /// The prefix of its ids.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Gpu => "gpu",
            Self::Libraries => "libraries",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Network => "network",
            Self::Wsl => "wsl",
            Self::Windows => "windows",
            Self::Container => "container",
            Self::Shell => "shell",
            Self::Run => "run",
        }
    }

    /// The heading of the group.
    pub fn title(self) -> &'static str {
        match self {
            Self::System => "System",
            Self::Gpu => "Driver and GPUs",
            Self::Libraries => "CUDA, cuDNN, NCCL and libtorch",
            Self::Memory => "Memory",
            Self::Disk => "Disk and data set",
            Self::Network => "Network and ports",
            Self::Wsl => "WSL",
            Self::Windows => "Windows",
            Self::Container => "Container",
            Self::Shell => "Shell",
            Self::Run => "This run",
        }
    }
}

/// What is the same about a finding on every host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Stable name: the area, a dot, and words joined by hyphens.
    pub id: &'static str,
    /// The group.
    pub area: Area,
    /// Its usual status; a check may choose another for a particular run or host.
    pub status: Status,
    /// What is wrong, in general: the heading in the reference page.
    pub title: &'static str,
    /// Why it matters.
    pub cause: &'static str,
    /// What to do; `None` if there is nothing to do.
    pub remedy: Option<&'static str>,
    /// What `--fix` does, if it can help.
    pub fix: Option<Fix>,
    /// The ids of known failures that it detects.
    pub detects: &'static [&'static str],
}

/// What `--fix` can do about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// What it changes.
    pub does: &'static str,
    /// How it is undone.
    pub undo: &'static str,
}

impl Entry {
    /// The options in its text that only a future `yolo train` will have.
    pub fn planned_options(&self) -> impl Iterator<Item = &'static str> {
        let texts = [Some(self.title), Some(self.cause), self.remedy];
        let names = |text: &str, option: &str| {
            text.split(|letter: char| letter != '-' && !letter.is_ascii_alphanumeric())
                .any(|word| word == option)
        };
        NOT_YET_OF_TRAIN
            .into_iter()
            .filter(move |option| texts.into_iter().flatten().any(|text| names(text, option)))
    }

    /// The link to its section in the reference page.
    pub fn link(&self) -> String {
        format!("{REFERENCE}#{}", self.id.replace('.', ""))
    }
}
