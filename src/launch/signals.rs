//! Ctrl-C, SIGTERM and SIGHUP of this process as messages, and signals to the ranks.

use std::sync::mpsc::Sender;

use super::failure::LaunchError;
use super::rank::Message;

/// How a rank is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopSignal {
    Terminate,
    Kill,
}

/// Sends a signal to a process that has not been waited for.
#[cfg(unix)]
pub(super) fn send(pid: u32, signal: StopSignal) {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match signal {
        StopSignal::Terminate => Signal::TERM,
        StopSignal::Kill => Signal::KILL,
    };
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // This fails only if the process has just ended, which is the aim.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(not(unix))]
pub(super) fn send(_pid: u32, _signal: StopSignal) {}

/// Forwards signals as messages until it is dropped.
pub(super) struct Signals {
    #[cfg(unix)]
    handle: signal_hook::iterator::Handle,
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn forward(sender: &Sender<Message>) -> Result<Self, LaunchError> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])
            .map_err(|source| LaunchError::Signals { source })?;
        let handle = signals.handle();
        let sender = sender.clone();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if sender.send(Message::Signal).is_err() {
                    return;
                }
            }
        });
        Ok(Self { handle })
    }

    #[cfg(not(unix))]
    pub(super) fn forward(_sender: &Sender<Message>) -> Result<Self, LaunchError> {
        let _ = Message::Signal;
        Ok(Self {})
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.handle.close();
    }
}
