//! What is known about WSL apart from any host: the output of `wsl.exe` ([`exe_output`]), the two
//! configuration files ([`config`]), the virtual machine compared with its configuration ([`vm`]),
//! which Windows is too old for it ([`old_windows`]) or has expired ([`preview`]), why it does not start ([`start_failure`]), and the values that a PC and a training need
//! ([`sizing`]). Pure functions; the facts come from [`Host`](crate::Host), the findings from
//! [`checks`](crate::checks).

pub mod config;
pub mod exe_output;
pub mod old_windows;
pub mod preview;
pub mod sizing;
pub mod start_failure;
pub mod vm;

/// Where WSL mounts the libraries of the Windows driver.
pub const DRIVER_LIBRARIES: &str = "/usr/lib/wsl/lib";
/// The file by which WSL lets the loader search that folder.
pub const LOADER_FILE: &str = "/etc/ld.so.conf.d/ld.wsl.conf";
