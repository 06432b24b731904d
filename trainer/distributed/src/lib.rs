//! PyTorch's distributed engine, c10d, for programs that use tch. Ranks find each other through a [`Store`]
//! and form a [`ProcessGroup`], whose methods are the collectives. [`DistributedDataParallel`] averages their
//! gradients. The C++ side is in `csrc/`.
//!
#![doc = include_str!("../README.md")]

mod abort;
mod collectives;
mod ddp;
mod error;
mod ffi;
mod gloo;
mod gloo_sockets;
mod library;
mod nccl;
mod nccl_abort;
mod process_group;
mod reduce_op;
mod reducer;
mod roll_call;
mod store;
mod sync_batch_norm;
mod work;

pub use abort::GroupAbort;
pub use ddp::{DdpOptions, DistributedDataParallel};
pub use error::{Error, ErrorKind, Result};
pub use gloo::{Bind, GlooOptions};
pub use nccl::{NcclPlugin, NcclState, NcclVersion, preload_nccl};
pub use nccl_abort::NcclAbort;
pub use process_group::ProcessGroup;
pub use reduce_op::ReduceOp;
pub use reducer::{BucketLaunch, CommHook, Reducer, ReducerOptions, ReducerStats};
pub use roll_call::{Peer, PeerState};
pub use store::{FileStore, HashStore, PrefixStore, Store, TcpStore};
pub use sync_batch_norm::{RunningStats, sync_batch_norm};
pub use work::Work;
