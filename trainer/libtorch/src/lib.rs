#![doc = include_str!("../README.md")]
#![allow(clippy::print_stdout, reason = "build scripts talk to cargo through stdout")]

mod find;
mod shim;

pub use find::Libtorch;
