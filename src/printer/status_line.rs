//! The status line of a view: redrawn in place on a terminal, and a plain line every few seconds
//! elsewhere.

use std::fmt::Display;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Printer;

/// What is being done right now.
#[derive(Debug)]
pub(super) struct StatusLine {
    bar: ProgressBar,
    plain_interval: Duration,
    last_plain: Option<Instant>,
}

impl StatusLine {
    /// An empty line. `plain_interval` is the time between plain lines without a terminal.
    pub(super) fn new(printer: &Printer, plain_interval: Duration) -> Self {
        let target =
            if printer.is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style =
            ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, target).with_style(style);
        Self { bar, plain_interval, last_plain: None }
    }

    /// The line as a bar, to be placed among others.
    pub(super) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Shows a state that changes often.
    pub(super) fn update(&mut self, printer: &Printer, text: impl Display) {
        if printer.is_terminal() {
            self.bar.set_message(text.to_string());
        } else if self.last_plain.is_none_or(|last| last.elapsed() >= self.plain_interval) {
            self.last_plain = Some(Instant::now());
            printer.say(text);
        }
    }

    /// Waits a full interval before the next plain line.
    pub(super) fn restart(&mut self) {
        self.last_plain = Some(Instant::now());
    }
}
