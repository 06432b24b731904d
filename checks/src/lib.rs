//! The facts of a host, and what they mean for a training run. [`facts`] are read from this machine
//! or from a recording. [`checks`] are pure functions from facts to [`Finding`]s, so the same facts
//! give the same findings anywhere. The text of a finding is in the [`catalogue`].
//! Nothing here prints, downloads or changes the host.

pub mod catalogue;
mod change;
pub mod checks;
pub mod compare;
pub mod facts;
mod finding;
mod foreign_library;
mod gpu_load;
mod gpu_strain;
mod intent;
pub mod libtorch_builds;
pub mod libtorch_choice;
mod memory_estimate;
mod nccl_files;
mod nccl_settings;
mod port_owner;
pub mod power_limit;
mod remedies;
pub mod shell_quote;
mod status;
pub mod wsl;

pub use catalogue::{Area, Entry, Fix, entries, entry};
pub use change::{Change, Edit};
pub use checks::{Check, Verdict, run_all_checks, run_checks, wsl_failure};
pub use facts::{Host, KnownPaths};
pub use finding::{Finding, Remedy};
pub use gpu_load::{GpuLoad, GpuMonitor};
pub use gpu_strain::{GpuStrain, StrainMonitor};
pub use intent::{Intent, NOT_YET_OF_TRAIN};
pub use nccl_settings::{ANSWERED_BY_SETTINGS, NcclSetting, nccl_settings};
pub use port_owner::port_owner;
pub use remedies::variables_file::shell_profile;
pub use status::Status;
