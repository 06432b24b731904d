//! Checkpoints: what `last.pt`, `best.pt` and `epochN.pt` hold, and how a run resumes from one. A
//! checkpoint is a dictionary of plain values and tensors, which `torch.load(path,
//! weights_only=True)` opens. During a run it holds everything that the next step depends on, in
//! full precision; at the end it is stripped to the averaged weights in fp16.

mod progress;
mod read;
mod share;
mod write;
mod yolov5;

pub use progress::Progress;
pub use read::Resume;
pub use share::read_resume;
pub(crate) use write::json;
pub use write::{Checkpoint, TrainingState};
