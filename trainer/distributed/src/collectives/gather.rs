//! Collectives that move tensors between ranks unchanged.

#![expect(unsafe_code, reason = "calls the shim's collectives")]

use std::borrow::Borrow;
use std::ffi::c_int;

use tch::Tensor;

use super::agreement;
use super::tensors::{contiguous, describe, empty_like, from_tch, share};
use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::process_group::ProcessGroup;
use crate::work::RawWork;

impl ProcessGroup {
    /// Overwrites the tensors with those of rank `root`, in messages of up to 250 MiB. The lists must
    /// have the same shapes and kinds on all ranks.
    ///
    /// # Errors
    /// If a peer is lost or too slow, or `root` is not a rank.
    pub fn broadcast<T: Borrow<Tensor>>(&self, tensors: &[T], root: usize) -> Result<()> {
        let what = format!("broadcast from rank {root}");
        self.check_rank(&what, "root", root)?;
        let details: String = tensors.iter().map(|tensor| describe(tensor.borrow())).collect();
        let pointers = ffi::pointers(tensors);
        self.call(&what, &details, self.timeout(), |action| {
            // SAFETY: group and tensors are alive during the call. `root` is less than the world size,
            // which fits in an int.
            let status = unsafe {
                ffi::tchd_group_broadcast(self.as_ptr(), pointers.as_ptr(), pointers.len(), root as c_int)
            };
            ffi::check(status, || action.to_string())
        })
    }

    /// Returns the tensors of all ranks, in rank order. Shape and kind must be the same on all ranks.
    ///
    /// # Errors
    /// If a peer is lost or too slow.
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Vec<Tensor>> {
        self.call("all-gather", &describe(tensor), self.timeout(), |action| {
            agreement::gather(self, action, &contiguous(tensor, action)?, self.timeout())
        })
    }

    /// Returns the tensors of all ranks on rank `root`, in rank order, and nothing on the others. Shape and
    /// kind must be the same on all ranks.
    ///
    /// # Errors
    /// If a peer is lost or too slow, or `root` is not a rank.
    pub fn gather(&self, tensor: &Tensor, root: usize) -> Result<Option<Vec<Tensor>>> {
        let what = format!("gather to rank {root}");
        self.check_rank(&what, "root", root)?;
        let (action, timeout) = (self.action(&what), self.timeout());
        let input = contiguous(tensor, &action)?;
        let outputs = empty_like(&input, if self.rank() == root { self.world() } else { 0 }, &action)?;
        let pointers = ffi::pointers(&outputs);
        self.call_work(&what, &describe(tensor), |action| {
            RawWork::start(action, timeout, share(outputs.iter().chain([&input])), |out| {
                // SAFETY: group and tensors are alive during the call; the work keeps the tensors. `root` is
                // less than the world size, which fits in an int.
                unsafe {
                    ffi::tchd_gather(
                        self.as_ptr(),
                        ffi::pointer(&input),
                        pointers.as_ptr(),
                        pointers.len(),
                        root as c_int,
                        ffi::milliseconds(timeout),
                        out,
                    )
                }
            })
        })?;
        Ok((self.rank() == root).then_some(outputs))
    }

    /// Overwrites `output` with the tensor that rank `root` has for this rank. On that rank `parts` has one
    /// tensor per rank, each with the shape and kind of `output`; on the others it is ignored.
    ///
    /// # Errors
    /// If a peer is lost or too slow, `root` is not a rank, or the parts do not fit.
    pub fn scatter<T: Borrow<Tensor>>(&self, parts: &[T], output: &Tensor, root: usize) -> Result<()> {
        let what = format!("scatter from rank {root}");
        self.check_rank(&what, "root", root)?;
        let (action, timeout) = (self.action(&what), self.timeout());
        let mut inputs = Vec::new();
        if self.rank() == root {
            let refuse = |message: String| Err(Error::new(ErrorKind::Other, &*action, message));
            if parts.len() != self.world() {
                return refuse(format!("there are {} parts for {} ranks", parts.len(), self.world()));
            }
            for part in parts {
                if describe(part.borrow()) != describe(output) {
                    return refuse(format!("a part{} is not{}", describe(part.borrow()), describe(output)));
                }
                inputs.push(contiguous(part.borrow(), &action)?);
            }
        }
        let pointers = ffi::pointers(&inputs);
        self.call_work(&what, &describe(output), |action| {
            RawWork::start(action, timeout, share(inputs.iter().chain([output])), |out| {
                // SAFETY: group and tensors are alive during the call; the work keeps the tensors. `root` is
                // less than the world size, which fits in an int.
                unsafe {
                    ffi::tchd_scatter(
                        self.as_ptr(),
                        ffi::pointer(output),
                        pointers.as_ptr(),
                        pointers.len(),
                        root as c_int,
                        ffi::milliseconds(timeout),
                        out,
                    )
                }
            })
        })
    }

    /// Sends one tensor to each rank, and returns the tensors from all ranks, in rank order. All must have
    /// the same kind, and the same shape but for the first dimension.
    ///
    /// # Errors
    /// If a peer is lost or too slow, the shapes do not fit, or the backend cannot do it.
    pub fn all_to_all<T: Borrow<Tensor>>(&self, tensors: &[T]) -> Result<Vec<Tensor>> {
        let (what, timeout) = ("all-to-all", self.timeout());
        let action = self.action(what);
        let refuse = |message: String| Err(Error::new(ErrorKind::Other, &*action, message));
        let [first, ..] = tensors else { return refuse("there are no tensors".to_owned()) };
        if tensors.len() != self.world() {
            return refuse(format!("there are {} tensors for {} ranks", tensors.len(), self.world()));
        }
        let (kind, device, shape) = (first.borrow().kind(), first.borrow().device(), first.borrow().size());
        let Some((_, rest)) = shape.split_first() else {
            return refuse("the tensors have no dimension".to_owned());
        };
        let mut sizes = Vec::new();
        for tensor in tensors {
            let size = tensor.borrow().size();
            match size.split_first() {
                Some((first, others)) if others == rest && tensor.borrow().kind() == kind => {
                    sizes.push(*first);
                }
                _ => {
                    return refuse(format!(
                        "tensors{} and{} do not fit",
                        describe(first.borrow()),
                        describe(tensor.borrow())
                    ));
                }
            }
        }
        let input =
            Tensor::f_cat(&share(tensors.iter().map(Borrow::borrow)), 0).map_err(from_tch(&action))?;
        let input = contiguous(&input, &action)?;
        self.call(what, &format!(" of {kind:?} [.., {rest:?}]"), timeout, |action| {
            // Each rank learns how much it gets from each.
            let own = Tensor::f_from_slice(&sizes).map_err(from_tch(action))?;
            let for_this_rank = agreement::gather(self, action, &own, timeout)?
                .iter()
                .map(|sizes| sizes.f_int64_value(&[self.rank() as i64]))
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(from_tch(action))?;
            let mut shape = shape.clone();
            shape[0] = for_this_rank.iter().sum();
            let output = Tensor::f_empty(&shape[..], (kind, device)).map_err(from_tch(action))?;
            RawWork::start(action, timeout, share([&input, &output]), |out| {
                // SAFETY: group, tensors and sizes, one per rank, are alive during the call; the work keeps
                // the tensors. The sizes add up to those of the tensors.
                unsafe {
                    ffi::tchd_all_to_all(
                        self.as_ptr(),
                        ffi::pointer(&output),
                        ffi::pointer(&input),
                        for_this_rank.as_ptr(),
                        sizes.as_ptr(),
                        sizes.len(),
                        ffi::milliseconds(timeout),
                        out,
                    )
                }
            })?
            .wait()?;
            output.f_split_with_sizes(&for_this_rank[..], 0).map_err(from_tch(action))
        })
    }
}
