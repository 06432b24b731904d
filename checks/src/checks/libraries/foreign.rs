//! Whether NCCL, cuDNN and CUDA's linker are the copies that belong to libtorch. Others, found through
//! LD_LIBRARY_PATH or LD_PRELOAD, lack functions that libtorch calls, or do not match their own parts.

use super::packaged_nccl;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Variant, Version, Via};
use crate::finding::Finding;
use crate::foreign_library::{self, ForeignLibrary, OwnFolders};
use crate::intent::Intent;
use crate::status::Status;

const CUDNN: &str = "libcudnn.so.9";
/// The cuDNN that libtorch 2.11 was built with.
const CUDNN_OF_LIBTORCH: [u32; 2] = [9, 19];

/// Libraries of CUDA whose versions follow CUDA's.
const OF_CUDA: [&str; 6] = ["libnvJitLink", "libcublasLt", "libcublas", "libcudart", "libnvrtc", CUPTI];
/// CUDA's library for profilers, to which libtorch is linked. Its file has a version of its own: `libcupti.so.2024.1.1`.
const CUPTI: &str = "libcupti";

/// The libraries that cuDNN 9 consists of, besides the one that loads them.
const PARTS: [&str; 8] = [
    "libcudnn_ops.so.9",
    "libcudnn_cnn.so.9",
    "libcudnn_graph.so.9",
    "libcudnn_adv.so.9",
    "libcudnn_heuristic.so.9",
    "libcudnn_engines_precompiled.so.9",
    "libcudnn_engines_runtime_compiled.so.9",
    "libcudnn_engines_tensor_ir.so.9",
];

pub(super) static CHECK: Check = Check {
    question: "Does the loader find libtorch's own NCCL, cuDNN and CUDA libraries?",
    reports: &["libraries.foreign-nccl", "libraries.foreign-cudnn", "libraries.foreign-cuda"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(own) = foreign_library::own_folders(host, intent)? else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for (id, name) in [("libraries.foreign-nccl", foreign_library::NCCL), ("libraries.foreign-cudnn", CUDNN)]
    {
        let found = foreign_library::find(host, &own, name);
        let newer = found.as_ref().filter(|found| name == foreign_library::NCCL && found.is_newer_nccl());
        if let Some(newer) = newer {
            findings.extend(never_returns(newer));
            continue;
        }
        // cuDNN 9 works with programs that were built for an older 9.
        let is_newer = |found: &ForeignLibrary| {
            found.version().is_some_and(|version| !version.is_below(&CUDNN_OF_LIBTORCH))
        };
        if name == CUDNN && found.as_ref().is_some_and(|found| is_of_a_package(found) && is_newer(found)) {
            continue;
        }
        // NVIDIA/nccl#1637
        let version = found.as_ref().and_then(ForeignLibrary::version);
        let is_below_blackwell = name == foreign_library::NCCL
            && version.is_some_and(|version| version.is_below(&[2, 26]))
            && host.gpus().is_ok_and(|gpus| gpus.iter().any(|gpu| gpu.capability() == Ok((12, 0))));
        let of_blackwell = |finding: Finding| {
            if is_below_blackwell {
                finding.seen("NCCL before 2.26 fails on GPUs of compute capability 12.0 (ncclMaxSharedMem)")
            } else {
                finding
            }
        };
        match found {
            Some(ForeignLibrary::Preloaded(path, version)) => {
                let version = version.map_or(String::new(), |version| format!(" (version {version})"));
                let title = format!("LD_PRELOAD replaces libtorch's own library with {path}{version}");
                findings.push(preloaded(of_blackwell(Finding::new(id, title))));
            }
            Some(ForeignLibrary::Found(first)) => {
                let version = first.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
                let title =
                    format!("{name}{version} is loaded from {}, not from libtorch's folder", first.path);
                let finding = of_blackwell(Finding::new(id, title));
                let finding = finding.seen(format!("libtorch is in {}", own.libtorch));
                // The system's folders are searched last: libtorch's own folder lacks the library.
                findings.push(if foreign_library::is_from_system(&first) {
                    finding.remedy("reinstall libtorch: its folder lacks this library").command("yolo setup")
                } else {
                    without_variable(host, finding, &first.path)
                });
            }
            None if name == CUDNN => findings.extend(foreign_part(host, id)),
            None if name == foreign_library::NCCL => findings.extend(packaged_nccl::overwritten(host)),
            None => {}
        }
    }
    findings.extend(older_cuda(host, &own));
    Ok(findings)
}

/// Whether it is part of a Python package, whose folders advice on the web puts into LD_LIBRARY_PATH.
fn is_of_a_package(found: &ForeignLibrary) -> bool {
    matches!(found, ForeignLibrary::Found(library) if library.path.contains("-packages/nvidia/"))
}

/// A library of CUDA, if the loader finds one of an older release than libtorch's: the linker, or others, which lack
/// functions. One of another major version is not loaded, and a newer one has all functions. The system's folders are
/// searched last.
fn older_cuda(host: &Host, own: &OwnFolders) -> Option<Finding> {
    let Variant::Cuda(Some((major, minor))) = host.libtorch().ok()??.variant else { return None };
    OF_CUDA.into_iter().find_map(|stem| {
        let name = format!("{stem}.so.{major}");
        let ForeignLibrary::Found(first) = foreign_library::find(host, own, &name)? else { return None };
        // PyTorch's zip files have copies under names of their own: `libcudart-218eec4c.so.12`.
        let copies = host.folder(&format!("{}/lib", own.libtorch)).ok().flatten().unwrap_or_default();
        if copies.iter().any(|name| name.starts_with(&format!("{stem}-"))) {
            return None;
        }
        let version = match stem {
            CUPTI => of_folder(first.real.as_deref()).or_else(|| of_folder(Some(&first.path)))?,
            _ => Version::find(first.version.as_deref()?)?,
        };
        let is_other = version.major() != major;
        if foreign_library::is_from_system(&first) || is_other || !version.is_below(&[major, minor]) {
            return None;
        }
        let of = if stem == CUPTI { "of CUDA " } else { "" };
        let title = format!("{name} {of}{version} is loaded from {}, not from libtorch's folder", first.path);
        let finding = match stem {
            CUPTI => Finding::new("libraries.foreign-cuda", title).because(
                "libtorch is linked to CUPTI, and an older one lacks functions that it calls: libtorch does not load, with `undefined \
                 symbol: cuptiActivityEnableDriverApi`",
            ),
            _ => Finding::new("libraries.foreign-cuda", title),
        };
        Some(if first.via == Some(Via::LdLibraryPath) {
            without_variable(host, finding, &first.path)
        } else {
            finding
        })
    })
}

/// The release of CUDA in the name of a folder: `/usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12`.
fn of_folder(path: Option<&str>) -> Option<Version> {
    path?.split('/').find_map(|folder| Version::find(folder.strip_prefix("cuda-")?))
}

/// LD_LIBRARY_PATH, which a line of a profile, or a module of a cluster, has set.
fn without_variable(host: &Host, finding: Finding, path: &str) -> Finding {
    let finding = finding.command("unset LD_LIBRARY_PATH");
    let has_modules = host.env("LOADEDMODULES").ok().flatten().filter(|list| !list.is_empty());
    let module = has_modules.and_then(|list| {
        let is_of_cuda =
            |name: &&str| ["cuda", "nvhpc", "cudnn"].iter().any(|word| name.to_lowercase().contains(word));
        list.split(':').find(is_of_cuda).map(ToOwned::to_owned)
    });
    match module {
        Some(module) => finding.command(format!("module unload {module}")),
        None if path.contains("-packages/nvidia/") => finding.remedy(
            "unset the variable, and remove the line that sets it from ~/.bashrc or from the activation script of that \
             environment: yolo needs none",
        ),
        None => finding,
    }
}

fn preloaded(finding: Finding) -> Finding {
    finding
        .remedy("unset LD_PRELOAD, also where a profile such as ~/.bashrc sets it")
        .command("unset LD_PRELOAD")
}

/// A newer NCCL works. From 2.31.2 on it waits for all ranks when one leaves, also for one that has failed
/// (pytorch/pytorch#194679).
fn never_returns(found: &ForeignLibrary) -> Option<Finding> {
    let version = found.version().filter(|version| !version.is_below(&[2, 31, 2]))?;
    let title = format!("NCCL {version} is loaded instead of libtorch's own: with it, ranks may never end");
    let finding = Finding::new("libraries.foreign-nccl", title).status(Status::Warning).because(
        "from NCCL 2.31.2 on, a rank that leaves waits for all others of its machine, also for one that has failed; \
         if a rank fails, the others hang until they are killed",
    );
    Some(match found {
        ForeignLibrary::Preloaded(path, _) => preloaded(finding.seen(format!("LD_PRELOAD names {path}")))
            .remedy("unset LD_PRELOAD to use libtorch's own NCCL, or take NCCL 2.30.7 or older"),
        ForeignLibrary::Found(library) => finding
            .seen(format!("it is loaded from {}", library.path))
            .remedy("unset the variable to use libtorch's own NCCL, or take NCCL 2.30.7 or older")
            .command("unset LD_LIBRARY_PATH"),
    })
}

/// cuDNN loads its parts by name; a part in another folder is of another version.
fn foreign_part(host: &Host, id: &'static str) -> Option<Finding> {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let whole = folder(&host.library(CUDNN).ok()?.first()?.path)?;
    PARTS.into_iter().find_map(|name| {
        let found = host.library(name).ok()?;
        let part = found.first()?;
        let is_foreign = folder(&part.path).is_some_and(|folder| folder != whole);
        is_foreign.then(|| {
            let version = part.version.as_ref().map_or(String::new(), |version| format!(" ({version})"));
            let title = format!("cuDNN is in {whole}, but its part {name} is loaded from {}{version}", part.path);
            let finding = Finding::new(id, title);
            if foreign_library::is_from_system(part) {
                return finding.remedy(
                    "remove the system's cuDNN, or bring it to the version of libtorch's: the loader takes from it \
                     what libtorch's does not have",
                );
            }
            finding.command("unset LD_LIBRARY_PATH")
        })
    })
}
