//! What can be wrong with a weights file, found while it is read or written. Every error is one
//! message with the file and the reason; [`WeightsError::hint`] says what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// A weights file that could not be read or written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct WeightsError {
    path: PathBuf,
    // Not a source of this error: the message has all of it, and a chain would say it twice.
    problem: Box<Problem>,
}

impl WeightsError {
    pub(crate) fn new(path: &Path, problem: Problem) -> Self {
        Self { path: path.to_owned(), problem: Box::new(problem) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What to do next, if there is one thing to do.
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }
}

/// The kinds of trouble with a weights file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system refused.
    #[error("cannot be {doing}: {source}")]
    #[expect(missing_docs, reason = "the message says it")]
    Io { doing: &'static str, source: io::Error },
    /// A folder, a socket or the like.
    #[error("is not a file")]
    NotAFile,
    /// No byte in it.
    #[error("the file is empty (0 bytes)")]
    Empty,
    /// A web page was saved under the name of a weights file.
    #[error("is a web page (HTML), not weights: a download answered with a page instead of the file")]
    Html,
    /// Git fetched only the pointer to a large file.
    #[error("is a Git LFS pointer of a few lines, not the weights themselves")]
    LfsPointer,
    /// Readable text, with how it begins.
    #[error("is a text file, not weights; it begins with “{0}”")]
    Text(String),
    /// PyTorch's format before version 1.6, or a bare pickle.
    #[error("is in the format that PyTorch wrote before version 1.6 ({0}), which is not read here")]
    Legacy(&'static str),
    /// A TorchScript export.
    #[error("is a TorchScript export, not a checkpoint")]
    TorchScript,
    /// Nothing that is known.
    #[error("is neither a PyTorch checkpoint nor a safetensors file")]
    Unknown,
    /// A zip that has no directory at its end.
    #[error(
        "the file is truncated: it begins as a PyTorch checkpoint and ends after {0} bytes without the archive's directory"
    )]
    Truncated(u64),
    /// A zip without any entry.
    #[error("is an empty zip archive")]
    EmptyZip,
    /// A zip that PyTorch did not write.
    #[error("is a zip archive without data.pkl, so not a PyTorch checkpoint; it holds {0}")]
    NoPickle(String),
    /// A record of the archive cannot be used.
    #[error("the file is damaged: record {entry} {reason}")]
    #[expect(missing_docs, reason = "the message says it")]
    Record { entry: String, reason: String },
    /// The pickle stream is damaged.
    #[error("the file is damaged: its pickle {reason} (byte {at})")]
    #[expect(missing_docs, reason = "the message says it")]
    Pickle { at: usize, reason: String },
    /// The pickle asks for a class or function that is not known to be harmless.
    #[error("the file wants to run code: it names `{0}`, which was not allowed to run; nothing was executed")]
    Code(String),
    /// More than a weights file ever needs.
    #[error("the file is refused: it {0}")]
    Limit(String),
    /// A tensor does not fit the bytes that it points to.
    #[error("the file is damaged: tensor data {key} {reason}")]
    #[expect(missing_docs, reason = "the message says it")]
    Tensor { key: String, reason: String },
    /// A kind of tensor that is not read or written here.
    #[error("holds {0}, which is not supported here")]
    Unsupported(String),
    /// A well-formed file without a model.
    #[error("holds no model: {0}")]
    NoModel(String),
    /// A part of the checkpoint has another form than YOLOv5 gives it.
    #[error("the checkpoint's {part} {reason}")]
    #[expect(missing_docs, reason = "the message says it")]
    Content { part: &'static str, reason: String },
    /// The safetensors header or its offsets are wrong.
    #[error("the safetensors file is damaged: {0}")]
    Safetensors(#[from] safetensors::SafeTensorError),
    /// No room for a checkpoint; the file that was there is as it was.
    #[error(
        "cannot be written: the disk is full, and {needed} bytes are needed; the previous file, if there was one, is unchanged"
    )]
    #[expect(missing_docs, reason = "the message says it")]
    DiskFull { needed: u64 },
    /// A value that has no place in a checkpoint.
    #[error("cannot be written: {0}")]
    Unwritable(String),
}

impl Problem {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "check the path of the file"
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "check who owns the file and its folder, and whether you may read and write there"
            }
            Self::Io { .. } => return None,
            Self::NotAFile => "name the weights file itself, for example FOLDER/best.pt",
            Self::Empty | Self::Truncated(_) => {
                "download or copy the file again; the last time was cut short"
            }
            Self::Html => {
                "download the file itself: the address may be that of a page about it, or ask for a login"
            }
            Self::LfsPointer => "run `git lfs pull` in the repository that the file is from",
            Self::Text(_) | Self::Unknown | Self::EmptyZip | Self::NoPickle(_) => {
                "name a checkpoint written by YOLOv5 or by yolo (.pt), or a .safetensors file"
            }
            Self::Legacy(_) => {
                "if you trust the file, load and save it once with PyTorch 1.6 or newer: torch.save then writes the format read here"
            }
            Self::TorchScript => "name the .pt checkpoint that the export was made from",
            Self::Record { .. } | Self::Pickle { .. } | Self::Tensor { .. } | Self::Safetensors(_) => {
                "download or copy the file again, or take another checkpoint"
            }
            Self::Code(class) if class.starts_with("ultralytics.") => {
                "this is a model of the ultralytics package (YOLOv8 or later); yolo takes YOLOv5 weights"
            }
            Self::Code(_) => {
                "do not open this file with Python unless you trust its source; to use it, ask its author for a state dict or a .safetensors file"
            }
            Self::Limit(_) => {
                "take the file from a source that you trust; no checkpoint of YOLOv5 looks like this"
            }
            Self::Unsupported(_) => "save the model again with float32 or float16 tensors",
            Self::NoModel(_) => "name a checkpoint with a `model` or a state dict of tensors",
            Self::Content { .. } => "take the checkpoint as YOLOv5 or yolo wrote it",
            Self::DiskFull { needed } => {
                return Some(format!(
                    "free at least {needed} bytes there, or choose another folder with --project"
                ));
            }
            Self::Unwritable(_) => return None,
        };
        Some(hint.to_owned())
    }
}
