//! Whether NCCL and cuDNN are those that belong to libtorch: others on LD_LIBRARY_PATH or in
//! LD_PRELOAD lack functions that libtorch asks for, or do not fit their own parts.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Library, Variant, Via};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are NCCL and cuDNN those of libtorch?",
    reports: &["libraries.foreign-nccl", "libraries.foreign-cudnn"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let places = host.places()?;
    let Some(libtorch) = places.libtorch else { return Ok(Vec::new()) };
    let is_for_cpu = host.library("libtorch_cuda.so").is_ok_and(|found| found.is_empty())
        || host.libtorch().ok().flatten().is_some_and(|libtorch| libtorch.variant == Variant::Cpu);
    if host.os()? != "linux" || intent.cpu || is_for_cpu {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let preloaded = host.env("LD_PRELOAD").ok().flatten().unwrap_or_default();
    for (id, name, word) in [
        ("libraries.foreign-nccl", "libnccl.so.2", "libnccl"),
        ("libraries.foreign-cudnn", "libcudnn.so.9", "libcudnn"),
    ] {
        if let Some(path) = preloaded.split([':', ' ']).find(|path| path.contains(word)) {
            let title = format!("LD_PRELOAD puts {path} in the place of libtorch's own");
            findings.push(Finding::new(id, title).remedy("unset LD_PRELOAD").command("unset LD_PRELOAD"));
            continue;
        }
        let found = host.library(name).unwrap_or_default();
        let own = [Some(&libtorch), places.data.as_ref()];
        // PyTorch's zip files hold NCCL within libtorch, so that the system's is none of theirs.
        let may_be_unused = |first: &Library| places.libtorch_named.is_some() && is_of_system(first);
        // The check of WSL tells of one that is too old for it, with the same remedy.
        let is_told = |first: &Library| {
            word == "libnccl" && is_of_system(first) && crate::checks::wsl::is_nccl_old(host)
        };
        let is_wrong = |first: &&Library| is_foreign(first, own) && !may_be_unused(first) && !is_told(first);
        if let Some(first) = found.first().filter(is_wrong) {
            let version = first.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
            let title = format!("{name}{version} is taken from {}, not from libtorch", first.path);
            let finding = Finding::new(id, title).seen(format!("libtorch lies in {libtorch}"));
            // The system's comes last: libtorch's own folder has none.
            findings.push(if is_of_system(first) {
                finding.remedy("libtorch's folder lacks its own: install it anew").command("yolo setup")
            } else {
                finding.command("unset LD_LIBRARY_PATH")
            });
        } else if word == "libcudnn" {
            findings.extend(parts(host, id, found.first()));
        }
    }
    Ok(findings)
}

/// Whether this check tells of the NCCL that is taken.
pub(in crate::checks) fn is_nccl(host: &Host, intent: &Intent) -> bool {
    run(host, intent).is_ok_and(|found| found.iter().any(|one| one.id == "libraries.foreign-nccl"))
}

/// Whether no variable leads the loader there, only its own folders.
fn is_of_system(library: &Library) -> bool {
    matches!(library.via, Some(Via::Cache | Via::Default))
}

/// cuDNN loads its parts by name; one of another folder is one of another version.
fn parts(host: &Host, id: &'static str, whole: Option<&Library>) -> Option<Finding> {
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let whole = folder(&whole?.path)?;
    ["libcudnn_ops.so.9", "libcudnn_cnn.so.9", "libcudnn_graph.so.9"].into_iter().find_map(|name| {
        let found = host.library(name).ok()?;
        let part = found.first()?;
        let foreign = folder(&part.path).is_some_and(|folder| folder != whole);
        foreign.then(|| {
            let title = format!("cuDNN lies in {whole}, and its part {name} is taken from {}", part.path);
            Finding::new(id, title).command("unset LD_LIBRARY_PATH")
        })
    })
}

/// Python's packages lie beside `torch`, not in it, and what yolo installed belongs to its libtorch.
fn is_foreign(library: &Library, own: [Option<&String>; 2]) -> bool {
    let is_packaged =
        ["/nvidia/nccl/", "/nvidia/cudnn/", "/nvidia/cu1"].iter().any(|part| library.path.contains(part));
    let is_own = own.into_iter().flatten().any(|folder| library.path.starts_with(folder.as_str()));
    !is_own && !is_packaged
}
