//! Whether ranks can meet: on one machine at any free port of the loopback address, on several at
//! the port that the run names. That port 29500 is taken does not matter to a run on one machine,
//! which picks a free one.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

/// Where ranks of several machines meet unless the run says otherwise.
const DEFAULT_PORT: u16 = 29500;

pub(super) static CHECK: Check = Check {
    question: "Can the ranks meet?",
    reports: &["network.loopback", "network.no-loopback", "network.port-taken"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let mut findings = vec![match host.can_listen("127.0.0.1:0")? {
        Ok(()) => Finding::ok("network.loopback", "ranks can meet on 127.0.0.1"),
        Err(why) => Finding::new("network.no-loopback", format!("127.0.0.1 cannot be listened on: {why}")),
    }];
    // Only the first machine listens at the port that is named.
    let listens = intent.has_several_nodes() && intent.node_rank.unwrap_or(0) == 0;
    if intent.master_port.is_some() && !intent.has_several_nodes() || listens {
        let port = intent.master_port.unwrap_or(DEFAULT_PORT);
        findings.extend(taken(host, port)?);
    }
    Ok(findings)
}

fn taken(host: &Host, port: u16) -> Result<Option<Finding>, crate::facts::Unknown> {
    let listeners = host.listening().unwrap_or_default();
    let owner = listeners.iter().find(|listener| listener.port == port);
    let bound = host.can_listen(&format!("0.0.0.0:{port}"));
    if owner.is_none() && bound? == Ok(()) {
        return Ok(None);
    }
    // A mirrored WSL shares its ports with Windows, whose programs it does not see: a check of WSL
    // says so.
    if owner.is_none()
        && host.listening().is_ok()
        && host.is_wsl2().unwrap_or(false)
        && host.wsl_network().as_deref() == Ok("mirrored")
    {
        return Ok(None);
    }
    let who = owner.map_or("an unknown process".to_owned(), |owner| {
        match (&owner.process, owner.pid, &owner.user) {
            (Some(name), Some(pid), _) => format!("{name} (process {pid})"),
            (_, Some(pid), _) => format!("process {pid}"),
            (_, None, Some(user)) => format!("a process of user {user}"),
            _ => "a process of another user".to_owned(),
        }
    });
    let finding = Finding::new("network.port-taken", format!("port {port} of this run is taken by {who}"));
    let finding = match owner {
        Some(owner) => finding.seen(format!("it listens on {}:{port}", owner.address)),
        None => finding,
    };
    Ok(Some(match owner.and_then(|owner| owner.pid) {
        Some(pid) => finding.command(format!("kill {pid}")),
        None => finding,
    }))
}
