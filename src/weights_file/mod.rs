//! What is in a weights file: `yolo weights` as data. `describe` reads one file, `diff` compares two. Nothing in a file is
//! executed, and a file that would execute something in Python is described as well.

mod describe;
mod diff;
pub(crate) mod onnx;
mod openers;
mod protobuf;
mod resumable;
mod training;

pub(crate) use describe::{Description, Model, PythonCall, describe, parameters};
pub(crate) use diff::{Difference, TensorDifferences, diff};
pub(crate) use openers::Opener;
pub(crate) use resumable::check_resumable;
pub(crate) use training::Training;
