//! The devices of a run, one per rank or all for a single one: `--device` and `--nproc-per-node` against
//! what the machine has. The inventory is passed in, so that eight GPUs can be tested where there is none.

mod choose;
mod entry;
mod inventory;
mod kind;

pub use choose::{Choice, choose, choose_one};
pub use entry::{Entry, entries};
pub use inventory::{Gpu, Inventory, MigInstance};
pub use kind::{Device, MigUuid, argument, cuda_numbers, shared, visible};
