//! Process-wide settings, observed through libtorch's behavior. They are in one test because other
//! tests in the same process would see them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tch::{Device, Kind, Tensor};
use tch_train::{
    Determinism, allows_tf32, cudnn_benchmark, determinism, set_allow_tf32, set_cudnn_benchmark,
    set_determinism, set_num_threads,
};

/// Runs an operation that has no deterministic algorithm.
fn nondeterministic_operation() -> Result<(), tch::TchError> {
    let index = Tensor::from_slice(&[0i64]);
    let value = Tensor::from_slice(&[1f32]);
    Tensor::zeros([2], (Kind::Float, Device::Cpu)).f_put_(&index, &value, false).map(|_| ())
}

#[test]
fn settings_take_effect() {
    set_num_threads(2).unwrap();
    assert_eq!(tch::get_num_threads(), 2);
    set_num_threads(1).unwrap();
    assert_eq!(tch::get_num_threads(), 1);
    let error = set_num_threads(0).unwrap_err();
    assert_eq!(error.to_string(), "setting the number of threads to 0: it must be from 1 to 2147483647");
    assert!(set_num_threads(usize::MAX).is_err());

    assert_eq!(determinism().unwrap(), Determinism::Off);
    nondeterministic_operation().unwrap();
    set_cudnn_benchmark(true).unwrap();
    assert!(cudnn_benchmark().unwrap());
    set_determinism(Determinism::Require).unwrap();
    assert!(!cudnn_benchmark().unwrap());
    set_cudnn_benchmark(true).unwrap();
    assert!(!cudnn_benchmark().unwrap(), "the fastest algorithm is not always the same");
    assert_eq!(determinism().unwrap(), Determinism::Require);
    let error = nondeterministic_operation().unwrap_err();
    assert!(error.to_string().contains("deterministic"), "{error}");
    set_determinism(Determinism::Warn).unwrap();
    assert_eq!(determinism().unwrap(), Determinism::Warn);
    nondeterministic_operation().unwrap();
    set_determinism(Determinism::Off).unwrap();
    assert_eq!(determinism().unwrap(), Determinism::Off);

    for enabled in [true, false] {
        set_cudnn_benchmark(enabled).unwrap();
        assert_eq!(cudnn_benchmark().unwrap(), enabled);
    }
    for allowed in [true, false, true] {
        set_allow_tf32(allowed).unwrap();
        assert_eq!(allows_tf32().unwrap(), allowed);
    }
}
