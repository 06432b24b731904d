//! Whether a laptop runs on its battery: it then gives a GPU a fraction of its power, and a run may not end before the
//! battery does.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does this laptop run on its battery?",
    reports: &["system.battery"],
    preflight: true,
    run,
};

const SUPPLIES: &str = "/sys/class/power_supply";

fn run(host: &Host, intent: &Intent) -> Answer {
    if !intent.run || host.os()? != "linux" {
        return Ok(Vec::new());
    }
    if !is_discharging(host) {
        return Ok(Vec::new());
    }
    let left = batteries(host).iter().find_map(|name| file(host, name, "capacity"));
    let left = left.map_or(String::new(), |left| format!(" ({left} % left)"));
    Ok(vec![Finding::new("system.battery", format!("this laptop runs on its battery{left}"))])
}

/// Whether a battery gives power. Chargers are of type Mains, or USB; one that is connected may be too weak, which the battery
/// shows.
pub(super) fn is_discharging(host: &Host) -> bool {
    batteries(host).iter().any(|name| file(host, name, "status").as_deref() == Some("Discharging"))
}

fn batteries(host: &Host) -> Vec<String> {
    let mut names = host.folder(SUPPLIES).ok().flatten().unwrap_or_default();
    names.retain(|name| name.starts_with("BAT"));
    names
}

fn file(host: &Host, name: &str, file: &str) -> Option<String> {
    Some(host.text(&format!("{SUPPLIES}/{name}/{file}")).ok()??.trim().to_owned())
}
