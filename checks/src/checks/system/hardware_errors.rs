//! Whether the CPU or the memory has reported errors: since the start, or what ended the boot before and is logged at
//! the next one. Such a machine computes wrong numbers, kills programs or restarts in the middle of a run. Errors that
//! were corrected count only if there are many.

use std::collections::BTreeMap;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::facts::view::log_time::LogTime;
use crate::finding::Finding;
use crate::intent::Intent;
use yolo_base::format;

pub(super) static CHECK: Check = Check {
    question: "Did the CPU or the memory report errors?",
    reports: &["system.hardware-errors"],
    preflight: false,
    run,
};

/// The kernel's words for errors that nothing corrected.
const WORDS: [&str; 11] = [
    "Machine Check: ",
    "Machine Check Exception: ",
    "Uncorrected hardware memory error",
    "Memory failure: 0x",
    "event severity: fatal",
    "event severity: recoverable",
    "Hardware Error]: Uncorrected",
    "Hardware Error]: System Fatal error",
    "Processor context corrupt",
    " UE ",
    " CE ",
];
/// So many corrected errors in a day are more than cosmic rays.
const MANY: u64 = 100;
/// The bit of a bank's status that says that the error was not corrected.
const UNCORRECTED: u32 = 61;
/// The bit that says that reports of this error were switched on. Without it, the firmware of Intel machines has left the
/// report while it started the machine, and the kernel ignores it too.
const ENABLED: u32 = 60;
/// Where the kernel counts the errors of memory.
const EDAC: &str = "/sys/devices/system/edac/mc";

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.wsl().is_ok_and(|wsl| wsl.is_some()) {
        return Ok(Vec::new());
    }
    let lines = host.kernel_lines(&WORDS);
    let mut bad = Vec::new();
    // The kernel writes several lines about one error, so that only lines of the same words are counted together.
    let (mut uncorrected, mut corrected) = (BTreeMap::new(), BTreeMap::new());
    for line in lines {
        match read(&line) {
            // An error that a card on the PCIe bus reported has its own check.
            Some((words, Kind::Uncorrected))
                if is_of_memory_or_cpu(host, &line) && !is_of_firmware(host, &line) =>
            {
                *uncorrected.entry(words).or_insert(0) += 1;
                bad.push(line);
            }
            Some((words, Kind::Corrected(count))) => {
                corrected.entry(words).or_insert_with(Corrected::default).add(count, LogTime::of(&line));
            }
            _ => {}
        }
    }
    let Counted { uncorrected: counted_ue, corrected: counted, controller } = counts(host);
    let uncorrected = uncorrected.into_values().max().unwrap_or(0_u64);
    let since_start = host.days_up();
    let counted = counted.into_iter().map(|(count, days)| (count, days.unwrap_or(since_start)));
    let logged = corrected.into_values().map(|sum| (sum.count, sum.days().unwrap_or(since_start)));
    let many =
        counted.chain(logged).filter(|(count, days)| count / days >= MANY).map(|(count, _)| count).max();
    let is_memory = counted_ue > 0 || bad.iter().any(|line| line.contains("EDAC") || line.contains("emory"));
    let what = if is_memory { "memory" } else { "CPU or its memory" };
    let finding = if !bad.is_empty() || counted_ue > 0 {
        let number = uncorrected.max(counted_ue);
        let title = format!(
            "the {what} reported {} that nothing corrected",
            format::count(usize::try_from(number).unwrap_or(usize::MAX), "error")
        );
        Finding::new("system.hardware-errors", title)
    } else if let Some(corrected) = many {
        let number = usize::try_from(corrected).unwrap_or(usize::MAX);
        let title = format!("the memory had {} that were corrected", format::count(number, "error"));
        Finding::new("system.hardware-errors", title)
            .because("a memory module that needs so many corrections usually fails soon, and then runs crash")
    } else {
        return Ok(Vec::new());
    };
    // The last ones are those of the last run.
    let shown = bad.len().saturating_sub(3);
    let finding = bad.into_iter().skip(shown).fold(finding, Finding::seen);
    let finding = controller.into_iter().fold(finding, Finding::seen);
    let is_theirs = host.is_own_machine() && !host.is_virtual_machine();
    Ok(vec![if is_theirs {
        finding
    } else {
        finding.remedy(
            "tell those who run this machine, with the lines above: they have to test and replace the memory module or the CPU; \
             until then run on another machine",
        )
    }])
}

enum Kind {
    Uncorrected,
    /// So many errors.
    Corrected(u64),
}

/// Corrected errors that the kernel has logged in the same words.
#[derive(Default)]
struct Corrected {
    count: u64,
    /// The times of the first and the last line.
    between: Option<(LogTime, LogTime)>,
}

impl Corrected {
    fn add(&mut self, count: u64, time: Option<LogTime>) {
        self.count = self.count.saturating_add(count);
        let Some(now) = time else { return };
        self.between = Some(self.between.map_or((now, now), |(first, _)| (first, now)));
    }

    /// The days that these lines span, of which one has begun. The log of a machine that runs for months keeps the last
    /// hours only.
    fn days(&self) -> Option<u64> {
        let (first, last) = self.between?;
        Some(((first.until(last)? / 86_400.0).ceil() as u64).max(1))
    }
}

/// What a line of the kernel says about an error, and by which words.
fn read(line: &str) -> Option<(&'static str, Kind)> {
    // `mce: [Hardware Error]: CPU 10: Machine Check: 0 Bank 5: bea0000000000108`
    if let Some((_, rest)) = line.split_once("Machine Check") {
        let status = rest.split_once("Bank ")?.1.split_once(':')?.1.trim();
        let status = u64::from_str_radix(status.split_whitespace().next()?, 16).ok()?;
        let kind = match (status >> UNCORRECTED & 1, status >> ENABLED & 1) {
            (0, _) => Kind::Corrected(1),
            (_, 0) => return None,
            _ => Kind::Uncorrected,
        };
        return Some(("Machine Check", kind));
    }
    // `EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0`
    if let Some((_, rest)) = line.split_once("EDAC ") {
        let mut words = rest.split_whitespace().skip(1);
        let count: u64 = words.next()?.parse().ok()?;
        return match words.next()? {
            "UE" if count > 0 => Some(("EDAC", Kind::Uncorrected)),
            "CE" => Some(("EDAC", Kind::Corrected(count))),
            _ => None,
        };
    }
    if line.contains("Memory failure: 0x") && !line.contains("recovery action for") {
        return None;
    }
    let is_bare_word = |word: &str| [" UE ", " CE "].contains(&word);
    let words = WORDS.iter().find(|word| !is_bare_word(word) && line.contains(**word))?;
    Some((words, Kind::Uncorrected))
}

/// Whether the next line shows that the report is from before the start: without a time (`TSC 0`), and with an address
/// of 0xfe…… That is where devices are found below 4 GiB, which the firmware of Intel machines touches while it sets
/// them up. An error there later, which has a time, can be that of a GPU that is lost.
fn is_of_firmware(host: &Host, line: &str) -> bool {
    if !line.contains("Machine Check: ") {
        return false;
    }
    let log = host.kernel_log().unwrap_or_default();
    let mut lines = log.lines().skip_while(|one| one.trim() != line).skip(1);
    lines.next().is_some_and(is_before_start)
}

/// `TSC 0 ADDR fef4c9e0 MISC 43880010086`
fn is_before_start(line: &str) -> bool {
    let address = line.split_once("TSC 0 ADDR ").and_then(|(_, rest)| rest.split_whitespace().next());
    address.is_some_and(|address| address.len() == 8 && address.starts_with("fe"))
}

/// Firmware reports errors of any part in one form; the lines that follow say of which.
fn is_of_memory_or_cpu(host: &Host, line: &str) -> bool {
    if !line.contains("event severity:") {
        return true;
    }
    let log = host.kernel_log().unwrap_or_default();
    let mut lines = log.lines().skip_while(|one| one.trim() != line).skip(1).take(6);
    let section = lines.find(|one| one.contains("section_type:") || one.contains("section type:"));
    section.is_some_and(|section| section.contains("memory") || section.contains("processor"))
}

/// Errors that the kernel has counted.
#[derive(Default)]
struct Counted {
    uncorrected: u64,
    /// The corrected ones of each controller that has counted as many as count for one day, and in how many days, if that is known.
    corrected: Vec<(u64, Option<u64>)>,
    /// The last controller with errors that matter, with its counts.
    controller: Option<String>,
}

fn counts(host: &Host) -> Counted {
    let mut counted = Counted::default();
    for name in
        host.folder(EDAC).ok().flatten().unwrap_or_default().iter().filter(|name| name.starts_with("mc"))
    {
        let count = |kind: &str| {
            let text = host.text(&format!("{EDAC}/{name}/{kind}")).ok().flatten();
            text.and_then(|text| text.trim().parse::<u64>().ok())
        };
        let (of_ue, of_ce) = (count("ue_count").unwrap_or(0), count("ce_count").unwrap_or(0));
        if of_ue > 0 || of_ce >= MANY {
            counted.controller = Some(format!("{EDAC}/{name}: ue_count {of_ue}, ce_count {of_ce}"));
        }
        counted.uncorrected = counted.uncorrected.saturating_add(of_ue);
        if of_ce >= MANY {
            counted
                .corrected
                .push((of_ce, count("seconds_since_reset").map(|seconds| seconds.div_ceil(86_400).max(1))));
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_bad(line: &str) -> bool {
        matches!(read(line), Some((_, Kind::Uncorrected)))
    }

    #[test]
    fn errors_that_nothing_corrected_are_told_from_the_others() {
        for line in [
            "[    0.7] mce: [Hardware Error]: CPU 10: Machine Check: 0 Bank 5: bea0000000000108",
            "mce: [Hardware Error]: CPU 2: Machine Check Exception: 5 Bank 0: b200000000070005",
            "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0)",
            "mce: Uncorrected hardware memory error in user-access at 6e5a84400",
            "Memory failure: 0x6e5a84: recovery action for dirty LRU page: Recovered",
            "[Hardware Error]: Uncorrected, software restartable error.",
        ] {
            assert!(is_bad(line), "{line}");
        }
        for line in [
            "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 9: 8c00004000010090",
            "EDAC MC0: 3 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0",
            "EDAC MC0: Giving out device to module skx_edac controller Skylake Socket#0 IMC#0",
            "mce: CPU0: Thermal monitoring enabled (TM1)",
            // The firmware of Intel machines leaves these.
            "[    0.1] mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 4: a600000000020408",
            "[    0.1] mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 6: ee0000000040110a",
            "MCE: In-kernel MCE decoding enabled.",
            "mce: [Hardware Error]: Machine check events logged",
        ] {
            assert!(!is_bad(line), "{line}");
        }
    }

    #[test]
    fn reports_from_before_the_start_are_known() {
        assert!(is_before_start("mce: [Hardware Error]: TSC 0 ADDR fef4c9e0 MISC 43880010086"));
        assert!(!is_before_start("mce: [Hardware Error]: TSC 0 ADDR 6e5a84400 MISC 86"));
        assert!(!is_before_start("mce: [Hardware Error]: TSC 5b1f2c8a1f2 ADDR fe8000c0"));
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(EDAC |MC0: |1 UE |CE |Machine Check: |Bank |[0-9a-f]{1,16}|: |\\PC){0,12}") {
            let _ = read(&line);
            let _ = (is_before_start(&line), LogTime::of(&line));
        }
    }
}
