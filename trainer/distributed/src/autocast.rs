//! Automatic mixed precision for one kind of device, with the wanted precision;
//! tch's own switch knows CUDA's float16 alone.

#![expect(unsafe_code, reason = "calls the shim's autocast functions")]

use std::ptr::{self, NonNull};

use tch::{Device, Kind};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;

/// Autocast on this thread until it is dropped; then what was set before is
/// again. Drop the last one made first.
#[derive(Debug)]
#[must_use = "autocast ends when this is dropped"]
pub struct Autocast {
    raw: NonNull<ffi::Autocast>,
}

impl Autocast {
    /// Lets operations on `device` that gain by it compute in `kind`, `Half`
    /// or `BFloat16`.
    ///
    /// # Errors
    /// When the device or the kind has no autocast.
    pub fn enter(device: Device, kind: Kind) -> Result<Self> {
        Self::set(device, kind, true)
    }

    /// Keeps autocast off, within a block where it is on.
    ///
    /// # Errors
    /// When the device has no autocast.
    pub fn off(device: Device) -> Result<Self> {
        Self::set(device, Kind::BFloat16, false)
    }

    fn set(device: Device, kind: Kind, enabled: bool) -> Result<Self> {
        let refuse = |what: String| Error::new(ErrorKind::Other, "autocast", what);
        // The numbers of c10::DeviceType and c10::ScalarType.
        let device_type = match device {
            Device::Cpu => 0,
            Device::Cuda(_) => 1,
            other => return Err(refuse(format!("there is none for {other:?}"))),
        };
        let scalar_type = match kind {
            Kind::Half => 5,
            Kind::BFloat16 => 15,
            other => return Err(refuse(format!("it computes in Half or BFloat16, not in {other:?}"))),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the numbers are those of c10; `raw` is local.
        let status =
            unsafe { ffi::tchd_autocast_enter(device_type, scalar_type, enabled.into(), &raw mut raw) };
        ffi::check(status, || "autocast".to_owned())?;
        let raw = NonNull::new(raw).ok_or_else(|| refuse("libtorch made no guard".to_owned()))?;
        Ok(Self { raw })
    }
}

impl Drop for Autocast {
    fn drop(&mut self) {
        // SAFETY: made by the shim on this thread (the type cannot leave it),
        // freed once.
        unsafe { ffi::tchd_autocast_exit(self.raw.as_ptr()) };
    }
}

/// Runs `body` with autocast to `kind` on `device`. It ends with `body`, also
/// when that panics.
///
/// # Errors
/// As [`Autocast::enter`].
pub fn autocast<T>(device: Device, kind: Kind, body: impl FnOnce() -> T) -> Result<T> {
    let _guard = Autocast::enter(device, kind)?;
    Ok(body())
}
