//! Whether a run, and the communication between its ranks, works on Windows: `yolo train` trains in
//! WSL, there is no NCCL, gloo is broken in some releases of libtorch, and none has libuv.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Version};
use crate::finding::Finding;
use crate::intent::Intent;

/// The releases of libtorch whose gloo does not work on Windows.
const BROKEN: ([u32; 2], [u32; 2]) = ([2, 8], [2, 11]);

pub(super) static CHECK: Check = Check {
    question: "Can this run work on Windows?",
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
        let title = "the run asks for NCCL, which is not available on Windows";
        findings.push(Finding::new("windows.backend", title).command("yolo setup --wsl"));
    }
    if intent.run {
        let title = "this run is planned on Windows, but `yolo train` trains inside WSL 2";
        findings.push(Finding::new("windows.trains-in-wsl", title).command("yolo setup --wsl"));
    }
    if let Some(version) = broken_gloo(host, intent) {
        let title = format!("gloo of libtorch {version} does not work on Windows");
        let finding = Finding::new("windows.gloo-broken", title);
        // LIBTORCH takes precedence over what setup installs.
        let is_named = host.named_libtorch().ok().flatten().is_some();
        let unset = is_named.then_some("unset LIBTORCH");
        findings.push(unset.into_iter().fold(finding, Finding::command).command("yolo setup"));
    }
    if host.env("USE_LIBUV").is_ok_and(|value| value.as_deref() == Some("1")) {
        let title = "USE_LIBUV=1 requests libuv, which libtorch for Windows does not have";
        findings.push(Finding::new("windows.libuv", title).command("export USE_LIBUV=0"));
    }
    Ok(findings)
}

/// The version of libtorch whose gloo breaks this run.
pub(in crate::checks) fn broken_gloo(host: &Host, intent: &Intent) -> Option<Version> {
    let several = intent.ranks_here() > 1 || intent.has_several_nodes();
    if !several || !host.is_windows().unwrap_or(false) {
        return None;
    }
    let version = host.libtorch().ok().flatten()?.version?;
    (!version.is_below(&BROKEN.0) && version.is_below(&BROKEN.1)).then_some(version)
}
