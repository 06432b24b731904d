//! Whether ranks can connect: on one machine through any free loopback port, on several through the
//! port of the run. A run on one machine picks a free port, so it does not matter whether 29500 is
//! in use.

use crate::checks::{Answer, Check};
use crate::facts::{Host, Listener};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::port_owner::{is_ours, name_of};
use crate::status::Status;

/// The default port for runs on several machines.
const DEFAULT_PORT: u16 = 29500;
/// Ports below this are reserved for root, unless configured otherwise.
const PRIVILEGED: u16 = 1024;

pub(super) static CHECK: Check = Check {
    question: "Can the ranks connect?",
    reports: &[
        "network.loopback",
        "network.no-loopback",
        "network.port-taken",
        "network.port-privileged",
        "network.port-ephemeral",
    ],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let mut findings = vec![match host.can_listen("127.0.0.1:0") {
        Ok(Ok(())) => Finding::ok("network.loopback", "ranks can connect through 127.0.0.1"),
        Ok(Err(why)) => Finding::new("network.no-loopback", format!("cannot listen on 127.0.0.1: {why}")),
        Err(why) => Finding::skipped("network.loopback", &why),
    }];
    // Only machine 0 listens on the port.
    let listens = intent.has_several_nodes() && intent.node_rank.unwrap_or(0) == 0;
    if intent.master_port.is_some() && !intent.has_several_nodes() || listens {
        let port = intent.master_port.unwrap_or(DEFAULT_PORT);
        match privileged(host, intent, port) {
            Some(finding) => findings.push(finding),
            None => match taken(host, intent, port) {
                Ok(taken) => findings.extend(taken.or_else(|| ephemeral(host, port))),
                Err(why) => findings.push(Finding::skipped("network.port-taken", &why)),
            },
        }
    }
    Ok(findings)
}

fn taken(host: &Host, intent: &Intent, port: u16) -> Result<Option<Finding>, crate::facts::Unknown> {
    let known = host.listening();
    let listeners = known.as_deref().unwrap_or_default();
    let owner = listeners.iter().find(|listener| listener.port == port);
    if owner.is_none() {
        match host.can_listen(&format!("0.0.0.0:{port}")) {
            Ok(Ok(())) => return Ok(None),
            Ok(Err(_)) => {}
            // It is enough that no listener is visible.
            Err(_) if known.is_ok() => return Ok(None),
            Err(why) => return Err(why),
        }
    }
    // A mirrored WSL shares its ports with Windows, whose programs it does not see: a check of WSL
    // reports that.
    if owner.is_none()
        && known.is_ok()
        && host.is_wsl2().unwrap_or(false)
        && host.wsl_network().as_deref() == Ok("mirrored")
    {
        return Ok(None);
    }
    let who = owner.map_or("an unknown process".to_owned(), |owner| name_of(host, owner));
    let finding = Finding::new("network.port-taken", format!("the run's port {port} is in use by {who}"));
    let finding = match owner {
        Some(owner) => finding.seen(format!("it listens on {}:{port}", owner.address)),
        None => finding,
    };
    let is_free = |port: &u16| listeners.iter().all(|listener| listener.port != *port);
    let other = (port.saturating_add(1)..=u16::MAX).find(is_free).unwrap_or(DEFAULT_PORT);
    let other = elsewhere(intent, other);
    Ok(Some(match owner {
        // Another port always helps; whether the process is still needed is for its owner to say.
        Some(owner @ Listener { pid: Some(pid), .. }) if is_ours(host, owner) => finding
            .remedy(format!("use another port{other}; or stop that process if it is not needed"))
            .command(match host.is_windows() {
                Ok(true) => format!("Get-Process -Id {pid}"),
                _ => format!("ps -o pid,ppid,etime,args -p {pid}"),
            }),
        _ => finding
            .remedy(format!("use another port{other}"))
            .machine_remedy("find the process that has it, and stop it if nobody needs it")
            .command(format!("sudo ss -ltnp 'sport = :{port}'")),
    }))
}

/// How the machines of a run are given another port: by the option if it was passed, else by the
/// variable that `torchrun` and similar launchers read.
pub(in crate::checks) fn elsewhere(intent: &Intent, port: u16) -> String {
    if intent.may_name("--master-port") {
        format!(", with `--master-port {port}` on all machines")
    } else {
        format!(", with MASTER_PORT={port} on all machines")
    }
}

/// Ports that only root may listen on.
fn privileged(host: &Host, intent: &Intent, port: u16) -> Option<Finding> {
    let first = host.text("/proc/sys/net/ipv4/ip_unprivileged_port_start").ok().flatten();
    let first = first.and_then(|text| text.trim().parse().ok()).unwrap_or(PRIVILEGED);
    let is_root = host.user().is_ok_and(|user| user.uid == Some(0));
    let is_windows = host.os().is_ok_and(|os| os == "windows");
    (port < first && !is_root && !is_windows).then(|| {
        let title = format!(
            "the run's port {port} is reserved for root: other users may only use ports from {first}"
        );
        Finding::new("network.port-privileged", title)
            .remedy(format!("use another port{}", elsewhere(intent, DEFAULT_PORT)))
    })
}

/// Ports that the kernel assigns to connections of other programs.
fn ephemeral(host: &Host, port: u16) -> Option<Finding> {
    let range = host.text("/proc/sys/net/ipv4/ip_local_port_range").ok().flatten()?;
    let mut ends = range.split_whitespace().map_while(|word| word.parse::<u16>().ok());
    let (first, last) = (ends.next()?, ends.next()?);
    (first..=last).contains(&port).then(|| {
        let title = format!(
            "port {port} may be taken by another program: the kernel assigns ports {first} to {last} to outgoing connections"
        );
        Finding::new("network.port-ephemeral", title).status(Status::Info)
    })
}
