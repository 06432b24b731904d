//! Setup: what a run needs and this machine lacks: libtorch, the trainer, weights, data sets.
//! Each part looks first and does nothing when all is there; interrupted anywhere, the next call
//! goes on with what came.

mod checkout;
mod context;
pub mod data;
mod error;
mod holdings;
mod libtorch;
mod plan;
mod trainer;
pub mod weights;
mod wsl;

pub use context::Context;
pub use error::{Refusal, SetupError};
pub use holdings::{Holding, holdings, remove};
pub use libtorch::look::{self, Seen};
use libtorch::unselect;
pub use libtorch::{
    Chosen, Libtorch, Pending, Prospect, Variant, ensure_libtorch, find_libtorch, in_use, installed_variants,
    prospect, select,
};
pub use plan::{Disk, Outcome, Plan, State, Step, Wish};
pub use trainer::{checkout_needs_headers, ensure_trainer, installed_trainer, trainer_environment};
pub use wsl::WslError;
pub(crate) use wsl::{WslWords, setup_wsl};

/// The version of libtorch that tch 0.24 is made for (DESIGN.md, "libtorch 2.11.0, tch 0.24").
pub const LIBTORCH_VERSION: &str = "2.11.0";

/// Megabytes as disks and downloads are sold.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
