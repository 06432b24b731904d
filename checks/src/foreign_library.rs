//! Finds copies of CUDA libraries that a rank loads instead of libtorch's own, and an NCCL that is too
//! old for WSL. The checks `libraries/foreign.rs` and `wsl/several_gpus.rs` share it, so that each
//! reports only what the other does not.

use crate::facts::{Fact, Host, Library, NvmlState, Variant, Version, Via};
use crate::intent::Intent;

/// The file name of NCCL.
pub(crate) const NCCL: &str = "libnccl.so.2";
/// The first NCCL that supports WSL (NVIDIA/nccl#511).
const FIRST_FOR_WSL: [u32; 2] = [2, 10];

/// A library that is loaded instead of libtorch's own.
pub(crate) enum ForeignLibrary {
    /// The path in LD_PRELOAD.
    Preloaded(String),
    /// The file that the loader finds first.
    Found(Library),
}

/// The folders whose libraries belong to libtorch.
pub(crate) struct OwnFolders {
    pub(crate) libtorch: String,
    data: Option<String>,
    /// Whether LIBTORCH names it.
    is_named: bool,
}

/// The folders of a libtorch with CUDA; `None` if the run loads none.
pub(crate) fn own_folders(host: &Host, intent: &Intent) -> Fact<Option<OwnFolders>> {
    let places = host.places()?;
    let Some(libtorch) = places.libtorch else { return Ok(None) };
    let is_for_cpu = host.library("libtorch_cuda.so").is_ok_and(|found| found.is_empty())
        || host.libtorch().ok().flatten().is_some_and(|libtorch| libtorch.variant == Variant::Cpu);
    if host.os()? != "linux" || intent.cpu || is_for_cpu {
        return Ok(None);
    }
    Ok(Some(OwnFolders { libtorch, data: places.data, is_named: places.libtorch_named.is_some() }))
}

/// The foreign copy of a library that is loaded, if any.
pub(crate) fn find(host: &Host, own: &OwnFolders, name: &str) -> Option<ForeignLibrary> {
    let stem = name.split('.').next().unwrap_or(name);
    let preloaded = host.env("LD_PRELOAD").ok().flatten().unwrap_or_default();
    if let Some(path) = preloaded.split([':', ' ']).find(|path| path.contains(stem)) {
        return Some(ForeignLibrary::Preloaded(path.to_owned()));
    }
    let first = host.library(name).ok()?.into_iter().next()?;
    // PyTorch's zip files have NCCL linked into libtorch, so the system's copy is not used.
    let may_be_unused = own.is_named && is_from_system(&first);
    // The check of WSL reports one that is too old for it, with the same remedy.
    let is_reported = name == NCCL && is_from_system(&first) && is_too_old_for_wsl(host);
    let is_foreign = !own.has(&first) && !may_be_unused && !is_reported;
    is_foreign.then_some(ForeignLibrary::Found(first))
}

impl OwnFolders {
    /// Python's packages are next to `torch`, not in it, and what `yolo` installs belongs to its
    /// libtorch.
    fn has(&self, library: &Library) -> bool {
        let packages = ["/nvidia/nccl/", "/nvidia/cudnn/", "/nvidia/cu1"];
        let mut own = [Some(&self.libtorch), self.data.as_ref()].into_iter().flatten();
        packages.iter().any(|part| library.path.contains(part))
            || own.any(|folder| library.path.starts_with(folder.as_str()))
    }
}

/// Whether a foreign NCCL is loaded.
pub(crate) fn is_nccl_foreign(host: &Host, intent: &Intent) -> bool {
    let own = own_folders(host, intent).ok().flatten();
    own.is_some_and(|own| find(host, &own, NCCL).is_some())
}

/// Whether the loader finds a library in the system's folders, without the help of a variable.
pub(crate) fn is_from_system(library: &Library) -> bool {
    matches!(library.via, Some(Via::Cache | Via::Default))
}

fn is_too_old_for_wsl(host: &Host) -> bool {
    host.is_wsl2() == Ok(true)
        && host.nvml_state() == Ok(NvmlState::Ready)
        && nccl_too_old_for_wsl(host).is_some()
}

/// The version of NCCL, if it is too old for WSL.
pub(crate) fn nccl_too_old_for_wsl(host: &Host) -> Option<Version> {
    let first = host.library(NCCL).ok()?.into_iter().next()?;
    Version::find(&first.version?).filter(|version| version.is_below(&FIRST_FOR_WSL))
}
