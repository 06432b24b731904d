//! Whether WSL keeps running after the terminal closes, and whether services run. Training in tmux,
//! screen or an SSH session has no Windows terminal that keeps WSL alive.

use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::finding::Finding;
use crate::intent::Intent;

pub(super) static CHECK: Check = Check {
    question: "Does WSL keep running without a terminal?",
    reports: &["wsl.idle", "wsl.no-systemd"],
    preflight: false,
    run,
};

fn run(host: &Host, _: &Intent) -> Answer {
    if !super::is_wsl_itself(host)? {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let set = |name: &str| host.env(name).is_ok_and(|value| value.is_some());
    let detached = [("TMUX", "tmux"), ("STY", "screen"), ("SSH_CONNECTION", "an SSH session")];
    let config = host.wslconfig().ok();
    // -1 keeps WSL running forever.
    let stays = config.is_some_and(|config| {
        config.document.value("general", "instanceIdleTimeout") == Some("-1")
            || config.value("vmIdleTimeout") == Some("-1")
    });
    if let Some((_, what)) = detached.iter().find(|(name, _)| set(name)).filter(|_| !stays) {
        let title =
            format!("WSL stops soon after the last Windows terminal closes, and so does training in {what}");
        findings.push(Finding::new("wsl.idle", title));
    }
    match host.text("/proc/1/comm") {
        Err(why) if findings.is_empty() => return Err(why),
        // Who switched it off wants no services.
        Ok(Some(_)) if host.wsl_conf_flag("boot", "systemd") == Some(false) => {}
        Ok(Some(name)) if name.trim() != "systemd" => {
            let title =
                format!("services are not running: the first process is {}, not systemd", name.trim());
            findings.push(
                Finding::new("wsl.no-systemd", title)
                    .command("printf '[boot]\\nsystemd=true\\n' | sudo tee -a /etc/wsl.conf")
                    .command(super::SHUTDOWN),
            );
        }
        _ => {}
    }
    Ok(findings)
}
