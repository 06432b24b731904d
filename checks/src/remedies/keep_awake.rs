//! The commands that keep a machine awake: systemd does not start a target that is masked.

/// Until the machine starts anew.
pub(crate) const FOR_NOW: &str =
    "sudo systemctl mask --runtime sleep.target suspend.target hibernate.target hybrid-sleep.target";
/// Until it is unmasked.
pub(crate) const FOR_GOOD: &str =
    "sudo systemctl mask sleep.target suspend.target hibernate.target hybrid-sleep.target";
