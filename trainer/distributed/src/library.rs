//! Opens shared libraries that the program does not link.

#![expect(unsafe_code, reason = "loads shared libraries")]

use std::ffi::{CStr, CString, c_void};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};

/// A library that stays loaded until the process ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Library {
    handle: *mut c_void,
}

impl Library {
    /// Loads the library of this file with all that it needs. With `global`, libraries that are loaded
    /// later find its functions and use it in place of another library of the same name.
    #[cfg(unix)]
    pub(crate) fn open(path: &Path, global: bool) -> Result<Self> {
        use std::os::unix::ffi::OsStrExt as _;

        let failed =
            |reason: String| Error::new(ErrorKind::Other, format!("loading {}", path.display()), reason);
        // The loader looks for a name without a slash in its own folders.
        if !path.is_file() {
            return Err(failed("there is no such file".to_owned()));
        }
        let path = std::path::absolute(path).map_err(|error| failed(error.to_string()))?;
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| failed(error.to_string()))?;
        let flags = libc::RTLD_NOW | if global { libc::RTLD_GLOBAL } else { libc::RTLD_LOCAL };
        // SAFETY: `name` is a NUL-terminated string. What the library's initializers do is up to the
        // caller, who chooses the file, as it is for a library path.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        if handle.is_null() {
            return Err(failed(last_error()));
        }
        Ok(Self { handle })
    }

    /// Libraries are loaded on Unix only.
    #[cfg(not(unix))]
    pub(crate) fn open(path: &Path, _global: bool) -> Result<Self> {
        let action = format!("loading {}", path.display());
        Err(Error::new(ErrorKind::Other, action, "libraries are loaded on Linux only"))
    }

    /// The address of a function, never null.
    #[cfg(unix)]
    pub(crate) fn function(self, name: &CStr) -> Result<*mut c_void> {
        // SAFETY: the handle is valid, because libraries are never closed, and `name` ends with NUL.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            let action = format!("looking up {}", name.to_string_lossy());
            return Err(Error::new(ErrorKind::Other, action, last_error()));
        }
        Ok(address)
    }

    /// There is no library to look into.
    #[cfg(not(unix))]
    pub(crate) fn function(self, name: &CStr) -> Result<*mut c_void> {
        let _ = self.handle;
        let action = format!("looking up {}", name.to_string_lossy());
        Err(Error::new(ErrorKind::Other, action, "libraries are loaded on Linux only"))
    }
}

/// The loader's message of the last failure on this thread.
#[cfg(unix)]
fn last_error() -> String {
    // SAFETY: dlerror returns null or a string of this thread that is valid until the next call of a dl
    // function; it is copied at once.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            "the loader gave no reason".to_owned()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_cannot_be_loaded_is_named_with_the_reason() {
        let error = Library::open(Path::new("/nowhere/libx.so"), false).unwrap_err();
        assert_eq!(error.to_string(), "loading /nowhere/libx.so: there is no such file");
        let not_a_library = std::env::current_dir().unwrap().join("Cargo.toml");
        let error = Library::open(&not_a_library, false).unwrap_err().to_string();
        assert!(error.starts_with("loading ") && error.contains("Cargo.toml: "), "{error}");
        assert!(error.contains("ELF") || error.contains("too short"), "{error}");
    }
}
