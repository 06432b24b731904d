//! Everything that the user sees goes through here: results to stdout, messages to stderr, color
//! only on terminals and never as the only carrier of a meaning. Progress is drawn on terminals;
//! elsewhere it is printed as plain lines.
//!
//! A result is what the command was asked for: findings, tables, the files of a run. A message is
//! everything else; `--quiet` silences it.

mod bench_table;
mod bench_tables;
mod comparison_text;
mod evolution;
mod gpu_loads;
mod graphics;
pub(crate) mod onnx_text;
mod predictions;
mod rank_rates;
mod run_events;
mod run_view;
mod runs_table;
pub(crate) mod setup_text;
mod setup_view;
mod status_line;
pub(crate) mod undo_text;
mod val_table;
pub(crate) mod weights_text;
mod wrap;
mod wsl;

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, OnceLock};

use anstyle::{AnsiColor, Style};
use yolo_base::Hint;

use crate::in_wsl::for_explorer;

pub(crate) use bench_table::{bench_table, reason as reason_for_workers};
pub(crate) use bench_tables::{bench_doubt, bench_row, bench_tables};
pub(crate) use comparison_text::comparison_text;
pub(crate) use evolution::{evolution_result, generation_begins, generation_ends};
pub(crate) use graphics::Graphics;
pub(crate) use run_events::RunEvents;
pub(crate) use run_view::{RunResults, RunView};
pub(crate) use runs_table::runs_table;
pub(crate) use setup_view::SetupView;
pub(crate) use undo_text::FoundItem;
pub(crate) use val_table::{coco_table, val_table};
pub(crate) use wrap::{COLUMNS, cut, wrap};
pub(crate) use wsl::WslView;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();

/// Where all output goes.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    quiet: bool,
    terminal: bool,
    /// The number of the rank that this process is, unless it is rank 0 or no rank.
    rank: Option<usize>,
    /// Why a result did not reach stdout.
    lost: Arc<OnceLock<String>>,
}

impl Printer {
    /// A printer that drops messages if `quiet` is set. Errors, warnings, questions and results are
    /// always printed.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, terminal: std::io::stderr().is_terminal(), rank: None, lost: Arc::default() }
    }

    /// The printer of a rank other than 0, whose output the launcher mixes with that of the others: only
    /// warnings and errors, with the number of the rank.
    pub(crate) fn of_rank(&self, rank: usize) -> Self {
        Self { quiet: true, rank: Some(rank), ..self.clone() }
    }

    /// Whether stderr is a terminal, where a progress line can be drawn.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal && !self.quiet
    }

    /// Prints a result to stdout. JSON, which is for programs, keeps the paths of this system.
    pub(crate) fn result(&self, text: impl Display) {
        let text = text.to_string();
        let is_json = text.starts_with(['{', '[']);
        let text = if is_json { text.into() } else { for_explorer(&text) };
        match writeln!(anstream::stdout(), "{text}") {
            // A reader that closes the pipe, such as `head`, wants no more results.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                self.lost.get_or_init(|| error.to_string());
            }
            _ => {}
        }
    }

    /// Shows a picture on the terminal of stderr: what [`Graphics::draw`] made of it.
    pub(crate) fn picture(&self, drawn: &[u8]) {
        let mut terminal = std::io::stderr().lock();
        let _ = terminal.write_all(drawn).and_then(|()| terminal.flush());
    }

    /// Why results could not be written, for example because the disk is full.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Prints a message to stderr.
    pub(crate) fn say(&self, text: impl Display) {
        if !self.quiet {
            self.before_question(text);
        }
    }

    /// Prints what a question refers to, to stderr. It is never silenced, so that nobody answers a
    /// question that they cannot see.
    pub(crate) fn before_question(&self, text: impl Display) {
        let _ = writeln!(anstream::stderr(), "{}", for_explorer(&text.to_string()));
    }

    /// Prints a warning: the user should know, but nothing stops.
    pub(crate) fn warning(&self, text: impl Display) {
        let text = text.to_string();
        let text = for_explorer(&text);
        let _ = match self.rank {
            Some(rank) => writeln!(anstream::stderr(), "{WARNING}warning:{WARNING:#} rank {rank}: {text}"),
            None => writeln!(anstream::stderr(), "{WARNING}warning:{WARNING:#} {text}"),
        };
    }

    /// Whether this process is one rank, whose number every warning has.
    pub(crate) fn is_of_rank(&self) -> bool {
        self.rank.is_some()
    }

    /// Prints why the command failed, and what to do next.
    pub(crate) fn error(&self, error: &impl Hint) {
        let _ = writeln!(anstream::stderr(), "{ERROR}error:{ERROR:#} {}", for_explorer(&error.to_string()));
        if let Some(hint) = error.hint() {
            let _ = writeln!(anstream::stderr(), "{HINT}hint:{HINT:#} {}", for_explorer(&hint));
        }
    }

    /// Prints clap's answer to a command line: the help, or what is wrong with it.
    pub(crate) fn command_line(&self, answer: &clap::Error) {
        let _ = answer.print();
    }

    /// Ends a line of progress that a program has left on the terminal.
    pub(crate) fn end_line(&self) {
        if self.terminal {
            let _ = writeln!(std::io::stderr());
        }
    }

    /// Asks a yes-or-no question; `None` if there is nobody to ask.
    pub(crate) fn ask(&self, question: &str) -> Option<bool> {
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            return None;
        }
        let _ = write!(anstream::stderr(), "{question} [y/N] ");
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).ok()?;
        Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }
}
