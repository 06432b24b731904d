//! The peak of reserved memory covers what tensors needed.

use tch::{Device, Kind, Tensor};
use tch_train::{peak_reserved_memory, release_memory, reserved_memory};

use crate::compare::device;

#[test]
fn the_peak_stays_after_the_memory_is_free() {
    const BYTES: u64 = 64 << 20;
    let Device::Cuda(index) = device() else {
        assert!(peak_reserved_memory(0).is_err(), "the CPU has no reserved memory");
        assert!(reserved_memory(0).is_err());
        assert!(release_memory(0).is_err());
        return;
    };
    drop(Tensor::zeros([BYTES as i64 / 4], (Kind::Float, device())));
    let peak = peak_reserved_memory(index).unwrap();
    assert!((BYTES..1 << 40).contains(&peak), "{peak}");
    // What is in use is not released.
    let kept = Tensor::zeros([BYTES as i64 / 4], (Kind::Float, device()));
    assert!(release_memory(index).unwrap() > 0);
    let now = reserved_memory(index).unwrap();
    assert!((BYTES..=peak_reserved_memory(index).unwrap()).contains(&now), "{now}");
    drop(kept);
}
