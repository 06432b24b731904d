//! Loads libtorch's CUDA half at run time. A program links only libtorch_cpu, so that it starts on
//! machines without a GPU, and calls [`open`] before its first question about CUDA.
//!
//! The first CUDA query of a process (`tch::Cuda::is_available` or any other) fixes the answer: if
//! libtorch_cuda is not loaded by then, libtorch never finds it.

#![expect(unsafe_code, reason = "loads a shared library")]

use std::path::{Path, PathBuf};

/// Why libtorch_cuda could not be loaded.
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
