//! Taking the power away from a card: a restart that leaves the power on does not clear every fault. In a virtual machine
//! that is for its host, and in a cloud for nobody: there, another host helps.

use super::restart::restart;
use crate::facts::{Guest, Host};
use crate::finding::Finding;

/// What to do, as a phrase.
pub(crate) fn words(host: &Host) -> &'static str {
    match host.guest() {
        Some(Guest::Cloud(_)) => {
            "stop the instance and start it again, which moves it to another host (a reboot does not); if a card fails there \
             too, replace the instance and tell the provider"
        }
        Some(_) => {
            "shut this virtual machine down, then switch its host off and take its power away for a minute: a restart of the \
             guest does not reset the card"
        }
        None if host.is_laptop() => {
            "switch the laptop off, unplug its charger, hold the power button for 30 seconds, and start it again"
        }
        None => {
            "switch the machine off, take its power away for a minute (a restart does not), and start it again"
        }
    }
}

/// The finding, with the command for it. Who does not administer the machine asks for a restart.
pub(crate) fn power_cycle(host: &Host, finding: Finding) -> Finding {
    match host.guest() {
        _ if !host.is_own_machine() => restart(host, finding),
        Some(Guest::Cloud(_)) => finding,
        Some(_) => finding.command("sudo poweroff  # and then the host of this machine"),
        None => finding.command("sudo poweroff"),
    }
}
