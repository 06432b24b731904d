//! Ctrl-C while something is fetched: the program says what happened and ends at once. Everything
//! that setup writes can be gone on with at any moment, so that there is nothing to tidy up.

use crate::printer::Printer;

/// Exit code after SIGINT, as shells report it.
#[cfg(unix)]
const INTERRUPTED: i32 = 130;

/// Hears SIGINT and SIGTERM until it is dropped.
pub(crate) struct Interrupt {
    #[cfg(unix)]
    handle: Option<signal_hook::iterator::Handle>,
}

impl Interrupt {
    /// Says this sentence when the signal comes.
    #[cfg(unix)]
    pub(crate) fn says(sentence: &'static str, printer: &Printer) -> Self {
        use signal_hook::consts::{SIGINT, SIGTERM};
        // Where signals cannot be had, the system's own way of ending is as good.
        let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else {
            return Self { handle: None };
        };
        let handle = signals.handle();
        let printer = printer.clone();
        std::thread::spawn(move || {
            if signals.forever().next().is_some() {
                printer.say(format_args!("\ninterrupted; {sentence}"));
                // A download in another thread cannot be told to stop.
                std::process::exit(INTERRUPTED);
            }
        });
        Self { handle: Some(handle) }
    }

    /// Elsewhere the system ends the program.
    #[cfg(not(unix))]
    pub(crate) fn says(_sentence: &'static str, _printer: &Printer) -> Self {
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
