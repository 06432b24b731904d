//! Ctrl-C, Ctrl-Z, SIGTERM and SIGHUP of this process as messages, and signals to the ranks.

use std::sync::mpsc::Sender;

use yolo_protocol::StopSignal;

use super::failure::LaunchError;
use super::message::Message;
#[cfg(unix)]
use crate::obeyed_signals::obeyed;

/// Sends a signal to a process that has not been waited for.
#[cfg(unix)]
pub(super) fn send(pid: u32, signal: StopSignal) {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match signal {
        StopSignal::Terminate => Signal::TERM,
        StopSignal::Kill => Signal::KILL,
        StopSignal::Suspend => Signal::STOP,
        StopSignal::Continue => Signal::CONT,
    };
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // This fails only if the process has just ended, which is the aim.
        let _ = kill_process(pid, signal);
    }
}

#[cfg(not(unix))]
pub(super) fn send(_pid: u32, _signal: StopSignal) {}

/// Stops this process until somebody sends SIGCONT, as a shell does for `fg`.
pub(super) fn suspend_self() {
    // What the system does by default: nothing, if no shell could continue this process.
    #[cfg(unix)]
    let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP);
}

/// Forwards signals as messages until it is dropped.
pub(super) struct Signals {
    #[cfg(unix)]
    handle: signal_hook::iterator::Handle,
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn forward(sender: &Sender<Message>) -> Result<Self, LaunchError> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP};
        use yolo_protocol::Signal;
        let mut signals = signal_hook::iterator::Signals::new(obeyed(&[SIGINT, SIGTERM, SIGHUP, SIGTSTP]))
            .map_err(|source| LaunchError::Signals { source })?;
        let handle = signals.handle();
        let sender = sender.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                let message = match signal {
                    SIGINT => Message::Signal(Signal::Interrupt),
                    SIGTERM => Message::Signal(Signal::Terminate),
                    SIGHUP => Message::Signal(Signal::HangUp),
                    _ => Message::Suspend,
                };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Self { handle })
    }

    #[cfg(not(unix))]
    pub(super) fn forward(_sender: &Sender<Message>) -> Result<Self, LaunchError> {
        let _ = (Message::Signal(yolo_protocol::Signal::Interrupt), Message::Suspend);
        Ok(Self {})
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        #[cfg(unix)]
        self.handle.close();
    }
}
