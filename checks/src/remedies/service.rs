//! The commands that start and restart system services, by the program that manages them.

use crate::facts::{Family, Host};

/// Starts a service now and whenever the machine starts.
pub(crate) fn enable(host: &Host, name: &str) -> String {
    match host.family() {
        Some(Family::Alpine) => format!("sudo rc-update add {name} && sudo rc-service {name} start"),
        Some(Family::Void) => format!("sudo ln -s /etc/sv/{name} /var/service/"),
        Some(Family::Debian) if !host.has_systemd() => {
            format!("sudo update-rc.d {name} enable && sudo service {name} start")
        }
        _ => format!("sudo systemctl enable --now {name}"),
    }
}

/// WSL starts systemd only if /etc/wsl.conf asks for it.
fn is_wsl_without_systemd(host: &Host) -> bool {
    let first = host.text("/proc/1/comm").ok().flatten();
    host.is_wsl2() == Ok(true) && first.is_some_and(|name| name.trim() != "systemd")
}

/// Restarts a service, so that it reads its settings.
pub(crate) fn restart(host: &Host, name: &str) -> String {
    match host.family() {
        Some(Family::Alpine) => format!("sudo rc-service {name} restart"),
        Some(Family::Void) => format!("sudo sv restart {name}"),
        Some(Family::Debian) if !host.has_systemd() => format!("sudo service {name} restart"),
        _ if is_wsl_without_systemd(host) => format!("sudo service {name} restart"),
        _ => format!("sudo systemctl restart {name}"),
    }
}
