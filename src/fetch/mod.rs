//! Downloads: whole files and members of remote zip archives, fetched by byte ranges, verified while
//! they arrive and published by one rename. This module knows archives and servers, and nothing of
//! what it fetches. It reports through [`Progress`] and never prints.

mod archive;
mod body;
mod central_directory;
mod client;
mod disk;
mod download;
mod error;
mod error_chain;
mod extract;
mod fetch_members;
mod folder_lock;
mod gzip;
mod member_path;
mod member_pattern;
mod meter;
mod netrc;
mod parallel;
mod partial_file;
mod printable;
mod progress;
mod redacted;
mod remote_file;
mod resume;
mod retry;
mod sha256;
mod staging;
mod stream;
mod unpack;
mod wheel_record;

pub use archive::{Archive, Selection, UnpackedMember};
pub use body::fetch_text;
pub use client::{Client, Policy, is_http};
pub(crate) use disk::{MARGIN, folder_size, sync, sync_file_system};
pub use disk::{free_bytes, mount_of};
pub use download::{Downloaded, FileRequest, download, length_of};
pub use error::{FetchError, Refusal, RefusalKind};
pub use extract::{ArchiveSize, Contents, archive_size, extract};
pub use fetch_members::{MemberFetch, fetch_members, kept_bytes};
pub use folder_lock::FolderLock;
pub use member_pattern::MemberPattern;
pub use meter::Meter;
pub use netrc::credentials_in_netrc;
pub use partial_file::kept_in;
pub(crate) use printable::printable;
pub use progress::{Progress, ProgressEvent, Silent};
pub use redacted::Redacted;
pub use resume::ResumeState;
pub(crate) use sha256::Sha256;
pub use staging::{Staging, staging_dir, staging_dirs_in, tree_and_parts};
pub use wheel_record::{Mismatch, WheelRecord};
