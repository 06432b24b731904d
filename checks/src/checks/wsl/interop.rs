//! Whether Linux and Windows programs are kept apart: without interop the doctor cannot ask Windows,
//! and Windows folders early in PATH hide Linux programs.

use yolo_base::env::PATH;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Are Windows and Linux programs kept apart?",
    reports: &["wsl.interop-off", "wsl.windows-path"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let forbidden = host.wsl_conf_flag("interop", "enabled") == Some(false);
    let interop = host.interop();
    if let (false, Err(why)) = (forbidden, &interop) {
        findings.push(Finding::skipped("wsl.interop-off", why));
    } else if forbidden || interop == Ok(false) {
        let finding =
            Finding::new("wsl.interop-off", "Windows programs cannot be started from WSL (interop is off)");
        let unknown: Vec<&str> = [
            ("the PC's memory", host.windows_memory().is_ok()),
            ("the versions of WSL and Windows", host.windows_build().is_ok()),
            ("the values of .wslconfig", host.wslconfig().is_ok()),
        ]
        .iter()
        .filter(|(_, known)| !known)
        .map(|(what, _)| *what)
        .collect();
        let finding = if unknown.is_empty() {
            finding
        } else {
            finding.seen(format!("therefore unknown: {}", unknown.join(", ")))
        };
        findings.push(if forbidden {
            finding.seen("/etc/wsl.conf: [interop] enabled=false")
        } else {
            finding
        });
    }
    let drives = host.windows_drive();
    let drives = drives.rsplit_once('/').map_or("/mnt", |(root, _)| root);
    let is_windows = |folder: &&str| {
        folder
            .strip_prefix(drives)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|rest| rest.split('/').next().is_some_and(|drive| drive.len() == 1))
    };
    let path = host.env(PATH)?.unwrap_or_default();
    let folders: Vec<&str> = path.split(':').collect();
    let early = folders.iter().copied().take_while(|folder| *folder != "/usr/bin").find(is_windows);
    let toolkit = folders.iter().copied().filter(is_windows).find(|folder| folder.contains("CUDA/v"));
    if let Some(folder) = early.filter(|_| folders.contains(&"/usr/bin")) {
        let title = format!("Windows programs come before Linux programs on PATH: {folder}");
        findings.push(Finding::new("wsl.windows-path", title));
    } else if let Some(folder) = toolkit {
        let title = format!("PATH includes the Windows CUDA toolkit, which Linux cannot use: {folder}");
        findings.push(Finding::new("wsl.windows-path", title));
    }
    Ok(findings)
}
