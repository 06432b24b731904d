//! Copies between CPU and GPU while the GPU computes. [`CopyStream`] copies batches on a stream of its own, so that the
//! next one is on its way while the GPU works on the present one; [`Reading`] copies results back. The host waits for
//! neither, and another thread may receive what one has begun. On the CPU, both are the tensor itself.

#![expect(unsafe_code, reason = "calls the shim's functions for streams and events")]

use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use tch::{Device, Kind, Tensor};

use crate::error::{Error, Result};
use crate::ffi;
use crate::page_locked::{Buffer, Pool, budget};

/// The page-locked memory for copies of this process. It outlives the threads that begin copies.
static POOL: Mutex<Pool<Tensor, Arc<Event>>> = Mutex::new(Pool::new());

/// A stream for copies to one device.
#[derive(Debug)]
pub struct CopyStream {
    /// `None` on the CPU.
    raw: Option<NonNull<ffi::CopyStream>>,
    device: Device,
}

/// A copy that may still be on its way.
#[derive(Debug)]
#[must_use = "the copy can be used after `arrive`"]
pub struct Copying {
    tensor: Tensor,
    done: Option<Arc<Event>>,
}

/// Values that may still be on their way to the CPU.
#[derive(Debug)]
pub struct Reading {
    tensor: Tensor,
    done: Option<Event>,
}

/// The moment at which a stream has done what it was given before.
#[derive(Debug)]
pub(crate) struct Event(pub(crate) NonNull<ffi::Event>);

// SAFETY: this value owns the C++ object, which is bound to no thread, and CUDA lets any thread ask for an event, wait for it
// and free it.
unsafe impl Send for Event {}
// SAFETY: the event is recorded before there is a reference to this value. After that only const functions of the C++ object
// are called, which ask for the event or wait for it, and CUDA allows that from several threads at once.
unsafe impl Sync for Event {}

impl CopyStream {
    /// A stream for copies to `device`.
    ///
    /// # Errors
    /// If the device is neither the CPU nor a GPU that can be used.
    pub fn new(device: Device) -> Result<Self> {
        let index = match device {
            Device::Cpu => return Ok(Self { raw: None, device }),
            Device::Cuda(index) => i32::try_from(index).unwrap_or(i32::MAX),
            other => return Err(Error::new("opening a stream", format!("{other:?} is not supported"))),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is local.
        let status = unsafe { ffi::tcht_copy_stream_new(index, &raw mut raw) };
        ffi::check(status, || format!("opening a stream of {device:?}"))?;
        Ok(Self { raw: NonNull::new(raw), device })
    }

    /// Begins to copy `bytes` to the device, as a tensor of this shape. The bytes may change when this returns: they
    /// were copied to page-locked memory first, or, if there is no more of it, to the device itself, for
    /// which the host has to wait then. [`crate::limit_page_locked_memory`] sets how much there is.
    ///
    /// # Errors
    /// If the shape has another number of elements, or memory runs out.
    pub fn copy_bytes(&self, bytes: &[u8], shape: &[i64]) -> Result<Copying> {
        let action = || format!("copying to {:?}", self.device);
        let tch = |error| Error::from_tch(action(), &error);
        let length: i64 = shape.iter().product();
        if usize::try_from(length) != Ok(bytes.len()) {
            return Err(Error::new(
                action(),
                format!("{} bytes are no tensor of shape {shape:?}", bytes.len()),
            ));
        }
        let Some(stream) = self.raw else {
            let tensor = Tensor::f_from_data_size(bytes, shape, Kind::Uint8).map_err(tch)?;
            return Ok(Copying { tensor, done: None });
        };
        let (source, buffer) = page_locked(bytes, shape).map_err(tch)?;
        let (mut copy, mut done) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: stream and tensor are alive during the call, and the out pointers are local. The pool keeps
        // page-locked memory, and CUDA has staged other memory when it returns.
        let status = unsafe {
            ffi::tcht_copy_stream_copy(stream.as_ptr(), ffi::pointer(&source), &raw mut copy, &raw mut done)
        };
        let begun = ffi::check(status, action);
        let done = NonNull::new(done).map(|done| Arc::new(Event(done)));
        if let (Some(buffer), Some(done)) = (buffer, &done) {
            pool().give_back(buffer, Some(Arc::clone(done)));
        }
        // Without an event, nobody knows when the copy ends if it has begun: the buffer goes back to libtorch, which does.
        begun?;
        // SAFETY: on success the shim allocated a tensor handle, and we are its only owner.
        let tensor = unsafe { Tensor::from_ptr(copy.cast()) };
        Ok(Copying { tensor, done })
    }
}

fn pool() -> std::sync::MutexGuard<'static, Pool<Tensor, Arc<Event>>> {
    // A panic cannot leave the pool in an invalid state.
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Page-locked memory as it is in the pool.
type PageLocked = Buffer<Tensor, Arc<Event>>;

/// A copy of the bytes in page-locked memory, with its buffer of the pool; or in other memory if there is no more of it.
/// The shape has as many elements.
fn page_locked(
    bytes: &[u8],
    shape: &[i64],
) -> std::result::Result<(Tensor, Option<PageLocked>), tch::TchError> {
    let strides: Vec<i64> = (1..=shape.len()).map(|from| shape[from..].iter().product()).collect();
    // SAFETY: the bytes outlive the tensor, which ends here and is only read.
    let borrowed = unsafe { Tensor::f_from_blob(bytes.as_ptr(), shape, &strides, Kind::Uint8, Device::Cpu) }?;
    let has_ended = |done: &Arc<Event>| done.is_done().unwrap_or(false);
    let taken = pool().take(bytes.len() as u64, budget(), has_ended, lock);
    let Some(buffer) = taken else { return Ok((copied(&borrowed)?, None)) };
    let copy = || {
        let mut part = buffer.memory().f_narrow(0, 0, bytes.len() as i64)?.f_view(shape)?;
        part.f_copy_(&borrowed)?;
        Ok(part)
    };
    match copy() {
        Ok(part) => Ok((part, Some(buffer))),
        Err(error) => {
            pool().give_back(buffer, None);
            Err(error)
        }
    }
}

/// Allocates page-locked memory. A refusal leaves no error in CUDA.
fn lock(bytes: u64) -> Result<Tensor> {
    let mut memory = ptr::null_mut();
    // SAFETY: the out pointer is local.
    let status = unsafe { ffi::tcht_page_locked(i64::try_from(bytes).unwrap_or(i64::MAX), &raw mut memory) };
    ffi::check(status, || "allocating it".to_owned())?;
    // SAFETY: on success the shim allocated a tensor handle, and we are its only owner.
    Ok(unsafe { Tensor::from_ptr(memory.cast()) })
}

/// A copy on the CPU of a tensor that is there.
fn copied(tensor: &Tensor) -> std::result::Result<Tensor, tch::TchError> {
    tensor.f_to_device_(Device::Cpu, tensor.kind(), false, true)
}

impl Copying {
    /// The copy. What the GPU is given from now on waits for it; the host does not.
    ///
    /// # Errors
    /// If libtorch fails.
    pub fn arrive(self) -> Result<Tensor> {
        if let Some(done) = &self.done {
            // SAFETY: both are alive during the call.
            let status = unsafe { ffi::tcht_wait_for_copy(ffi::pointer(&self.tensor), done.0.as_ptr()) };
            ffi::check(status, || "waiting for a copy".to_owned())?;
        }
        Ok(self.tensor)
    }
}

impl Reading {
    /// Begins to copy a tensor to the CPU, with its present values.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn begin(tensor: &Tensor) -> Result<Self> {
        let action = "reading values";
        if !tensor.device().is_cuda() {
            let copy = tensor.f_detach().and_then(|tensor| copied(&tensor));
            return Ok(Self { tensor: copy.map_err(|error| Error::from_tch(action, &error))?, done: None });
        }
        let (mut copy, mut done) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the tensor is alive during the call, and the out pointers are local.
        let status = unsafe { ffi::tcht_copy_to_host(ffi::pointer(tensor), &raw mut copy, &raw mut done) };
        if let Err(error) = ffi::check(status, || action.to_owned()) {
            // The system may have no more page-locked memory. A copy for which the host waits needs none.
            let copy = tensor.f_detach().and_then(|tensor| tensor.f_to_device(Device::Cpu));
            return copy.map(|tensor| Self { tensor, done: None }).map_err(|_| error);
        }
        // SAFETY: on success the shim allocated a tensor handle, and we are its only owner.
        let tensor = unsafe { Tensor::from_ptr(copy.cast()) };
        Ok(Self { tensor, done: NonNull::new(done).map(Event) })
    }

    /// Whether the values have arrived. Does not wait.
    ///
    /// # Errors
    /// If the GPU has failed.
    pub fn has_arrived(&self) -> Result<bool> {
        self.done.as_ref().map_or(Ok(true), Event::is_done)
    }

    /// The values, on the CPU. Waits until they have arrived.
    ///
    /// # Errors
    /// If the GPU has failed.
    pub fn finish(self) -> Result<Tensor> {
        if let Some(done) = &self.done
            && !done.is_done()?
        {
            // SAFETY: the event is alive during the call.
            let status = unsafe { ffi::tcht_event_wait(done.0.as_ptr()) };
            ffi::check(status, || "reading values".to_owned())?;
        }
        Ok(self.tensor)
    }
}

impl Event {
    /// Whether the moment is there. Does not wait.
    fn is_done(&self) -> Result<bool> {
        let mut done = 0;
        // SAFETY: the event is alive during the call, and the out pointer is local.
        let status = unsafe { ffi::tcht_event_is_done(self.0.as_ptr(), &raw mut done) };
        ffi::check(status, || "reading values".to_owned())?;
        Ok(done != 0)
    }
}

impl Drop for CopyStream {
    fn drop(&mut self) {
        if let Some(raw) = self.raw {
            // SAFETY: the shim allocated it, and this is the only place that frees it.
            unsafe { ffi::tcht_copy_stream_free(raw.as_ptr()) };
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the shim allocated it, and this is the only place that frees it.
        unsafe { ffi::tcht_event_free(self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No system has as much. What a GPU is given after that must not report the error.
    #[test]
    fn a_refusal_leaves_the_device_usable() {
        let error = lock(1 << 50).unwrap_err().to_string();
        assert!(error.starts_with("allocating it: "), "{error}");
        let ones = Tensor::ones([8], (Kind::Float, Device::cuda_if_available()));
        assert_eq!(ones.sum(Kind::Float).double_value(&[]), 8.0);
    }
}
