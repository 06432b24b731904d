//! Ctrl-C before a run begins: the program prints a message and exits at once. Everything that setup writes can be
//! continued from any point, and a machine that waits for others has nothing to clean up. Between the runs of a command
//! that starts several, Ctrl-C is only noticed.

#[cfg(unix)]
use crate::in_wsl;
use crate::printer::Printer;

/// Handles SIGINT and SIGTERM until it is dropped.
pub(super) struct Interrupt {
    #[cfg(unix)]
    handle: Option<signal_hook::iterator::Handle>,
}

impl Interrupt {
    /// Prints the message and exits when a signal arrives.
    pub(super) fn with_message(message: &'static str, printer: &Printer) -> Self {
        Self::calling(|| (), message, printer)
    }

    /// The same after a call.
    #[cfg(unix)]
    pub(super) fn calling(
        call: impl FnOnce() + Send + 'static,
        message: &'static str,
        printer: &Printer,
    ) -> Self {
        use signal_hook::consts::{SIGINT, SIGTERM};
        // Without a handler the system ends the program, which is as safe.
        let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else {
            return Self { handle: None };
        };
        let handle = signals.handle();
        let printer = printer.clone();
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                call();
                printer.say(format_args!("\ninterrupted; {message}"));
                // A download in another thread cannot be canceled.
                std::process::exit(in_wsl::exit_status(yolo_base::exit::INTERRUPTED).into());
            }
        });
        Self { handle: Some(handle) }
    }

    /// On other systems the system ends the program.
    #[cfg(not(unix))]
    pub(super) fn calling(
        _call: impl FnOnce() + Send + 'static,
        _message: &'static str,
        _printer: &Printer,
    ) -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for Interrupt {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            handle.close();
        }
    }
}

/// Notices Ctrl-C between two runs. During a run, its supervisor handles it too.
pub(super) struct BetweenRuns {
    #[cfg(unix)]
    happened: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl BetweenRuns {
    /// Notices it from now on.
    pub(super) fn new() -> Self {
        #[cfg(unix)]
        {
            let happened = std::sync::Arc::default();
            for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
                // Without a handler the system ends the program between two runs.
                let _ = signal_hook::flag::register(signal, std::sync::Arc::clone(&happened));
            }
            Self { happened }
        }
        #[cfg(not(unix))]
        Self {}
    }

    /// Whether it has happened.
    pub(super) fn happened(&self) -> bool {
        #[cfg(unix)]
        return self.happened.load(std::sync::atomic::Ordering::Relaxed);
        #[cfg(not(unix))]
        false
    }
}
