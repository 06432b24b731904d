//! Loads libtorch's CUDA half at run time. A program links only libtorch_cpu, so that it starts on
//! machines without a GPU, and calls [`open`] or [`device`] before its first question about CUDA.
//!
//! The first CUDA query of a process (`tch::Cuda::is_available`, `tch::manual_seed` or any other)
//! fixes the answer: if libtorch_cuda is not loaded by then, libtorch never finds it.

#![expect(unsafe_code, reason = "loads a shared library")]

use std::path::{Path, PathBuf};

use tch::Device;

/// Why libtorch_cuda could not be loaded, or a device cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory has no libtorch, or one without CUDA.
    #[error("{} does not exist: this libtorch was built without CUDA", path.display())]
    Missing {
        /// The library that is missing.
        path: PathBuf,
    },
    /// The library, or one of its dependencies, could not be loaded.
    #[error("cannot load {}: {reason}", path.display())]
    Load {
        /// The library that was opened.
        path: PathBuf,
        /// The loader's message.
        reason: String,
    },
    /// It was loaded after libtorch had already cached that there is no CUDA.
    #[error("{} was loaded after the first CUDA query, so libtorch ignores it; load it before any other use of libtorch", path.display())]
    TooLate {
        /// The library that was loaded.
        path: PathBuf,
    },
    /// This crate loads CUDA on Linux only.
    #[error("loading CUDA at run time is supported on Linux only")]
    Unsupported,
    /// No libtorch_cpu is loaded from a file, so there is no folder to look for libtorch_cuda in.
    #[error("this process has not loaded libtorch_cpu.so, so the folder of libtorch_cuda.so is unknown")]
    NoLibtorch,
    /// The name of a device is not one that this crate knows.
    #[error("{name:?} is not a device; use `cpu`, or `cuda:0` for the first GPU")]
    UnknownName {
        /// The name.
        name: String,
    },
    /// libtorch does not find this GPU.
    #[error("there is no CUDA device {index}: libtorch finds {devices}")]
    NoSuchDevice {
        /// The number of the device that was asked for.
        index: usize,
        /// The number of devices that libtorch finds.
        devices: usize,
    },
}

/// CUDA, loaded into this process. The library stays loaded until the process ends, because
/// libtorch keeps pointers into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuda {
    devices: usize,
}

impl Cuda {
    /// The number of devices. It is 0 without a driver or a GPU, or if CUDA_VISIBLE_DEVICES hides
    /// them.
    #[must_use]
    pub fn devices(self) -> usize {
        self.devices
    }
}

/// Loads `libtorch_cuda.so` from `lib_dir` and counts the devices. The library must come from the
/// same build of libtorch as the libtorch_cpu of this process. Calling it again is harmless.
///
/// # Errors
/// If the library does not exist or cannot be loaded, or a CUDA query came first.
#[cfg(target_os = "linux")]
pub fn open(lib_dir: &Path) -> Result<Cuda, OpenError> {
    use std::ffi::{CStr, CString};
    use std::os::unix::ffi::OsStrExt;

    let path = lib_dir.join("libtorch_cuda.so");
    if !path.exists() {
        return Err(OpenError::Missing { path });
    }
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return Err(OpenError::Load { path, reason: "the path contains a NUL character".to_owned() });
    };
    // RTLD_GLOBAL, because libraries that are opened later (cuDNN, for example) look up its symbols.
    // SAFETY: `name` is a NUL-terminated string. The initializers that run are libtorch's own, which
    // register CUDA with libtorch_cpu and support being loaded this way. That the library is
    // libtorch's is up to the caller, who chooses the directory, as it is for a library path.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        // SAFETY: dlerror returns null or a string of this thread that is valid until the next call
        // of a dl function; it is copied at once.
        let reason = unsafe {
            let text = libc::dlerror();
            if text.is_null() {
                "the loader gave no reason".to_owned()
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        };
        return Err(OpenError::Load { path, reason });
    }
    // libtorch caches the answer of the first query, so this one is wrong if another came first.
    if !tch::utils::has_cudart() {
        return Err(OpenError::TooLate { path });
    }
    Ok(Cuda { devices: usize::try_from(tch::Cuda::device_count()).unwrap_or(0) })
}

/// Returns [`OpenError::Unsupported`].
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn open(_lib_dir: &Path) -> Result<Cuda, OpenError> {
    Err(OpenError::Unsupported)
}

/// The device of this name: `cpu`, or `cuda:N` for GPU number N, counted from 0. For a GPU, loads
/// `libtorch_cuda.so` from the folder of the libtorch_cpu that this process uses; see [`open`].
///
/// # Errors
/// If the name is neither, CUDA cannot be loaded, or there is no such GPU.
pub fn device(name: &str) -> Result<Device, OpenError> {
    if name == "cpu" {
        return Ok(Device::Cpu);
    }
    let digits = name.strip_prefix("cuda:").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let Some(index) = digits.and_then(|digits| digits.parse().ok()) else {
        return Err(OpenError::UnknownName { name: name.to_owned() });
    };
    let devices = open(&libtorch_folder()?)?.devices();
    if index >= devices {
        return Err(OpenError::NoSuchDevice { index, devices });
    }
    Ok(Device::Cuda(index))
}

/// The folder of the libtorch_cpu that this process uses.
#[cfg(target_os = "linux")]
fn libtorch_folder() -> Result<PathBuf, OpenError> {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let maps = std::fs::read("/proc/self/maps").map_err(|_| OpenError::NoLibtorch)?;
    // A line ends with the file that is mapped, and has no slash before it.
    maps.split(|&byte| byte == b'\n')
        .filter_map(|line| {
            Some(Path::new(OsStr::from_bytes(&line[line.iter().position(|&byte| byte == b'/')?..])))
        })
        .find(|file| file.file_name() == Some(OsStr::new("libtorch_cpu.so")))
        .and_then(Path::parent)
        .map(Path::to_owned)
        .ok_or(OpenError::NoLibtorch)
}

/// Returns [`OpenError::Unsupported`].
#[cfg(not(target_os = "linux"))]
fn libtorch_folder() -> Result<PathBuf, OpenError> {
    Err(OpenError::Unsupported)
}
