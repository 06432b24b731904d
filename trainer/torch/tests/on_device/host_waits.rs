//! The counter of host waits counts what waits for a GPU, and nothing else.

use std::sync::{Mutex, PoisonError};

use tch::{Device, Kind, Tensor};
use tch_train::{copy_to_device, host_waits};

use crate::compare::{device, random};

/// The waits during `work`. Tests that run at the same time would be counted too, so only the smallest
/// count of several attempts is exact.
pub(crate) fn waits_in(work: impl Fn()) -> u64 {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // CUDA and its libraries are initialized by the first attempt.
    let attempts = (0..5).map(|_| {
        let before = host_waits().unwrap();
        work();
        host_waits().unwrap() - before
    });
    attempts.min().unwrap()
}

/// What a wait counts on the device under test.
fn one() -> u64 {
    u64::from(device() != Device::Cpu)
}

#[test]
fn reading_a_value_waits() {
    let sum = random(1, &[64, 64]).to_device(device()).sum(Kind::Float);
    assert_eq!(
        waits_in(|| {
            let _value = sum.double_value(&[]);
        }),
        one()
    );
    assert_eq!(waits_in(|| drop((0..7).map(|_| sum.double_value(&[])).collect::<Vec<_>>())), 7 * one());
    // How many values there are is known only after the device has counted them.
    assert!(waits_in(|| drop(sum.nonzero())) >= one());
}

#[test]
fn computing_does_not_wait() {
    let matrix = random(2, &[64, 64]).to_device(device());
    assert_eq!(waits_in(|| drop(matrix.matmul(&matrix).relu().sum(Kind::Float))), 0);
}

#[test]
fn a_copy_from_page_locked_memory_does_not_wait() {
    let source = random(3, &[64, 64]);
    assert_eq!(waits_in(|| drop(copy_to_device(&source, device()).unwrap())), 0);
    assert!(waits_in(|| drop::<Tensor>(source.to_device(device()))) >= one());
}
