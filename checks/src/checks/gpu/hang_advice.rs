//! What keeps a hang of the driver from coming back. A restart ends it, and where the driver waits says what led to it: the
//! names of its functions are in the trace, if the module is the open one.

use super::oops;
use crate::facts::{Family, Host};
use crate::finding::Finding;

/// What the driver waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It starts or stops a card, which it does for every program if nothing keeps the card started.
    Starting,
    /// Its service for laptops talks to the firmware.
    PowerService,
    /// It draws the screen.
    Display,
}

/// Functions of the driver by which each is known.
const STOPS: [&str; 2] = ["RmShutdownAdapter", "nv_shutdown_adapter"];
const STARTS: [&str; 3] = ["kgspInitRm", "kgspBootstrap", "rm_init_adapter"];
const DISPLAY: [&str; 3] =
    ["nvDIFRPrefetchSurfaces", "DifrPrefetchEvent", "nvkms_ioctl_from_kapi_try_pmlock"];

fn place(log: &str) -> Option<Place> {
    let [heading, _] = oops::stuck(log)?;
    let trace = oops::trace(log, &heading);
    let has = |names: &[&str]| trace.iter().any(|line| names.iter().any(|name| line.contains(name)));
    match () {
        () if heading.contains("task nvidia-powerd") => Some(Place::PowerService),
        () if has(&DISPLAY) => Some(Place::Display),
        () if has(&STOPS) || has(&STARTS) && has(&["nvidia_open"]) => Some(Place::Starting),
        () => None,
    }
}

/// What is added to the remedy, and the command before the restart.
pub(super) fn with_prevention(host: &Host, mut finding: Finding) -> Finding {
    let is_nixos = host.family() == Some(Family::NixOs);
    let Some(place) = host.kernel_log().ok().and_then(|log| place(&log)) else { return finding };
    if !host.is_own_machine() || !host.has_systemd() {
        return finding;
    }
    let (words, command) = match place {
        Place::Starting => (
            "the driver hung while it started or stopped a card, which it does for each program: so that it does not happen again, have \
             nvidia-persistenced keep the cards started, and update the driver",
            (!is_nixos).then_some("sudo systemctl enable nvidia-persistenced"),
        ),
        Place::PowerService => (
            "so that it does not happen again, switch the driver's service nvidia-powerd off, in which it hung; the GPU then stays at its \
             base power",
            (!is_nixos).then_some("sudo systemctl disable nvidia-powerd"),
        ),
        Place::Display => (
            "the driver hung in what it draws on the screen, as versions up to 610 do now and then: so that it does not happen again, \
             connect the screen to the mainboard or train without a desktop (`sudo systemctl set-default multi-user.target`), let the \
             screen not be switched off and the machine not sleep while a run goes on, and update the driver",
            None,
        ),
    };
    if let Some(remedy) = &mut finding.remedy {
        remedy.text = format!("{}; {words}", remedy.text);
    }
    match command {
        Some(command) => finding.command(command),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_trace_says_where_the_driver_waits() {
        let task = |name: &str, function: &str| {
            format!(
                "[9.1] INFO: task {name}:12 blocked for more than 122 seconds.\n[9.1]  {function}+0x3/0x5 [nvidia]\n[9.1]  \
                 nvidia_open+0x1/0x2 [nvidia]"
            )
        };
        for (name, function, expected) in [
            ("python3", "RmShutdownAdapter", Some(Place::Starting)),
            ("python3", "kgspBootstrap_TU102", Some(Place::Starting)),
            ("nvidia-powerd", "os_acquire_rwlock_read", Some(Place::PowerService)),
            ("nvidia-modeset/", "nvDIFRPrefetchSurfaces", Some(Place::Display)),
            ("python3", "os_acquire_mutex", None),
        ] {
            assert_eq!(place(&task(name, function)), expected, "{function}");
        }
    }

    proptest! {
        #[test]
        fn any_log_is_read(log in "(INFO: task nvidia-powerd:1 |blocked for more than|RmShutdownAdapter|\\[nvidia\\]|\\PC|\n){0,40}") {
            let _ = place(&log);
        }
    }
}
