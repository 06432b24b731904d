//! Loading CUDA where there is none gives a clear error, and the CPU still works.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tch::{Device, Kind, Tensor};
use tch_train::cuda::{OpenError, device, open};

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

#[test]
fn names_of_devices_are_checked() {
    assert_eq!(device("cpu").unwrap(), Device::Cpu);
    for name in ["", "CPU", "cuda", "cuda:", "cuda:+1", "cuda:0,1", "0"] {
        let error = device(name).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{name:?} is not a device; use `cpu`, or `cuda:0` for the first GPU")
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn cuda_is_looked_for_beside_the_libtorch_of_this_process() {
    match device("cuda:4096").unwrap_err() {
        OpenError::Missing { path } => {
            assert_eq!(path.file_name().unwrap(), "libtorch_cuda.so");
            assert!(path.with_file_name("libtorch_cpu.so").exists(), "{}", path.display());
        }
        // A libtorch with CUDA. Another test may have asked about CUDA before.
        error => assert!(
            matches!(error, OpenError::NoSuchDevice { index: 4096, .. } | OpenError::TooLate { .. }),
            "{error}"
        ),
    }
    cpu_works();
}
