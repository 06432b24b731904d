//! The view of setup: what is fetched, unpacked and built. On a terminal there is one bar for each
//! file that comes and a line for the total; elsewhere the same facts come as plain lines.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{Printer, bytes};
use crate::fetch::{Progress, ProgressEvent};

/// Without a terminal, how often a line tells about a running download.
const PLAIN_EVERY: Duration = Duration::from_secs(5);

/// Draws what setup does.
#[derive(Debug)]
pub(crate) struct SetupView<'a> {
    printer: &'a Printer,
    bars: MultiProgress,
    line: ProgressBar,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    step: String,
    began: Instant,
    /// What had come already when the step began.
    at_first: Option<u64>,
    last_plain: Instant,
    files: HashMap<usize, ProgressBar>,
}

impl State {
    fn new(step: &str) -> Self {
        let now = Instant::now();
        Self { step: step.to_owned(), began: now, at_first: None, last_plain: now, files: HashMap::new() }
    }
}

impl<'a> SetupView<'a> {
    /// A view that draws nothing yet.
    pub(crate) fn new(printer: &'a Printer) -> Self {
        let target =
            if printer.is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bars = MultiProgress::with_draw_target(target);
        let style =
            ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        let line = bars.add(ProgressBar::new(0).with_style(style));
        Self { printer, bars, line, state: Mutex::new(State::new("")) }
    }

    fn draw(&self, state: &mut State, text: String) {
        if self.printer.is_terminal() {
            self.line.set_message(text);
        } else if state.last_plain.elapsed() >= PLAIN_EVERY {
            state.last_plain = Instant::now();
            self.printer.say(text);
        }
    }

    /// The bar of one file, above the total.
    fn bar(&self, name: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(
            "  {wide_msg} {decimal_bytes:>11} / {decimal_total_bytes:<11} [{bar:24}]",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.bars.insert_before(&self.line, ProgressBar::new(0).with_style(style));
        bar.set_message(name.to_owned());
        bar
    }

    /// Takes the line away until there is something to show.
    pub(crate) fn clear(&self) {
        self.line.set_message("");
    }

    /// Says something above the bars.
    pub(crate) fn above(&self, say: impl FnOnce()) {
        self.bars.suspend(say);
    }
}

impl Progress for SetupView<'_> {
    fn event(&self, event: ProgressEvent<'_>) {
        // A view that panicked while drawing is still a view.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            ProgressEvent::Step { text } => {
                state.files.drain().for_each(|(_, bar)| bar.finish_and_clear());
                *state = State::new(text);
                if self.printer.is_terminal() {
                    self.line.set_message(format!("{text} …"));
                } else {
                    self.printer.say(format_args!("{text} …"));
                }
            }
            ProgressEvent::Bytes { done, total } => {
                let first = *state.at_first.get_or_insert(done);
                let rate = done.saturating_sub(first) as f64 / state.began.elapsed().as_secs_f64().max(0.001);
                let of = total.map_or(String::new(), |total| {
                    format!(" of {} ({:.0} %)", bytes(total), done as f64 * 100.0 / total.max(1) as f64)
                });
                let text = format!("{}  {}{of}  {}/s", state.step, bytes(done), bytes(rate as u64));
                self.draw(&mut state, text);
            }
            ProgressEvent::File { id, name, done, total, over } => {
                if !self.printer.is_terminal() {
                    return;
                }
                if over {
                    if let Some(bar) = state.files.remove(&id) {
                        bar.finish_and_clear();
                    }
                    return;
                }
                let bar = state.files.entry(id).or_insert_with(|| self.bar(name));
                bar.set_length(total.unwrap_or(done));
                bar.set_position(done);
            }
            ProgressEvent::Built { krate, count } => {
                let text = format!("{}  {count} crates, {krate}", state.step);
                self.draw(&mut state, text);
            }
            ProgressEvent::Retry { why, after } => self.above(|| {
                let seconds = after.as_secs_f64();
                let digits = usize::from(seconds < 10.0);
                self.printer.warning(format_args!("{why}; trying again in {seconds:.digits$} s"));
            }),
            ProgressEvent::Note { text } => self.above(|| self.printer.say(text)),
            ProgressEvent::Done { text } => {
                self.line.set_message("");
                self.above(|| self.printer.say(text));
            }
        }
    }
}

impl Drop for SetupView<'_> {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.files.drain().for_each(|(_, bar)| bar.finish_and_clear());
        self.line.finish_and_clear();
    }
}
