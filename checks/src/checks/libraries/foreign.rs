//! Whether NCCL and cuDNN are the copies that belong to libtorch. Others, found through
//! LD_LIBRARY_PATH or LD_PRELOAD, lack functions that libtorch calls, or do not match their own parts.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::foreign_library::{self, ForeignLibrary};
use crate::intent::Intent;

const CUDNN: &str = "libcudnn.so.9";

/// The libraries that cuDNN 9 consists of, beside the one that loads them.
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
    question: "Does the loader find libtorch's own NCCL and cuDNN?",
    reports: &["libraries.foreign-nccl", "libraries.foreign-cudnn"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(own) = foreign_library::own_folders(host, intent)? else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for (id, name) in [("libraries.foreign-nccl", foreign_library::NCCL), ("libraries.foreign-cudnn", CUDNN)]
    {
        match foreign_library::find(host, &own, name) {
            Some(ForeignLibrary::Preloaded(path)) => {
                let title = format!("LD_PRELOAD replaces libtorch's own library with {path}");
                findings.push(Finding::new(id, title).remedy("unset LD_PRELOAD").command("unset LD_PRELOAD"));
            }
            Some(ForeignLibrary::Found(first)) => {
                let version = first.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
                let title =
                    format!("{name}{version} is loaded from {}, not from libtorch's folder", first.path);
                let finding = Finding::new(id, title).seen(format!("libtorch is in {}", own.libtorch));
                // The system's folders are searched last: libtorch's own folder lacks the library.
                findings.push(if foreign_library::is_from_system(&first) {
                    finding.remedy("reinstall libtorch: its folder lacks this library").command("yolo setup")
                } else {
                    finding.command("unset LD_LIBRARY_PATH")
                });
            }
            None if name == CUDNN => findings.extend(foreign_part(host, id)),
            None => {}
        }
    }
    Ok(findings)
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
