//! Where a run that is planned on Windows trains: in WSL 2, always. So it lacks nothing that libtorch for Windows
//! lacks, which is NCCL, libuv, and in some releases a gloo that works; other programs of Windows do. None of this
//! stops or slows a run of `yolo`, so none of it is a warning.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Version};
use crate::finding::Finding;
use crate::intent::Intent;

/// The releases of libtorch whose gloo does not work on Windows.
const BROKEN: ([u32; 2], [u32; 2]) = ([2, 8], [2, 11]);

pub(super) static CHECK: Check = Check {
    question: "Where does a run that is planned on Windows train?",
    reports: &["windows.trains-in-wsl", "windows.backend", "windows.gloo-broken", "windows.libuv"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if !host.is_windows()? {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    if intent.backend.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("nccl")) {
        let title = "the run asks for NCCL, which programs of Windows lack: `yolo train` trains inside WSL 2, where \
                     NCCL works";
        findings.push(Finding::new("windows.backend", title).command("yolo setup --wsl"));
    } else if intent.run {
        let title = "this run is planned on Windows, but `yolo train` trains inside WSL 2";
        findings.push(Finding::new("windows.trains-in-wsl", title).command("yolo setup --wsl"));
    }
    if let Some(version) = broken_gloo(host, intent) {
        let title = format!(
            "gloo of libtorch {version} does not work on Windows; `yolo train` trains inside WSL 2, with a libtorch \
             of its own"
        );
        findings.push(Finding::new("windows.gloo-broken", title).command("yolo setup --wsl"));
    }
    if host.env("USE_LIBUV").is_ok_and(|value| value.as_deref() == Some("1")) {
        let title = "USE_LIBUV=1 stops PyTorch programs of Windows, but no run of yolo";
        findings.push(Finding::new("windows.libuv", title).command("export USE_LIBUV=0"));
    }
    Ok(findings)
}

/// The version of this Windows libtorch, if its gloo would break such a run in a program of Windows.
pub(in crate::checks) fn broken_gloo(host: &Host, intent: &Intent) -> Option<Version> {
    let several = intent.ranks_here() > 1 || intent.has_several_nodes();
    if !several || !host.is_windows().unwrap_or(false) {
        return None;
    }
    let version = host.libtorch().ok().flatten()?.version?;
    (!version.is_below(&BROKEN.0) && version.is_below(&BROKEN.1)).then_some(version)
}
