//! What slows a CPU down besides heat and the limits of its clock: a switch that keeps it at its base clock, and a scheduler
//! of sched_ext, which replaces the kernel's own, that lets tasks wait.

use super::battery::is_discharging;
use crate::facts::Host;
use crate::finding::Finding;
use crate::remedies::kernel_option::way;
use crate::status::Status;

const NO_TURBO: &str = "/sys/devices/system/cpu/intel_pstate/no_turbo";
const MOST: &str = "/sys/devices/system/cpu/intel_pstate/max_perf_pct";
const BOOST: &str = "/sys/devices/system/cpu/cpufreq/boost";
/// The share of the highest clock below which a limit matters, in percent.
const LIMITED: u64 = 60;
/// What sets the switches again, with its file.
const PROGRAMS: [(&str, &str); 3] = [
    ("/etc/tlp.conf", "TLP (`CPU_BOOST_ON_AC=1` and `CPU_MAX_PERF_ON_AC=100` in /etc/tlp.conf)"),
    ("/etc/auto-cpufreq.conf", "auto-cpufreq (`turbo = auto` in /etc/auto-cpufreq.conf)"),
    (
        "/usr/lib/systemd/system/thermald.service",
        "thermald (`sudo systemctl stop thermald` shows whether it is the one)",
    ),
];
/// So many stalls are no accident.
const REPEATED: usize = 2;

/// The finding about a CPU that may not leave its base clock, as a setting says.
pub(super) fn turbo(host: &Host) -> Option<Finding> {
    let number = |path: &str| host.text(path).ok().flatten()?.trim().parse::<u64>().ok();
    let most = number(MOST).filter(|most| *most < LIMITED);
    let (title, path, value) = match most {
        Some(most) => (format!("the clock of the CPU is limited to {most} percent"), MOST, "100"),
        None if number(NO_TURBO) == Some(1) => (base_clock(), NO_TURBO, "0"),
        None if number(BOOST) == Some(0) => (base_clock(), BOOST, "1"),
        None => return None,
    };
    // Laptops save power so while they run on the battery, which another finding reports.
    if is_discharging(host) {
        return None;
    }
    let programs: Vec<&str> =
        PROGRAMS.iter().filter(|(file, _)| host.exists(file) == Ok(true)).map(|(_, words)| *words).collect();
    let again = match programs[..] {
        [] => "a program that saves power, or the firmware, may set it again".to_owned(),
        _ => format!("what may set it again is {}", yolo_base::format::choice(&programs)),
    };
    Some(
        Finding::new("system.cpu-slow", title)
            .status(Status::Info)
            .seen(path)
            .remedy(format!(
                "allow the CPU its full clock, if the cooling suffices and it was not switched off on purpose; {again}"
            ))
            .command(format!("echo {value} | sudo tee {path}")),
    )
}

/// The finding about a laptop whose CPU stays at its lowest clock while it has work: its embedded controller tells it so, over
/// a line that is meant for heat (PROCHOT), if it rejects the charger, the dock or the battery.
pub(super) fn held_down(host: &Host) -> Option<Finding> {
    const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";
    if !host.is_laptop() || is_discharging(host) || !is_at_work(&host.text("/proc/loadavg").ok()??) {
        return None;
    }
    let mut policies = host.folder(CPUFREQ).ok()??;
    policies.retain(|name| name.starts_with("policy"));
    let number = |policy: &str, file: &str| {
        host.text(&format!("{CPUFREQ}/{policy}/{file}")).ok().flatten()?.trim().parse::<u64>().ok()
    };
    let is_low = |policy: &String| {
        let now = number(policy, "scaling_cur_freq");
        let least = number(policy, "cpuinfo_min_freq");
        let most = number(policy, "cpuinfo_max_freq");
        now.zip(least)
            .zip(most)
            .is_some_and(|((now, least), most)| now <= least + least / 10 && now < most / 3)
    };
    if policies.is_empty() || !policies.iter().all(is_low) {
        return None;
    }
    let now = number(&policies[0], "scaling_cur_freq")? / 1000;
    let title =
        format!("all cores of this laptop stay at {now} MHz, their lowest clock, although they have work");
    Some(
        Finding::new("system.cpu-slow", title)
            .seen(format!("{CPUFREQ}/policy*/scaling_cur_freq"))
            .because(
                "the firmware of a laptop holds its CPU down, and often its GPU, when it does not trust the charger, the dock or the battery, \
                 also while all is cool; loading images then takes many times longer",
            )
            .remedy(
                "connect the laptop's own charger directly, not by a dock or hub; if that does not help, switch the laptop off, unplug it, \
                 hold the power button for 30 seconds, and start it again; update the firmware of the laptop and the dock",
            )
            .command("fwupdmgr update"),
    )
}

/// `2.31 2.05 1.90 4/1234 5678`: two or more had work for a minute, and have it now, beside this program.
fn is_at_work(load: &str) -> bool {
    let mut words = load.split_whitespace();
    let minute = words.next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
    let running = words.nth(2).and_then(|word| word.split('/').next()?.parse::<u32>().ok()).unwrap_or(0);
    minute >= 2.0 && running >= 3
}

/// The finding about a clock that is a slow chip of the board, because the kernel does not trust that of the CPU.
pub(super) fn clock(host: &Host) -> Option<Finding> {
    const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let current = host.text(CURRENT).ok()??.trim().to_owned();
    if !matches!(current.as_str(), "hpet" | "acpi_pm") {
        return None;
    }
    let title = format!("the time comes from a slow chip of the board ({current}), not from the CPU");
    let finding =
        Finding::new("system.cpu-slow", title).status(Status::Info).seen(format!("{CURRENT}: {current}"));
    let why =
        host.kernel_lines(&["clocksource 'tsc' as unstable", "Marking TSC unstable", "TSC found unstable"]);
    let cause = if why.is_empty() { "" } else { "the kernel found the CPU's own clock (TSC) unstable; " };
    Some(
        why.into_iter()
            .take(1)
            .fold(finding, Finding::seen)
            .because(format!(
                "{cause}programs that ask for the time often, as PyTorch and CUDA do, then go \
                 through the kernel to a chip that serves one core at a time",
            ))
            .remedy(format!(
                "update the firmware (BIOS) and restart; if it stays so on a machine with one CPU socket whose clock is right, add \
                 `tsc=reliable` to the kernel command line{}",
                way(host, "tsc=reliable")
            )),
    )
}

fn base_clock() -> String {
    "turbo is switched off, so the CPU stays at its base clock".to_owned()
}

/// The finding about a scheduler that let tasks wait for so long that the kernel threw it out.
pub(super) fn scheduler(host: &Host) -> Option<Finding> {
    let lines = host.kernel_lines(&["runnable task stall", "failed to run for"]);
    let lines: Vec<String> = lines.into_iter().filter(|line| line.contains("sched_ext")).collect();
    let stalls: Vec<&String> = lines.iter().filter(|line| line.contains("runnable task stall")).collect();
    let name = name(stalls.get(REPEATED - 1)?);
    let name = name.map_or(String::new(), |name| format!(" {name}"));
    let title = format!("the CPU scheduler{name} (sched_ext) has let tasks wait for many seconds");
    let finding =
        stalls.into_iter().take(2).cloned().fold(Finding::new("system.cpu-slow", title), Finding::seen);
    let services: Vec<&str> = ["scx_loader", "scx"]
        .into_iter()
        .filter(|name| host.exists(&format!("/usr/lib/systemd/system/{name}.service")) == Ok(true))
        .collect();
    let finding = finding
        .because(
            "a scheduler of sched_ext (scx) replaces that of the kernel; this one does not let some tasks run for up to half a minute, \
             so that loading images and the exchange between ranks stand still, and is started again after the kernel ends it",
        )
        .remedy(
            "switch it off, in CachyOS also in its scx-manager: the kernel's own scheduler takes over at once, without a restart; or \
             update scx-scheds",
        );
    if !host.has_systemd() {
        return Some(finding);
    }
    let services = if services.is_empty() { vec!["scx_loader", "scx"] } else { services };
    Some(finding.command(format!("sudo systemctl disable --now {}", services.join(" "))))
}

/// `sched_ext: BPF scheduler "lavd" disabled (runnable task stall)`
fn name(line: &str) -> Option<&str> {
    line.split('"').nth(1).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{is_at_work, name};

    #[test]
    fn a_machine_is_at_work_if_it_was_and_is() {
        assert!(is_at_work("2.31 2.05 1.90 4/1234 5678\n"));
        // What waits for a disk counts as load, and does not run.
        assert!(!is_at_work("8.31 8.05 8.90 1/1234 5678\n"));
        assert!(!is_at_work("0.31 2.05 1.90 4/1234 5678\n"));
        assert!(!is_at_work(""));
    }

    #[test]
    fn the_line_names_the_scheduler() {
        assert_eq!(name("sched_ext: BPF scheduler \"lavd\" disabled (runnable task stall)"), Some("lavd"));
        assert_eq!(name("sched_ext: lavd: kworker/6:1[109] failed to run for 32.264s"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(\"|sched_ext|\\PC){0,10}") {
            let _ = (name(&line), is_at_work(&line));
        }
    }
}
