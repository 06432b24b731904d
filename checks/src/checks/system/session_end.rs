//! Whether a run that is started in this session goes on when the session ends. A program in a bare SSH session ends
//! with the connection; systemd can be set to end everything that a user has started, also in tmux and after nohup.

use super::logind;
use crate::checks::{Answer, Check};
use crate::facts::{Host, Place};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Does a run go on when this session ends?",
    reports: &["system.session-ends"],
    preflight: false,
    run,
};

/// What a terminal sets whose programs go on after a connection is lost: tmux, screen, zellij.
const LASTING: [&str; 3] = ["TMUX", "STY", "ZELLIJ"];

fn run(host: &Host, intent: &Intent) -> Answer {
    // A container may have a server for SSH, as rented ones do, and no systemd.
    let is_container = matches!(host.place(), Place::Docker | Place::Podman | Place::Pod);
    let is_machine = host.place() == Place::Machine;
    if host.os()? != "linux" || host.job().is_some() || !(is_machine || is_container) {
        return Ok(Vec::new());
    }
    let is_set = |name: &&str| host.env(name).is_ok_and(|value| value.is_some());
    if intent.run && host.job().is_none() && (is_set(&"JUPYTERHUB_USER") || is_set(&"NB_PREFIX")) {
        return Ok(vec![of_notebook(is_set(&"NB_PREFIX"))]);
    }
    let is_remote = ["SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"].iter().any(is_set);
    if !is_remote {
        return Ok(Vec::new());
    }
    let user = host.user()?;
    let name = user.name.clone().unwrap_or_default();
    let lingers = host.exists(&format!("/var/lib/systemd/linger/{name}")).unwrap_or(false);
    // Lingering spares what systemd runs for the user, and not what is in a session.
    let groups = host.text("/proc/self/cgroup").ok().flatten().unwrap_or_default();
    if is_machine && kills(host, &name, user.uid) && (groups.contains("/session-") || !lingers) {
        let title =
            "systemd ends all programs of this user when the session closes, also in tmux and after nohup";
        let finding = Finding::new("system.session-ends", title)
            .seen("KillUserProcesses=yes in the settings of logind")
            .remedy(
                "let this user's programs outlive the session (linger), and start the run in tmux in a group of its own: the \
                 programs of a session end with it all the same",
            );
        let finding = if lingers { finding } else { finding.command("loginctl enable-linger") };
        return Ok(vec![finding.command("systemd-run --user --scope tmux")]);
    }
    if !intent.run || LASTING.iter().any(is_set) || ignores_hangups(host) {
        return Ok(Vec::new());
    }
    let title = "a run in this SSH session ends when the connection breaks off";
    let finding = Finding::new("system.session-ends", title).status(Status::Info);
    Ok(vec![if is_container {
        finding
            .remedy(
                "start the run in tmux, to which you can return (`tmux attach -t train`); many images lack it (`apt-get install -y tmux`), and \
                 then nohup is enough",
            )
            .command("tmux new -s train")
            .command("nohup yolo train … > train.log 2>&1 &")
    } else {
        finding
    }])
}

/// A hub stops servers that nobody seems to use. Programs in a terminal count for nothing there, and a cell that runs counts.
fn of_notebook(is_of_kubeflow: bool) -> Finding {
    let who = if is_of_kubeflow { "Kubeflow" } else { "the JupyterHub" };
    let title = format!("{who} may stop this notebook server while a run in its terminal goes on");
    Finding::new("system.session-ends", title)
        .status(Status::Info)
        .because(
            "many hubs stop servers that have been idle for some time (culling); what runs in a terminal, also in tmux or with nohup, does not \
             count as use",
        )
        .remedy(
            "start the run from a cell of a notebook, which keeps its kernel busy, and save checkpoints on a volume that outlives the server; \
             or ask the administrator of the hub for how long an idle server lives",
        )
        .command("!yolo train …  # in a cell of a notebook")
}

/// Whether logind is set to end a user's programs. Distributions build it so that it does not.
fn kills(host: &Host, name: &str, uid: Option<u32>) -> bool {
    let names = |key: &str| {
        logind::value(host, key)
            .map(|value| value.split_whitespace().map(ToOwned::to_owned).collect::<Vec<_>>())
    };
    let is_on = logind::value(host, "KillUserProcesses")
        .is_some_and(|value| !value.is_empty() && !logind::is_no(&value));
    let excluded =
        names("KillExcludeUsers").map_or(uid == Some(0), |names| names.iter().any(|one| one == name));
    let only = names("KillOnlyUsers").unwrap_or_default();
    is_on && !excluded && (only.is_empty() || only.iter().any(|one| one == name))
}

/// Whether this program was started with nohup: then its first signal, the hangup, is ignored.
fn ignores_hangups(host: &Host) -> bool {
    let status = host.text("/proc/self/status").ok().flatten().unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
