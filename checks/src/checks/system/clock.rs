//! Whether the clock is years off, as with an empty battery on the main board: every certificate is then not
//! valid yet or no longer, so nothing can be downloaded. The age of this program shows it without asking
//! another clock. WSL has its own check, which compares with the clock of Windows.

use std::time::{Duration, UNIX_EPOCH};

use crate::checks::{Answer, Check};
use crate::facts::{Family, Host, Unknown};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

/// Time zones and drifting clocks make hours, not days.
const HARMLESS: u64 = 2 * 24 * 60 * 60;

/// A difference that no time zone or drift explains, and after which certificates expire.
const FAR: u64 = 30 * 24 * 60 * 60;
const HARDWARE: &str = "/sys/class/rtc/rtc0/since_epoch";

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
        return Ok(ahead(host, now, made)?.into_iter().collect());
    }
    let title = format!("the clock says {}, but this program was installed on {}", day(now), day(made));
    Ok(vec![finding(host, title)?.seen(program)])
}

/// A clock that is far ahead of the hardware's: a virtual machine that was restored, or a date set by hand. A
/// hardware clock that is older than this program has an empty battery, and tells nothing.
fn ahead(host: &Host, now: u64, made: u64) -> Result<Option<Finding>, Unknown> {
    let file = host.text(HARDWARE).ok().flatten();
    let Some(hardware) = file.and_then(|text| text.trim().parse::<u64>().ok()) else { return Ok(None) };
    if hardware < made || now <= hardware.saturating_add(FAR) {
        return Ok(None);
    }
    let title = format!("the clock says {}, but the hardware clock says {}", day(now), day(hardware));
    Ok(Some(finding(host, title)?.because(
        "with a clock that is years ahead, every certificate has expired, so libtorch, weights and data sets cannot \
         be downloaded",
    )))
}

fn finding(host: &Host, title: String) -> Result<Finding, Unknown> {
    // What is downloaded already needs no certificates.
    let status = if host.places()?.libtorch.is_none() { Status::Error } else { Status::Warning };
    let finding = Finding::new("system.clock", title).status(status);
    if host.is_windows().unwrap_or(false) {
        return Ok(finding
            .remedy(
                "set the date first, in Settings (Time & language) or with the first command, because Windows does not follow a time \
                 server that differs by more than 15 hours; then let it follow one, in PowerShell as administrator",
            )
            .command("Set-Date '<year>-<month>-<day> <hour>:<minute>'")
            .command("Start-Service w32time")
            .command("w32tm /resync"));
    }
    Ok(match host.family() {
        // The one of busybox knows other options.
        Some(Family::Alpine) => finding.command("sudo ntpd -q -n -p pool.ntp.org"),
        Some(Family::Void) => finding.command("sudo ntpd -gq"),
        _ => finding.command("sudo timedatectl set-ntp true"),
    })
}

/// Such as `2026-03-22`, in UTC.
fn day(seconds: u64) -> String {
    // Beyond this, the formatter gives up.
    let time = UNIX_EPOCH + Duration::from_secs(seconds.min(250_000_000_000));
    humantime::format_rfc3339_seconds(time).to_string().chars().take(10).collect()
}
