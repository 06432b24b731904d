//! The library of the command `yolo`, which links no libtorch. `main.rs` only calls [`run`].

mod bench;
mod cli;
mod commands;
mod cpu_affinity;
pub mod dirs;
mod doctor;
mod error;
mod evolve;
pub mod fetch;
mod in_wsl;
mod launch;
mod machine;
mod obeyed_signals;
mod output_file;
mod printer;
mod run_report;
pub mod setup;
mod undo;
mod variable_lines;
mod weights_file;

#[doc(hidden)]
pub use cli::{command_names, parses};
pub use commands::run;
#[doc(hidden)]
pub use commands::run_as_in_windows;
