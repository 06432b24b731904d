//! For build scripts of crates that link libtorch: [`Libtorch::find`] locates it, and
//! [`build_shim`] compiles a C++ shim against it.
//!
#![doc = include_str!("../README.md")]
#![allow(clippy::print_stdout, reason = "build scripts talk to cargo through stdout")]

mod find;
mod shim;

pub use find::Libtorch;
pub use shim::build_shim;
