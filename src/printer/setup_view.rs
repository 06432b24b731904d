//! The view of setup: what is downloaded, unpacked and built. On a terminal there is one bar per
//! file and a status line for the total; elsewhere the total is printed as plain lines.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use yolo_base::format::{bytes, count};

use super::Printer;
use super::status_line::StatusLine;
use crate::fetch::{Progress, ProgressEvent};

/// Time between plain lines about a running download.
const PLAIN_INTERVAL: Duration = Duration::from_secs(5);

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
    line: StatusLine,
    step: String,
    started: Instant,
    /// Bytes that an earlier run had downloaded when the step started.
    resumed_at: Option<u64>,
    files: HashMap<usize, ProgressBar>,
}

impl State {
    fn start(&mut self, step: &str) {
        self.files.drain().for_each(|(_, bar)| bar.finish_and_clear());
        step.clone_into(&mut self.step);
        self.started = Instant::now();
        self.resumed_at = None;
        self.line.restart();
    }
}

impl<'a> SetupView<'a> {
    /// An empty view.
    pub(crate) fn new(printer: &'a Printer) -> Self {
        let target =
            if printer.is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bars = MultiProgress::with_draw_target(target);
        let status = StatusLine::new(printer, PLAIN_INTERVAL);
        let line = bars.add(status.bar().clone());
        let state = State {
            line: status,
            step: String::new(),
            started: Instant::now(),
            resumed_at: None,
            files: HashMap::new(),
        };
        Self { printer, bars, line, state: Mutex::new(state) }
    }

    /// The bar of one file, above the status line.
    fn bar(&self, name: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(
            "  {wide_msg} {decimal_bytes:>11} / {decimal_total_bytes:<11} [{bar:24}]",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = self.bars.insert_before(&self.line, ProgressBar::new(0).with_style(style));
        bar.set_message(name.to_owned());
        bar
    }

    /// Clears the status line.
    pub(crate) fn clear(&self) {
        self.line.set_message("");
    }

    /// Prints above the bars.
    pub(crate) fn above(&self, print: impl FnOnce()) {
        self.bars.suspend(print);
    }
}

impl Progress for SetupView<'_> {
    fn event(&self, event: ProgressEvent<'_>) {
        // The state stays usable if a thread panicked while it drew.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            ProgressEvent::Step { text } => {
                state.start(text);
                if self.printer.is_terminal() {
                    self.line.set_message(format!("{text} …"));
                } else {
                    self.printer.say(format_args!("{text} …"));
                }
            }
            ProgressEvent::Bytes { done, total } => {
                let first = *state.resumed_at.get_or_insert(done);
                let rate =
                    done.saturating_sub(first) as f64 / state.started.elapsed().as_secs_f64().max(0.001);
                let of = total.map_or(String::new(), |total| {
                    format!(" of {} ({:.0} %)", bytes(total), done as f64 * 100.0 / total.max(1) as f64)
                });
                let text = format!("{}  {}{of}  {}/s", state.step, bytes(done), bytes(rate as u64));
                state.line.update(self.printer, text);
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
            ProgressEvent::Built { krate, count: built } => {
                let text = format!("{}  {}, {krate}", state.step, count(built, "crate"));
                state.line.update(self.printer, text);
            }
            ProgressEvent::Retry { why, after } => self.above(|| {
                let seconds = after.as_secs_f64();
                let digits = usize::from(seconds < 10.0);
                self.printer.warning(format_args!("{why}; retrying in {seconds:.digits$} s"));
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
