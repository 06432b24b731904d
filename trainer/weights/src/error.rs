//! Errors of reading and writing a file. The message is a sentence whose subject is the
//! file, and [`WeightsError::hint`] says what to do next.

use std::io;
use std::path::{Path, PathBuf};

/// A file that could not be read or written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub struct WeightsError {
    path: PathBuf,
    // Not the source of this error, because the message already includes it.
    problem: Box<Problem>,
}

impl WeightsError {
    pub(crate) fn new(path: &Path, problem: Problem) -> Self {
        Self { path: path.to_owned(), problem: Box::new(problem) }
    }

    /// A file that the operating system cannot read.
    pub fn unreadable(path: &Path, source: io::Error) -> Self {
        Self::new(path, Problem::Io { doing: "read", source })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with it.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// What to do next, if that is clear.
    pub fn hint(&self) -> Option<String> {
        self.problem.hint()
    }
}

/// What can be wrong with a file. Each message continues a sentence that begins with the file's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The operating system reported an error.
    #[error("cannot be {doing}: {source}")]
    #[expect(missing_docs, reason = "the message says it")]
    Io { doing: &'static str, source: io::Error },
    /// A folder, a socket or something else that is not a file.
    #[error("is not a file")]
    NotAFile,
    /// An empty file.
    #[error("is empty (0 bytes)")]
    Empty,
    /// A web page saved under the name of a weights file.
    #[error("is a web page (HTML), not weights; a download got a page instead of the file")]
    Html,
    /// The pointer that Git LFS leaves in place of a large file.
    #[error("is a Git LFS pointer, not the weights themselves")]
    LfsPointer,
    /// Text, with its beginning.
    #[error("is a text file, not weights (it begins with “{0}”)")]
    Text(String),
    /// A tar archive, which PyTorch wrote before version 0.2, or a bare pickle.
    #[error("is {0}, which is not supported")]
    Foreign(&'static str),
    /// A TorchScript export.
    #[error("is a TorchScript export, not a checkpoint")]
    TorchScript,
    /// An ONNX export.
    #[error("is an ONNX export, not a checkpoint")]
    Onnx,
    /// An unknown format.
    #[error("is neither a PyTorch checkpoint nor a safetensors file")]
    Unknown,
    /// A zip archive without the directory at its end.
    #[error(
        "is truncated: it begins like a PyTorch checkpoint, but its {0} bytes end without the directory of the archive"
    )]
    Truncated(u64),
    /// A file in the format before version 1.6 that ends too early.
    #[error("is truncated: its {0} bytes end before the data of its tensors does")]
    TensorsEnd(u64),
    /// A zip archive without entries.
    #[error("is an empty zip archive")]
    EmptyZip,
    /// A zip archive that is not a checkpoint.
    #[error("is a zip archive without data.pkl, so it is not a PyTorch checkpoint (it contains {0})")]
    NoPickle(String),
    /// A record of the archive is damaged.
    #[error("is damaged: record {entry} {reason}")]
    #[expect(missing_docs, reason = "the message says it")]
    Record { entry: String, reason: String },
    /// The pickle is damaged.
    #[error("is damaged: its pickle {reason} (byte {at})")]
    #[expect(missing_docs, reason = "the message says it")]
    Pickle { at: usize, reason: String },
    /// The pickle references a class or function that is not on the allow-list.
    #[error("wants to run code: it references `{0}`, which is not on the allow-list; nothing was executed")]
    Code(String),
    /// A limit is exceeded that no checkpoint needs.
    #[error("is rejected: it {0}")]
    Limit(String),
    /// A tensor does not fit its storage.
    #[error("is damaged: tensor data {key} {reason}")]
    #[expect(missing_docs, reason = "the message says it")]
    Tensor { key: String, reason: String },
    /// An unsupported kind of tensor.
    #[error("contains {0}, which is not supported")]
    Unsupported(String),
    /// A valid file without a model.
    #[error("contains no model: {0}")]
    NoModel(String),
    /// A part of the checkpoint has an unexpected form.
    #[error("cannot be used: its {part} {reason}")]
    #[expect(missing_docs, reason = "the message says it")]
    Content { part: &'static str, reason: String },
    /// The header of a safetensors file is invalid.
    #[error("is a damaged safetensors file: {0}")]
    Safetensors(#[from] safetensors::SafeTensorError),
    /// The disk is full. The previous file is unchanged.
    #[error(
        "cannot be written: the disk is full, and {} are needed (a previous file is unchanged)",
        megabytes(*.needed)
    )]
    #[expect(missing_docs, reason = "the message says it")]
    DiskFull { needed: u64 },
    /// A value that a checkpoint cannot contain.
    #[error("cannot be written: {0}")]
    Unwritable(String),
}

/// Rounded up, since this much is needed.
fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

impl Problem {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                "check the path of the file"
            }
            Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "check the owner and the permissions of the file and its folder"
            }
            Self::Io { .. } => return None,
            Self::NotAFile => "give the path of the weights file itself, for example FOLDER/best.pt",
            Self::Empty | Self::Truncated(_) | Self::TensorsEnd(_) => {
                "download or copy the file again; the last attempt was incomplete"
            }
            Self::Html => "download the file itself; the URL may lead to a page about it, or require a login",
            Self::LfsPointer => "run `git lfs pull` in the repository of the file",
            Self::Text(_) | Self::Unknown | Self::EmptyZip | Self::NoPickle(_) => {
                "use a PyTorch checkpoint (.pt) or a .safetensors file"
            }
            Self::Foreign(_) => {
                "if you trust the file, load it with Python and save it again with torch.save"
            }
            Self::TorchScript | Self::Onnx => "use the .pt checkpoint that the export was made from",
            Self::Record { .. } | Self::Pickle { .. } | Self::Tensor { .. } | Self::Safetensors(_) => {
                "download or copy the file again, or use another checkpoint"
            }
            Self::Code(class) if class.starts_with("ultralytics.") => {
                "this is a model of the ultralytics package (YOLOv8 or later), which is not supported"
            }
            Self::Code(_) => {
                "do not open this file with Python unless you trust its source; ask its author for a state dict or a .safetensors file"
            }
            Self::Limit(_) => "get the file from a source that you trust; no checkpoint looks like this",
            Self::Unsupported(_) => "save the model again with float32 or float16 tensors",
            Self::NoModel(_) => "use a checkpoint with a `model`, or a state dict of tensors",
            Self::Content { .. } => "use the checkpoint as it was originally saved",
            Self::DiskFull { needed } => {
                return Some(format!("free at least {} there, or use another folder", megabytes(*needed)));
            }
            Self::Unwritable(_) => return None,
        };
        Some(hint.to_owned())
    }
}
