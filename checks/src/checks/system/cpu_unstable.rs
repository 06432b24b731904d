//! Whether the CPU is one that an old microcode of its firmware damages: Intel's fast desktop CPUs of the 13th and
//! 14th generation asked for too high a voltage until microcode 0x12b, and then crash programs under load. Microcode 0x12f
//! of 2025 adds a rarer cause, for machines that run for days.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Is the CPU one whose old microcode makes it unstable?",
    reports: &["system.cpu-unstable"],
    preflight: false,
    run,
};

/// The first microcode for the causes known until September 2024, with which CPUs become unstable soon.
const REPAIRED: u64 = 0x12b;
/// Intel's number for the chips that are affected, as in /proc/cpuinfo.
const MODEL: &str = "183";
/// Their names, between the generation and letters such as K: those of 65 W and more.
const NAMES: [&str; 8] = ["13600K", "13700", "13790", "13900", "14600K", "14700", "14790", "14900"];
/// What the kernel says of programs that crash in this way.
const CRASHES: [&str; 3] = ["segfault at", "general protection fault", "invalid opcode"];

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.is_virtual_machine() || host.place() == Place::Wsl {
        return Ok(Vec::new());
    }
    let Ok(Some(table)) = host.text("/proc/cpuinfo") else { return Ok(Vec::new()) };
    let value = |key: &str| {
        let mut rows = table.lines().filter_map(|line| line.split_once(':'));
        rows.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
    };
    let (Some(name), Some(microcode)) = (value("model name"), value("microcode")) else {
        return Ok(Vec::new());
    };
    let version = microcode.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    // A virtual machine sees a number of its hypervisor, often 1.
    let is_old = version.is_some_and(|version| (0x100..REPAIRED).contains(&version));
    if value("model").is_none_or(|model| model != MODEL) || !is_old || !is_affected(&name) {
        return Ok(Vec::new());
    }
    let title = format!("the CPU ({name}) has microcode {microcode}, with which it may become unstable");
    let of_a_run = |line: &&String| ["python", "yolo", "pt_"].iter().any(|word| line.contains(word));
    let crash = host.kernel_lines(&CRASHES).iter().rfind(of_a_run).cloned();
    let finding = Finding::new("system.cpu-unstable", title);
    Ok(vec![match crash {
        Some(line) => finding.status(Status::Warning).seen(line),
        None => finding,
    }])
}

/// `13th Gen Intel(R) Core(TM) i9-13900KF`; those for laptops and those of low power end in other letters.
fn is_affected(name: &str) -> bool {
    let Some((_, number)) = name.split_once("Core(TM) i").and_then(|(_, rest)| rest.split_once('-')) else {
        return false;
    };
    let number = number.split_whitespace().next().unwrap_or_default();
    let letters = number.trim_start_matches(|letter: char| letter.is_ascii_digit());
    NAMES.iter().any(|name| number.starts_with(name)) && matches!(letters, "" | "K" | "KF" | "KS" | "F")
}

#[cfg(test)]
mod tests {
    use super::is_affected;

    #[test]
    fn the_names_of_affected_cpus_are_known() {
        let named = |number: &str| is_affected(&format!("13th Gen Intel(R) Core(TM) {number}"));
        assert!(
            ["i9-13900K", "i9-14900KS", "i7-13700", "i5-13600K", "i5-14600KF", "i7-14700F"]
                .into_iter()
                .all(named)
        );
        assert!(
            !["i9-13900HX", "i5-13400F", "i7-13700H", "i9-13900T", "i5-13600", "i3-13100"]
                .into_iter()
                .any(named)
        );
        assert!(!is_affected("AMD Ryzen 9 7950X 16-Core Processor"));
    }
}
