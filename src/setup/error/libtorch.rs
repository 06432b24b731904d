//! Errors of libtorch's setup.

use std::borrow::Cow;
use std::path::PathBuf;

use yolo_base::Hint;

use crate::fetch::{Refusal, RefusalKind};
use crate::setup::libtorch::installation::LIBTORCH_VERSION;

/// A source that failed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedSource {
    /// Its name, as messages show it.
    pub name: &'static str,
    /// The reason.
    pub refusal: Refusal,
}

/// A libtorch that cannot be found, installed or used.
#[derive(Debug, thiserror::Error)]
pub enum LibtorchError {
    /// No source has libtorch.
    #[error("libtorch {} ({variant}) cannot be downloaded:{}", LIBTORCH_VERSION, lines(failed))]
    NoSource {
        /// The variant.
        variant: &'static str,
        /// Why each source failed.
        failed: Vec<FailedSource>,
    },
    /// The libraries are intact, but this machine cannot load them.
    #[error("the libtorch in {} does not work on this machine: {why}", folder.display())]
    DoesNotLoad {
        /// The directory of the libraries.
        folder: PathBuf,
        /// The error of the loader or of libtorch.
        why: String,
    },
    /// There is no libtorch for this platform.
    #[error("there is no libtorch for {0}; training needs x86-64 Linux with glibc (WSL2 works)")]
    Platform(String),
    /// `LIBTORCH` is not a usable libtorch.
    #[error("LIBTORCH is {}, where {why}", path.display())]
    Named {
        /// The value of `LIBTORCH`.
        path: PathBuf,
        /// What is wrong there.
        why: String,
    },
    /// `LIBTORCH` has no headers, but the trainer must be built.
    #[error(
        "LIBTORCH is {}, which has no include/torch/extension.h; building the trainer needs the headers",
        path.display()
    )]
    NoHeaders {
        /// The folder.
        path: PathBuf,
    },
}

impl Hint for LibtorchError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::NoSource { failed, .. } => no_source(failed),
            Self::DoesNotLoad { .. } => {
                "libtorch needs glibc 2.28 or newer and, for CUDA, zlib (Debian, Ubuntu: `sudo apt install zlib1g`); \
                 the download is kept: run the command again, or choose another variant with --libtorch"
            }
            Self::Platform(_) if cfg!(windows) => "on Windows, training runs in WSL2: run `yolo setup --wsl`",
            Self::Platform(_) => "use an x86-64 Linux machine, or Windows with WSL2",
            Self::Named { .. } | Self::NoHeaders { .. } => {
                "set it to a folder of libtorch 2.11.0 that contains lib/libtorch_cpu.so and include, or unset it \
                 to let yolo download its own"
            }
        };
        Some(hint.into())
    }
}

/// pip and uv.
const PACKAGE_TOOLS: usize = 2;

/// What to do when every source failed, from the reasons.
fn no_source(failed: &[FailedSource]) -> &'static str {
    let of_kind = |kind| failed.iter().filter(|source| source.refusal.kind == kind).count();
    if of_kind(RefusalKind::Offline) > 0 {
        "run without --offline (and unset YOLO_OFFLINE), set YOLO_MIRROR to a folder with the wheels, or set \
         LIBTORCH to a folder with this version of libtorch"
    } else if of_kind(RefusalKind::NoTool) == PACKAGE_TOOLS {
        "install pip (python3-pip) or uv, set YOLO_MIRROR to a URL or folder with the wheels, or set \
         LIBTORCH to a folder with this version of libtorch"
    } else {
        "check the network, HTTPS_PROXY, and the package index that pip or uv is configured to use; or set \
         YOLO_MIRROR to a URL or folder with the wheels, or LIBTORCH to a folder with this version \
         of libtorch"
    }
}

/// One line for each source.
pub(super) fn lines(failed: &[FailedSource]) -> String {
    failed.iter().map(|source| format!("\n  - {}: {}", source.name, source.refusal.why)).collect()
}
