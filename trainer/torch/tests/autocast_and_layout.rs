//! Autocast and channels_last, observed through the results of operations.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tch::{Device, Kind, Tensor};
use tch_train::{Autocast, autocast, is_channels_last, set_channels_last, to_channels_last};

const FLOAT: (Kind, Device) = (Kind::Float, Device::Cpu);

fn kind_of_product() -> Kind {
    let matrix = Tensor::ones([4, 4], FLOAT);
    matrix.matmul(&matrix).kind()
}

#[test]
fn autocast_computes_in_the_requested_kind() {
    assert_eq!(kind_of_product(), Kind::Float);
    let inside = autocast(Device::Cpu, Kind::BFloat16, || {
        let nested = {
            let _disabled = Autocast::disable(Device::Cpu).unwrap();
            kind_of_product()
        };
        (kind_of_product(), nested)
    });
    assert_eq!(inside.unwrap(), (Kind::BFloat16, Kind::Float));
    assert_eq!(autocast(Device::Cpu, Kind::Half, kind_of_product).unwrap(), Kind::Half);
    assert_eq!(kind_of_product(), Kind::Float);
}

#[test]
fn autocast_ends_after_an_error_or_a_panic() {
    let failed = autocast(Device::Cpu, Kind::BFloat16, || {
        Tensor::ones([2, 3], FLOAT).f_matmul(&Tensor::ones([2, 3], FLOAT))
    });
    assert!(failed.unwrap().is_err());
    assert_eq!(kind_of_product(), Kind::Float);
    let panicked =
        std::panic::catch_unwind(|| autocast(Device::Cpu, Kind::BFloat16, || panic!("on purpose")));
    assert!(panicked.is_err());
    assert_eq!(kind_of_product(), Kind::Float);
}

#[test]
fn autocast_refuses_other_kinds_and_devices() {
    let error = autocast(Device::Cpu, Kind::Int64, || ()).unwrap_err();
    assert_eq!(error.to_string(), "autocast: Int64 is not supported; use Half or BFloat16");
    let error = Autocast::enable(Device::Vulkan, Kind::Half).unwrap_err();
    assert_eq!(error.to_string(), "autocast: Vulkan is not supported");
}

#[test]
fn channels_last_keeps_values_and_survives_a_convolution() {
    let input = Tensor::randn([2, 3, 8, 8], FLOAT);
    assert!(!is_channels_last(&input).unwrap());
    let converted = to_channels_last(&input).unwrap();
    assert!(is_channels_last(&converted).unwrap());
    assert_eq!(converted, input);
    let weight = Tensor::randn([4, 3, 3, 3], FLOAT).set_requires_grad(true);
    set_channels_last(&weight).unwrap();
    assert!(is_channels_last(&weight).unwrap() && weight.is_leaf() && weight.requires_grad());
    let output = converted.conv2d(&weight, None::<Tensor>, 1, 1, 1, 1);
    assert!(is_channels_last(&output).unwrap());
    output.sum(Kind::Float).backward();
    assert!(weight.grad().defined());
    assert!(to_channels_last(&Tensor::ones([2, 3], FLOAT)).is_err());
}

#[test]
fn a_tensor_that_is_channels_last_is_shared() {
    let converted = to_channels_last(&Tensor::randn([1, 3, 4, 4], FLOAT)).unwrap();
    assert_eq!(to_channels_last(&converted).unwrap().data_ptr(), converted.data_ptr());
}
