//! What can go wrong while a machine is set up, each with what to do next.

use std::io;
use std::path::PathBuf;

use crate::fetch::FetchError;

/// A source that could not serve, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The source in words: "the package index that pip knows".
    pub source: String,
    /// Its reason.
    pub why: String,
}

/// A failure of the setup.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The disk, or a download whose failure no other source can mend.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// No source could serve libtorch.
    #[error("libtorch {} cannot be fetched:{}", super::LIBTORCH_VERSION, refusals(.0))]
    NoSource(Vec<Refusal>),
    /// This program's libtorch exists for one platform only.
    #[error(
        "there is no libtorch for {0} that yolo can install; it runs on x86-64 Linux with glibc, \
         also inside WSL2"
    )]
    Platform(String),
    /// `LIBTORCH` names something that is no libtorch.
    #[error(
        "LIBTORCH is {}, where {why}", path.display()
    )]
    Named {
        /// The value of `LIBTORCH`.
        path: PathBuf,
        /// What is wrong there.
        why: String,
    },
    /// `LIBTORCH` has no headers, and the trainer must be built.
    #[error(
        "LIBTORCH is {}, which has no include/torch/extension.h, and the trainer must be built against it",
        path.display()
    )]
    NoHeaders {
        /// The folder.
        path: PathBuf,
    },
    /// `YOLO_TRAINER` names no program.
    #[error("YOLO_TRAINER is {}, {why}", path.display())]
    TrainerNamed {
        /// The value.
        path: PathBuf,
        /// "which is not there", "which cannot be run".
        why: &'static str,
    },
    /// Neither a release archive nor a checkout.
    #[error(
        "no yolo-trainer: it is not beside {}, and the source that yolo was built from ({}) is gone",
        exe.display(), checkout.display()
    )]
    NoTrainer {
        /// This program.
        exe: PathBuf,
        /// Where the source was.
        checkout: PathBuf,
    },
    /// A tool that building needs.
    #[error("the trainer must be built, and {tool} is not there")]
    Tool {
        /// "cargo", "a C++ compiler".
        tool: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Cargo failed.
    #[error("the trainer could not be built ({status}):\n{lines}")]
    Build {
        /// How cargo ended.
        status: String,
        /// The last lines of errors.
        lines: String,
        /// What to do.
        remedy: String,
    },
    /// A file of the setup itself.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl SetupError {
    /// What the user can do next, where the message itself does not say it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            // Messages of downloads and of the disk name their own remedy.
            Self::Fetch(_) | Self::File { .. } => None,
            Self::NoSource(_) => Some(
                "install pip (python3-pip) or uv if neither is there, check HTTPS_PROXY, or set YOLO_MIRROR to an \
                 address or folder with the wheels, or LIBTORCH to a libtorch of this version",
            ),
            Self::Platform(_) => Some("on Windows use WSL2; elsewhere an x86-64 Linux machine is needed"),
            Self::Named { .. } | Self::NoHeaders { .. } => Some(
                "name a folder of libtorch 2.11.0 that holds lib/libtorch_cpu.so and include, or unset LIBTORCH \
                 and yolo fetches its own",
            ),
            Self::TrainerNamed { .. } => Some("name the yolo-trainer program, or unset YOLO_TRAINER"),
            Self::NoTrainer { .. } => {
                Some("put the release's yolo-trainer beside yolo, or name one in YOLO_TRAINER")
            }
            Self::Tool { remedy, .. } => Some(remedy),
            Self::Build { remedy, .. } => Some(remedy),
        }
    }

    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}

fn refusals(refusals: &[Refusal]) -> String {
    refusals.iter().map(|Refusal { source, why }| format!("\n  - {source}: {why}")).collect()
}
