//! Whether a card was lost when the machine went to sleep or woke up. Its power supply, seat and cooling are not to blame
//! then: what helps is a machine that stays awake.

use crate::facts::{Family, Host, LogTime, pci_addresses};
use crate::finding::Finding;
use crate::remedies::generation::{Generation, newest};
use crate::remedies::keep_awake;
use crate::remedies::restart::restart;

/// What the kernel logs when the machine goes to sleep and when it wakes up.
const SLEEP: [&str; 5] = [
    "PM: suspend entry",
    "PM: suspend exit",
    "PM: hibernation: hibernation entry",
    "PM: hibernation: hibernation exit",
    "PM: Finishing wakeup",
];
/// Programs that tell the driver about it.
const OF_SLEEP: [&str; 2] = ["name=systemd-sleep", "name=nvidia-sleep"];
/// Errors of a card that does not work any more.
const LOSS: [&str; 7] = [
    "): 62,",
    "): 79,",
    "): 119,",
    "): 120,",
    "): 154,",
    "GPU has fallen off the bus",
    "fallen off the bus and is not responding",
];
/// How long after such a line, in seconds, an error comes from it.
const SOON: f64 = 30.0;
/// The same in lines, if they do not tell their times.
const LINES: usize = 40;

/// The lines of the kernel log that say so: of the sleep, and of the first error of this card, or of any.
pub(super) fn lines(host: &Host, card: Option<&str>) -> Option<Vec<String>> {
    if host.is_virtual_machine() || !host.is_own_machine() {
        return None;
    }
    find(&host.kernel_log().ok()?, card)
}

fn find(log: &str, card: Option<&str>) -> Option<Vec<String>> {
    let mut last = None;
    for (place, line) in log.lines().enumerate() {
        if SLEEP.iter().any(|words| line.contains(words)) {
            last = Some((place, line));
        }
        let is_loss = line.contains("NVRM") && LOSS.iter().any(|words| line.contains(words));
        let is_own = || {
            let mut addresses = pci_addresses(line).peekable();
            addresses.peek().is_none() || card.is_none_or(|card| addresses.any(|found| found == card))
        };
        if !is_loss || !is_own() {
            continue;
        }
        if OF_SLEEP.iter().any(|words| line.contains(words)) {
            return Some(vec![line.trim().to_owned()]);
        }
        // An error that came before the sleep has another cause.
        let (before, sleep) = last?;
        let is_soon = match (LogTime::of(sleep), LogTime::of(line)) {
            (Some(from), Some(to)) => from.until(to).is_some_and(|seconds| seconds <= SOON),
            _ => place - before <= LINES,
        };
        return is_soon.then(|| [sleep, line].map(|line| line.trim().to_owned()).to_vec());
    }
    None
}

/// The finding about such a card, with a remedy.
pub(super) fn explained(host: &Host, finding: Finding, lines: Vec<String>) -> Finding {
    let lines: Vec<String> = lines.into_iter().filter(|line| !finding.evidence.contains(line)).collect();
    let finding = lines.into_iter().fold(finding, Finding::seen).because(
        "the card did not come back from the machine's sleep: it was lost when the machine went to sleep or woke up, so that power \
         supply, seat and cooling are not to blame; programs that used it have failed or hang",
    );
    let sleep = host.text("/sys/power/mem_sleep").ok().flatten().unwrap_or_default();
    let params = host.text("/proc/driver/nvidia/params").ok().flatten().unwrap_or_default();
    let is_modern = newest(host).is_some_and(|generation| generation >= Generation::TuringToHopper);
    let is_asleep_lightly = sleep.trim() == "[s2idle]"
        && params.lines().any(|line| line.trim() == "EnableS0ixPowerManagement: 0")
        && is_modern;
    let so_that_it_may_sleep = match host.family() {
        Some(Family::NixOs) => {
            "; if the machine has to sleep, `hardware.nvidia.powerManagement.enable = true;` in configuration.nix saves the cards' state"
        }
        _ if is_asleep_lightly => {
            "; if this laptop has to sleep, let the driver take part in its light sleep (s2idle): `options nvidia \
             NVreg_EnableS0ixPowerManagement=1` in a file of /etc/modprobe.d"
        }
        _ => "",
    };
    let awake = match host.family() {
        Some(Family::NixOs) => {
            " (`systemd.targets.sleep.enable = false;` in configuration.nix, and the same for suspend, hibernate and hybrid-sleep)"
        }
        _ if !host.has_systemd() => "",
        _ if host.is_laptop() => {
            " (`systemd-inhibit --what=sleep:idle:handle-lid-switch yolo train …` does so for one run)"
        }
        _ => " (`sudo systemctl unmask …` of the same targets lets it sleep again)",
    };
    let remedy = format!(
        "restart the machine, and switch it off for a minute if the card is still missing; keep it awake while a run goes on{awake}, \
         and update the driver and the firmware (BIOS){so_that_it_may_sleep}"
    );
    let finding = finding.remedy(remedy);
    match host.family() {
        _ if !host.has_systemd() => restart(host, finding),
        Some(Family::NixOs) => restart(host, finding.command("sudo nixos-rebuild boot")),
        // Closed in a bag, a laptop that never sleeps gets hot.
        _ if host.is_laptop() => restart(host, finding),
        // For good, or it would end with the restart.
        _ => restart(host, finding.command(keep_awake::FOR_GOOD)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::find;

    const LOST: &str = "NVRM: Xid (PCI:0000:01:00): 79, pid=1, GPU has fallen off the bus.";

    #[test]
    fn an_error_soon_after_the_sleep_comes_from_it() {
        for (log, expected) in [
            (format!("[ 9.0] PM: suspend entry (deep)\n[ 9.5] PM: suspend exit\n[ 12.0] {LOST}"), true),
            (format!("[ 9.5] PM: suspend exit\n[ 312.0] {LOST}"), false),
            // The card was lost before, and keeps the machine from sleeping.
            (format!("[ 9.0] {LOST}\n[ 9.5] PM: suspend entry (deep)\n[ 9.9] {LOST}"), false),
            (format!("PM: suspend exit\n{LOST}"), true),
            (format!("PM: suspend exit\n{}{LOST}", "usb 1-1: x\n".repeat(50)), false),
            ("[ 9.0] NVRM: Xid (PCI:0000:01:00): 119, pid=77, name=systemd-sleep, Timeout".to_owned(), true),
            (LOST.to_owned(), false),
        ] {
            assert_eq!(find(&log, Some("0000:01:00")).is_some(), expected, "{log}");
        }
        let log = format!("[ 9.5] PM: suspend exit\n[ 12.0] {LOST}");
        assert_eq!(find(&log, Some("0000:41:00")), None);
        assert_eq!(find(&log, None).map(|lines| lines.len()), Some(2));
    }

    proptest! {
        #[test]
        fn any_log_is_read(log in "(PM: suspend exit|NVRM|: Xid \\(PCI:|0000:01:00|\\): 79,|\\[ 9.5\\]|\\PC|\n){0,40}") {
            let _ = find(&log, Some("0000:01:00"));
        }
    }
}
