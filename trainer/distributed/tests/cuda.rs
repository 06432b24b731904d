//! Opening the CUDA half where there is none: a clean refusal, and the CPU goes on.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

use tch::{Device, Kind, Tensor};
use tch_distributed::cuda::{OpenError, open};

fn cpu_works() {
    let ones = Tensor::ones([3], (Kind::Float, Device::Cpu));
    assert_eq!(ones.sum(Kind::Float).double_value(&[]), 3.0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_folder_without_libtorch_cuda_is_named() {
    let folder = std::env::temp_dir().join("tch-distributed-no-such-folder");
    let error = open(&folder).unwrap_err();
    assert!(matches!(error, OpenError::Missing { .. }));
    assert!(error.to_string().contains("tch-distributed-no-such-folder/libtorch_cuda.so"), "{error}");
    cpu_works();
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_is_no_library_is_refused_with_the_loaders_words() {
    let folder = std::env::temp_dir().join(format!("tch-distributed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("libtorch_cuda.so"), b"not a library").unwrap();
    let error = open(&folder).unwrap_err();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(matches!(error, OpenError::Load { .. }));
    assert!(error.to_string().contains("file too short") || error.to_string().contains("ELF"), "{error}");
    cpu_works();
}
