//! Whether the machine is going to restart by itself: a shutdown is scheduled, or updates that wait for a restart may
//! make one in the night. A long run ends with it.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Is a restart of the machine planned?",
    reports: &["system.restart-planned"],
    preflight: false,
    run,
};

/// What systemd keeps about a shutdown that was scheduled.
const SCHEDULED: &str = "/run/systemd/shutdown/scheduled";
/// What Debian and Ubuntu leave when an update needs a restart.
const REQUIRED: [&str; 2] = ["/var/run/reboot-required", "/run/reboot-required"];
const APT: &str = "/etc/apt/apt.conf.d";

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.place() != Place::Machine || host.job().is_some() {
        return Ok(Vec::new());
    }
    if let Some(text) = host.text(SCHEDULED).ok().flatten() {
        let mode = text.lines().find_map(|line| line.strip_prefix("MODE=")).unwrap_or("shutdown").trim();
        let title = format!("a shutdown of this machine is scheduled ({mode})");
        return Ok(vec![
            Finding::new("system.restart-planned", title)
                .seen(SCHEDULED)
                .remedy(
                    "wait until it is over, or cancel it if it is yours; `shutdown --show` says when it is",
                )
                .command("sudo shutdown -c"),
        ]);
    }
    let Some(required) = REQUIRED.iter().find(|file| host.exists(file) == Ok(true)) else {
        return Ok(Vec::new());
    };
    let Some(file) = restarts_by_itself(host) else { return Ok(Vec::new()) };
    let title = "updates wait for a restart, which this machine makes by itself";
    Ok(vec![
        Finding::new("system.restart-planned", title)
            .seen(*required)
            .seen(format!("{file}: Automatic-Reboot")),
    ])
}

/// The file that lets unattended upgrades restart the machine; the last setting counts.
fn restarts_by_itself(host: &Host) -> Option<String> {
    let mut names =
        host.folder(APT).ok().flatten().unwrap_or_else(|| vec!["50unattended-upgrades".to_owned()]);
    names.retain(|name| name.contains("unattended") || name.contains("upgrade"));
    let mut on = None;
    for file in names.iter().map(|name| format!("{APT}/{name}")) {
        let text = host.text(&file).ok().flatten().unwrap_or_default();
        for line in text.lines().map(str::trim) {
            if let Some(value) = line.strip_prefix("Unattended-Upgrade::Automatic-Reboot ") {
                on = value.contains("\"true\"").then(|| file.clone());
            }
        }
    }
    on
}
