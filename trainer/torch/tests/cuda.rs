//! Loading CUDA where there is none gives a clear error, and the CPU still works.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tch::{Device, Kind, Tensor};
use tch_train::cuda::{OpenError, open};

fn cpu_works() {
    let ones = Tensor::ones([3], (Kind::Float, Device::Cpu));
    assert_eq!(ones.sum(Kind::Float).double_value(&[]), 3.0);
}

#[test]
#[cfg(target_os = "linux")]
fn the_error_names_a_library_that_does_not_exist() {
    let folder = std::env::temp_dir().join("tch-train-no-such-folder");
    let error = open(&folder).unwrap_err();
    assert!(matches!(error, OpenError::Missing { .. }));
    assert!(error.to_string().contains("tch-train-no-such-folder/libtorch_cuda.so"), "{error}");
    cpu_works();
}

#[test]
#[cfg(target_os = "linux")]
fn the_error_for_a_broken_library_has_the_reason_of_the_loader() {
    let folder = std::env::temp_dir().join(format!("tch-train-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("libtorch_cuda.so"), b"not a library").unwrap();
    let error = open(&folder).unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(error, OpenError::Load { .. }));
    assert!(error.to_string().contains("file too short") || error.to_string().contains("ELF"), "{error}");
    cpu_works();
}
