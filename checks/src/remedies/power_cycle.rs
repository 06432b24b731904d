//! Taking the power away from a card: a restart that leaves the power on does not clear every fault. In a virtual machine
//! that is for its host, and in a cloud for nobody: there, another host helps.

use super::restart::restart;
use crate::facts::{Guest, Host};
use crate::finding::Finding;

/// Moving an instance of a cloud to another host, as a phrase.
pub(crate) const STOP_AND_START: &str = "stop the instance and start it again, which usually moves it to another host (a reboot \
                                         does \
                                         not; a stop erases temporary disks, such as instance store and local SSD: save their \
                                         files \
                                         before)";

/// What to do, as a phrase.
pub(crate) fn words(host: &Host) -> String {
    match host.guest() {
        Some(Guest::Cloud(_)) => {
            format!("{STOP_AND_START}; if a card fails there too, replace the instance and tell the provider")
        }
        other => of_machine(host, other.is_some()).to_owned(),
    }
}

fn of_machine(host: &Host, is_guest: bool) -> &'static str {
    match is_guest {
        true => {
            "shut this virtual machine down, then switch its host off and take its power away for a minute: a restart of the \
             guest does not reset the card"
        }
        false if host.is_laptop() => {
            "switch the laptop off, unplug its charger, hold the power button for 30 seconds, and start it again"
        }
        false => {
            "shut the machine down, unplug it for a minute (a restart is not enough), and start it again"
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
