//! What can go wrong while a machine is set up, each with what to do next.

use std::io;
use std::path::PathBuf;

use crate::fetch::{FetchError, disk_hint};

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
    #[error(
        "libtorch {} ({variant}) cannot be fetched:{}",
        super::libtorch::installation::LIBTORCH_VERSION,
        lines(refusals)
    )]
    NoSource {
        /// The variant.
        variant: &'static str,
        /// What each source said.
        refusals: Vec<Refusal>,
    },
    /// The libraries are right, and this machine cannot load them.
    #[error("the libtorch in {} does not work on this machine: {why}", folder.display())]
    DoesNotLoad {
        /// The folder of the libraries.
        folder: PathBuf,
        /// What the loader or libtorch said.
        why: String,
    },
    /// A yaml or an option of a data set.
    #[error(transparent)]
    Plan(#[from] yolo_plan::PlanError),
    /// The images or labels of a data set.
    #[error(transparent)]
    Data(#[from] yolo_data::error::DataError),
    /// A word of `--weights` that cannot be used.
    #[error("--weights {word}: it {why}")]
    Weights {
        /// The word, without credentials.
        word: String,
        /// What is wrong with it.
        why: String,
    },
    /// A data set that is in place and that a training would refuse.
    #[error("the data set {name} is in place, and cannot be trained on: {why}")]
    Untrainable {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// A `download:` that is a program.
    #[error(
        "the data set {yaml}: its download is a {kind}, which is not run, since data sets are never code; it {would}"
    )]
    DownloadIsCode {
        /// The yaml.
        yaml: String,
        /// What it is.
        kind: &'static str,
        /// What it would have done.
        would: String,
    },
    /// Neither images nor a `download:`.
    #[error("the data set {yaml} has no images here, and no download to fetch them from")]
    NothingToFetch {
        /// The yaml.
        yaml: String,
    },
    /// Archives came, and hold something else.
    #[error("the archives of {name} hold no {wanted}: they hold {holds}; nothing was installed")]
    NotInArchive {
        /// The data set.
        name: String,
        /// The entries of the yaml.
        wanted: String,
        /// Folders that were found.
        holds: String,
    },
    /// A mirror's file has the name of a known archive, and holds something else.
    #[error("{sources}: not the archive of {name}: no {wanted} in it, but {holds}; nothing was installed")]
    WrongArchive {
        /// The data set.
        name: String,
        /// Where the archives came from.
        sources: String,
        /// What should be in them.
        wanted: String,
        /// Folders that were found.
        holds: String,
    },
    /// Two data sets for one folder.
    #[error("{} is for one data set only: {there} is not what {wanted} would bring; nothing was changed", folder.display())]
    AnotherSet {
        /// The folder.
        folder: PathBuf,
        /// Where the first came from.
        there: String,
        /// Where the other would come from.
        wanted: String,
    },
    /// Somebody else's files are in the way.
    #[error(
        "{} {} that setup did not put there, and it does not replace {}",
        folder.display(),
        if folder.is_dir() { "holds files" } else { "is a file" },
        if folder.is_dir() { "them" } else { "it" },
    )]
    Occupied {
        /// The folder.
        folder: PathBuf,
    },
    /// `YOLO_MIRROR` names nothing that can serve.
    #[error("YOLO_MIRROR is {mirror}: {why}")]
    Mirror {
        /// Its value, without credentials.
        mirror: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Another file has the name that weights would get.
    #[error("{} {by}, and setup does not replace it", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// What it is.
        by: String,
    },
    /// `--remove` names nothing that is installed.
    #[error("{what} is not installed; {installed}")]
    NothingToRemove {
        /// The word.
        what: String,
        /// What could be named.
        installed: String,
    },
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
    #[error("cannot {action} {}: {source}{}", path.display(), disk_hint(path, source))]
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
            Self::Fetch(error) => error.hint(),
            Self::File { .. } => None,
            Self::Plan(error) => error.hint(),
            Self::Data(error) => error.hint(),
            Self::Weights { .. } => Some(
                "name a file, an address, or published weights: yolov5n, s, m, l, x and their 6-variants",
            ),
            Self::Untrainable { .. } => Some(
                "correct the label, or add the missing class to `names` in the data yaml, and run the same command again",
            ),
            Self::DownloadIsCode { .. } => Some(
                "fetch the data yourself to where the yaml's path says, write the archives' addresses as \
                 download: [https://…], or take a known set: coco128, coco8, VOC, coco",
            ),
            Self::NothingToFetch { .. } => Some("correct path, train and val in the yaml, or add download:"),
            Self::NotInArchive { .. } => {
                Some("correct path, train and val in the yaml so that they name folders of the archive")
            }
            Self::WrongArchive { .. } => {
                Some("put the right archive there, or unset YOLO_MIRROR, and run the same command again")
            }
            Self::AnotherSet { .. } => Some(
                "give one of the two yamls another path:, or remove the one that is installed with \
                 `yolo setup --remove NAME`",
            ),
            Self::Occupied { .. } => Some("move that folder away, or correct path in the data yaml"),
            Self::Mirror { .. } => Some("set it to an address or folder that holds the files, or unset it"),
            Self::Taken { .. } => Some(
                "give the other weights another file name, remove these with `yolo setup --remove NAME`, or \
                 train with --weights and the path of your file, which needs no setup",
            ),
            Self::NothingToRemove { .. } => Some("`yolo setup --list` shows what is installed"),
            Self::NoSource { refusals, .. } => {
                let lacks = |what: &str| refusals.iter().any(|refusal| refusal.why.starts_with(what));
                Some(if lacks("yolo was told to stay offline") {
                    "leave out --offline, or set YOLO_MIRROR to a folder with the wheels, or LIBTORCH to a \
                     libtorch of this version"
                } else if lacks("no pip") && lacks("no uv") {
                    "install pip (python3-pip) or uv, or set YOLO_MIRROR to an address or folder with the \
                     wheels, or LIBTORCH to a libtorch of this version"
                } else {
                    "check the index in the settings of pip or uv, and HTTPS_PROXY, or set YOLO_MIRROR to an \
                     address or folder with the wheels, or LIBTORCH to a libtorch of this version"
                })
            }
            Self::DoesNotLoad { .. } => Some(
                "it needs glibc 2.28 or newer and, for CUDA, zlib (Debian, Ubuntu: `sudo apt install zlib1g`); \
                 what came is kept: run the same command again, or take another variant with --libtorch",
            ),
            Self::Platform(_) => Some(if cfg!(windows) {
                "on Windows training runs inside WSL2: type `yolo setup --wsl`"
            } else {
                "an x86-64 Linux machine is needed, or Windows with WSL2"
            }),
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

    /// Whether this is about a file that could not be fetched, and not about the words that name it.
    pub(crate) fn is_about_fetching(&self) -> bool {
        matches!(self, Self::Fetch(_) | Self::Occupied { .. } | Self::Taken { .. } | Self::AnotherSet { .. })
    }

    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}

fn lines(refusals: &[Refusal]) -> String {
    refusals.iter().map(|Refusal { source, why }| format!("\n  - {source}: {why}")).collect()
}
