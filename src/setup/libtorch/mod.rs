//! libtorch for this machine: the one that `LIBTORCH` names, one that is installed, or a new one from
//! the first source that has it. Several variants can be installed next to each other; a small file
//! says which of them runs use.

mod fetch_wheels;
mod index;
mod install;
pub(super) mod installation;
pub(super) mod installed;
mod libtorch_variable;
pub(super) mod nccl_headers;
mod package_tool;
mod pinned_headers;
mod pinned_wheels;
mod pip;
pub mod smoke_test;
mod sources;
mod stamp;
pub(super) mod status;
mod uv;
pub(super) mod variant;
mod wheel;
mod wheel_set;

pub use installation::{LIBTORCH_VERSION, Libtorch};
pub use installed::{find_libtorch, in_use, installed_variants, select};
pub(super) use pinned_headers::NCCL_VERSION;
pub use smoke_test::SmokeTest;
pub use status::{LibtorchStatus, PendingLibtorch, ensure_libtorch, libtorch_status};
pub use variant::{Chosen, Variant};
