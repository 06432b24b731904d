//! The view of setup: what is fetched and built, as a redrawn line on a terminal and as plain
//! lines elsewhere.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::{Printer, bytes};
use crate::fetch::{Event, Progress};

/// Without a terminal, how often a line tells about a running download.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// Draws what setup does.
#[derive(Debug)]
pub(crate) struct SetupView<'a> {
    printer: &'a Printer,
    line: ProgressBar,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    step: String,
    began: Instant,
    last_plain: Instant,
}

impl<'a> SetupView<'a> {
    /// A view that draws nothing yet.
    pub(crate) fn new(printer: &'a Printer) -> Self {
        let now = Instant::now();
        let state = State { step: String::new(), began: now, last_plain: now };
        Self { printer, line: printer.line(), state: Mutex::new(state) }
    }

    fn draw(&self, state: &mut State, text: String) {
        if self.printer.is_terminal() {
            self.line.set_message(text);
        } else if state.last_plain.elapsed() >= PLAIN_EVERY {
            state.last_plain = Instant::now();
            self.printer.say(text);
        }
    }
}

impl Progress for SetupView<'_> {
    fn event(&self, event: Event<'_>) {
        // A view that panicked while drawing is still a view.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            Event::Step { text } => {
                *state = State { step: text.to_owned(), began: Instant::now(), last_plain: Instant::now() };
                if self.printer.is_terminal() {
                    self.line.set_message(format!("{text} …"));
                } else {
                    self.printer.say(format_args!("{text} …"));
                }
            }
            Event::Bytes { done, total } => {
                let rate = done as f64 / state.began.elapsed().as_secs_f64().max(0.001);
                let of = total.map_or(String::new(), |total| {
                    format!(" of {} ({:.0} %)", bytes(total), done as f64 * 100.0 / total.max(1) as f64)
                });
                let text = format!("{}  {}{of}  {}/s", state.step, bytes(done), bytes(rate as u64));
                self.draw(&mut state, text);
            }
            Event::Built { krate, count } => {
                let text = format!("{}  {count} crates, {krate}", state.step);
                self.draw(&mut state, text);
            }
            Event::Retry { why, after } => self.line.suspend(|| {
                self.printer.warning(format_args!("{why}; trying again in {:.0} s", after.as_secs_f64()));
            }),
            Event::Note { text } => self.line.suspend(|| self.printer.say(text)),
            Event::Done { text } => {
                self.line.set_message("");
                self.line.suspend(|| self.printer.say(text));
            }
        }
    }
}

impl Drop for SetupView<'_> {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}
