//! Whether WSL's clock agrees with that of Windows. After the PC slept, WSL's may be hours behind:
//! certificates are then "not valid yet", and files lie in the future.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;
use crate::wsl::exe_output;

/// The clock that Windows gives the virtual machine, in UTC, which everyone may read.
const WINDOWS_CLOCK: &str = "/sys/class/rtc/rtc0/since_epoch";
/// Seconds that do no harm.
const HARMLESS: i64 = 2;

pub(super) static CHECK: Check = Check {
    question: "Does WSL's clock agree with that of Windows?",
    reports: &["wsl.clock"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if !host.is_wsl2()? {
        return Ok(Vec::new());
    }
    let now = i64::try_from(host.time()?).unwrap_or(i64::MAX);
    let clock = host.text(WINDOWS_CLOCK).map(|text| text.and_then(|text| text.trim().parse::<i64>().ok()));
    let (windows, source) = match (clock, of_command(host)) {
        (_, Some(time)) => (time, "PowerShell"),
        (Ok(Some(time)), None) => (time, WINDOWS_CLOCK),
        (Ok(None), None) => return Ok(of_file(host, now).into_iter().collect()),
        (Err(why), None) => return of_file(host, now).map(|finding| vec![finding]).ok_or(why),
    };
    let skew = windows.saturating_sub(now);
    if skew.abs() <= HARMLESS {
        return Ok(of_file(host, now).into_iter().collect());
    }
    let side = if skew > 0 { "behind" } else { "ahead of" };
    let title = format!("WSL's clock is {} {side} that of Windows", duration(skew.abs()));
    Ok(vec![Finding::new("wsl.clock", title).seen(format!("by {source}")).command("sudo hwclock -s")])
}

/// What a recording tells of Windows' time.
fn of_command(host: &Host) -> Option<i64> {
    let answers = ["ToUnixTimeSeconds", "UFormat %s", "hwclock"].map(|part| host.recorded_texts(part));
    let text = answers.iter().flatten().next()?;
    let text = exe_output::decode(text.as_bytes());
    text.split(|letter: char| !letter.is_ascii_digit()).find(|digits| digits.len() == 10)?.parse().ok()
}

/// A file that Windows wrote in WSL's future.
fn of_file(host: &Host, now: i64) -> Option<Finding> {
    let config = host.wslconfig().ok()?;
    let ahead = i64::try_from(config.modified?).ok()? - now;
    if ahead <= HARMLESS {
        return None;
    }
    let title = format!("WSL's clock is behind that of Windows by {} at least", duration(ahead));
    let finding = Finding::new("wsl.clock", title).seen(format!("{} was written in the future", config.path));
    Some(finding.command("sudo hwclock -s"))
}

fn duration(seconds: i64) -> String {
    match seconds {
        ..180 => format!("{seconds} s"),
        180..10_800 => format!("{} minutes", seconds / 60),
        10_800..172_800 => format!("{} hours", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
