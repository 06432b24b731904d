//! Times consecutive phases on a device.

use std::time::Instant;

use tch::Device;

use crate::synchronize::synchronize;

/// Measures the time of one phase after the other.
#[derive(Debug)]
pub(super) struct Stopwatch {
    device: Device,
    began: Instant,
}

impl Stopwatch {
    /// Starts the first phase, when the device has done all earlier work.
    pub(super) fn start(device: Device) -> Self {
        synchronize(device);
        Self { device, began: Instant::now() }
    }

    /// Ends a phase, when the device has done its work, and starts the next one. Returns its seconds.
    pub(super) fn lap(&mut self) -> f64 {
        synchronize(self.device);
        let now = Instant::now();
        let seconds = (now - self.began).as_secs_f64();
        self.began = now;
        seconds
    }
}
