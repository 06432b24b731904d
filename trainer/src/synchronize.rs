//! Waiting for the device, without which no time on a GPU can be measured.

use tch::Device;

/// Waits until a device has done all work that it was given. A GPU works asynchronously; the CPU
/// never lags behind.
pub(crate) fn synchronize(device: Device) {
    if let Device::Cuda(index) = device {
        tch::Cuda::synchronize(index as i64);
    }
}
