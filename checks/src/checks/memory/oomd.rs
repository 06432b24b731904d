//! Whether systemd-oomd has killed programs of this user since the start: it acts under memory pressure,
//! before the kernel would, and ends everything in the same terminal. The kernel's log does not show it.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

/// What the service writes for each kill: `… due to memory pressure for …`, or `… due to memory used … and
/// swap used …`.
const KILLED: &str = " due to memory ";
/// Groups that hold the programs of users.
const OF_USERS: &str = "/user.slice/";

pub(super) static CHECK: Check = Check {
    question: "Did systemd-oomd kill programs because of low memory?",
    reports: &["memory.oomd"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.is_container() {
        return Ok(Vec::new());
    }
    let said = match log(host) {
        Some(said) => said,
        None => return Ok(Vec::new()),
    };
    let mut kills: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("systemd-oomd") && line.contains(KILLED) && line.contains(OF_USERS))
        .map(str::trim)
        .collect();
    kills.dedup();
    let Some(last) = kills.last() else { return Ok(Vec::new()) };
    let what = last
        .split_once("Killed ")
        .and_then(|(_, rest)| rest.split_once(' '))
        .and_then(|(group, _)| group.rsplit('/').next())
        .unwrap_or("a group of programs");
    let title = format!("systemd-oomd killed {what} because of memory pressure, with all that ran in it");
    Ok(vec![Finding::new("memory.oomd", title).seen((*last).to_owned())])
}

/// The messages of the service, where it exists.
fn log(host: &Host) -> Option<String> {
    if host.is_recorded() {
        return Some(host.recorded_texts("journalctl").join("\n")).filter(|text| !text.is_empty());
    }
    if host.exists("/usr/lib/systemd/systemd-oomd") != Ok(true) {
        return None;
    }
    let command = ["journalctl", "-u", "systemd-oomd", "-b", "-q", "--no-pager", "-o", "short", "-n", "200"];
    Some(host.command(&command).ok()??.text())
}
