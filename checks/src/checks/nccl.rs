//! Which NCCL a rank loads: libtorch's own, a foreign one, or one too old for WSL. The checks of
//! libraries and of WSL both ask, and each reports only what the other does not. Foreign copies of
//! other CUDA libraries are found in the same way.

use crate::facts::{Fact, Host, Library, NvmlState, Variant, Version, Via};
use crate::intent::Intent;

/// The file name of NCCL.
pub(super) const NCCL: &str = "libnccl.so.2";
/// The first NCCL that supports WSL (NVIDIA/nccl#511).
const FIRST_FOR_WSL: [u32; 2] = [2, 10];

/// A library that is loaded instead of libtorch's own.
pub(super) enum Foreign {
    /// The path in LD_PRELOAD.
    Preloaded(String),
    /// The file that the loader finds first.
    Found(Library),
}

/// The folders whose libraries belong to libtorch.
pub(super) struct Own {
    pub(super) libtorch: String,
    data: Option<String>,
    /// Whether LIBTORCH names it.
    is_named: bool,
}

/// The folders of a libtorch with CUDA; `None` if the run loads none.
pub(super) fn own_folders(host: &Host, intent: &Intent) -> Fact<Option<Own>> {
    let places = host.places()?;
    let Some(libtorch) = places.libtorch else { return Ok(None) };
    let is_for_cpu = host.library("libtorch_cuda.so").is_ok_and(|found| found.is_empty())
        || host.libtorch().ok().flatten().is_some_and(|libtorch| libtorch.variant == Variant::Cpu);
    if host.os()? != "linux" || intent.cpu || is_for_cpu {
        return Ok(None);
    }
    Ok(Some(Own { libtorch, data: places.data, is_named: places.libtorch_named.is_some() }))
}

/// The foreign copy of a library that is loaded, if any.
pub(super) fn foreign(host: &Host, own: &Own, name: &str) -> Option<Foreign> {
    let stem = name.split('.').next().unwrap_or(name);
    let preloaded = host.env("LD_PRELOAD").ok().flatten().unwrap_or_default();
    if let Some(path) = preloaded.split([':', ' ']).find(|path| path.contains(stem)) {
        return Some(Foreign::Preloaded(path.to_owned()));
    }
    let first = host.library(name).ok()?.into_iter().next()?;
    // PyTorch's zip files have NCCL linked into libtorch, so the system's copy is not used.
    let may_be_unused = own.is_named && is_from_system(&first);
    // The check of WSL reports one that is too old for it, with the same remedy.
    let is_reported = name == NCCL && is_from_system(&first) && is_too_old_for_wsl(host);
    let is_foreign = !own.has(&first) && !may_be_unused && !is_reported;
    is_foreign.then_some(Foreign::Found(first))
}

impl Own {
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
pub(super) fn is_foreign(host: &Host, intent: &Intent) -> bool {
    let own = own_folders(host, intent).ok().flatten();
    own.is_some_and(|own| foreign(host, &own, NCCL).is_some())
}

/// Whether the loader finds a library in the system's folders, without the help of a variable.
pub(super) fn is_from_system(library: &Library) -> bool {
    matches!(library.via, Some(Via::Cache | Via::Default))
}

fn is_too_old_for_wsl(host: &Host) -> bool {
    host.is_wsl2() == Ok(true)
        && host.nvml_state() == Ok(NvmlState::Ready)
        && version_below_wsl(host).is_some()
}

/// The version of NCCL, if it is too old for WSL.
pub(super) fn version_below_wsl(host: &Host) -> Option<Version> {
    let first = host.library(NCCL).ok()?.into_iter().next()?;
    Version::find(&first.version?).filter(|version| version.is_below(&FIRST_FOR_WSL))
}
