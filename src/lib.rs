//! The library of the command `yolo`, which links no libtorch. `main.rs` only calls [`run`].

mod cli;
mod commands;
pub mod dirs;
mod doctor;
mod error;
pub mod fetch;
mod launch;
mod machine;
mod printer;
pub mod setup;

#[doc(hidden)]
pub use cli::{command_names, parses};
pub use commands::run;
