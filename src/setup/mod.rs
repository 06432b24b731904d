//! Setup: what a run needs and this machine lacks. That is libtorch, the trainer, the NCCL plugin, weights
//! and data sets. Each part first checks what is installed and does nothing if it is complete. After an
//! interruption, the next call resumes.

mod checkout;
mod context;
pub mod data;
mod error;
mod installed;
mod libtorch;
mod nccl_plugin;
mod nccl_version;
mod noted;
mod pip_nccl;
mod plan;
pub(crate) mod sources;
mod trainer;
pub mod weights;
pub(crate) mod wsl;

pub use context::Context;
pub use error::{
    DataSetError, FailedSource, LibtorchError, NcclError, SetupError, TrainerError, WeightsError,
};
pub use installed::{InstalledItem, installed_items, remove};
pub use libtorch::{
    Chosen, LIBTORCH_VERSION, Libtorch, LibtorchStatus, PendingLibtorch, SmokeTest, Variant, ensure_libtorch,
    find_libtorch, in_use, installed_variants, libtorch_status, select, smoke_test,
};
pub use nccl_plugin::{NcclPluginStatus, ensure_nccl_plugin, nccl_plugin_status};
pub use nccl_version::nccl_version;
pub use pip_nccl::with_named_nccl;
pub use plan::{Disk, SetupPlan, SetupRequest, SetupStep, StepOutcome, StepState};
pub use trainer::{checkout_needs_headers, ensure_trainer, installed_trainer, trainer_environment};
pub use weights::installed_file as installed_weights;
pub use wsl::WslError;
