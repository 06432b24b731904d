//! Setup: what a run needs and this machine lacks. [`ensure_libtorch`] fetches the libraries,
//! [`ensure_trainer`] finds or builds the program that links them. Each looks first and does
//! nothing when all is there; interrupted anywhere, the next call finishes the work.

mod checkout;
mod error;
mod index;
mod install;
mod libtorch;
mod pip;
mod stamp;
mod trainer;
mod wheels;

pub use error::{Refusal, SetupError};
pub use libtorch::{Libtorch, ensure_libtorch, find_libtorch};
pub use trainer::{checkout_needs_headers, ensure_trainer, trainer_environment};

/// The version of libtorch that tch 0.24 is made for (DESIGN.md, "libtorch 2.11.0, tch 0.24").
pub const LIBTORCH_VERSION: &str = "2.11.0";
