//! Downloads: byte ranges over HTTP, members out of a remote zip archive, checked while they come
//! and published by one rename. This room knows archives and servers, and nothing of libtorch.
//! It reports through [`Progress`] and never prints.

mod archive;
mod directory;
mod error;
mod http;
mod meter;
mod netrc;
mod parallel;
mod place;
mod progress;
mod record;
mod unpack;

pub use archive::{Archive, Pick, Selection, Unpacked};
pub use error::FetchError;
pub use http::{Client, Policy, Redacted};
pub use meter::Meter;
pub use netrc::credentials_in_netrc;
pub use place::{Incoming, Lock, free_bytes};
pub use progress::{Event, Progress, Silent};
pub use record::{Mismatch, Record};
