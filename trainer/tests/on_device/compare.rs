//! The device under test, and comparisons of its tensors with double precision.

use std::sync::OnceLock;

use tch::{Device, Kind, Tensor};
use yolo_base::env::YOLO_TEST_DEVICE;

/// The device under test. Every test calls this before anything else of libtorch, because the first
/// question about CUDA decides whether there is CUDA. TF32 is off.
pub(crate) fn device() -> Device {
    static FOUND: OnceLock<Device> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let name = std::env::var_os(YOLO_TEST_DEVICE);
        let name = name.map_or("cpu".into(), |name| name.to_string_lossy().into_owned());
        let device = tch_train::cuda::device(&name)
            .unwrap_or_else(|error| panic!("{YOLO_TEST_DEVICE}={name} cannot be used: {error}"));
        tch_train::set_allow_tf32(false).unwrap();
        device
    })
}

/// A tensor on the CPU in double precision, without its graph.
pub(crate) fn double(tensor: &Tensor) -> Tensor {
    tensor.detach().to_device(Device::Cpu).to_kind(Kind::Double)
}

/// The largest absolute value.
pub(crate) fn largest(tensor: &Tensor) -> f64 {
    double(tensor).abs().max().double_value(&[])
}

/// The largest differences of a comparison, for the output of the test.
#[derive(Default)]
pub(crate) struct Closest {
    share: f64,
    what: String,
}

impl Closest {
    /// Fails unless a tensor on the device differs from the reference by at most `bound`.
    pub(crate) fn check(&mut self, what: &str, got: &Tensor, want: &Tensor, bound: f64) {
        assert_eq!(got.device(), device(), "{what} is on another device");
        self.check_anywhere(what, got, want, bound);
    }

    /// [`Self::check`] of a tensor that need not be on the device.
    pub(crate) fn check_anywhere(&mut self, what: &str, got: &Tensor, want: &Tensor, bound: f64) {
        assert_eq!(want.kind(), Kind::Double, "{what}: the reference has another precision");
        assert_eq!(got.size(), want.size(), "{what} has another shape");
        let off = (double(got) - want.detach()).abs().max().double_value(&[]);
        assert!(off <= bound, "{what}: the largest difference is {off:e}, the bound {bound:e}");
        if off > self.share * bound {
            self.share = off / bound;
            self.what = format!("{what} is off by {off:.1e}, {:.1} % of the bound", 100.0 * self.share);
        }
    }

    /// Prints which tensor came closest to its bound.
    pub(crate) fn print(self) {
        if !self.what.is_empty() {
            println!("{}", self.what);
        }
    }
}
