//! Downloads: byte ranges over HTTP, members out of a remote zip archive, checked while they come
//! and published by one rename. This room knows archives and servers, and nothing of libtorch.
//! It reports through [`Progress`] and never prints.

mod archive;
mod body;
mod directory;
mod download;
mod error;
mod extract;
mod gzip;
mod hash;
mod http;
mod meter;
mod names;
mod netrc;
mod parallel;
mod parts;
mod pick;
mod place;
mod progress;
mod record;
mod remote;
mod spool;
mod stream;
mod take;
mod unpack;

pub use archive::{Archive, Selection, Unpacked};

pub use download::{Downloaded, Wanted, download, length_of};
pub use error::FetchError;
pub(crate) use error::disk_hint;
pub use extract::{Contents, Measure, extract, measure};
pub(crate) use hash::Sha256;
pub use http::{Client, Policy, Redacted, is_http};
pub use meter::Meter;
pub(crate) use names::printable;
pub use netrc::credentials_in_netrc;
pub use parts::Parts;
pub use pick::Pick;
pub use place::{Incoming, Lock, free_bytes, mount_of, tree_and_parts, unfinished, unfinished_in};
pub(crate) use place::{MARGIN, folder_size, sync};
pub use progress::{Event, Progress, Silent};
pub use record::{Mismatch, Record};
pub use spool::kept_in;
pub use take::{Take, kept, take};
