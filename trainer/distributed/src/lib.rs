#![doc = include_str!("../README.md")]

mod error;
mod ffi;
mod process_group;
mod reducer;
mod store;
mod sync_batch_norm;

pub use error::{Error, ErrorKind, Result};
pub use process_group::{Bind, GlooOptions, ProcessGroup};
pub use reducer::{BucketLaunch, CommHook, Reducer, ReducerOptions, ReducerStats};
pub use store::TcpStore;
pub use sync_batch_norm::{RunningStats, sync_batch_norm};
