//! Autocast, channels_last and the process-wide switches.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

use tch::{Device, Kind, Tensor};
use tch_distributed::{
    Autocast, autocast, is_channels_last, set_channels_last, set_deterministic, set_num_threads,
    to_channels_last,
};

const FLOAT: (Kind, Device) = (Kind::Float, Device::Cpu);

fn product_kind() -> Kind {
    let matrix = Tensor::ones([4, 4], FLOAT);
    matrix.matmul(&matrix).kind()
}

#[test]
fn autocast_computes_in_the_kind_asked_for() {
    assert_eq!(product_kind(), Kind::Float);
    let inside = autocast(Device::Cpu, Kind::BFloat16, || {
        let nested = {
            let _off = Autocast::off(Device::Cpu).unwrap();
            product_kind()
        };
        (product_kind(), nested)
    });
    assert_eq!(inside.unwrap(), (Kind::BFloat16, Kind::Float));
    assert_eq!(autocast(Device::Cpu, Kind::Half, product_kind).unwrap(), Kind::Half);
    assert_eq!(product_kind(), Kind::Float);
}

#[test]
fn autocast_ends_with_an_error_or_a_panic() {
    let failed = autocast(Device::Cpu, Kind::BFloat16, || {
        Tensor::ones([2, 3], FLOAT).f_matmul(&Tensor::ones([2, 3], FLOAT))
    });
    assert!(failed.unwrap().is_err());
    assert_eq!(product_kind(), Kind::Float);
    let panicked =
        std::panic::catch_unwind(|| autocast(Device::Cpu, Kind::BFloat16, || panic!("on purpose")));
    assert!(panicked.is_err());
    assert_eq!(product_kind(), Kind::Float);
}

#[test]
fn autocast_to_other_kinds_is_refused() {
    let error = autocast(Device::Cpu, Kind::Int64, || ()).unwrap_err();
    assert_eq!(error.to_string(), "autocast: it computes in Half or BFloat16, not in Int64");
    assert!(Autocast::enter(Device::Vulkan, Kind::Half).is_err());
}

#[test]
fn channels_last_keeps_values_and_goes_through_convolution() {
    let input = Tensor::randn([2, 3, 8, 8], FLOAT);
    assert!(!is_channels_last(&input).unwrap());
    let changed = to_channels_last(&input).unwrap();
    assert!(is_channels_last(&changed).unwrap());
    assert_eq!(changed, input);
    let weight = Tensor::randn([4, 3, 3, 3], FLOAT).set_requires_grad(true);
    set_channels_last(&weight).unwrap();
    assert!(is_channels_last(&weight).unwrap() && weight.is_leaf() && weight.requires_grad());
    let output = changed.conv2d(&weight, None::<Tensor>, 1, 1, 1, 1);
    assert!(is_channels_last(&output).unwrap());
    output.sum(Kind::Float).backward();
    assert!(weight.grad().defined());
    assert!(to_channels_last(&Tensor::ones([2, 3], FLOAT)).is_err());
}

#[test]
fn switches_are_set() {
    set_num_threads(2).unwrap();
    assert_eq!(tch::get_num_threads(), 2);
    set_num_threads(1).unwrap();
    assert_eq!(tch::get_num_threads(), 1);
    assert!(set_num_threads(0).is_err());
    set_deterministic(true, true).unwrap();
    set_deterministic(false, false).unwrap();
}
