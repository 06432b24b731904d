//! A group of ranks, and its collectives. All ranks make the same calls in the same order. A call
//! returns when this rank's part is done. Each backend joins a group in a file of its own, such as
//! `gloo.rs`; everything here is the same for all of them.

#![expect(unsafe_code, reason = "calls the shim's process group functions")]

use std::borrow::Borrow;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::time::Duration;

use tch::{Device, Kind, Tensor};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;

/// This process's membership in a group of ranks. It cannot leave its thread, because collectives
/// must be called in the same order on all ranks.
#[derive(Debug)]
pub struct ProcessGroup {
    raw: NonNull<ffi::Group>,
    rank: usize,
    world: usize,
    timeout: Duration,
}

impl ProcessGroup {
    /// Takes ownership of a group that a backend of the shim has allocated. `timeout` limits each
    /// collective.
    pub(crate) fn own(raw: *mut ffi::Group, rank: usize, world: usize, timeout: Duration) -> Option<Self> {
        Some(Self { raw: NonNull::new(raw)?, rank, world, timeout })
    }

    /// The number of this process, starting at 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks.
    #[must_use]
    pub fn world(&self) -> usize {
        self.world
    }

    /// How long a collective may wait for a peer.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Replaces a tensor by its sum over all ranks. It must be contiguous and have the same shape and
    /// kind on all ranks.
    ///
    /// # Errors
    /// If a peer is lost or too slow, or the tensor is not a dense tensor on a CPU or a GPU.
    pub fn all_reduce(&self, tensor: &Tensor) -> Result<()> {
        // SAFETY: group and tensor are alive during the call.
        let status = unsafe { ffi::tchd_group_all_reduce(self.as_ptr(), ffi::pointer(tensor)) };
        ffi::check(status, || format!("all-reduce on rank {} of {}", self.rank, self.world))
    }

    /// Overwrites the tensors with those of rank `root`, in messages of up to 250 MiB. The lists must
    /// have the same shapes and kinds on all ranks.
    ///
    /// # Errors
    /// If a peer is lost or too slow, or `root` is not a rank.
    pub fn broadcast<T: Borrow<Tensor>>(&self, tensors: &[T], root: usize) -> Result<()> {
        let action = || format!("broadcast from rank {root} on rank {} of {}", self.rank, self.world);
        if root >= self.world {
            return Err(Error::new(ErrorKind::Other, action(), "the root must be less than the world size"));
        }
        let pointers = ffi::pointers(tensors);
        // SAFETY: group and tensors are alive during the call. `root` is less than the world size,
        // which fits in an int.
        let status = unsafe {
            ffi::tchd_group_broadcast(self.as_ptr(), pointers.as_ptr(), pointers.len(), root as c_int)
        };
        ffi::check(status, action)
    }

    /// Returns the tensors of all ranks, in rank order. Shape and kind must be the same on all ranks.
    ///
    /// # Errors
    /// If a peer is lost or too slow.
    pub fn all_gather(&self, tensor: &Tensor) -> Result<Vec<Tensor>> {
        let action = || format!("all-gather on rank {} of {}", self.rank, self.world);
        let tch = |error| Error::from_tch(action(), &error);
        let input = tensor.f_detach().and_then(|tensor| tensor.f_contiguous()).map_err(tch)?;
        let outputs = (0..self.world)
            .map(|_| input.f_empty_like())
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(tch)?;
        let pointers = ffi::pointers(&outputs);
        // SAFETY: group, input and the `world` outputs are alive during the call.
        let status = unsafe {
            ffi::tchd_group_all_gather(self.as_ptr(), ffi::pointer(&input), pointers.as_ptr(), pointers.len())
        };
        ffi::check(status, action)?;
        Ok(outputs)
    }

    /// Returns the byte strings of all ranks, in rank order. Their lengths may differ.
    ///
    /// # Errors
    /// If a peer is lost or too slow.
    pub fn all_gather_bytes(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let action = || format!("all-gather of bytes on rank {} of {}", self.rank, self.world);
        let tch = |error| Error::from_tch(action(), &error);
        let length = Tensor::f_from_slice(&[bytes.len() as i64]).map_err(tch)?;
        let lengths = self
            .all_gather(&length)?
            .iter()
            .map(|length| length.f_int64_value(&[0]))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(tch)?;
        let longest = lengths.iter().copied().max().unwrap_or(0);
        if longest == 0 {
            return Ok(vec![Vec::new(); self.world]);
        }
        // Shapes must be the same, so all ranks pad to the longest.
        let mut padded = bytes.to_vec();
        padded.resize(longest as usize, 0);
        let padded = Tensor::f_from_slice(&padded).map_err(tch)?;
        let gathered = self.all_gather(&padded)?;
        gathered
            .iter()
            .zip(lengths)
            .map(|(tensor, length)| bytes_of(tensor, length as usize).map_err(tch))
            .collect()
    }

    /// Returns the byte string of rank `root`. On other ranks `bytes` is ignored.
    ///
    /// # Errors
    /// If a peer is lost or too slow, or `root` is not a rank.
    pub fn broadcast_bytes(&self, bytes: &[u8], root: usize) -> Result<Vec<u8>> {
        let tch = |error| {
            Error::from_tch(format!("broadcast of bytes on rank {} of {}", self.rank, self.world), &error)
        };
        let length = Tensor::f_from_slice(&[bytes.len() as i64]).map_err(tch)?;
        self.broadcast(&[&length], root)?;
        let length = length.f_int64_value(&[0]).map_err(tch)?;
        if length == 0 {
            return Ok(Vec::new());
        }
        let message = if self.rank == root {
            Tensor::f_from_slice(bytes).map_err(tch)?
        } else {
            Tensor::f_zeros([length], (Kind::Uint8, Device::Cpu)).map_err(tch)?
        };
        self.broadcast(&[&message], root)?;
        bytes_of(&message, length as usize).map_err(tch)
    }

    /// Waits until all ranks have called this, for at most `timeout`, or the group's timeout if it is
    /// `None`.
    ///
    /// # Errors
    /// If a peer is lost or too slow.
    pub fn barrier(&self, timeout: Option<Duration>) -> Result<()> {
        let timeout = ffi::milliseconds(timeout.unwrap_or(self.timeout));
        // SAFETY: the group is alive during the call.
        let status = unsafe { ffi::tchd_group_barrier(self.as_ptr(), timeout) };
        ffi::check(status, || format!("barrier on rank {} of {}", self.rank, self.world))
    }

    /// Checks that the tensors have the same shapes on all ranks, which the Reducer relies on.
    ///
    /// # Errors
    /// If the shapes differ, or a peer is lost or too slow.
    pub fn verify_shapes<T: Borrow<Tensor>>(&self, tensors: &[T]) -> Result<()> {
        let pointers = ffi::pointers(tensors);
        // SAFETY: group and tensors are alive during the call.
        let status =
            unsafe { ffi::tchd_group_verify_shapes(self.as_ptr(), pointers.as_ptr(), pointers.len()) };
        ffi::check(status, || format!("comparing shapes on rank {} of {}", self.rank, self.world))
    }

    /// The C++ object, for the Reducer and SyncBatchNorm.
    pub(crate) fn as_ptr(&self) -> *mut ffi::Group {
        self.raw.as_ptr()
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // SAFETY: the shim allocated it, and this is the only place that frees it. Reducers and
        // autograd graphs hold references of their own to the C++ group.
        unsafe { ffi::tchd_group_free(self.raw.as_ptr()) };
    }
}

/// The first `length` bytes of a one-dimensional byte tensor.
fn bytes_of(tensor: &Tensor, length: usize) -> std::result::Result<Vec<u8>, tch::TchError> {
    let mut bytes = vec![0; length];
    tensor.f_copy_data_u8(&mut bytes, length)?;
    Ok(bytes)
}
