//! Everything that can go wrong while a file is fetched, unpacked and put in place.
//! Addresses in messages have lost their credentials before they come here.

use std::io;
use std::path::{Path, PathBuf};

use super::printable::printable;

/// A failure of a download, an archive or the disk that receives it.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The client itself cannot be made, for example without any system certificate.
    #[error(
        "no HTTPS client: {why}; check SSL_CERT_FILE and HTTPS_PROXY, and that ca-certificates is installed"
    )]
    Client {
        /// What the client said.
        why: String,
    },
    /// Not an address that can be fetched.
    #[error("{url} is not an address that yolo can fetch: {why}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The server answered with a status that is not a success.
    #[error("{url}: the server answered {status}{hint}")]
    Status {
        /// The address.
        url: String,
        /// The HTTP status.
        status: u16,
        /// What the user can do, or nothing.
        hint: &'static str,
    },
    /// Nothing may be fetched.
    #[error("{url} would have to be fetched, and yolo was told to stay offline")]
    Offline {
        /// The address.
        url: String,
    },
    /// None of several sources could serve a file.
    #[error("{name} cannot be fetched:{}", lines(refusals))]
    NoSource {
        /// The file.
        name: String,
        /// What each source said.
        refusals: Vec<String>,
    },
    /// The connection failed, stalled or broke, and stayed so after the retries.
    #[error("{url}: {why} ({attempts} attempts without progress)")]
    Transport {
        /// The address.
        url: String,
        /// The last error.
        why: String,
        /// Attempts since the last byte that came.
        attempts: u32,
    },
    /// An error that no retry cures: a bad certificate, a redirect loop.
    #[error("{url}: {why}")]
    Refused {
        /// The address.
        url: String,
        /// What went wrong and what to do.
        why: String,
    },
    /// The server ignores ranges.
    #[error("{url}: the server does not serve byte ranges")]
    NoRanges {
        /// The address.
        url: String,
    },
    /// The file on the server is another one than a moment ago.
    #[error("{url}: the file changed on the server while it was fetched ({what}); try again")]
    Changed {
        /// The address.
        url: String,
        /// What differs.
        what: String,
    },
    /// The bytes are no archive, or a damaged one.
    #[error("{archive} is not a usable archive: {}", printable(why))]
    Archive {
        /// The address or path of the archive.
        archive: String,
        /// What is wrong with it.
        why: String,
    },
    /// A member that must be there is not.
    #[error("{archive} lacks {}", printable(member))]
    Missing {
        /// The address or path of the archive.
        archive: String,
        /// The member's name, or the prefix that nothing has.
        member: String,
    },
    /// A member's bytes are not those that were promised.
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
    /// Two folders or files of one name, or a kind of entry that is never unpacked.
    #[error("{archive} is not unpacked: {}; nothing was installed", printable(why))]
    Hostile {
        /// The archive.
        archive: String,
        /// The entry and what is wrong with it.
        why: String,
    },
    /// The disk refused.
    #[error("cannot {action} {}: {source}{}", printable(&path.display().to_string()), disk_hint(path, source))]
    Disk {
        /// The verb: "create", "write", "rename".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Not enough room, seen before anything was written.
    #[error(
        "{} has {free} free and {need} are needed; free some space, or set YOLO_HOME to a folder on another disk",
        path.display()
    )]
    Space {
        /// A folder of the file system.
        path: PathBuf,
        /// Free bytes, for people.
        free: String,
        /// Bytes needed, for people.
        need: String,
    },
}

fn lines(refusals: &[String]) -> String {
    refusals.iter().map(|why| format!("\n  - {why}")).collect()
}

/// What to do about a failure at `path`.
pub(crate) fn disk_hint(path: &Path, source: &io::Error) -> String {
    // What stands in the way of a folder may be above the path that was asked for.
    let is_in_the_way = |part: &&Path| part.symlink_metadata().is_ok() && !part.is_dir();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space, or set YOLO_HOME to a folder on another disk".to_owned()
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; set YOLO_HOME to a folder that you can write".to_owned()
        }
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            path.ancestors().find(is_in_the_way).map_or_else(String::new, |part| {
                let what = if part.is_symlink() { "a link to nothing that is a folder" } else { "a file" };
                format!("; {} is {what} where a folder must be: move it away", part.display())
            })
        }
        io::ErrorKind::IsADirectory => "; a folder is where a file must be: move it away".to_owned(),
        io::ErrorKind::InvalidFilename => {
            "; the name is longer than this file system allows: give a shorter one".to_owned()
        }
        _ => String::new(),
    }
}

impl FetchError {
    /// A failure of the disk at `path`.
    pub(crate) fn disk(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Disk { action, path, source }
    }

    /// A file of this machine that was to be a source cannot be read; another source may serve.
    pub(crate) fn disk_source(
        action: &'static str,
        path: &std::path::Path,
    ) -> impl FnOnce(io::Error) -> Self {
        let url = path.display().to_string();
        move |error| Self::Refused { url, why: format!("cannot {action} it: {error}") }
    }

    /// What the user can do next, where the message itself does not say it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Status { .. }
            | Self::Refused { .. }
            | Self::Transport { .. }
            | Self::NoRanges { .. }
            | Self::Address { .. }
            | Self::NoSource { .. } => Some(
                "look at the address in a browser; what you fetch by other means can be given by its path, or \
                 laid into a folder that YOLO_MIRROR names",
            ),
            Self::Changed { .. } => {
                Some("run the same command again, which fetches the new file from its start")
            }
            Self::Archive { .. } | Self::Wrong { .. } | Self::Missing { .. } => Some(
                "run the same command again; if it ends the same way, the file at that address is at fault",
            ),
            _ => None,
        }
    }

    /// Whether the bytes were wrong, and not the way that they took: fetching them once more may mend it.
    pub(crate) fn is_wrong_bytes(&self) -> bool {
        matches!(self, Self::Wrong { .. } | Self::Archive { .. } | Self::Changed { .. })
    }

    /// Whether an archive is damaged or hostile, so that what came of it is of no use.
    pub(crate) fn is_bad_archive(&self) -> bool {
        self.is_wrong_bytes() || matches!(self, Self::Hostile { .. })
    }

    /// Whether no other source can mend it.
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

    /// Takes the error back out of the `io::Error` that carried it through a reader.
    pub(crate) fn from_io(error: io::Error, archive: &str) -> Self {
        match error.downcast::<Self>() {
            Ok(own) => own,
            Err(error) => Self::Archive { archive: archive.to_owned(), why: error.to_string() },
        }
    }
}

impl From<FetchError> for io::Error {
    fn from(error: FetchError) -> Self {
        Self::other(error)
    }
}
