//! Checkpoints: what `last.pt`, `best.pt` and `epochN.pt` hold, and how a run continues from one.
//! A checkpoint is a dictionary of plain values and tensors, so that `torch.load(path,
//! weights_only=True)` opens it. While a run goes on it holds everything that the next step
//! depends on, in full precision; at the end it is stripped to the averaged weights in fp16.

mod read;
mod write;

pub use read::{Resume, read_resume};
pub use write::{Checkpoint, Progress};
