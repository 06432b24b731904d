//! Errors of the NCCL plugin's setup.

use std::borrow::Cow;
use std::path::PathBuf;

use yolo_base::Hint;
use yolo_plan::backend::NCCL_PLUGIN;

use super::libtorch::{FailedSource, lines};

/// An NCCL plugin that cannot be found or built.
#[derive(Debug, thiserror::Error)]
pub enum NcclError {
    /// The trainer was not built here, and there is no plugin next to it.
    #[error("the NCCL plugin is missing: there is no {}", plugin.display())]
    Missing {
        /// Where it would be.
        plugin: PathBuf,
    },
    /// `--nccl pip` without a Python.
    #[error("--nccl pip: there is no Python that could have the package")]
    NoPython,
    /// `--nccl pip`, and the Python has no NCCL.
    #[error("--nccl pip: {python} has no package of NCCL")]
    NoPackage {
        /// The program.
        python: String,
    },
    /// No source has the headers.
    #[error("the headers for the NCCL plugin cannot be downloaded:{}", lines(failed))]
    NoHeaders {
        /// Why each source failed.
        failed: Vec<FailedSource>,
    },
    /// The compiler cannot be started.
    #[error("cannot build the NCCL plugin: {compiler} cannot be started: {why}")]
    Compiler {
        /// Its name.
        compiler: String,
        /// The error of the system.
        why: String,
    },
    /// The compiler failed.
    #[error("the NCCL plugin could not be built ({status}):\n{lines}")]
    Build {
        /// How the compiler exited.
        status: String,
        /// The last lines that it wrote.
        lines: String,
    },
}

impl Hint for NcclError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            Self::Missing { .. } => {
                return Some(
                    format!("copy {NCCL_PLUGIN} from the release archive next to yolo-trainer, or use --backend gloo")
                        .into(),
                );
            }
            Self::NoPython => "name the library itself: --nccl /path/to/libnccl.so.2",
            Self::NoPackage { python } => {
                return Some(
                    format!(
                        "run `{python} -m pip install nvidia-nccl-cu13`, activate the environment that has it, or name \
                         the library itself: --nccl /path/to/libnccl.so.2"
                    )
                    .into(),
                );
            }
            Self::NoHeaders { .. } => {
                "check the network and the package index that pip or uv is configured to use, set YOLO_MIRROR to a \
                 URL or folder with the wheels, or use --backend gloo"
            }
            Self::Compiler { .. } => {
                "install g++ (Debian, Ubuntu: `sudo apt install build-essential`; Fedora: `sudo dnf install gcc-c++`)"
            }
            Self::Build { .. } => "use --backend gloo, and report this with the output above",
        };
        Some(hint.into())
    }
}
