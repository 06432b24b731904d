//! What a host is like, and what that means for a training run. [`facts`] are asked of this
//! machine or read from a recording, and [`checks`] judge them: pure functions, so that the same
//! facts give the same [`Finding`]s anywhere. The words of a finding stand in the [`catalogue`].
//! Nothing here prints, downloads or changes the host.

pub mod catalogue;
mod change;
pub mod checks;
pub mod facts;
mod finding;
mod intent;
pub mod libtorch_builds;
pub mod libtorch_choice;
mod memory_estimate;
pub mod shell_quote;
mod status;
pub mod wsl;

pub use catalogue::{Area, Entry, Fix, entries, entry};
pub use change::{Change, Edit};
pub use checks::{Check, Verdict, judge, judge_by};
pub use facts::{Host, Places};
pub use finding::{Finding, Remedy};
pub use intent::{Intent, NOT_YET_OF_TRAIN};
pub use status::Status;
