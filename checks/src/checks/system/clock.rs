//! Whether the clock is years off, as with an empty battery on the main board: every certificate is then not
//! valid yet or no longer, so nothing can be downloaded. The age of this program shows it without asking
//! another clock. WSL has its own check, which compares with the clock of Windows.

use std::time::{Duration, UNIX_EPOCH};

use crate::checks::{Answer, Check};
use crate::facts::{Family, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// Time zones and drifting clocks make hours, not days.
const HARMLESS: u64 = 2 * 24 * 60 * 60;

pub(super) static CHECK: Check = Check {
    question: "Is the clock right, as far as this program can tell?",
    reports: &["system.clock"],
    preflight: true,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if host.is_wsl2().unwrap_or(false) {
        return Ok(Vec::new());
    }
    let now = host.time()?;
    let Some(program) = host.places()?.program else { return Ok(Vec::new()) };
    let Some(made) = host.stat(&program).ok().flatten().and_then(|stat| stat.modified) else {
        return Ok(Vec::new());
    };
    if made <= now.saturating_add(HARMLESS) {
        return Ok(Vec::new());
    }
    let title = format!("the clock says {}, but this program was installed on {}", day(now), day(made));
    // What is downloaded already needs no certificates.
    let status = if host.places()?.libtorch.is_none() { Status::Error } else { Status::Warning };
    let finding = Finding::new("system.clock", title).status(status).seen(program);
    Ok(vec![match host.family() {
        Some(Family::Alpine | Family::Void) => finding.command("sudo ntpd -gq"),
        _ if host.is_windows().unwrap_or(false) => finding.command("w32tm /resync"),
        _ => finding.command("sudo timedatectl set-ntp true"),
    }])
}

/// Such as `2026-03-22`, in UTC.
fn day(seconds: u64) -> String {
    // Beyond this, the formatter gives up.
    let time = UNIX_EPOCH + Duration::from_secs(seconds.min(250_000_000_000));
    humantime::format_rfc3339_seconds(time).to_string().chars().take(10).collect()
}
