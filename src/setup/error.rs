//! The errors of setup, each with what to do next.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

use yolo_base::Hint;

use crate::fetch::{FetchError, disk_hint};

/// A source that failed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The name of the source, as messages show it.
    pub source: String,
    /// The reason.
    pub why: String,
}

/// A failure of the setup.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The disk failed, or a download did and no other source can help.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// No source has libtorch.
    #[error(
        "libtorch {} ({variant}) cannot be downloaded:{}",
        super::libtorch::installation::LIBTORCH_VERSION,
        lines(refusals)
    )]
    NoSource {
        /// The variant.
        variant: &'static str,
        /// Why each source failed.
        refusals: Vec<Refusal>,
    },
    /// The libraries are intact, but this machine cannot load them.
    #[error("the libtorch in {} does not work on this machine: {why}", folder.display())]
    DoesNotLoad {
        /// The directory of the libraries.
        folder: PathBuf,
        /// The error of the loader or of libtorch.
        why: String,
    },
    /// A yaml or an option of a data set.
    #[error(transparent)]
    Plan(#[from] yolo_plan::PlanError),
    /// The images or labels of a data set.
    #[error(transparent)]
    Data(#[from] yolo_data::error::DataError),
    /// A value of `--weights` that cannot be used.
    #[error("--weights {word}: {why}")]
    Weights {
        /// The value, without credentials.
        word: String,
        /// What is wrong with it.
        why: String,
    },
    /// A data set that is installed, but that training would reject.
    #[error("the data set {name} is installed, but cannot be used for training: {why}")]
    Untrainable {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A `download:` that is code.
    #[error("the data set {yaml}: its `download` is a {kind}, which yolo never runs; it {would}")]
    DownloadIsCode {
        /// The yaml.
        yaml: String,
        /// What it is.
        kind: &'static str,
        /// What the code would do.
        would: String,
    },
    /// Neither images nor a `download:`.
    #[error("the data set {yaml} has neither images on this machine nor a `download` URL")]
    NothingToFetch {
        /// The yaml.
        yaml: String,
    },
    /// The downloaded archives contain something else.
    #[error("the archives of {name} do not contain {wanted}, but {holds}; nothing was installed")]
    NotInArchive {
        /// The data set.
        name: String,
        /// The folders that the yaml names.
        wanted: String,
        /// The folders that the archives contain.
        holds: String,
    },
    /// A mirror's file has the name of a known archive, but contains something else.
    #[error(
        "{sources}: not the archive of {name}: it does not contain {wanted}, but {holds}; nothing was installed"
    )]
    WrongArchive {
        /// The data set.
        name: String,
        /// Where the archives came from.
        sources: String,
        /// The folders that should be in them.
        wanted: String,
        /// The folders that the archives contain.
        holds: String,
    },
    /// Two data sets would share a folder.
    #[error("{} can hold only one data set: it holds the one from {there}, not the one from {wanted}; nothing was changed", folder.display())]
    AnotherSet {
        /// The folder.
        folder: PathBuf,
        /// Where the first one comes from.
        there: String,
        /// Where the other one comes from.
        wanted: String,
    },
    /// Files that setup did not install are in the way.
    #[error(
        "{} {} that setup did not install and will not overwrite",
        folder.display(),
        if folder.is_dir() { "contains files" } else { "is a file" },
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// `YOLO_MIRROR` is not a usable mirror.
    #[error("YOLO_MIRROR is {mirror}: {why}")]
    Mirror {
        /// Its value, without credentials.
        mirror: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another file has the name of the weights.
    #[error("{} {by}; setup will not overwrite it", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// What it is.
        by: String,
    },
    /// `--remove` names something that is not installed.
    #[error("not installed: {what}; {installed}")]
    NothingToRemove {
        /// The argument.
        what: String,
        /// What is installed.
        installed: String,
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
    /// `YOLO_TRAINER` is not a program.
    #[error("YOLO_TRAINER is {}, {why}", path.display())]
    TrainerNamed {
        /// The value.
        path: PathBuf,
        /// "which does not exist", "which is not executable".
        why: &'static str,
    },
    /// Neither a release archive nor a checkout.
    #[error(
        "yolo-trainer not found: it is not next to {}, and the checkout that yolo was built from ({}) no longer exists",
        exe.display(), checkout.display()
    )]
    NoTrainer {
        /// This program.
        exe: PathBuf,
        /// Where the source was.
        checkout: PathBuf,
    },
    /// A tool that the build needs.
    #[error("cannot build the trainer: {tool} is not installed")]
    Tool {
        /// "cargo", "a C++ compiler".
        tool: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Cargo failed.
    #[error("the trainer could not be built ({status}):\n{lines}")]
    Build {
        /// How cargo exited.
        status: String,
        /// The last lines of errors.
        lines: String,
        /// What to do.
        remedy: String,
    },
    /// A file that setup itself uses.
    #[error("cannot {action} {}: {source}{}", path.display(), disk_hint(path, source))]
    File {
        /// The verb of the message.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl SetupError {
    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}

impl Hint for SetupError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            // Download and disk errors name their own remedy.
            Self::Fetch(error) => return error.hint(),
            Self::File { .. } => return None,
            Self::Plan(error) => return error.hint(),
            Self::Data(error) => return error.hint(),
            Self::Weights { .. } => {
                "pass a file, a URL, or a pretrained model: yolov5n, yolov5s, yolov5m, yolov5l, yolov5x, or the same with the suffix 6 (yolov5n6)"
            }
            Self::Untrainable { .. } => {
                "fix the label, or add the missing class to `names` in the data yaml; then run the command again"
            }
            Self::DownloadIsCode { .. } => {
                "download the data yourself into the yaml's `path`, list the URLs of its archives as \
                 `download: [https://…]`, or use a data set that yolo can download: coco128, coco8, VOC or coco"
            }
            Self::NothingToFetch { .. } => {
                "correct `path`, `train` and `val` in the yaml, or add a `download` URL"
            }
            Self::NotInArchive { .. } => {
                "correct `path`, `train` and `val` in the yaml so that they name folders in the archive"
            }
            Self::WrongArchive { .. } => {
                "put the right archive there or unset YOLO_MIRROR; then run the command again"
            }
            Self::AnotherSet { .. } => {
                "use a different `path` in one of the two yamls, or remove the installed one with \
                 `yolo setup --remove NAME`"
            }
            Self::Occupied { .. } => "move it away, or correct `path` in the data yaml",
            Self::Mirror { .. } => "set it to a URL or folder that has the files, or unset it",
            Self::Taken { .. } => {
                "rename your file, remove the installed one with `yolo setup --remove NAME`, or pass the path \
                 of your file to `yolo train --weights`, which needs no setup"
            }
            Self::NothingToRemove { .. } => "`yolo setup --list` shows what is installed",
            Self::NoSource { refusals, .. } => {
                let lacks = |what: &str| refusals.iter().any(|refusal| refusal.why.starts_with(what));
                if lacks("yolo is offline") {
                    "run without --offline (and unset YOLO_OFFLINE), set YOLO_MIRROR to a folder with the wheels, or set \
                     LIBTORCH to a folder with this version of libtorch"
                } else if lacks("no pip") && lacks("no uv") {
                    "install pip (python3-pip) or uv, set YOLO_MIRROR to a URL or folder with the wheels, or set \
                     LIBTORCH to a folder with this version of libtorch"
                } else {
                    "check the network, HTTPS_PROXY, and the package index that pip or uv is configured to use; or set \
                     YOLO_MIRROR to a URL or folder with the wheels, or LIBTORCH to a folder with this version \
                     of libtorch"
                }
            }
            Self::DoesNotLoad { .. } => {
                "libtorch needs glibc 2.28 or newer and, for CUDA, zlib (Debian, Ubuntu: `sudo apt install zlib1g`); \
                 the download is kept: run the command again, or choose another variant with --libtorch"
            }
            Self::Platform(_) => {
                if cfg!(windows) {
                    "on Windows, training runs in WSL2: run `yolo setup --wsl`"
                } else {
                    "use an x86-64 Linux machine, or Windows with WSL2"
                }
            }
            Self::Named { .. } | Self::NoHeaders { .. } => {
                "set it to a folder of libtorch 2.11.0 that contains lib/libtorch_cpu.so and include, or unset it \
                 to let yolo download its own"
            }
            Self::TrainerNamed { .. } => "set it to the yolo-trainer program, or unset it",
            Self::NoTrainer { .. } => {
                "copy yolo-trainer from the release archive next to yolo, or set YOLO_TRAINER to its path"
            }
            Self::Tool { remedy, .. } => remedy,
            Self::Build { remedy, .. } => remedy,
        };
        Some(hint.into())
    }
}

fn lines(refusals: &[Refusal]) -> String {
    refusals.iter().map(|Refusal { source, why }| format!("\n  - {source}: {why}")).collect()
}
