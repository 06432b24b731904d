//! Whether systemd removes shared memory when this session ends. By default it does so when an
//! ordinary user's last session closes, even if their training is still running.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

/// Users below this are system users, which systemd exempts.
const FIRST_ORDINARY: u32 = 1000;

pub(super) static CHECK: Check = Check {
    question: "Does a run continue after this session ends?",
    reports: &["system.remove-ipc"],
    preflight: false,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    if host.os()? != "linux" || intent.ranks_on_gpus() < 2 {
        return Ok(Vec::new());
    }
    let is_remote =
        ["SSH_CONNECTION", "SSH_CLIENT"].iter().any(|name| host.env(name).is_ok_and(|value| value.is_some()));
    let user = host.user()?;
    let has_logind = host.exists("/run/systemd/system").unwrap_or(false);
    let is_ordinary = user.uid.is_some_and(|uid| uid >= FIRST_ORDINARY);
    let name = user.name.unwrap_or_default();
    let lingers = host.exists(&format!("/var/lib/systemd/linger/{name}")).unwrap_or(false);
    if !is_remote || !has_logind || !is_ordinary || lingers || !removes(host) {
        return Ok(Vec::new());
    }
    let title = "this user's shared memory is removed when the last session closes";
    Ok(vec![Finding::new("system.remove-ipc", title).command("loginctl enable-linger")])
}

/// The last `RemoveIPC=` in logind's files applies; the default is on.
fn removes(host: &Host) -> bool {
    super::logind::value(host, "RemoveIPC").is_none_or(|value| !super::logind::is_no(&value))
}
