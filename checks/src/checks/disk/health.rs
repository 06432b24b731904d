//! Who can look at the health of a disk: a virtual machine has no disk, but a file or a part of one on its host.

use crate::facts::Host;

/// Whether the user of this host has its disks and their cables.
pub(super) fn has_the_disks(host: &Host) -> bool {
    host.is_own_machine() && !host.is_virtual_machine()
}

/// What those do who have the disks.
pub(super) const LOOK_AT_HEALTH: &str = "look at the disk's health (`smartctl -a`)";

/// Whom to ask about the health of a disk, as a part of a sentence that tells the user what to do.
pub(super) fn look_at_health(host: &Host) -> &'static str {
    if has_the_disks(host) {
        LOOK_AT_HEALTH
    } else if host.is_virtual_machine() && host.is_own_machine() {
        "have those who run the host of this virtual machine look at the health of its disks (a virtual disk cannot tell it)"
    } else {
        "have those who run this machine look at the health of its disks"
    }
}
