//! PyTorch's distributed engine, c10d, for programs that use tch. Ranks find each other through a
//! [`TcpStore`] and form a [`ProcessGroup`]; the [`Reducer`] averages their gradients. The C++ side is
//! in `csrc/`.
//!
#![doc = include_str!("../README.md")]

mod error;
mod ffi;
mod gloo;
mod library;
mod nccl;
mod nccl_abort;
mod process_group;
mod reducer;
mod store;
mod sync_batch_norm;

pub use error::{Error, ErrorKind, Result};
pub use gloo::{Bind, GlooOptions};
pub use nccl::{NcclPlugin, NcclState, NcclVersion, preload_nccl};
pub use nccl_abort::NcclAbort;
pub use process_group::ProcessGroup;
pub use reducer::{BucketLaunch, CommHook, Reducer, ReducerOptions, ReducerStats};
pub use store::TcpStore;
pub use sync_batch_norm::{RunningStats, sync_batch_norm};
