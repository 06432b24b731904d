//! [`Moment`]: how long a GPU worked on something. The host gives a GPU work long before it is done and meanwhile does
//! something else, so the host's clock does not tell.

#![expect(unsafe_code, reason = "calls the shim's functions for events")]

use std::ptr::{self, NonNull};
use std::time::Duration;

use tch::Device;

use crate::error::{Error, Result};
use crate::ffi;
use crate::streams::Event;

/// The moment at which a GPU has done what it was given until now.
#[derive(Debug)]
pub struct Moment(Event);

impl Moment {
    /// The present moment of this device. Does not wait.
    ///
    /// # Errors
    /// If the device is no GPU that can be used.
    pub fn of(device: Device) -> Result<Self> {
        let Device::Cuda(index) = device else {
            return Err(Error::new("taking the time of a device", format!("{device:?} is not a GPU")));
        };
        let mut event = ptr::null_mut();
        // SAFETY: the out pointer is local.
        let status = unsafe { ffi::tcht_event_now(i32::try_from(index).unwrap_or(i32::MAX), &raw mut event) };
        ffi::check(status, || format!("taking the time of {device:?}"))?;
        match NonNull::new(event) {
            Some(event) => Ok(Self(Event(event))),
            None => Err(Error::new("taking the time of a device", "there is no event".to_owned())),
        }
    }

    /// The time from here to `end`, a later moment of the same device. Waits for it.
    ///
    /// # Errors
    /// If the GPU has failed.
    pub fn until(&self, end: &Self) -> Result<Duration> {
        let mut seconds = 0.0;
        // SAFETY: both events are alive during the call, and the out pointer is local.
        let status =
            unsafe { ffi::tcht_seconds_between(self.0.0.as_ptr(), end.0.0.as_ptr(), &raw mut seconds) };
        ffi::check(status, || "measuring the time of a device".to_owned())?;
        Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_has_no_moments_of_its_own() {
        let error = Moment::of(Device::Cpu).unwrap_err().to_string();
        assert!(error.contains("Cpu is not a GPU"), "{error}");
    }
}
