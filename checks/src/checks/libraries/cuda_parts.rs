//! Whether the loader finds the libraries of CUDA that libtorch is linked with, which Python packages beside it and zip
//! files in it bring. An interrupted download, or a removed package, leaves one of them out, and libtorch does not load.

use std::collections::BTreeSet;

use super::packaged_nccl;
use crate::facts::{Host, Libtorch, Variant};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

/// The parts of libtorch that are linked with libraries of CUDA.
const PARTS: [&str; 2] = ["libtorch_cuda.so", "libtorch_cpu.so"];
/// Those of the driver, about which another check speaks, and one that only begins in the same way.
const OTHERS: [&str; 3] = ["libcuda.so", "libnvidia-", "libcurl"];
/// The Python packages of libraries whose names end with CUDA's major version for all of them.
const PACKAGES: [(&str, &str); 4] = [
    ("libcusparseLt", "nvidia-cusparselt"),
    ("libcudnn", "nvidia-cudnn"),
    ("libnccl", "nvidia-nccl"),
    ("libnvshmem_host", "nvidia-nvshmem"),
];

pub(super) fn missing(host: &Host, libtorch: &Libtorch, intent: &Intent) -> Option<Finding> {
    if libtorch.variant == Variant::Cpu || intent.cpu {
        return None;
    }
    let names = lost(host, libtorch);
    let first = names.first()?;
    let title = format!(
        "libtorch in {} needs {}, which the loader does not find",
        libtorch.root,
        names.iter().map(String::as_str).collect::<Vec<_>>().join(" and ")
    );
    let finding = Finding::new("libraries.libtorch-incomplete", title)
        .seen(format!("it fails with `{first}: cannot open shared object file`"));
    if host.named_libtorch().ok().flatten().is_none() {
        return Some(finding.command("yolo setup"));
    }
    let is_package = libtorch.root.contains("site-packages") || libtorch.root.contains("dist-packages");
    let finding = match install(host, libtorch, &names).filter(|_| is_package) {
        Some(command) => finding.remedy(format!(
            "let yolo use its own libtorch, or install what is missing in that Python environment again: `{command}`"
        )),
        None => finding,
    };
    Some(finding.command("unset LIBTORCH").command("yolo setup"))
}

/// What `pip`, or uv in its environments, installs in the environment of this libtorch: the release of a library that its
/// `torch` asks for, since without a number pip would take the newest, or all of PyTorch, of the same CUDA. A package whose
/// files are gone is still known to be installed.
fn install(host: &Host, libtorch: &Libtorch, names: &[String]) -> Option<String> {
    let Variant::Cuda(Some((major, minor))) = libtorch.variant else { return None };
    let (packages, _) = libtorch.root.rsplit_once('/')?;
    let program = program(host, packages);
    let version = libtorch.version.as_ref()?;
    let pinned = packaged_nccl::pinned_by_torch(host, packages);
    let of = |name: &String| {
        let (_, package) = PACKAGES.iter().find(|(stem, _)| name.starts_with(stem))?;
        let package = format!("{package}-cu{major}");
        let (_, release) = pinned.iter().find(|(name, _)| *name == package)?;
        Some(format!("{package}=={release}"))
    };
    let known: Option<BTreeSet<String>> = names.iter().map(of).collect();
    Some(match known {
        Some(known) => {
            format!("{program} --no-deps {}", known.into_iter().collect::<Vec<_>>().join(" "))
        }
        None => format!(
            "{program} torch=={version}+cu{major}{minor} --index-url https://download.pytorch.org/whl/cu{major}{minor}"
        ),
    })
}

/// How packages of the environment with this folder, `…/lib/python3.12/site-packages`, are installed again, whichever
/// environment is active.
fn program(host: &Host, packages: &str) -> String {
    let split = packages.split_once("/lib/python").or_else(|| packages.split_once("/lib64/python"));
    let Some((root, _)) = split else { return "pip install --force-reinstall".to_owned() };
    let settings = host.text(&format!("{root}/pyvenv.cfg")).ok().flatten().unwrap_or_default();
    if settings.lines().any(|line| line.starts_with("uv =")) {
        return format!("uv pip install --python {} --reinstall", quote(root));
    }
    // The packages of a user, and those that Debian's Python looks for, have no program beside them.
    if packages.contains("dist-packages") || root.ends_with("/.local") {
        return "python3 -m pip install --force-reinstall".to_owned();
    }
    format!("{} -m pip install --force-reinstall", quote(&format!("{root}/bin/python")))
}

/// The libraries that libtorch needs and the loader does not find.
fn lost(host: &Host, libtorch: &Libtorch) -> Vec<String> {
    let is_of_cuda = |name: &String| {
        ["libcu", "libnv", "libnccl"].iter().any(|stem| name.starts_with(stem))
            && !OTHERS.iter().any(|other| name.starts_with(other))
    };
    let parts = PARTS.iter().filter_map(|part| host.binary(&format!("{}/lib/{part}", libtorch.root)).ok()?);
    let all: BTreeSet<String> = parts.flat_map(|part| part.needed).collect();
    // One that CUDA is linked into needs none of its libraries.
    let is_known = !all.is_empty() || !host.is_recorded();
    let needed: BTreeSet<String> = all.into_iter().filter(is_of_cuda).collect();
    let is_lost = |name: &&String| host.library(name).is_ok_and(|found| found.is_empty());
    if is_known {
        return needed.iter().filter(is_lost).cloned().collect();
    }
    // A recording written by hand has an answer of the loader, or what a program said about it.
    let is_about_us = |line: &str, text: &str| [line, text].iter().any(|words| words.contains("torch"));
    let said =
        host.recorded_commands().into_iter().filter(|(line, output)| is_about_us(line, &output.all_text()));
    let said = said.flat_map(|(_, output)| names_in(&output.all_text()));
    let asked = PACKAGES.iter().map(|(stem, _)| *stem).filter_map(|stem| {
        let number = match stem {
            "libcudnn" => 9,
            "libnccl" => 2,
            "libnvshmem_host" => 3,
            _ => 0,
        };
        let name = format!("{stem}.so.{number}");
        // Zip files have some of them in libtorch's folder, with a number of their own in the name, or inside libtorch.
        let is_within = |names: &Vec<String>| names.iter().any(|one| one.starts_with(stem));
        let is_whole = libtorch.libraries.as_ref().is_ok_and(is_within);
        let is_zip = !libtorch.root.contains("-packages/");
        (is_lost(&&name) && !is_whole && !(is_zip && stem == "libnccl")).then_some(name)
    });
    said.filter(is_of_cuda).chain(asked).collect::<BTreeSet<_>>().into_iter().collect()
}

/// `ImportError: libcusparseLt.so.0: cannot open shared object file`, and `libcusparseLt.so.0 => not found` of ldd.
fn names_in(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let before = line
            .split_once(": cannot open shared object file")
            .map(|(before, _)| before)
            .or_else(|| line.split_once(" => not found").map(|(before, _)| before))?;
        Some(before.split([' ', '\t', ':']).next_back()?.to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::names_in;

    #[test]
    fn the_loader_and_ldd_name_what_is_missing() {
        let text = "ImportError: libcusparseLt.so.0: cannot open shared object file: No such file or directory\n\
                    \tlibcudnn.so.9 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x7f)\n";
        assert_eq!(names_in(text), ["libcusparseLt.so.0", "libcudnn.so.9"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(: cannot open shared object file| => not found|lib|\\PC|\n){0,20}") {
            let _ = names_in(&text);
        }
    }
}
