//! Data sets: those known by name, and any whose yaml has a `download:` with addresses of archives.
//! Archives are downloaded in parallel and unpacked in a staging directory. The data set is published
//! only if it contains the folders that its yaml names, and is then verified.

mod builtin;
mod conflict;
mod known;
mod linux_copy;
mod pending;
mod stamp;
mod status;
mod summary;
mod verify;
mod voc;

pub use builtin::make_builtin;
pub(super) use builtin::{generate, generated_in};
pub(crate) use linux_copy::copy_to_linux;
pub use pending::PendingData;
pub use stamp::Installed;
pub(super) use stamp::installed_in;
pub(super) use status::data_statuses;
pub use status::{DataStatus, data_status};
pub use summary::{SplitSummary, Summary};
pub use verify::verify_data_set;
