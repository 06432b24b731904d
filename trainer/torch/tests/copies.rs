//! Copies to a device. Without a GPU, only the CPU and the refusal of a GPU can be observed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tch::{Device, Tensor};
use tch_train::{CopyStream, copy_to_device};

#[test]
fn a_copy_to_the_cpu_shares_the_memory() {
    let tensor = Tensor::from_slice(&[1.0f32, 2.0, 3.0]);
    let copy = copy_to_device(&tensor, Device::Cpu).unwrap();
    assert_eq!(copy.data_ptr(), tensor.data_ptr());
}

#[test]
fn a_copy_to_a_gpu_that_is_not_there_is_an_error() {
    if tch::Cuda::is_available() {
        return;
    }
    let error = copy_to_device(&Tensor::from_slice(&[1.0f32]), Device::Cuda(0)).unwrap_err();
    assert!(error.to_string().starts_with("copying to Cuda(0): "), "{error}");
}

#[test]
fn a_stream_of_a_gpu_that_is_not_there_is_an_error() {
    if tch::Cuda::is_available() {
        return;
    }
    let error = CopyStream::new(Device::Cuda(0)).unwrap_err().to_string();
    assert!(error.starts_with("opening a stream of Cuda(0): "), "{error}");
    let error = CopyStream::new(Device::Mps).unwrap_err().to_string();
    assert_eq!(error, "opening a stream: Mps is not supported");
}
