//! Whether systemd removes shared memory, or ends processes, when this session ends. The first it does by default when an
//! ordinary user's last session closes, even if their training is still running; the second if it is set up so.

use super::logind::{ends_with_the_session, setting};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does a run continue after this session ends?",
    reports: &["system.remove-ipc", "system.session-kill"],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" || host.is_container() || !ends_with_the_session(host) {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let no = |value: &String| matches!(value.as_str(), "no" | "false" | "0" | "off");
    if intent.ranks_on_gpus() >= 2 && setting(host, "RemoveIPC").is_none_or(|value| !no(&value)) {
        let title = "this user's shared memory is removed when the last session closes";
        findings.push(Finding::new("system.remove-ipc", title).command("loginctl enable-linger"));
    }
    findings.extend(session_kill(host));
    Ok(findings)
}

/// `KillUserProcesses=yes`: tmux, screen and nohup do not keep a run alive after logout.
fn session_kill(host: &Host) -> Option<Finding> {
    let yes = |value: &String| matches!(value.as_str(), "yes" | "true" | "1" | "on");
    let value = setting(host, "KillUserProcesses").filter(yes)?;
    let name = host.user().ok()?.name.unwrap_or_default();
    let excluded = setting(host, "KillExcludeUsers").unwrap_or("root".to_owned());
    let only = setting(host, "KillOnlyUsers").unwrap_or_default();
    let names = |list: &str| list.split_whitespace().any(|user| user == name);
    // What the user's own manager started is not part of the session.
    let groups = host.text("/proc/self/cgroup").ok().flatten().unwrap_or_default();
    let in_session = groups.contains("/session-");
    if names(&excluded) || !only.is_empty() && !names(&only) || !in_session || host.job().is_some() {
        return None;
    }
    let title =
        "systemd ends all processes of this session when you log out, also those in tmux, screen and nohup";
    Some(
        Finding::new("system.session-kill", title)
            .seen(format!("logind: KillUserProcesses={value}"))
            .command("loginctl enable-linger")
            .command("systemd-run --user --scope tmux"),
    )
}
