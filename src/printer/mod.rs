//! Everything that the user sees goes through here: results to stdout, talk to stderr, colour only
//! where a terminal shows it, and never as the only bearer of a meaning. A progress line is drawn
//! on terminals; elsewhere the same facts come as plain lines.

mod download;
mod live;
pub(crate) mod setup;
mod table;
mod wrap;
mod wsl;

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, OnceLock};

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(crate) use download::SetupView;
pub(crate) use live::LiveView;
pub(crate) use table::val_table;
pub(crate) use wrap::{COLUMNS, cut, wrap};
pub(crate) use wsl::WslView;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// The one voice of the command.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    quiet: bool,
    terminal: bool,
    /// Why a result did not reach stdout.
    lost: Arc<OnceLock<String>>,
}

impl Printer {
    /// A printer that keeps talk to itself when `quiet` is set. Errors, warnings and results are
    /// always said.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, terminal: std::io::stderr().is_terminal(), lost: Arc::default() }
    }

    /// Whether stderr is a terminal, where a progress line can be drawn.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal && !self.quiet
    }

    /// A result, to stdout.
    pub(crate) fn result(&self, text: impl Display) {
        match writeln!(anstream::stdout(), "{text}") {
            // A reader that has gone away, such as `head`, wants no more results.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                self.lost.get_or_init(|| error.to_string());
            }
            _ => {}
        }
    }

    /// Why results were lost, for example on a full disk.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Talk, to stderr.
    pub(crate) fn say(&self, text: impl Display) {
        if !self.quiet {
            let _ = writeln!(anstream::stderr(), "{text}");
        }
    }

    /// Something that the user should know, but that stops nothing.
    pub(crate) fn warning(&self, text: impl Display) {
        let _ = writeln!(anstream::stderr(), "{WARNING}warning:{WARNING:#} {text}");
    }

    /// Why the command could not do what was asked, and what to do next.
    pub(crate) fn error(&self, text: impl Display, hint: Option<&str>) {
        let _ = writeln!(anstream::stderr(), "{ERROR}error:{ERROR:#} {text}");
        if let Some(hint) = hint {
            let _ = writeln!(anstream::stderr(), "{HINT}hint:{HINT:#} {hint}");
        }
    }

    /// Asks for a yes; `None` when there is nobody to ask.
    pub(crate) fn ask(&self, question: &str) -> Option<bool> {
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            return None;
        }
        let _ = write!(anstream::stderr(), "{question} [y/N] ");
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// A line that is redrawn in place; it draws nothing without a terminal.
    pub(crate) fn line(&self) -> ProgressBar {
        let target =
            if self.is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style =
            ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        ProgressBar::with_draw_target(None, target).with_style(style)
    }
}

/// Bytes as people read them, in units of 1000 as disks and downloads are sold: `122.9 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A time as people read it: `42 s`, `3:07`, `1:02:30`.
pub(crate) fn duration(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest} s"),
        (0, _) => format!("{minutes}:{rest:02}"),
        _ => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_read_well() {
        assert_eq!(
            [bytes(999), bytes(1000), bytes(122_940_000), bytes(999_960_000)],
            ["999 B", "1.0 kB", "122.9 MB", "1.0 GB"]
        );
        assert_eq!([duration(41.6), duration(187.0), duration(3750.0)], ["42 s", "3:07", "1:02:30"]);
    }
}
