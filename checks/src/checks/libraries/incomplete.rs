//! Whether libtorch's folder contains everything that the trainer loads and nothing that breaks it:
//! all libraries, the OpenMP runtime, no parts of another C library, and no debug build on Windows.

use super::cuda_parts;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Libtorch, Variant};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;

pub(super) static CHECK: Check = Check {
    question: "Is libtorch complete?",
    reports: &[
        "libraries.libtorch-incomplete",
        "libraries.libgomp-missing",
        "libraries.bundled-glibc",
        "libraries.debug-build",
    ],
    preflight: true,
    run,
};

/// What the trainer links, or opens if a GPU is used.
const LINUX: [&str; 2] = ["libc10.so", "libtorch_cpu.so"];
const LINUX_CUDA: [&str; 2] = ["libc10_cuda.so", "libtorch_cuda.so"];
const WINDOWS: [&str; 2] = ["c10.dll", "torch_cpu.dll"];
const WINDOWS_CUDA: [&str; 2] = ["c10_cuda.dll", "torch_cuda.dll"];
/// Parts of glibc, which must come from the running system.
const OF_GLIBC: [&str; 5] = ["libc.so.", "librt.so.", "libpthread.so.", "libm.so.", "libdl.so."];

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(libtorch) = host.libtorch()? else { return Ok(Vec::new()) };
    let windows = host.os()? == "windows";
    let of_cuda = || cuda_parts::missing(host, &libtorch, intent).filter(|_| !windows);
    let names = match &libtorch.libraries {
        Ok(names) => names,
        Err(why) => return of_cuda().map(|finding| vec![finding]).ok_or_else(|| why.clone()),
    };
    let mut findings: Vec<Finding> = incomplete(host, &libtorch, names, windows).into_iter().collect();
    if windows {
        findings.extend(debug(&libtorch, names));
        return Ok(findings);
    }
    if findings.is_empty() {
        findings.extend(of_cuda());
    }
    findings.extend(without_openmp(host, names));
    findings.extend(with_glibc(&libtorch, names));
    Ok(findings)
}

fn incomplete(host: &Host, libtorch: &Libtorch, names: &[String], windows: bool) -> Option<Finding> {
    let (all, cuda) = if windows { (WINDOWS, WINDOWS_CUDA) } else { (LINUX, LINUX_CUDA) };
    let cuda = if libtorch.variant == Variant::Cpu { &[][..] } else { &cuda };
    let is_missing = |name: &&&str| names.iter().all(|there| there != **name);
    let missing: Vec<&str> = all.iter().chain(cuda).filter(is_missing).copied().collect();
    if missing.is_empty() {
        return None;
    }
    let title = format!("{}/lib has no {}", libtorch.root, missing.join(" or "));
    let finding = Finding::new("libraries.libtorch-incomplete", title);
    // LIBTORCH takes precedence over what setup installs, and setup must not change it.
    let named = host.named_libtorch().ok().flatten().is_some();
    let unset = "unset LIBTORCH";
    Some(named.then_some(unset).into_iter().fold(finding, Finding::command).command("yolo setup"))
}

/// PyTorch ships the OpenMP runtime under its own name or relies on the system's.
fn without_openmp(host: &Host, names: &[String]) -> Option<Finding> {
    let brought = names.iter().any(|name| name.starts_with("libgomp") || name.starts_with("libiomp5"));
    if brought || !host.library("libgomp.so.1").ok()?.is_empty() {
        return None;
    }
    let title = "libgomp.so.1, which libtorch needs, is neither installed nor next to libtorch";
    let package = host.package_command([
        "sudo apt install libgomp1",
        "sudo dnf install libgomp",
        "sudo zypper install libgomp1",
        "sudo pacman -S gcc-libs",
    ]);
    Some(package.into_iter().fold(Finding::new("libraries.libgomp-missing", title), Finding::command))
}

fn with_glibc(libtorch: &Libtorch, names: &[String]) -> Option<Finding> {
    let is_part = |name: &&String| OF_GLIBC.iter().any(|part| name.starts_with(part));
    let parts: Vec<&str> = names.iter().filter(is_part).map(String::as_str).collect();
    if parts.is_empty() {
        return None;
    }
    let title =
        format!("{}/lib contains parts of another system's C library: {}", libtorch.root, parts.join(", "));
    let finding = Finding::new("libraries.bundled-glibc", title);
    let lib = &libtorch.root;
    Some(parts.iter().fold(finding, |finding, part| {
        let file = format!("{lib}/lib/{part}");
        finding.command(format!("mv {} {}", quote(&file), quote(&format!("{file}.off"))))
    }))
}

/// PyTorch's zip files of debug builds have `debug` in their names, and include debug symbols.
fn debug(libtorch: &Libtorch, names: &[String]) -> Option<Finding> {
    let root = libtorch.root.to_ascii_lowercase();
    let named = root.split(['\\', '/', '-', '_']).any(|word| word == "debug");
    let symbols = names.iter().any(|name| name == "torch_cpu.pdb");
    if !named && !symbols {
        return None;
    }
    let title = format!("libtorch in {} is a debug build", libtorch.root);
    Some(Finding::new("libraries.debug-build", title).command("unset LIBTORCH").command("yolo setup"))
}
