//! Whether the machine went off without shutting down before this start. Under the load of a GPU that is usually its
//! power supply: no log has a reason, so that the missing end is the only sign. The table of logins has one line for
//! each start and each orderly end; the kernel repairs file systems that were not unmounted.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::view::data_set::join;
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::power_limit::sparing;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Did the machine shut down in order before this start?",
    reports: &["system.unclean-restart"],
    preflight: false,
    run,
};

/// What the kernel and the journal write at a start after such an end.
const SIGNS: [&str; 5] = [
    ": recovery complete",
    "): Starting recovery",
    "start tree-log replay",
    "corrupted or uncleanly shut down",
    "Previous system reset reason",
];
/// Reasons that AMD's chips keep, and that are no orderly restart.
const REASONS: [&str; 6] =
    ["thermal", "power button was pressed for 4", "shutdown pin", "watchdog", "uncorrected error", "parity"];
/// The command for the table of logins, of which the newest lines are enough.
const LAST: [&str; 7] = ["last", "-x", "-F", "-n", "20", "reboot", "shutdown"];
/// A start that is longer ago says little about the next run, in seconds.
const RECENT: u64 = 14 * 86_400;
/// How long before the start the last checkpoint of an interrupted run may be, in seconds.
const OF_A_RUN: u64 = 86_400;
/// The error of the NVIDIA driver for a card that is gone.
const FALLEN_OFF: u32 = 79;
/// At most so many runs are looked at, those with the highest numbers first.
const MOST_RUNS: usize = 20;

fn run(host: &Host, intent: &Intent) -> Answer {
    // A virtual machine, a container or a job is ended by what surrounds it.
    let is_machine = host.place() == Place::Machine && host.job().is_none() && !host.is_virtual_machine();
    if host.os()? != "linux" || !is_machine {
        return Ok(Vec::new());
    }
    // First, because the folder of the runs may be on a slow file server.
    if !is_recent(host) {
        return Ok(Vec::new());
    }
    let mut signs = host.kernel_lines(&SIGNS);
    signs.retain(|line| {
        !line.contains("Previous system reset") || REASONS.iter().any(|one| line.contains(one))
    });
    let interrupted = host.boot_time().ok().and_then(|started| interrupted_run(host, started));
    // A live machine that repaired nothing, and on which no run wrote a checkpoint in the day before this start, is not
    // asked further.
    if !host.is_recorded() && signs.is_empty() && interrupted.is_none() && intent.resume.is_none() {
        return Ok(Vec::new());
    }
    // A card that fell off the bus has another finding, with the same remedies.
    if !intent.cpu && host.xids_of_boot_before().iter().any(|xid| xid.number == FALLEN_OFF) {
        return Ok(Vec::new());
    }
    let ends = table(host).map(|(text, is_full)| unclean(&text, is_full)).unwrap_or_default();
    let cut = cut_journal(host);
    let reason = signs.iter().find(|line| line.contains("Previous system reset"));
    // File systems are also repaired after a disk was pulled out, so that such a line alone proves nothing.
    if !ends.is_last && cut.is_none() && reason.is_none() {
        return Ok(Vec::new());
    }
    let times = match ends.all.len() {
        0 | 1 => String::new(),
        times => format!("; this happened {} recently", format::count(times, "time")),
    };
    let title = format!("the machine went off without shutting down before this start{times}");
    let is_serious = ends.all.len() > 1 || interrupted.is_some() || intent.resume.is_some();
    let mut finding = Finding::new("system.unclean-restart", title);
    if !is_serious {
        finding = finding.status(Status::Info);
    }
    let seen = ends.all.into_iter().take(3).chain(cut).chain(signs.iter().take(2).cloned());
    finding = seen.fold(finding, Finding::seen);
    if let Some(checkpoint) = &interrupted {
        finding = finding.seen(format!("{checkpoint} was written shortly before"));
    }
    if reason.is_some_and(|line| line.contains("thermal")) {
        return Ok(vec![finding.because("the CPU became too hot and switched the machine off").remedy(
            "clean the cooler and the fans, check that the pump or the fan of the CPU turns, and renew its thermal paste; \
             then continue the run with `yolo train --resume`",
        )]);
    }
    if host.is_laptop() {
        return Ok(vec![finding.because(
            "a machine that switches off under load has no time to write why: heat, a battery that is worn or empty, or a charger \
             that delivers too little",
        ).remedy(
            "look for heat, a worn battery or a weak charger: clean the fans, use the charger that came with the laptop, \
             and limit the clock of the GPU (`sudo nvidia-smi -lgc 0,1500`); then continue the run with `yolo train --resume`",
        )]);
    }
    finding = sparing_commands(host).into_iter().fold(finding, Finding::command);
    Ok(vec![finding])
}

/// The commands that lower the power limit of all cards.
pub(in crate::checks) fn sparing_commands(host: &Host) -> Vec<String> {
    let cards = host.gpus().unwrap_or_default();
    let limits: Vec<(usize, u64)> = cards
        .iter()
        .filter_map(|gpu| {
            Some((gpu.index, sparing(gpu.number("power_limit_default").ok()? as f64 / 1000.0) as u64))
        })
        .filter(|(_, watts)| *watts > 0)
        .collect();
    match limits.first() {
        Some((_, watts)) if limits.len() == cards.len() && limits.iter().all(|(_, other)| other == watts) => {
            vec![format!("sudo nvidia-smi -pl {watts}")]
        }
        _ => limits.iter().map(|(index, watts)| format!("sudo nvidia-smi -i {index} -pl {watts}")).collect(),
    }
}

/// Whether this start is recent enough to say something about the next run. One whose time is unknown counts.
pub(in crate::checks) fn is_recent(host: &Host) -> bool {
    let age = host.boot_time().ok().and_then(|started| host.time().ok()?.checked_sub(started));
    age.is_none_or(|age| age <= RECENT)
}

/// Whether this start has a sign that the boot before did not end in order: a repaired file system, or a run that was
/// interrupted and is to be resumed.
pub(in crate::checks) fn is_suspected(host: &Host, intent: &Intent) -> bool {
    let is_interrupted = || host.boot_time().is_ok_and(|started| interrupted_run(host, started).is_some());
    intent.resume.is_some() || !host.kernel_lines(&SIGNS).is_empty() || is_interrupted()
}

/// The table of logins, and whether it has the orderly ends too, which `last` shows with `-x`.
fn table(host: &Host) -> Option<(String, bool)> {
    if !host.is_recorded() {
        return Some((host.command(&LAST).ok()??.text(), true));
    }
    let outputs: Vec<_> =
        ["last", "wtmpdb"].iter().flat_map(|program| host.recorded_outputs(program)).collect();
    let is_full = |line: &str| line.contains(" -x") || line.contains("shutdown");
    // The one with more kinds of lines says more.
    let (line, output) = outputs.iter().max_by_key(|(line, _)| is_full(line))?;
    Some((output.text(), is_full(line)))
}

/// Ends without a shutdown.
#[derive(Debug, Default, PartialEq, Eq)]
struct Ends {
    /// The line of the start that followed each, newest first.
    all: Vec<String>,
    /// Whether the end before the present start is one.
    is_last: bool,
}

/// Reads the table, which begins with the newest line. Two starts without a shutdown between them, and logins that
/// ended in a crash, show such an end.
fn unclean(table: &str, is_full: bool) -> Ends {
    let mut ends = Ends::default();
    let mut starts = 0;
    let mut newer: Option<&str> = None;
    let mut is_clean = false;
    for line in table.lines() {
        let is_start = line.starts_with("reboot") || line.contains(" system boot ");
        let is_end = line.starts_with("shutdown") || line.contains("system down");
        if is_end {
            is_clean = true;
        }
        let is_crash = line.contains("- crash") || is_full && is_start && !is_clean;
        if let Some(start) = newer.filter(|_| is_crash && !is_clean) {
            ends.is_last |= starts == 1;
            ends.all.push(start.split_whitespace().collect::<Vec<_>>().join(" "));
            newer = None;
        }
        if is_start {
            starts += 1;
            newer = Some(line);
            is_clean = false;
        }
    }
    ends
}

/// The last line of the journal of the boot before, if that does not end as a shutdown does. Only a whole journal
/// is evidence: one that was filtered lacks these lines anyway.
fn cut_journal(host: &Host) -> Option<String> {
    const FILTERS: [&str; 9] = ["-k", "--dmesg", "-u", "-p", "-g", "--grep", "-t", "grep", "--until"];
    const ORDERLY: [&str; 10] = [
        "systemd-shutdown",
        "Journal stopped",
        "Shutting down",
        "Powering off",
        "Rebooting",
        "System Power Off",
        "System Reboot",
        "Final Step",
        "system is going down",
        "System is powering down",
    ];
    let of_boot_before = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_before = line.contains("-b -1") || line.contains("-b-1") || line.contains("--boot=-1");
        let is_end =
            words.iter().any(|word| word.starts_with("-n") || word.starts_with("-e") || *word == "tail");
        is_before && is_end && !words.iter().any(|word| FILTERS.contains(word))
    };
    let outputs = host.recorded_outputs("journalctl");
    let (_, output) = outputs.iter().find(|(line, _)| of_boot_before(line))?;
    let text = output.text();
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.iter().rfind(|line| !line.starts_with("-- "))?;
    let is_orderly = lines.iter().rev().take(40).any(|line| ORDERLY.iter().any(|word| line.contains(word)));
    (!is_orderly && lines.len() > 2).then(|| format!("the journal ends with: {}", last.trim()))
}

/// The checkpoint of a run that wrote it shortly before the machine started again.
fn interrupted_run(host: &Host, started: u64) -> Option<String> {
    let runs = join(&host.places().ok()?.working?, "runs/train");
    let mut names = host.folder(&runs).ok()??;
    // exp9 was written before exp10.
    names.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    let names = names.iter().rev().take(MOST_RUNS);
    let files = names.map(|name| join(&runs, &format!("{name}/weights/last.pt")));
    let is_before = |file: &String| {
        let changed = host.stat(file).ok().flatten().and_then(|stat| stat.modified);
        changed.is_some_and(|changed| changed < started && started - changed < OF_A_RUN)
    };
    // A run that was complete has its best weights at the same time, and is not told from one that was not; the sign
    // is only one of several.
    files.into_iter().find(is_before)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CRASHES: &str = "\
reboot   system boot  6.8.0-45-generic Mon Nov 24 08:00:12 2026   still running
mara     pts/0        10.0.0.2         Sun Nov 23 20:00:00 2026 - crash                     (12:00)
reboot   system boot  6.8.0-45-generic Sun Nov 23 19:58:12 2026   still running
shutdown system down  6.8.0-45-generic Sat Nov 22 23:10:00 2026 - Sun Nov 23 19:58:12 2026  (20:48)
reboot   system boot  6.8.0-45-generic Sat Nov 22 09:00:12 2026 - Sat Nov 22 23:10:00 2026  (14:09)
reboot   system boot  6.8.0-45-generic Fri Nov 21 09:00:12 2026 - Sat Nov 22 23:10:00 2026  (38:09)
";

    #[test]
    fn a_start_without_a_shutdown_before_it_is_found() {
        let ends = unclean(CRASHES, true);
        assert!(ends.is_last);
        assert_eq!(ends.all.len(), 2, "{ends:?}");
        assert!(ends.all[0].contains("Mon Nov 24") && ends.all[1].contains("Sat Nov 22 09:00"), "{ends:?}");
    }

    #[test]
    fn without_the_shutdowns_only_crashes_count() {
        let without: String = CRASHES
            .lines()
            .filter(|line| !line.starts_with("shutdown"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert_eq!(unclean(&without, false).all.len(), 1);
        let orderly = without.replace("- crash", "- down ");
        assert_eq!(unclean(&orderly, false), Ends::default());
    }

    proptest! {
        #[test]
        fn any_table_is_read(text in "(reboot |shutdown |system boot|- crash|still running|\n|\\PC){0,40}", full: bool) {
            let _ = unclean(&text, full);
        }
    }
}
