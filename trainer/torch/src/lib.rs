//! What training with tch needs and tch lacks: fused optimizers, autocast, a loss scale, memory formats, copies
//! to a GPU that do not block, and CUDA libraries that are opened at run time. The C++ side is in `csrc/`.
//!
#![doc = include_str!("../README.md")]

mod autocast;
mod batch_norm_silu;
mod context;
mod copies;
pub mod cuda;
mod error;
mod ffi;
mod host_floats;
mod host_waits;
mod memory;
mod memory_format;
mod moment;
mod optimizer;
mod page_locked;
mod scaler;
mod streams;

pub use autocast::{Autocast, autocast};
pub use batch_norm_silu::{batch_norm_silu, can_batch_norm_silu};
pub use context::{
    Determinism, allows_tf32, cudnn_benchmark, determinism, set_allow_tf32, set_cudnn_benchmark,
    set_determinism, set_num_threads,
};
pub use copies::{copy_to_device, page_locked};
pub use error::{Error, Result};
pub use host_floats::HostFloats;
pub use host_waits::host_waits;
pub use memory::{peak_reserved_memory, release_memory, reserved_memory};
pub use memory_format::{is_channels_last, set_channels_last, to_channels_last};
pub use moment::Moment;
pub use optimizer::{
    Adam, AdamState, ScaledStep, Sgd, amp_unscale, clip_grad_norm, foreach_ema, foreach_mul, foreach_zero,
    fused_adam, fused_adam_scaled, fused_adamw, fused_sgd, fused_sgd_scaled,
};
pub use page_locked::{limit_page_locked_memory, take_page_locked_notice};
pub use scaler::{GradScaler, ScalerSettings, ScalerState};
pub use streams::{CopyStream, Copying, Reading};
