//! Whether the CPU runs slower than it can: because of heat, of a profile that saves power, or of a limit of its
//! clock. Loading images and giving work to the GPU then take longer, and the GPU waits.

use super::cpu_switches;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the CPU run at its full speed?",
    reports: &["system.cpu-slow"],
    preflight: false,
    run,
};

/// The settings of the first cores.
const POLICY: &str = "/sys/devices/system/cpu/cpufreq/policy0";
/// Slowed down for longer since the start, in milliseconds, and for a larger share of that time, in percent, the cooling
/// does not suffice.
const LONG: u64 = 600_000;
const SHARE: u64 = 2;
/// So often in a day, it is not only the start.
const OFTEN: u64 = 1000;
/// Drivers in which the governor `powersave` is the lowest clock; in others it is the usual mode.
const LITERAL: [&str; 5] = ["acpi-cpufreq", "intel_cpufreq", "cppc_cpufreq", "amd-pstate", "powernow-k8"];
/// The share of the highest clock below which a limit matters, in percent.
const LIMITED: u64 = 60;

fn run(host: &Host, _: &Intent) -> Answer {
    if host.os()? != "linux" || host.place() != Place::Machine || host.is_virtual_machine() {
        return Ok(Vec::new());
    }
    let text = |path: &str| host.text(path).ok().flatten().map(|text| text.trim().to_owned());
    let number = |path: &str| text(path)?.parse::<u64>().ok();
    let new = |title: String| Finding::new("system.cpu-slow", title);
    let throttled = ["core", "package"]
        .into_iter()
        .filter_map(|part| {
            number(&format!("/sys/devices/system/cpu/cpu0/thermal_throttle/{part}_throttle_total_time_ms"))
        })
        .max();
    let line = host.kernel_lines(&["clock throttled", "clock is throttled"]).pop();
    let events = line.as_deref().and_then(events_in).unwrap_or(0);
    let up = host.time().ok().and_then(|now| now.checked_sub(host.boot_time().ok()?));
    let is_long = throttled.map(|time| {
        time > LONG && up.is_none_or(|up| time.saturating_mul(100) > up.saturating_mul(1000 * SHARE))
    });
    let is_often = events / host.days_up() > OFTEN;
    // The time says more than the number of events, where the kernel counts it.
    if is_long.unwrap_or(is_often) {
        let finding = new("the CPU has slowed down because of heat".to_owned());
        let time = throttled.map(|time| format!("slowed down for {} minutes since the start", time / 60_000));
        // A laptop's cooling is mostly made for short work.
        let finding = if host.is_laptop() { finding.status(Status::Info) } else { finding };
        let seen = line.filter(|_| is_often).into_iter().chain(time);
        return Ok(vec![seen.fold(finding, Finding::seen).remedy(
            "clean the fans and the cooler, see that the fans turn, and renew the thermal paste; keep a laptop on a hard surface, \
             with its vents free",
        )]);
    }
    if let Some(finding) = cpu_switches::scheduler(host) {
        return Ok(vec![finding]);
    }
    let (driver, governor) =
        (text(&format!("{POLICY}/scaling_driver")), text(&format!("{POLICY}/scaling_governor")));
    if let (Some(driver), Some("powersave")) = (&driver, governor.as_deref())
        && LITERAL.contains(&driver.as_str())
    {
        return Ok(vec![
            new(format!("the CPU stays at its lowest clock (governor powersave of {driver})"))
                .seen(format!("{POLICY}/scaling_governor"))
                .remedy("choose the governor `performance` or `schedutil`")
                .command(
                    "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
                ),
        ]);
    }
    let (most, limit) =
        (number(&format!("{POLICY}/cpuinfo_max_freq")), number(&format!("{POLICY}/scaling_max_freq")));
    if let (Some(most), Some(limit)) = (most, limit)
        && limit < most / 100 * LIMITED
    {
        return Ok(vec![
            new(format!("the clock of the CPU is limited to {} of {} MHz", limit / 1000, most / 1000))
                .seen(format!("{POLICY}/scaling_max_freq"))
                .remedy("remove the limit, also where TLP, a power profile or a script sets it again")
                .command(format!(
                    "echo {most} | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq"
                )),
        ]);
    }
    if let Some(finding) = cpu_switches::held_down(host).or_else(|| cpu_switches::turbo(host)) {
        return Ok(vec![finding]);
    }
    let profile = text("/sys/firmware/acpi/platform_profile");
    Ok(match profile.as_deref() {
        Some(name @ ("low-power" | "quiet")) => vec![
            new(format!("the power profile of the machine is {name}"))
                .status(Status::Info)
                .seen("/sys/firmware/acpi/platform_profile")
                .remedy("choose the profile `performance` in the desktop's settings, or with `powerprofilesctl set performance`"),
        ],
        _ => cpu_switches::clock(host).into_iter().collect(),
    })
}

/// `CPU0: Core temperature is above threshold, cpu clock is throttled (total events = 1234)`
fn events_in(line: &str) -> Option<u64> {
    line.split_once("total events = ")?.1.split(')').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::events_in;

    #[test]
    fn events_are_read_from_old_and_new_lines() {
        let line = "CPU0: Core temperature above threshold, cpu clock throttled (total events = 1234)";
        assert_eq!(events_in(line), Some(1234));
        assert_eq!(events_in("CPU0: Core temperature/speed normal"), None);
    }

    proptest! {
        #[test]
        fn any_line_is_read(line in "(total events = |[0-9]{1,30}|\\)|\\PC){0,8}") {
            let _ = events_in(&line);
        }
    }
}
