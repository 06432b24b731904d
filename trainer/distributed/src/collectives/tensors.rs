//! Small operations on tensors that collectives have in common.

use tch::Tensor;

use crate::error::{Error, Result};

/// Kind and shape of a tensor, as calls are compared.
pub(super) fn describe(tensor: &Tensor) -> String {
    format!(" of {:?} {:?}", tensor.kind(), tensor.size())
}

/// An error of tch.
pub(super) fn from_tch(action: &str) -> impl Fn(tch::TchError) -> Error {
    move |error| Error::from_tch(action, &error)
}

/// A copy of a tensor in one piece of memory, or the tensor itself if it is one already. It has no gradient.
pub(super) fn contiguous(tensor: &Tensor, action: &str) -> Result<Tensor> {
    tensor.f_detach().and_then(|tensor| tensor.f_contiguous()).map_err(from_tch(action))
}

/// New tensors like `tensor`.
pub(super) fn empty_like(tensor: &Tensor, count: usize, action: &str) -> Result<Vec<Tensor>> {
    let tensors: std::result::Result<Vec<_>, _> = (0..count).map(|_| tensor.f_empty_like()).collect();
    tensors.map_err(from_tch(action))
}

/// Handles on the same tensors, which keep them alive.
pub(super) fn share<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> Vec<Tensor> {
    tensors.into_iter().map(Tensor::shallow_clone).collect()
}
