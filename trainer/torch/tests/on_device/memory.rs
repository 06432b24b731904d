//! The peak of reserved memory covers what tensors needed.

use tch::{Device, Kind, Tensor};
use tch_train::{peak_reserved_memory, reserved_memory};

use crate::compare::device;

#[test]
fn the_peak_stays_after_the_memory_is_free() {
    const BYTES: u64 = 64 << 20;
    let Device::Cuda(index) = device() else {
        assert!(peak_reserved_memory(0).is_err(), "the CPU has no reserved memory");
        assert!(reserved_memory(0).is_err());
        return;
    };
    drop(Tensor::zeros([BYTES as i64 / 4], (Kind::Float, device())));
    let peak = peak_reserved_memory(index).unwrap();
    assert!((BYTES..1 << 40).contains(&peak), "{peak}");
    let now = reserved_memory(index).unwrap();
    assert!((1..=peak_reserved_memory(index).unwrap()).contains(&now), "{now}");
}
