//! Opening libtorch's CUDA half at run time. A program links libtorch_cpu
//! alone, so that it starts on machines without a GPU, and calls [`open`]
//! before it asks anything about CUDA.
//!
//! The first CUDA query of a process (`tch::Cuda::is_available` or any other)
//! fixes its answer: when libtorch_cuda was not open by then, it stays unknown.

#![expect(unsafe_code, reason = "loads a shared library")]

use std::path::{Path, PathBuf};

/// Why the CUDA half could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder holds a libtorch without CUDA, or none.
    #[error("{} does not exist: this libtorch was built without CUDA", path.display())]
    Missing {
        /// The library looked for.
        path: PathBuf,
    },
    /// The library, or one that it needs, could not be loaded.
    #[error("{} could not be loaded: {reason}", path.display())]
    Load {
        /// The library opened.
        path: PathBuf,
        /// The loader's words.
        reason: String,
    },
    /// It was loaded, but libtorch had already settled that there is no CUDA.
    #[error("{} was loaded after CUDA had been asked for; open it before any other use of libtorch", path.display())]
    TooLate {
        /// The library opened.
        path: PathBuf,
    },
    /// This system has no CUDA libraries to open.
    #[error("CUDA libraries are opened at run time on Linux only")]
    Unsupported,
}

/// CUDA as it is now known to libtorch. The library stays loaded until the
/// process ends: libtorch keeps pointers into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuda {
    devices: usize,
}

impl Cuda {
    /// How many devices CUDA sees; 0 without a driver or a GPU, or when
    /// CUDA_VISIBLE_DEVICES hides them.
    #[must_use]
    pub fn devices(self) -> usize {
        self.devices
    }
}

/// Opens `libtorch_cuda.so` in `lib_dir`, which must come from the same build
/// as the libtorch_cpu of this process, and asks for its devices. May be called
/// again.
///
/// # Errors
/// When there is none, it cannot be loaded, or CUDA was asked for before.
#[cfg(target_os = "linux")]
pub fn open(lib_dir: &Path) -> Result<Cuda, OpenError> {
    use std::ffi::{CStr, CString};
    use std::os::unix::ffi::OsStrExt;

    let path = lib_dir.join("libtorch_cuda.so");
    if !path.exists() {
        return Err(OpenError::Missing { path });
    }
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return Err(OpenError::Load { path, reason: "the path holds a NUL character".to_owned() });
    };
    // RTLD_GLOBAL: cuDNN's and other libraries opened later look up symbols there.
    // SAFETY: a valid C string; the library's initialisers are those of libtorch,
    // which register CUDA with libtorch_cpu and are meant to be run this way.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if handle.is_null() {
        // SAFETY: dlerror answers null or a C string of this thread, valid until
        // the next dl call; it is copied at once.
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
    // This is the first query unless the caller made one, which has stuck.
    if !tch::utils::has_cudart() {
        return Err(OpenError::TooLate { path });
    }
    Ok(Cuda { devices: usize::try_from(tch::Cuda::device_count()).unwrap_or(0) })
}

/// Answers [`OpenError::Unsupported`]: there are no such libraries here.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn open(_lib_dir: &Path) -> Result<Cuda, OpenError> {
    Err(OpenError::Unsupported)
}
