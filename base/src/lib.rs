//! What all crates of `yolo` share, and nothing else: the names of environment variables
//! ([`mod@env`]), lists of CPUs ([`cpu_list`]), public addresses ([`address`]), the exit statuses ([`exit`]), how a size, a
//! duration or a count is written ([`mod@format`]), how long processes wait for each other ([`join`]), variables with numbers of seconds ([`seconds`]), the next step that an error suggests ([`Hint`]), the grammar of
//! CUDA_VISIBLE_DEVICES ([`visible_devices`]) and of NCCL_SOCKET_IFNAME ([`socket_interfaces`]), the colors of plots ([`palette`]), numbers as C prints them ([`mod@percent_g`]),
//! the table of mounts ([`mounts`]), text in the encodings of Windows ([`mod@text`]), paths as Windows writes
//! them ([`windows_paths`]), and which variables of Windows reach WSL
//! ([`wsl_variables`]).
//!
//! This crate has no dependencies and must stay that way: every other crate builds after it.

pub mod address;
pub mod cpu_list;
pub mod env;
pub mod exit;
pub mod format;
mod hint;
pub mod join;
pub mod mounts;
pub mod palette;
pub mod percent_g;
pub mod seconds;
pub mod socket_interfaces;
pub mod text;
pub mod visible_devices;
pub mod windows_paths;
pub mod wsl_variables;

pub use hint::Hint;
