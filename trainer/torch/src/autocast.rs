//! Automatic mixed precision for one device type and precision. tch's own autocast supports only
//! float16 on CUDA.

#![expect(unsafe_code, reason = "calls the shim's autocast functions")]

use std::ptr::{self, NonNull};

use tch::{Device, Kind};

use crate::error::{Error, Result};
use crate::ffi;

/// Autocast on the current thread until it is dropped, which restores the previous state. Drop
/// nested guards in reverse order.
#[derive(Debug)]
#[must_use = "autocast ends when this is dropped"]
pub struct Autocast {
    raw: NonNull<ffi::Autocast>,
}

impl Autocast {
    /// Operations on `device` that benefit from it run in `kind`: `Half` or `BFloat16`.
    ///
    /// # Errors
    /// If autocast does not support the device or the kind.
    pub fn enable(device: Device, kind: Kind) -> Result<Self> {
        Self::enter(device, kind, true)
    }

    /// Turns autocast off, for a block inside one where it is on.
    ///
    /// # Errors
    /// If autocast does not support the device.
    pub fn disable(device: Device) -> Result<Self> {
        Self::enter(device, Kind::BFloat16, false)
    }

    fn enter(device: Device, kind: Kind, enabled: bool) -> Result<Self> {
        let refuse = |message: String| Error::new("autocast", message);
        // c10::DeviceType and c10::ScalarType.
        let device_type = match device {
            Device::Cpu => 0,
            Device::Cuda(_) => 1,
            other => return Err(refuse(format!("{other:?} is not supported"))),
        };
        let scalar_type = match kind {
            Kind::Half => 5,
            Kind::BFloat16 => 15,
            other => return Err(refuse(format!("{other:?} is not supported; use Half or BFloat16"))),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the numbers are values of c10's enums, and `raw` is local.
        let status =
            unsafe { ffi::tcht_autocast_enter(device_type, scalar_type, enabled.into(), &raw mut raw) };
        ffi::check(status, || "autocast".to_owned())?;
        let raw = NonNull::new(raw).ok_or_else(|| refuse("libtorch returned no guard".to_owned()))?;
        Ok(Self { raw })
    }
}

impl Drop for Autocast {
    fn drop(&mut self) {
        // SAFETY: the shim allocated it on this thread, which it cannot leave (it is not Send), and
        // this is the only place that frees it.
        unsafe { ffi::tcht_autocast_exit(self.raw.as_ptr()) };
    }
}

/// Runs `body` with autocast to `kind` on `device`. Autocast ends when `body` returns or panics.
///
/// # Errors
/// See [`Autocast::enable`].
pub fn autocast<T>(device: Device, kind: Kind, body: impl FnOnce() -> T) -> Result<T> {
    let _guard = Autocast::enable(device, kind)?;
    Ok(body())
}
