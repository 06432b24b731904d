//! Whether the machine goes to sleep during a run. Desktops suspend a machine that nobody uses, also while a program
//! computes or somebody is logged in over SSH; laptops do when their lid is closed. A run then stands still, and CUDA
//! often fails after waking up.

use super::logind;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::keep_awake;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does the machine go to sleep during a run?",
    reports: &["system.sleeps"],
    preflight: false,
    run,
};

/// The kernel's words when it goes to sleep, and those of systemd.
const SLEEPS: [&str; 6] = [
    "PM: suspend entry",
    "PM: hibernation: hibernation entry",
    "PM: hibernation entry",
    "Performing sleep operation",
    "Entering sleep state",
    "Suspending system...",
];
/// Settings of GNOME for a machine that nobody uses and that has mains power.
const SCHEMA: &str = "org.gnome.settings-daemon.plugins.power";
/// What sleeping is, for systemd: a target that leads to /dev/null is switched off, with `--runtime` until the next start.
const TARGETS: [&str; 4] = [
    "/etc/systemd/system/sleep.target",
    "/etc/systemd/system/suspend.target",
    "/run/systemd/system/sleep.target",
    "/run/systemd/system/suspend.target",
];

fn run(host: &Host, intent: &Intent) -> Answer {
    let is_machine = host.place() == Place::Machine && host.job().is_none() && !host.is_virtual_machine();
    if host.os()? != "linux" || !is_machine {
        return Ok(Vec::new());
    }
    let is_off = |path: &str| host.link(path).ok().flatten().is_some_and(|target| target == "/dev/null");
    let may_suspend = logind::sleep_value(host, "AllowSuspend");
    if TARGETS.iter().any(|target| is_off(target)) || may_suspend.is_some_and(|value| logind::is_no(&value)) {
        return Ok(Vec::new());
    }
    let is_planned = intent.run || intent.resume.is_some();
    // It is normal for a laptop to sleep when no run is planned.
    if host.is_laptop() && !is_planned {
        return Ok(Vec::new());
    }
    let slept = slept(host);
    // Asking the desktop takes longer than all else, so a live machine is asked only before a run.
    let is_asked = host.is_recorded() || is_planned;
    let setting = is_asked.then(|| by_desktop(host)).flatten().or_else(|| by_logind(host));
    let Some(cause) = setting.clone().or_else(|| slept.clone()) else { return Ok(Vec::new()) };
    let title = match (&slept, &setting) {
        (Some(_), _) => {
            "the machine has gone to sleep since it started; a run would have stood still".to_owned()
        }
        _ => "the machine goes to sleep when nobody uses it, also during a run".to_owned(),
    };
    let finding = Finding::new("system.sleeps", title).seen(cause.clone());
    let finding = match slept.filter(|line| *line != cause) {
        Some(line) => finding.seen(line),
        None => finding,
    };
    let is_serious = setting.is_some() && intent.run || intent.resume.is_some();
    let finding = if is_serious { finding } else { finding.status(Status::Info) };
    let has_systemd = host.exists("/run/systemd/system") != Ok(false) && host.has_systemd();
    if has_systemd && is_remote(host) {
        return Ok(vec![from_afar(host, finding)]);
    }
    let finding = if has_systemd {
        finding.command("systemd-inhibit --what=sleep:idle:handle-lid-switch --why=training yolo train …")
    } else {
        finding
    };
    let is_gnome = cause.contains("sleep-inactive");
    Ok(vec![if is_gnome {
        finding.command(format!("gsettings set {SCHEMA} sleep-inactive-ac-type nothing"))
    } else {
        finding
    }])
}

/// Whether this user is not root and has come over SSH. systemd lets only root and those who sit at the machine keep it
/// awake (`Failed to inhibit: Access denied`).
fn is_remote(host: &Host) -> bool {
    let is_set = |name: &&str| host.env(name).is_ok_and(|value| value.is_some());
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    !is_root && ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"].iter().any(is_set)
}

/// The login screen of GNOME has a timer of its own, which settings of a user do not change.
fn from_afar(host: &Host, finding: Finding) -> Finding {
    const MANAGERS: [&str; 2] = ["/usr/sbin/gdm", "/usr/sbin/gdm3"];
    let finding = if MANAGERS.iter().any(|path| host.exists(path) == Ok(true)) {
        finding.because(
            "the login screen of GNOME (GDM) and a desktop put a machine to sleep at which nobody sits, also while a program computes \
             and while somebody is logged in over SSH; the run then stands still, and CUDA often fails after the machine wakes up",
        )
    } else {
        finding
    };
    finding
        .remedy(
            "switch sleeping off while you train, until the next start or `sudo systemctl unmask --runtime sleep.target \
             suspend.target hibernate.target hybrid-sleep.target`; without `--runtime` it stays off, as is right for a machine that \
             is used over SSH; systemd-inhibit is refused over SSH (`Access denied`), and the settings of a user do not change what \
             the login screen does",
        )
        .command(keep_awake::FOR_NOW)
}

/// The last time that the machine went to sleep since its start.
fn slept(host: &Host) -> Option<String> {
    let mut texts = vec![host.kernel_log().unwrap_or_default()];
    texts.extend(host.recorded_outputs("journalctl").into_iter().map(|(_, output)| output.text()));
    let mut lines = texts.iter().flat_map(|text| text.lines());
    let is_sleep = |line: &&str| SLEEPS.iter().any(|words| line.contains(words));
    lines.rfind(is_sleep).map(|line| line.trim().to_owned())
}

/// GNOME's settings. A live machine is asked only where their session runs, and not over SSH: the answer
/// would be that of another session.
fn by_desktop(host: &Host) -> Option<String> {
    if host.is_recorded() {
        let outputs = host.recorded_outputs("gsettings");
        let of = |key: &str| {
            outputs.iter().find_map(|(line, output)| {
                let text = output.text();
                let row = text
                    .lines()
                    .find(|line| line.contains(SCHEMA) && line.contains(key))
                    .map(ToOwned::to_owned);
                row.or_else(|| line.contains(&format!(" {key}")).then_some(text))
            })
        };
        let (kind, after) = (of("sleep-inactive-ac-type"), of("sleep-inactive-ac-timeout"));
        return gnome(&kind?, after.as_deref());
    }
    let desktop = host.env("XDG_CURRENT_DESKTOP").ok().flatten().unwrap_or_default();
    if desktop.to_uppercase().contains("GNOME") {
        let get = |key: &str| Some(host.command(&["gsettings", "get", SCHEMA, key]).ok()??.text());
        return gnome(&get("sleep-inactive-ac-type")?, get("sleep-inactive-ac-timeout").as_deref());
    }
    None
}

/// What GNOME does after some time without input, if that is to sleep.
fn gnome(kind: &str, after: Option<&str>) -> Option<String> {
    let is_sleep = kind.contains("'suspend'") || kind.contains("'hibernate'");
    let seconds = after.and_then(|after| after.split_whitespace().next_back()?.parse::<i64>().ok());
    if !is_sleep || seconds == Some(0) {
        return None;
    }
    let word = if kind.contains("'hibernate'") { "hibernate" } else { "suspend" };
    let after = seconds.map_or(String::new(), |seconds| format!(", after {} minutes", seconds / 60));
    Some(format!("sleep-inactive-ac-type is {word}{after}"))
}

/// `IdleAction=suspend` in the settings of logind, which is set by hand only.
fn by_logind(host: &Host) -> Option<String> {
    let value = logind::value(host, "IdleAction")?;
    ["suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate", "sleep"]
        .contains(&value.as_str())
        .then(|| format!("IdleAction={value} in the settings of logind"))
}

#[cfg(test)]
mod tests {
    use super::gnome;

    #[test]
    fn the_settings_of_gnome_are_read() {
        assert!(gnome("'suspend'\n", Some("900\n")).is_some_and(|text| text.contains("15 minutes")));
        assert!(gnome("'suspend'\n", Some("0\n")).is_none());
        assert!(gnome("'nothing'\n", Some("900\n")).is_none());
    }
}
