//! Whether the loader finds the Windows driver's libraries in /usr/lib/wsl/lib. WSL adds that folder
//! to the loader's configuration when it starts, unless /etc/wsl.conf disables this; a distribution
//! with an unusual layout may ignore it.

use yolo_base::env::LD_LIBRARY_PATH;

use crate::change::Change;
use crate::checks::{Answer, Check};
use crate::facts::{Family, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;
use crate::wsl::LOADER_FILE;

pub(super) static CHECK: Check = Check {
    question: "Does the loader find the Windows driver's libraries?",
    reports: &["wsl.loader", "wsl.loader-missing", "wsl.libcuda-name"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_wsl2()? || host.is_container() || intent.cpu {
        return Ok(Vec::new());
    }
    let library = format!("{}/libcuda.so.1", super::LIBRARIES);
    let found = host.library("libcuda.so.1")?;
    if found.is_empty() {
        // Another check covers whether the libraries exist.
        let there = host.exists(&library)?;
        return Ok(if there { vec![missing(host)] } else { Vec::new() });
    }
    let mut findings = Vec::new();
    if found[0].path.starts_with("/usr/lib/wsl/") {
        let mut finding = Finding::ok("wsl.loader", format!("the loader finds {}", found[0].path));
        if host.link(&library) == Ok(None) {
            finding = finding.seen("it is a copy, not a link: ldconfig's warning about it is harmless");
        }
        findings.push(finding);
    }
    findings.extend(without_plain_name(host));
    Ok(findings)
}

fn missing(host: &Host) -> Finding {
    let title = format!("the loader does not find libcuda.so.1, which is in {}", super::LIBRARIES);
    let finding = Finding::new("wsl.loader-missing", title);
    if host.family() == Some(Family::NixOs) {
        return finding
            .because("NixOS has no cache of the loader, and takes the driver's libraries from /run/opengl-driver/lib")
            .remedy(
                "set `wsl.useWindowsDriver = true;` (an option of NixOS-WSL) in configuration.nix and apply it, which puts the \
                 libraries there; programs that are not built for NixOS, such as libtorch, find them by the variable",
            )
            .command("sudo nixos-rebuild switch")
            .command("export LD_LIBRARY_PATH=/run/opengl-driver/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
    }
    let write = format!("echo {} | sudo tee {LOADER_FILE}", super::LIBRARIES);
    let finding = match host.text(LOADER_FILE) {
        Ok(None) => finding.seen(format!("{LOADER_FILE} does not exist")).command(write),
        Ok(Some(text)) if !text.lines().any(|line| line.trim() == super::LIBRARIES) => {
            finding.seen(format!("{LOADER_FILE} does not list the folder")).command(write)
        }
        Ok(Some(_)) => finding
            .seen(format!("{LOADER_FILE} lists the folder, but the loader's cache is older"))
            .remedy("rebuild the loader's cache"),
        Err(_) => finding.command(write),
    };
    let finding = if host.wsl_conf_flag("automount", "ldconfig") == Some(false) {
        finding
            .because(
                "`ldconfig=false` under [automount] in /etc/wsl.conf prevents WSL from adding the \
                      driver's folder to the loader's search path",
            )
            .seen("/etc/wsl.conf: ldconfig=false")
    } else {
        finding
    };
    finding.command("sudo ldconfig").change(Change::LoaderFolder { folder: super::LIBRARIES.to_owned() })
}

/// cuDNN 8 opens `libcuda.so` without a version, which is not in the loader's cache in WSL.
fn without_plain_name(host: &Host) -> Option<Finding> {
    if !host.library("libcuda.so").ok()?.is_empty() {
        return None;
    }
    let libtorch = host.libtorch().ok().flatten();
    let names = libtorch.and_then(|libtorch| libtorch.libraries.ok()).unwrap_or_default();
    let has = |name: &str| names.iter().any(|file| file.contains(name));
    let is_old = has("cudnn") && has(".so.8")
        || ["libcudnn.so.8", "libcudnn_cnn_infer.so.8"]
            .iter()
            .any(|name| host.library(name).is_ok_and(|found| !found.is_empty()));
    if has("libcudnn.so.9") && !is_old {
        return None;
    }
    let title = "the loader finds libcuda.so.1, but not libcuda.so, which cuDNN 8 opens";
    let status = if is_old { Status::Error } else { Status::Info };
    let finding = Finding::new("wsl.libcuda-name", title).status(status);
    let value = format!("{}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}", super::LIBRARIES);
    Some(
        finding
            .command(format!("export LD_LIBRARY_PATH={value}"))
            .change(Change::Variable { name: LD_LIBRARY_PATH.to_owned(), value: Some(value) }),
    )
}
