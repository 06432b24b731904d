//! Whether WSL keeps running after the terminal closes, and whether services run. Training in tmux,
//! screen or an SSH session has no Windows terminal that keeps WSL alive.

use super::wsl_conf;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Packages};
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does WSL keep running without a terminal?",
    reports: &["wsl.idle", "wsl.no-systemd", "wsl.user-session"],
    preflight: false,
    run,
};

/// WSL's default of `vmIdleTimeout`, in milliseconds.
const VM_IDLE: i64 = 60_000;
/// In milliseconds. Who keeps a distribution for an hour without a terminal has thought of it.
const LONG: i64 = 3_600_000;
/// The first WSL that starts systemd.
const WITH_SYSTEMD: [u32; 4] = [0, 67, 6, 0];

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let set = |name: &str| host.env(name).is_ok_and(|value| value.is_some());
    let detached = [("TMUX", "tmux"), ("STY", "screen"), ("SSH_CONNECTION", "an SSH session")];
    let config = host.wslconfig().ok();
    let value =
        |section: &str, key: &str| config.as_ref()?.document.value(section, key)?.trim().parse::<i64>().ok();
    let of_instance = value("general", "instanceIdleTimeout");
    // A negative value keeps the distribution forever, and with it the virtual machine; a long one long enough.
    let stays = of_instance.is_some_and(|time| !(0..LONG).contains(&time));
    let of_machine =
        value("wsl2", "vmIdleTimeout").filter(|time| of_instance.is_none() && !(0..=VM_IDLE).contains(time));
    if let Some((_, what)) = detached.iter().find(|(name, _)| set(name)).filter(|_| !stays) {
        let title =
            format!("WSL stops soon after the last Windows terminal closes, and so does training in {what}");
        findings.push(Finding::new("wsl.idle", title));
    } else if let Some(time) = of_machine {
        // Who raised this timeout expects that training goes on.
        let title = format!(
            "`vmIdleTimeout={time}` keeps WSL's virtual machine, but this distribution stops soon after the last Windows \
             terminal closes"
        );
        let finding = Finding::new("wsl.idle", title).because(
            "vmIdleTimeout counts from the moment that the last distribution has stopped, and a distribution stops 15 s \
             after its last Windows terminal closes, even if training runs in tmux, screen or over SSH",
        );
        findings.push(finding.remedy(
            "keep a Windows terminal open, or set instanceIdleTimeout=-1 under [general] in .wslconfig as well, then shut \
             WSL down from Windows; a version of WSL that does not know this setting needs `wsl.exe --update`",
        ));
    }
    match host.text("/proc/1/comm") {
        Err(why) if findings.is_empty() => return Err(why),
        // Who switched it off wants no services.
        Ok(Some(_)) if host.wsl_conf_flag("boot", "systemd") == Some(false) => {}
        Ok(Some(name)) if name.trim() != "systemd" => {
            findings.push(without_systemd(host, name.trim()));
        }
        Ok(Some(_)) => findings.extend(without_user_session(host)),
        _ => {}
    }
    Ok(findings)
}

/// systemd runs, but not for this user: `wsl: Failed to start the systemd user session for 'mara'.`
fn without_user_session(host: &Host) -> Option<Finding> {
    const FAILED: &str = "Failed to start the systemd user session";
    let outputs = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
    let said = outputs
        .into_iter()
        .find_map(|text| Some(text.lines().find(|line| line.contains(FAILED))?.trim().to_owned()));
    let folder = format!("/run/user/{}", host.user().ok()?.uid?);
    // WSL starts the session of the default user only; one that sudo or cron changes to has none.
    let is_missing = || is_default_user(host) && host.exists(&folder) == Ok(false);
    let seen = match said {
        Some(line) => line,
        None if is_missing() => format!("{folder} does not exist"),
        None => return None,
    };
    let finding =
        Finding::new("wsl.user-session", "the systemd session of this user did not start").seen(seen);
    if let Some(slow) = slow_start(host) {
        let number = host.user().ok()?.uid?;
        return Some(slow.applied(finding.command(format!("sudo systemctl restart user@{number}.service"))));
    }
    Some(finding.command("journalctl -b -u user@$(id -u)"))
}

/// What keeps systemd from being ready when WSL stops waiting for it.
struct SlowStart {
    /// The units that wait for a network.
    units: Vec<&'static str>,
    /// What WSL or systemd said.
    line: Option<String>,
}

/// Units that wait until something else than WSL has set up a network.
const WAITING: [&str; 2] = ["systemd-networkd-wait-online.service", "NetworkManager-wait-online.service"];
/// What WSL writes to the kernel log when it stops waiting.
const LATE: [&str; 3] = [
    "/sbin/init failed to start within",
    "Timed out waiting for user session",
    "Failed to query system state: Transport endpoint is not connected",
];

/// Whether systemd was too slow for WSL, and why.
fn slow_start(host: &Host) -> Option<SlowStart> {
    let is_enabled = |unit: &&str| {
        let link = |path: String| host.link(&path).ok().flatten();
        let is_masked =
            link(format!("/etc/systemd/system/{unit}")).is_some_and(|target| target == "/dev/null");
        !is_masked && link(format!("/etc/systemd/system/network-online.target.wants/{unit}")).is_some()
    };
    let units: Vec<&str> = WAITING.into_iter().filter(is_enabled).collect();
    let line = host.kernel_lines(&LATE).into_iter().next();
    (line.is_some() || !units.is_empty()).then_some(SlowStart { units, line })
}

impl SlowStart {
    /// The finding with the remedy for a systemd that is late.
    fn applied(self, finding: Finding) -> Finding {
        let finding = match self.line {
            Some(line) => finding.seen(line),
            None => finding,
        };
        let finding =
            self.units.iter().fold(finding, |finding, unit| finding.seen(format!("{unit} is enabled")));
        let why = if self.units.is_empty() {
            "systemd needed longer to start than WSL waits (10 s), as with a desktop, many services or a PC under load"
        } else {
            "systemd waits for a network that WSL itself provides, and may so need longer to start than WSL waits (10 s)"
        };
        let more = "give it more time with `initTimeout=60000` under [boot] in /etc/wsl.conf, or start fewer services (`systemd-analyze \
                    blame` lists the slow ones; `sudo systemctl set-default multi-user.target` starts no desktop)";
        if self.units.is_empty() {
            return finding
                .because(why)
                .remedy(format!("{more}, then shut WSL down from Windows"))
                .command(super::SHUTDOWN);
        }
        finding
            .because(why)
            .remedy(format!(
                "turn off what waits, then shut WSL down from Windows; if that is not enough, {more}"
            ))
            .command(format!("sudo systemctl mask {}", self.units.join(" ")))
            .command(super::SHUTDOWN)
    }
}

/// Whether this is the user whom WSL logs in: the one of /etc/wsl.conf, or the first that the distribution made. Windows can
/// choose another one, who then has a session.
fn is_default_user(host: &Host) -> bool {
    const FIRST: u32 = 1000;
    let Ok(user) = host.user() else { return false };
    let named =
        host.wsl_conf().ok().and_then(|config| config.value("user", "default").map(ToOwned::to_owned));
    match named {
        Some(name) => user.name.as_deref() == Some(name.trim()) && user.uid != Some(0),
        None => {
            let sessions = host.folder("/run/user").ok().flatten().unwrap_or_default();
            let is_of_other = |name: &String| name.parse::<u32>().is_ok_and(|uid| Some(uid) != user.uid);
            user.uid == Some(FIRST) && !sessions.iter().any(is_of_other)
        }
    }
}

/// The first process is not systemd: it was never asked for, or WSL has not read the request, or there is none.
fn without_systemd(host: &Host, first: &str) -> Finding {
    let title = format!("services are not running: the first process is {first}, not systemd");
    let finding = Finding::new("wsl.no-systemd", title);
    let is_asked_for = host.wsl_conf_flag("boot", "systemd") == Some(true);
    if ["/lib/systemd/systemd", "/usr/lib/systemd/systemd"].iter().all(|path| host.exists(path) == Ok(false))
    {
        let finding = finding.because("this distribution has no systemd, so WSL cannot start it");
        return match host.distribution().ok().and_then(|distribution| distribution.packages()) {
            Some(Packages::Apt) => finding
                .remedy(
                    "install systemd, write `systemd=true` under [boot] in /etc/wsl.conf, then shut WSL down from Windows; or start \
                     single services with `sudo service NAME start`",
                )
                .command("sudo apt install systemd systemd-sysv")
                .command(super::SHUTDOWN),
            _ => finding.remedy(
                "start services with the program of this distribution (such as `sudo service NAME start`), or use a distribution \
                 with systemd, such as Ubuntu",
            ),
        };
    }
    if !is_asked_for {
        return finding.command(wsl_conf::set(host, "boot", "systemd", "true")).command(super::SHUTDOWN);
    }
    let finding = finding.seen("/etc/wsl.conf: [boot] systemd=true");
    let changed = host.stat("/etc/wsl.conf").ok().flatten().and_then(|stat| stat.modified);
    if changed.zip(host.boot_time().ok()).is_some_and(|(changed, started)| changed > started) {
        return finding
            .because("/etc/wsl.conf was changed after WSL started, and is read when WSL starts")
            .remedy("shut WSL down from Windows, and start it again")
            .command(super::SHUTDOWN);
    }
    let is_old = match host.wsl_versions() {
        Ok(Some(None)) => true,
        Ok(Some(Some(versions))) => versions.wsl.0 < WITH_SYSTEMD,
        _ => false,
    };
    if let Some(slow) = slow_start(host).filter(|_| !is_old) {
        return slow.applied(finding);
    }
    let finding = match host.wsl_versions() {
        Ok(Some(None)) => {
            finding.because("WSL is the version built into Windows, which ignores `systemd=true`")
        }
        Ok(Some(Some(versions))) if versions.wsl.0 < WITH_SYSTEMD => {
            finding.because(format!("WSL {} ignores `systemd=true`, which needs 0.67.6", versions.wsl))
        }
        _ => finding.because("/etc/wsl.conf asks for systemd, but this WSL did not start it"),
    };
    finding
        .remedy("update WSL in a Windows terminal and shut it down; if systemd still does not start, look at `dmesg`")
        .command("wsl.exe --update")
        .command(super::SHUTDOWN)
}
