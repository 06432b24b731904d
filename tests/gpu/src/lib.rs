//! The GPU acceptance kit: everything that can be proven on a machine with a GPU only, by one command.
//! It runs the packed programs stage by stage, checks what they do, and writes `report.json` and
//! `report.md`. With `--rehearse` it does the same on the CPU with tiny sizes.
//!
//! The kit never changes settings of a GPU, never resets one, and sends nothing.

pub mod cli;
pub mod docs;
pub mod error;
pub mod gpus;
pub mod interrupt;
pub mod invocation;
pub mod kit;
pub mod libtorch;
pub mod machine;
pub mod print;
pub mod processes;
pub mod redact;
pub mod report;
pub mod results;
pub mod room;
pub mod scale;
pub mod session;
pub mod stage;
pub mod stage_run;
pub mod stages;

mod start;

pub use start::main;
