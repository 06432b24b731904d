//! Finds copies of CUDA libraries that a rank loads instead of libtorch's own, and an NCCL that is too
//! old for WSL. The checks `libraries/foreign.rs` and `wsl/several_gpus.rs` share it, so that each
//! reports only what the other does not.

use crate::facts::{Fact, Host, Library, NvmlState, Variant, Version, Via, library_version};
use crate::intent::Intent;

/// The file name of NCCL.
pub(crate) const NCCL: &str = "libnccl.so.2";
/// The first NCCL that supports WSL (NVIDIA/nccl#511).
const FIRST_FOR_WSL: [u32; 2] = [2, 10];

/// A library that is loaded instead of libtorch's own.
pub(crate) enum ForeignLibrary {
    /// The path in LD_PRELOAD, and the version if it is known.
    Preloaded(String, Option<Version>),
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
    if let Some((path, version)) = preloaded(host, stem) {
        return Some(ForeignLibrary::Preloaded(path, version));
    }
    let mut first = host.library(name).ok()?.into_iter().next()?;
    if first.version.is_none() {
        first.version = version_of_file(host, &first);
    }
    // PyTorch's zip files have NCCL linked into libtorch, so the system's copy is not used.
    let may_be_unused = own.is_named && is_from_system(&first);
    // The check of WSL reports one that is too old for it, with the same remedy.
    let is_reported = name == NCCL && is_from_system(&first) && is_too_old_for_wsl(host);
    let is_foreign = !own.has(&first) && !may_be_unused && !is_reported;
    is_foreign.then_some(ForeignLibrary::Found(first))
}

/// The library of this name in LD_PRELOAD, which comes before all others, and its version if a name tells it.
pub(crate) fn preloaded(host: &Host, stem: &str) -> Option<(String, Option<Version>)> {
    let list = host.env("LD_PRELOAD").ok().flatten().unwrap_or_default();
    let names = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with(stem));
    let path = list.split([':', ' ']).find(names)?;
    Some((path.to_owned(), version_of(host, path)))
}

/// The version in the real name of a library that was found, or of the Python package that it is part of.
fn version_of_file(host: &Host, library: &Library) -> Option<String> {
    let of_name = library.real.as_deref().and_then(library_version);
    of_name.or_else(|| of_package(host, &library.path).map(|version| version.to_string()))
}

/// The version in the name of a library, of the file that its link leads to, of the Python package that it is
/// part of, or of its folder.
fn version_of(host: &Host, path: &str) -> Option<Version> {
    let of_name = |path: &str| library_version(path).and_then(|version| Version::find(&version));
    let target = || of_name(&host.link(path).ok()??);
    of_name(path).or_else(target).or_else(|| of_package(host, path)).or_else(|| {
        // /opt/nccl-2.30.7/lib/libnccl.so.2
        path.split('/').rev().skip(1).find_map(|folder| {
            let (_, version) = folder.rsplit_once(['-', '_'])?;
            Version::find(version).filter(|_| version.starts_with(|first: char| first.is_ascii_digit()))
        })
    })
}

/// `…/site-packages/nvidia/nccl/lib/libnccl.so.2` is of the package whose description is in
/// `…/site-packages/nvidia_nccl_cu13-2.31.2.dist-info`.
fn of_package(host: &Host, path: &str) -> Option<Version> {
    let (packages, rest) = path.split_once("/nvidia/")?;
    let name = format!("nvidia_{}_", rest.split('/').next()?);
    let names = host.folder(packages).ok()??;
    names.iter().find_map(|folder| {
        let rest = folder.strip_prefix(&name)?.strip_suffix(".dist-info")?;
        Version::find(rest.split_once('-')?.1)
    })
}

impl OwnFolders {
    /// Python's packages are next to `torch`, not in it, and what `yolo` installs belongs to its
    /// libtorch. Those of another environment are used only if a variable names their folders.
    fn has(&self, library: &Library) -> bool {
        let packages = ["/nvidia/nccl/", "/nvidia/cudnn/", "/nvidia/nvjitlink/", "/nvidia/cu1"];
        let is_package = packages.iter().any(|part| library.path.contains(part));
        self.is_below(&library.path)
            || is_package && (library.via != Some(Via::LdLibraryPath) || !self.is_of_pip())
    }

    fn is_below(&self, path: &str) -> bool {
        let beside = self.libtorch.strip_suffix("/torch");
        let mut own = [Some(self.libtorch.as_str()), self.data.as_deref(), beside].into_iter().flatten();
        own.any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Whether libtorch's own libraries are known to be below these folders.
    fn is_of_pip(&self) -> bool {
        self.libtorch.ends_with("/torch")
            || self.data.as_ref().is_some_and(|data| self.libtorch.starts_with(data.as_str()))
    }
}

/// Whether a foreign NCCL is loaded.
pub(crate) fn is_nccl_foreign(host: &Host, intent: &Intent) -> bool {
    let own = own_folders(host, intent).ok().flatten();
    own.is_some_and(|own| find(host, &own, NCCL).is_some_and(|found| !found.is_newer_nccl()))
}

/// The NCCL that libtorch 2.11 was built with. Newer ones accept what it asks for.
pub(crate) const OF_LIBTORCH: [u32; 3] = [2, 28, 9];

impl ForeignLibrary {
    /// Its version, if it is known.
    pub(crate) fn version(&self) -> Option<Version> {
        match self {
            Self::Preloaded(_, version) => version.clone(),
            Self::Found(library) => Version::find(library.version.as_deref()?),
        }
    }

    /// Whether it is an NCCL that is as new as the one of libtorch.
    pub(crate) fn is_newer_nccl(&self) -> bool {
        self.version().is_some_and(|version| !version.is_below(&OF_LIBTORCH))
    }
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
