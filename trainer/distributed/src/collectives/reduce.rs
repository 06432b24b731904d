//! Collectives that reduce the values of all ranks to one.

#![expect(unsafe_code, reason = "calls the shim's collectives")]

use std::ffi::c_int;
use std::rc::Rc;
use std::sync::Arc;

use tch::Tensor;

use super::tensors::{contiguous, describe, from_tch, share};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::process_group::ProcessGroup;
use crate::reduce_op::ReduceOp;
use crate::work::{RawWork, Work};

impl ProcessGroup {
    /// Replaces a tensor by its sum over all ranks. It must be contiguous and have the same shape and
    /// kind on all ranks.
    ///
    /// # Errors
    /// If a peer is lost or too slow, or the tensor is not a dense tensor on a CPU or a GPU.
    pub fn all_reduce(&self, tensor: &Tensor) -> Result<()> {
        self.all_reduce_with(tensor, ReduceOp::Sum)
    }

    /// Replaces a tensor by its reduction over all ranks. It must be contiguous and have the same shape and
    /// kind on all ranks.
    ///
    /// # Errors
    /// If a peer is lost or too slow, the kind of the tensor does not fit the operation, or the backend
    /// lacks the operation.
    pub fn all_reduce_with(&self, tensor: &Tensor, operation: ReduceOp) -> Result<()> {
        let details = self.check_operation("all-reduce", tensor, operation)?;
        self.call_work("all-reduce", &details, |action| self.start_all_reduce(action, tensor, operation))
    }

    /// Starts [`Self::all_reduce_with`] and returns at once. The tensor must not be used before
    /// [`Work::wait`] has returned. Other collectives may be started meanwhile, in the same order on all
    /// ranks.
    ///
    /// # Errors
    /// As [`Self::all_reduce_with`], if they show before it is started.
    pub fn all_reduce_async(&self, tensor: &Tensor, operation: ReduceOp) -> Result<Work> {
        let details = self.check_operation("all-reduce", tensor, operation)?;
        self.call("all-reduce", &details, self.timeout(), |action| {
            let raw = self.start_all_reduce(action, tensor, operation)?;
            Ok(Work::new(raw, Arc::clone(self.roll())))
        })
    }

    fn start_all_reduce(&self, action: &Rc<str>, tensor: &Tensor, operation: ReduceOp) -> Result<RawWork> {
        let ((code, factor), timeout) = (operation.code(), self.timeout());
        RawWork::start(action, timeout, share([tensor]), |out| {
            // SAFETY: group and tensor are alive during the call; the work keeps the tensor.
            unsafe {
                ffi::tchd_all_reduce(
                    self.as_ptr(),
                    ffi::pointer(tensor),
                    code,
                    factor,
                    ffi::milliseconds(timeout),
                    out,
                )
            }
        })
    }

    /// Replaces a tensor on rank `root` by its reduction over all ranks. On other ranks its values are
    /// undefined afterwards. It must be contiguous and have the same shape and kind on all ranks.
    ///
    /// # Errors
    /// As [`Self::all_reduce_with`], or if `root` is not a rank.
    pub fn reduce(&self, tensor: &Tensor, root: usize, operation: ReduceOp) -> Result<()> {
        self.check_rank("reduce", "root", root)?;
        let details = self.check_operation("reduce", tensor, operation)? + &format!(" to rank {root}");
        let ((code, factor), timeout) = (operation.code(), self.timeout());
        self.call_work("reduce", &details, |action| {
            RawWork::start(action, timeout, share([tensor]), |out| {
                // SAFETY: group and tensor are alive during the call; the work keeps the tensor. `root` is
                // less than the world size, which fits in an int.
                unsafe {
                    ffi::tchd_reduce(
                        self.as_ptr(),
                        ffi::pointer(tensor),
                        root as c_int,
                        code,
                        factor,
                        ffi::milliseconds(timeout),
                        out,
                    )
                }
            })
        })
    }

    /// Reduces a tensor over all ranks, and returns this rank's part of the result: the first dimension is
    /// divided equally, in rank order. Shape and kind must be the same on all ranks.
    ///
    /// # Errors
    /// As [`Self::all_reduce_with`], or if the first dimension is not a multiple of the number of ranks.
    pub fn reduce_scatter(&self, tensor: &Tensor, operation: ReduceOp) -> Result<Tensor> {
        let what = "reduce-scatter";
        let details = self.check_operation(what, tensor, operation)?;
        let (action, mut shape) = (self.action(what), tensor.size());
        let world = self.world() as i64;
        match shape.first_mut() {
            Some(first) if *first % world == 0 => *first /= world,
            _ => {
                let message =
                    format!("the first dimension of {:?} is not a multiple of {world} ranks", tensor.size());
                return Err(Error::new(ErrorKind::Other, action, message));
            }
        }
        let input = contiguous(tensor, &action)?;
        let output =
            Tensor::f_empty(&shape[..], (input.kind(), input.device())).map_err(from_tch(&action))?;
        let ((code, factor), timeout) = (operation.code(), self.timeout());
        self.call_work(what, &details, |action| {
            RawWork::start(action, timeout, share([&input, &output]), |out| {
                // SAFETY: group and tensors are alive during the call; the work keeps the tensors. The input
                // has as many values as one output per rank.
                unsafe {
                    ffi::tchd_reduce_scatter(
                        self.as_ptr(),
                        ffi::pointer(&output),
                        ffi::pointer(&input),
                        code,
                        factor,
                        ffi::milliseconds(timeout),
                        out,
                    )
                }
            })
        })?;
        Ok(output)
    }

    /// What must be the same on all ranks, or why the operation cannot be done.
    fn check_operation(&self, what: &str, tensor: &Tensor, operation: ReduceOp) -> Result<String> {
        match operation.refusal(tensor.kind(), tensor.device()) {
            Some(refusal) => Err(Error::new(ErrorKind::Other, self.action(what), refusal)),
            None => Ok(format!(" ({operation:?}){}", describe(tensor))),
        }
    }
}
