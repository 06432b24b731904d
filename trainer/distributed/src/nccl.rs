//! NCCL for the CUDA tensors of a group. It comes from a plugin, a shared library that is built from
//! `nccl/` and opened at run time, so that a program starts on machines without CUDA.

#![expect(unsafe_code, reason = "calls the functions of the plugin")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::path::Path;
use std::ptr;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;
use crate::library::Library;
use crate::process_group::ProcessGroup;

/// `TCHN_INTERFACE` in `nccl/plugin.h`.
const INTERFACE: c_int = 1;

// The functions of `nccl/plugin.h`.
type Interface = unsafe extern "C" fn() -> c_int;
type LastError = unsafe extern "C" fn() -> *const c_char;
type Versions = unsafe extern "C" fn(*mut *const c_char, *mut c_int, *mut c_int) -> c_int;
type Join = unsafe extern "C" fn(*mut ffi::C10dGroup, c_int, i64) -> c_int;

/// A version of NCCL, such as 2.28.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NcclVersion {
    /// 2
    pub major: u32,
    /// 28
    pub minor: u32,
    /// 9
    pub patch: u32,
}

impl NcclVersion {
    /// From `NCCL_VERSION_CODE`, such as 22809.
    fn from_code(code: c_int) -> Self {
        let code = u32::try_from(code).unwrap_or(0);
        Self { major: code / 10_000, minor: code / 100 % 100, patch: code % 100 }
    }
}

impl std::fmt::Display for NcclVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// What NCCL's watchdog found in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NcclState {
    /// No error.
    Healthy,
    /// A collective did not end within the group's timeout.
    Timeout,
    /// An error on this rank.
    Failed,
    /// An error on another rank.
    RemoteFailed,
}

/// Loads another libnccl than the one that libtorch_cuda would load. It must be at least as new as the
/// NCCL that the plugin was built with. Call it before libtorch_cuda is loaded; otherwise it has no effect.
///
/// # Errors
/// If the file cannot be loaded.
pub fn preload_nccl(libnccl: &Path) -> Result<()> {
    Library::open(libnccl, true).map(|_| ())
}

/// The NCCL plugin, loaded into this process until it ends.
#[derive(Debug, Clone, Copy)]
pub struct NcclPlugin {
    last_error: LastError,
    join: Join,
    built: NcclVersion,
    loaded: NcclVersion,
}

impl NcclPlugin {
    /// Loads the plugin. libtorch_cuda must be loaded, for example by `tch_train::cuda::open`.
    ///
    /// # Errors
    /// If it cannot be loaded, was built for another libtorch than this program, or finds an NCCL that is
    /// older than the one it was built with.
    pub fn open(path: &Path) -> Result<Self> {
        let library = Library::open(path, false)?;
        let refuse = |why: String| Error::new(ErrorKind::Other, format!("loading {}", path.display()), why);
        // SAFETY: plugin.h declares the function with this type.
        let interface = unsafe { transmute::<*mut c_void, Interface>(library.function(c"tchn_interface")?) };
        // SAFETY: the function has no arguments and no preconditions.
        let interface = unsafe { interface() };
        if interface != INTERFACE {
            return Err(refuse(format!("its interface has version {interface}, not {INTERFACE}")));
        }
        // SAFETY: plugin.h of this version declares the functions with these types.
        let (last_error, versions, join) = unsafe {
            (
                transmute::<*mut c_void, LastError>(library.function(c"tchn_last_error")?),
                transmute::<*mut c_void, Versions>(library.function(c"tchn_versions")?),
                transmute::<*mut c_void, Join>(library.function(c"tchn_join")?),
            )
        };
        let (mut torch, mut built, mut loaded) = (ptr::null(), 0, 0);
        // SAFETY: the three variables outlive the call.
        let status = unsafe { versions(&raw mut torch, &raw mut built, &raw mut loaded) };
        check(status, last_error, || format!("loading {}", path.display()))?;
        // SAFETY: both functions return strings that are constants of their libraries.
        let (torch, ours) = unsafe { (CStr::from_ptr(torch), CStr::from_ptr(ffi::tchd_torch_version())) };
        if torch != ours {
            let (torch, ours) = (torch.to_string_lossy(), ours.to_string_lossy());
            return Err(refuse(format!("it was built for libtorch {torch}, and this program for {ours}")));
        }
        let (built, loaded) = (NcclVersion::from_code(built), NcclVersion::from_code(loaded));
        if loaded < built {
            return Err(refuse(format!("it needs NCCL {built} or newer, but NCCL {loaded} is loaded")));
        }
        Ok(Self { last_error, join, built, loaded })
    }

    /// The NCCL whose header the plugin was built with.
    #[must_use]
    pub fn built(&self) -> NcclVersion {
        self.built
    }

    /// The NCCL that this process uses.
    #[must_use]
    pub fn loaded(&self) -> NcclVersion {
        self.loaded
    }
}

impl ProcessGroup {
    /// Exchanges CUDA tensors over NCCL from now on, those of CPUs over gloo as before. This rank's CUDA
    /// tensors must be on CUDA device number `device`. Blocks until all ranks have called this. `timeout`
    /// limits each collective over NCCL.
    ///
    /// A collective over NCCL returns when it is queued on the GPU, as in PyTorch. A peer that dies is
    /// noticed by a watchdog thread, which by default ends this process.
    ///
    /// # Errors
    /// If there is no such device, or NCCL cannot connect the ranks.
    pub fn use_nccl(&self, plugin: &NcclPlugin, device: usize, timeout: Duration) -> Result<()> {
        let action = || {
            let (rank, world) = (self.rank(), self.world());
            format!("connecting rank {rank} of {world} over NCCL on CUDA device {device}")
        };
        let number = i8::try_from(device)
            .map_err(|_| Error::new(ErrorKind::Other, action(), "the number of the device is too large"))?;
        // SAFETY: the group is alive during the call, and the plugin keeps a reference of its own to what
        // it needs. The plugin was built with the headers of the same libtorch as this crate's shim.
        let status = unsafe {
            (plugin.join)(
                ffi::tchd_group_c10d(self.as_ptr()),
                c_int::from(number),
                ffi::milliseconds(timeout),
            )
        };
        check(status, plugin.last_error, action)
    }

    /// Whether CUDA tensors of this group go over NCCL.
    #[must_use]
    pub fn uses_nccl(&self) -> bool {
        self.nccl_state().is_ok()
    }

    /// What NCCL's watchdog has found since [`Self::use_nccl`].
    ///
    /// # Errors
    /// If CUDA tensors of this group do not go over NCCL.
    pub fn nccl_state(&self) -> Result<NcclState> {
        let action = || format!("asking for the state of NCCL on rank {} of {}", self.rank(), self.world());
        let mut state = 0;
        // SAFETY: group and `state` are alive during the call.
        let status = unsafe { ffi::tchd_nccl_error(self.as_ptr(), &raw mut state) };
        ffi::check(status, action)?;
        match state {
            0 => Ok(NcclState::Healthy),
            1 => Ok(NcclState::Timeout),
            2 => Ok(NcclState::Failed),
            3 => Ok(NcclState::RemoteFailed),
            other => Err(Error::new(ErrorKind::Other, action(), format!("libtorch returned {other}"))),
        }
    }
}

/// Turns the status of a plugin function into a `Result`, like [`ffi::check`].
fn check(status: c_int, last_error: LastError, action: impl FnOnce() -> String) -> Result<()> {
    if status == 0 {
        return Ok(());
    }
    // SAFETY: the plugin returns a NUL-terminated string that stays valid until the next call on this
    // thread fails; it is copied before that.
    let text = unsafe { CStr::from_ptr(last_error()) }.to_string_lossy().into_owned();
    Err(Error::from_libtorch(action(), &text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_and_ordered() {
        let version = NcclVersion::from_code(22_809);
        assert_eq!(version.to_string(), "2.28.9");
        assert!(version < NcclVersion::from_code(23_007));
    }
}
