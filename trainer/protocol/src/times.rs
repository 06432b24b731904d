//! How long a supervisor waits for what.

use std::time::Duration;

/// How long other ranks may still report their failures after the first one, before they are ended.
pub const SETTLE: Duration = Duration::from_millis(700);
/// How long a rank may take to end after it was asked to, because of a failure.
pub const GRACE: Duration = Duration::from_millis(2500);
/// How long ranks may take to save and end after the user's signal.
pub const INTERRUPT_GRACE: Duration = Duration::from_secs(120);
/// How long the other ranks may take after the user's signal, once one has failed: they may be saving.
pub const SAVE_GRACE: Duration = Duration::from_secs(20);
/// How long ranks may take to end after everything was done.
pub const FINISH_GRACE: Duration = Duration::from_secs(30);
/// How long a killed process may take to go. It stays if it hangs in the kernel.
pub const ABANDON: Duration = Duration::from_secs(5);
/// A SIGTERM or SIGHUP within this time after another is the same request, sent twice: `timeout` and
/// some shells signal the process and its group, and systemd can send both signals.
pub const SAME_SIGNAL: Duration = Duration::from_secs(1);
/// How long the master and another machine may not hear each other. Each sends something every second.
pub const MACHINE_SILENCE: Duration = Duration::from_secs(10);
/// The same while the run is being ended: nobody waits longer for a machine than for a killed process.
pub const MACHINE_SILENCE_AT_END: Duration = Duration::from_secs(4);
/// If ranks lose others and a machine has been silent for this time, its ranks are the ones that were lost.
pub const MACHINE_SUSPECT: Duration = Duration::from_secs(3);
