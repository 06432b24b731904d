//! What is in an ONNX file. `describe` reads it, `tensors` the values of its tensors, and `diff` compares two.

mod describe;
mod diff;
mod tensors;

pub(crate) use describe::{OnnxDescription, Port, describe, is_onnx};
pub(crate) use diff::diff;
