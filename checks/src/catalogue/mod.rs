//! The catalogue: one entry per possible finding, in one file or folder per area. An entry holds the
//! text that is the same on every host; checks add the values, names and commands of this host.
//! Text, JSON, `--explain` and the reference page are generated from it.

mod container;
mod disk;
mod gpu;
mod libraries;
mod memory;
mod network;
mod run;
mod shell;
mod system;
mod undetected;
mod windows;
mod wsl;

use serde::Serialize;

use crate::intent::NOT_YET_OF_TRAIN;
use crate::status::Status;

pub(crate) use system::CHECK_FAILED;

pub use undetected::{UNDETECTED, Undetected};

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

    /// Its entries, in one or several tables.
    fn rows(self) -> &'static [&'static [Entry]] {
        match self {
            Self::System => &[system::ROWS],
            Self::Gpu => &[gpu::ROWS],
            Self::Libraries => &[libraries::ROWS],
            Self::Memory => &[memory::ROWS],
            Self::Disk => &[disk::ROWS],
            Self::Network => &[network::ROWS],
            Self::Wsl => wsl::ROWS,
            Self::Windows => &[windows::ROWS],
            Self::Container => &[container::ROWS],
            Self::Shell => &[shell::ROWS],
            Self::Run => &[run::ROWS],
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

/// All entries, in the order of their areas.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    Area::ALL.into_iter().flat_map(|area| area.rows().iter().copied().flatten())
}

/// The entry with this id.
pub fn entry(id: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_named_by_their_area() {
        let all: Vec<&Entry> = entries().collect();
        for (index, entry) in all.iter().enumerate() {
            assert!(all[..index].iter().all(|other| other.id != entry.id), "{} is listed twice", entry.id);
            let (area, words) = entry.id.split_once('.').unwrap();
            assert_eq!(area, entry.area.name(), "{}", entry.id);
            let is_word =
                |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            assert!(!words.is_empty() && words.chars().all(is_word), "{}", entry.id);
        }
    }

    #[test]
    fn problems_have_remedies_and_texts_have_no_period() {
        for entry in entries() {
            if entry.status >= Status::Warning {
                assert!(entry.remedy.is_some(), "{} has no remedy", entry.id);
            }
            for text in [Some(entry.cause), entry.remedy].into_iter().flatten() {
                assert!(!text.ends_with('.'), "{}: fragments have no full stop: {text}", entry.id);
            }
        }
    }
}
