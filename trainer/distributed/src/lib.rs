//! PyTorch's distributed engine for programs written with [`tch`].
//!
//! libtorch already holds c10d, the engine under PyTorch's
//! `DistributedDataParallel`: stores, process groups, and the Reducer that
//! averages gradients while backward still runs. This crate gives it a safe
//! API, and adds the pieces of ATen that training needs and tch lacks: fused
//! optimizers, gradient clipping, autocast, channels_last, and opening the CUDA
//! libraries at run time.
//!
//! A step of data-parallel training on each rank:
//!
//! ```no_run
//! use std::time::Duration;
//! use tch_distributed::{GlooOptions, ProcessGroup, Reducer, ReducerOptions, TcpStore};
//! # fn forward() -> Result<tch::Tensor, tch_distributed::Error> { unimplemented!() }
//! # fn train(rank: usize, parameters: &[tch::Tensor]) -> Result<(), tch_distributed::Error> {
//! let timeout = Duration::from_secs(60);
//! let store = TcpStore::client("127.0.0.1", 29500, timeout)?;
//! let group = ProcessGroup::gloo(&store, rank, 2, &GlooOptions { timeout, ..Default::default() })?;
//! group.broadcast(parameters, 0)?;
//! let mut reducer = Reducer::new(&group, parameters, ReducerOptions::default())?;
//!
//! reducer.prepare_forward()?;
//! let loss = forward()?;
//! reducer.backward(&loss)?; // the gradients are now the mean over all ranks
//! # Ok(())
//! # }
//! ```
//!
//! Every call of a group must be made by all its ranks in the same order. After
//! an error the group is dead: build a new one, and a new [`Reducer`].

mod autocast;
mod context;
pub mod cuda;
mod error;
mod ffi;
mod memory_format;
mod optimizer;
mod process_group;
mod reducer;
mod store;
mod sync_batch_norm;

pub use autocast::{Autocast, autocast};
pub use context::{set_allow_tf32, set_deterministic, set_num_threads};
pub use error::{Error, ErrorKind, Result};
pub use memory_format::{is_channels_last, set_channels_last, to_channels_last};
pub use optimizer::{
    Adam, AdamState, Sgd, amp_unscale, clip_grad_norm, foreach_average, foreach_mul, foreach_zero,
    fused_adam, fused_adamw, fused_sgd,
};
pub use process_group::{Bind, GlooOptions, ProcessGroup};
pub use reducer::{BucketLaunch, Hook, Reducer, ReducerOptions, ReducerStats};
pub use store::TcpStore;
pub use sync_batch_norm::{RunningStats, sync_batch_norm};
