//! The errors of downloads, archives and the disk. Invariant: addresses in them carry no credentials.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use yolo_base::Hint;

use super::printable::printable;

/// Why one source of a file failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, as messages show it.
    pub why: String,
    /// What kind of reason it is.
    pub kind: RefusalKind,
}

/// The reasons for which there are specific hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// Downloads are disabled.
    Offline,
    /// The program that looks files up in this source is not installed.
    NoTool,
    /// Any other.
    Other,
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self { why, kind: RefusalKind::Other }
    }
}

impl From<FetchError> for Refusal {
    fn from(error: FetchError) -> Self {
        let kind = if error.is_offline() { RefusalKind::Offline } else { RefusalKind::Other };
        Self { why: error.to_string(), kind }
    }
}

/// A failure of a download, an archive or the disk that receives it.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The HTTP client cannot be created, for example because the system has no certificates.
    #[error(
        "cannot create an HTTPS client: {why}; check SSL_CERT_FILE and HTTPS_PROXY, and that ca-certificates is installed"
    )]
    Client {
        /// The client's error.
        why: String,
    },
    /// Not an address that yolo can download from.
    #[error("{url} is not a URL that yolo can download: {why}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server returned an error status.
    #[error("{url}: the server returned status {status}{hint}")]
    Status {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What the user can do, or an empty string.
        hint: &'static str,
    },
    /// Downloads are disabled.
    #[error("{url}: yolo is offline")]
    Offline {
        /// The address.
        url: String,
    },
    /// All sources of a file failed.
    #[error("{name} cannot be downloaded:{}", lines(refusals))]
    NoSource {
        /// The file.
        name: String,
        /// Why each source failed.
        refusals: Vec<Refusal>,
    },
    /// The connection failed, stalled or broke, and retrying did not help.
    #[error("{url}: {why} ({attempts} attempts without progress)")]
    Transport {
        /// The address.
        url: String,
        /// The last error.
        why: String,
        /// Attempts since the last byte arrived.
        attempts: u32,
    },
    /// An error that retrying cannot fix, such as a bad certificate or a redirect loop.
    #[error("{url}: {why}")]
    Refused {
        /// The address.
        url: String,
        /// What went wrong and what to do.
        why: String,
    },
    /// The server ignores range requests.
    #[error("{url}: the server does not support byte ranges")]
    NoRanges {
        /// The address.
        url: String,
    },
    /// The file on the server changed during the download.
    #[error("{url}: the file changed on the server during the download ({what}); try again")]
    Changed {
        /// The address.
        url: String,
        /// What differs.
        what: String,
    },
    /// The bytes are not an archive, or a damaged one.
    #[error("{archive} is not a usable archive: {}", printable(why))]
    Archive {
        /// The address or path of the archive.
        archive: String,
        /// What is wrong with it.
        why: String,
    },
    /// A required member is missing.
    #[error("{archive} does not contain {}", printable(member))]
    Missing {
        /// The address or path of the archive.
        archive: String,
        /// The member's name, or the pattern that nothing matches.
        member: String,
    },
    /// A member's bytes are not the expected ones.
    #[error(
        "{} of {archive} has a wrong {what}: expected {expected}, got {actual}; nothing was installed",
        printable(member)
    )]
    Wrong {
        /// The address or path of the archive.
        archive: String,
        /// The member's name.
        member: String,
        /// Which property: "SHA-256", "CRC-32", "length".
        what: &'static str,
        /// What it should be.
        expected: String,
        /// What it is.
        actual: String,
    },
    /// An entry that is never unpacked, such as a link or a second file of the same name.
    #[error("{archive} cannot be unpacked safely: {}; nothing was installed", printable(why))]
    Hostile {
        /// The archive.
        archive: String,
        /// The entry and what is wrong with it.
        why: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}{}", printable(&path.display().to_string()), disk_hint(path, source))]
    Disk {
        /// The verb of the message: "create", "write", "rename".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// Too little free space, detected before anything was written.
    #[error(
        "{} has {free} free, but {need} is needed; free some space, or set YOLO_HOME to a folder on another disk",
        path.display()
    )]
    Space {
        /// A directory of the file system.
        path: PathBuf,
        /// Free space, formatted.
        free: String,
        /// Space needed, formatted.
        need: String,
    },
}

fn lines(refusals: &[Refusal]) -> String {
    refusals.iter().map(|refusal| format!("\n  - {}", refusal.why)).collect()
}

/// What to do about a failure at `path`.
fn disk_hint(path: &Path, source: &io::Error) -> String {
    // What is in the way of a directory may be one of its parents.
    let is_in_the_way = |part: &&Path| part.symlink_metadata().is_ok() && !part.is_dir();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space, or set YOLO_HOME to a folder on another disk".to_owned()
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; set YOLO_HOME to a folder that you can write to".to_owned()
        }
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            path.ancestors().find(is_in_the_way).map_or_else(String::new, |part| {
                let what = if part.is_symlink() { "a link that does not lead to a folder" } else { "a file" };
                format!("; {} is {what}, where a folder is needed: move it away", part.display())
            })
        }
        io::ErrorKind::IsADirectory => "; it is a folder, where a file is needed: move it away".to_owned(),
        io::ErrorKind::InvalidFilename => {
            "; the name is too long for this file system: choose a shorter one".to_owned()
        }
        _ => String::new(),
    }
}

const OFFLINE_HINT: &str = "run without --offline (and unset YOLO_OFFLINE), or download the file elsewhere, put it into \
                            a folder and set YOLO_MIRROR to that folder";

impl FetchError {
    /// A failed file operation on `path`.
    pub(crate) fn disk(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Disk { action, path, source }
    }

    /// A local file that is a source cannot be read; another source may work.
    pub(crate) fn disk_source(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        let url = path.display().to_string();
        move |error| Self::Refused { url, why: format!("cannot {action} it: {error}") }
    }

    /// Whether the bytes were wrong rather than the connection: downloading them again may help.
    pub(crate) fn is_wrong_bytes(&self) -> bool {
        matches!(self, Self::Wrong { .. } | Self::Archive { .. } | Self::Changed { .. })
    }

    /// Whether an archive is damaged or hostile, so that nothing unpacked from it is usable.
    pub(crate) fn is_bad_archive(&self) -> bool {
        self.is_wrong_bytes() || matches!(self, Self::Hostile { .. })
    }

    /// Whether nothing failed but that downloads are disabled.
    pub(crate) fn is_offline(&self) -> bool {
        match self {
            Self::Offline { .. } => true,
            Self::NoSource { refusals, .. } => {
                !refusals.is_empty() && refusals.iter().all(|refusal| refusal.kind == RefusalKind::Offline)
            }
            _ => false,
        }
    }

    /// Whether the disk failed, so that no other source can help.
    pub(crate) fn is_disk(&self) -> bool {
        matches!(self, Self::Disk { .. } | Self::Space { .. })
    }

    /// Whether the disk is full.
    pub(crate) fn is_full_disk(&self) -> bool {
        let full = |source: &io::Error| {
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        };
        matches!(self, Self::Disk { source, .. } if full(source))
    }

    /// Recovers the error from the `io::Error` that carried it through a reader.
    pub(crate) fn from_io(error: io::Error, archive: &str) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) => Self::Archive { archive: archive.to_owned(), why: error.to_string() },
        }
    }
}

impl Hint for FetchError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        let hint = match self {
            _ if self.is_offline() => OFFLINE_HINT,
            Self::Status { .. }
            | Self::Refused { .. }
            | Self::Transport { .. }
            | Self::NoRanges { .. }
            | Self::Address { .. }
            | Self::NoSource { .. } => {
                "check whether the address opens in a browser; to use a file that you downloaded yourself, pass its path, \
                 or put it into a folder and set YOLO_MIRROR to that folder"
            }
            Self::Changed { .. } => "run the command again to download the new file",
            Self::Archive { .. } | Self::Wrong { .. } | Self::Missing { .. } => {
                "run the command again; if it fails again, the file on the server is damaged"
            }
            _ => return None,
        };
        Some(hint.into())
    }
}

impl From<FetchError> for io::Error {
    fn from(error: FetchError) -> Self {
        Self::other(error)
    }
}
