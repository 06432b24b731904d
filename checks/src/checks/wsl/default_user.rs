//! Whether WSL runs as the user of the distribution. A distribution that was imported has forgotten who that is, and a name
//! in /etc/wsl.conf may be nobody's; WSL then starts as root.

use super::wsl_conf;
use crate::checks::{Answer, Check};
use crate::facts::{Family, Host};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does WSL run as the user of this distribution?",
    reports: &["wsl.root-user"],
    preflight: false,
    run,
};

const CONF: &str = wsl_conf::PATH;
/// A file of that name is ignored.
const MISNAMED: &str = "/etc/wsl.config";
/// Folders in /home that are no user's.
const NO_USERS: [&str; 3] = ["lost+found", "linuxbrew", ".linuxbrew"];

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    // Without these facts there is nothing to tell.
    let (Ok(user), Ok(config)) = (host.user(), host.wsl_conf()) else { return Ok(Vec::new()) };
    let is_root = user.uid == Some(0);
    // Other users need not be looked at: WSL has found them.
    if !is_root && !host.is_recorded() {
        return Ok(Vec::new());
    }
    let named = config.value("user", "default").map(|name| name.trim().to_owned());
    // Who chose root wants that.
    if named.as_deref() == Some("root") {
        return Ok(Vec::new());
    }
    let found = match named.filter(|name| !name.is_empty() && name != "root") {
        Some(name) => nobody(host, &name, is_root),
        None if is_root => number(host).or_else(|| forgotten(host)),
        None => None,
    };
    Ok(found.into_iter().collect())
}

/// The user whom /etc/wsl.conf names does not exist: `getpwnam(rave) failed`.
fn nobody(host: &Host, name: &str, is_root: bool) -> Option<Finding> {
    let exists = match passwd(host) {
        Some(lines) => lines.iter().any(|line| line.split(':').next() == Some(name)),
        // `id` ends with 1 if there is no such user. Asked only if WSL did not start as that user.
        None if is_root => host.command(&["id", "-u", name]).ok()??.exit != 1,
        None => return None,
    };
    if exists {
        return None;
    }
    let title = format!("`default={name}` in {CONF} names no user of this distribution, so WSL runs as root");
    let finding = Finding::new("wsl.root-user", title).because(
        "WSL looks for the user in /etc/passwd when it starts a program (`getpwnam failed` in the kernel log); users of LDAP, SSSD or \
         systemd-homed are not found there",
    );
    let finding = match said(host, &format!("getpwnam({name})")) {
        Some(line) => finding.seen(line),
        None => finding.seen(format!("/etc/passwd has no user {name}")),
    };
    let finding = match homes(host).as_slice() {
        [] => {
            let user = quote(name);
            finding
                .remedy("create that user with a password, then end the distribution in a Windows terminal")
                .command(format!("sudo useradd -m -s /bin/bash -G {} {user}", administrators(host)))
                .command(format!("sudo passwd {user}"))
        }
        users => {
            let user = if let [only] = users { only.as_str() } else { "<user>" };
            finding
                .remedy(format!(
                    "write the user of this distribution ({}) after `default=` in {CONF}, then end the distribution in a Windows \
                     terminal; create {name} only if you want another user",
                    users.join(", ")
                ))
                .command(wsl_conf::set(host, "user", "default", user))
        }
    };
    Some(finding.command(terminate(host)))
}

/// The group whose users may use sudo.
fn administrators(host: &Host) -> &'static str {
    match host.family() {
        Some(Family::Ubuntu | Family::OnUbuntu | Family::Debian) => "sudo",
        _ => "wheel",
    }
}

/// The number in the registry of Windows is nobody's, often a decimal number in a field for hexadecimal ones.
fn number(host: &Host) -> Option<Finding> {
    const START: &str = "getpwuid(";
    let line = said(host, START)?;
    let number: u32 = line.split_once(START)?.1.split(')').next()?.parse().ok()?;
    if number == 0 {
        return None;
    }
    let users = homes(host);
    let user = if let [only] = users.as_slice() { only.as_str() } else { "<user>" };
    let title =
        format!("WSL starts as user number {number}, whom this distribution does not have, and so as root");
    Some(
        Finding::new("wsl.root-user", title)
            .because(
                "`DefaultUid` of the distribution in the registry of Windows is wrong, for instance a decimal number in a field for \
                 hexadecimal ones (1000 is 3e8)",
            )
            .seen(line)
            .remedy(format!(
                "name the user of this distribution{} under [user] in {CONF}, then end the distribution in a Windows terminal",
                if users.is_empty() { " (`ls /home` shows it)".to_owned() } else { format!(" ({})", users.join(", ")) }
            ))
            .command(wsl_conf::set(host, "user", "default", user))
            .command(terminate(host)),
    )
}

/// WSL knows no user, and starts as root.
fn forgotten(host: &Host) -> Option<Finding> {
    let is_set = |name: &str| host.env(name).is_ok_and(|value| value.is_some());
    let is_at_home = host.env("HOME").ok().flatten().is_none_or(|home| home == "/root");
    if is_set("SUDO_USER") || !is_at_home {
        return None;
    }
    let homes = homes(host);
    let has_results = |name: &String| {
        let exists = |home: &str| host.exists(&format!("{home}/.local/share/yolo"));
        exists(&format!("/home/{name}")) == Ok(true) && exists("/root") == Ok(false)
    };
    let (name, status) = match (homes.iter().find(|name| has_results(name)), homes.as_slice()) {
        (Some(name), _) => (name.as_str(), Status::Warning),
        // Who started it with `wsl -u root` wants that.
        (None, [only]) => (only.as_str(), Status::Info),
        (None, _) => return None,
    };
    let title = format!("WSL runs as root, and not as {name}, the user of this distribution");
    let finding = Finding::new("wsl.root-user", title)
        .status(status)
        .seen(format!("{CONF} names no default user"))
        .seen(format!("/home/{name} exists"));
    if host.exists(MISNAMED) == Ok(true) {
        return Some(
            finding
                .because(format!("WSL reads {CONF}, and the file here is called {MISNAMED}"))
                .remedy(format!(
                    "write what the file says into {CONF}, then end the distribution in a Windows terminal"
                ))
                .command(format!("cat {MISNAMED} | sudo tee -a {CONF}"))
                .command(terminate(host)),
        );
    }
    let finding = if status == Status::Info {
        finding.remedy(format!(
            "nothing, if you started WSL with `-u root`; otherwise name the user under [user] in {CONF}, then end the distribution in \
             a Windows terminal"
        ))
    } else {
        finding
    };
    Some(finding.command(wsl_conf::set(host, "user", "default", name)).command(terminate(host)))
}

fn terminate(host: &Host) -> String {
    match host.env("WSL_DISTRO_NAME").ok().flatten() {
        Some(name) => format!("wsl.exe --terminate {}", quote(&name)),
        None => super::SHUTDOWN.to_owned(),
    }
}

/// The lines of a recorded /etc/passwd, which holds real names and is not read from a live host.
fn passwd(host: &Host) -> Option<Vec<String>> {
    if !host.is_recorded() {
        return None;
    }
    let text = host.text("/etc/passwd").ok().flatten()?;
    Some(text.lines().map(str::to_owned).collect())
}

/// Who has a home folder.
fn homes(host: &Host) -> Vec<String> {
    let is_there = |name: &String| {
        !NO_USERS.contains(&name.as_str()) && host.exists(&format!("/home/{name}")) != Ok(false)
    };
    if let Some(lines) = passwd(host) {
        let users = lines.iter().filter_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let is_user = fields.get(2)?.parse::<u32>().is_ok_and(|uid| (1000..60_000).contains(&uid));
            fields.get(5)?.strip_prefix("/home/").filter(|_| is_user).map(str::to_owned)
        });
        return users.filter(is_there).collect();
    }
    let names = host.folder("/home").ok().flatten().unwrap_or_default();
    names.into_iter().filter(is_there).collect()
}

/// What WSL wrote to the kernel log, or before the output of a command.
fn said(host: &Host, what: &str) -> Option<String> {
    let has = |line: &str| line.contains(what) && line.contains("failed");
    let of_log = host.kernel_lines(&[what]).into_iter().find(|line| has(line));
    of_log.or_else(|| {
        let outputs = host.recorded_commands().into_iter().map(|(_, output)| output.all_text());
        outputs.into_iter().find_map(|text| Some(text.lines().find(|line| has(line))?.trim().to_owned()))
    })
}
