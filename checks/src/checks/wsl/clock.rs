//! Whether WSL's clock agrees with the Windows clock. After the PC sleeps, WSL's clock may be hours
//! behind: certificates are then "not valid yet", and files are in the future.

use yolo_base::format;

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

/// Seconds that do no harm: issuers backdate certificates by more.
const HARMLESS: i64 = 60;

pub(super) static CHECK: Check = Check {
    question: "Does WSL's clock agree with the Windows clock?",
    reports: &["wsl.clock"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if !host.is_wsl2()? {
        return Ok(Vec::new());
    }
    let now = i64::try_from(host.time()?).unwrap_or(i64::MAX);
    let (windows, source) = match host.windows_time() {
        Ok(Some(read)) => read,
        Ok(None) => return Ok(of_file(host, now).into_iter().collect()),
        Err(why) => return of_file(host, now).map(|finding| vec![finding]).ok_or(why),
    };
    let skew = windows.saturating_sub(now);
    if skew.abs() <= HARMLESS {
        return Ok(of_file(host, now).into_iter().collect());
    }
    let side = if skew > 0 { "behind" } else { "ahead of" };
    let title = format!("WSL's clock is {} {side} the Windows clock", format::duration(skew.abs() as f64));
    Ok(vec![
        Finding::new("wsl.clock", title).seen(format!("according to {source}")).command("sudo hwclock -s"),
    ])
}

/// A file that Windows wrote in WSL's future.
fn of_file(host: &Host, now: i64) -> Option<Finding> {
    let config = host.wslconfig().ok()?;
    let ahead = i64::try_from(config.modified?).ok()? - now;
    if ahead <= HARMLESS {
        return None;
    }
    let title =
        format!("WSL's clock is at least {} behind the Windows clock", format::duration(ahead as f64));
    let finding = Finding::new("wsl.clock", title).seen(format!("{} was written in the future", config.path));
    Some(finding.command("sudo hwclock -s"))
}
