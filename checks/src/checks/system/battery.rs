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
    let Some(names) = host.folder(SUPPLIES).ok().flatten() else { return Ok(Vec::new()) };
    let file = |name: &str, file: &str| {
        host.text(&format!("{SUPPLIES}/{name}/{file}")).ok().flatten().map(|text| text.trim().to_owned())
    };
    let batteries = || names.iter().filter(|name| name.starts_with("BAT"));
    let is_discharging = batteries().any(|name| file(name, "status").as_deref() == Some("Discharging"));
    // Chargers are of type Mains, or USB; one that is connected may be too weak, which the battery shows.
    if !is_discharging {
        return Ok(Vec::new());
    }
    let left = batteries().find_map(|name| file(name, "capacity"));
    let left = left.map_or(String::new(), |left| format!(" ({left} % left)"));
    Ok(vec![Finding::new("system.battery", format!("this laptop runs on its battery{left}"))])
}
