//! One stage while it runs: it starts programs before its deadline and notes checks and figures.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::interrupt::do_not_go_on_while_stopping;
use crate::invocation::{Ended, Invocation, Running};
use crate::report::{Check, Figure, Outcome};
use crate::session::Session;
use crate::{print, processes};

/// How often a condition is looked at.
const POLL: Duration = Duration::from_millis(20);
/// How long the processes of a stopped run may take to end.
const LAST_BREATH: Duration = Duration::from_secs(10);
/// The last lines of a program that failed.
const LINES: usize = 12;

/// Why a stage ends before its last check.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// Its time is over.
    #[error("the stage ran out of time during `{0}`")]
    TimedOut(String),
    /// Nothing that the stage is for exists yet. It does not count as passed.
    #[error("{0}")]
    NotBuilt(String),
    /// This machine or this kit lacks what the stage needs.
    #[error("{0}")]
    CannotRun(String),
    /// A check failed on which all later ones depend.
    #[error("{0}")]
    Failed(String),
    /// The kit could not start a program or read a file.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// A stage while it runs.
#[derive(Debug)]
pub struct StageRun<'a> {
    /// What all stages share.
    pub session: &'a Session,
    name: &'static str,
    deadline: Instant,
    /// What was checked.
    pub checks: Vec<Check>,
    /// What was measured.
    pub figures: Vec<Figure>,
    /// The last lines of programs that failed.
    pub lines: Vec<String>,
}

impl<'a> StageRun<'a> {
    /// A stage that has not checked anything yet.
    pub fn new(session: &'a Session, name: &'static str, deadline: Instant) -> Self {
        Self { session, name, deadline, checks: Vec::new(), figures: Vec::new(), lines: Vec::new() }
    }

    /// The time that is left.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// When it cannot be started, or the time of the stage is over first.
    pub fn run(&mut self, invocation: Invocation) -> Result<Ended, Stop> {
        let running = self.start(invocation)?;
        self.wait(running)
    }

    /// Runs a program for at most this long. If it is killed before its end, it has no status.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run_for(&mut self, invocation: Invocation, limit: Duration) -> Result<Ended, Stop> {
        let deadline = self.deadline.min(Instant::now() + limit);
        let ended = self.start(invocation)?.wait(deadline)?;
        if ended.status.is_none() {
            processes::kill_all(&self.session.mark);
        }
        Ok(ended)
    }

    /// Starts a program.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(&mut self, invocation: Invocation) -> Result<Running, Stop> {
        do_not_go_on_while_stopping();
        Ok(invocation.start(&self.session.next_log(self.name))?)
    }

    /// Waits for the end of a program.
    ///
    /// # Errors
    /// When the time of the stage is over first. The program is killed, and named.
    pub fn wait(&mut self, running: Running) -> Result<Ended, Stop> {
        let ended = running.wait(self.deadline)?;
        if ended.status.is_none() {
            processes::kill_all(&self.session.mark);
            self.lines.extend(ended.last_lines(LINES));
            return Err(Stop::TimedOut(ended.shown));
        }
        Ok(ended)
    }

    /// Waits until something is the case while a program runs. `false`: the program ended first.
    ///
    /// # Errors
    /// When the time of the stage is over first.
    pub fn wait_until(
        &mut self,
        running: &mut Running,
        what: &str,
        is_so: impl Fn() -> bool,
    ) -> Result<bool, Stop> {
        while !is_so() {
            if running.has_ended()? {
                return Ok(false);
            }
            if self.time_left().is_zero() {
                processes::kill_all(&self.session.mark);
                return Err(Stop::TimedOut(format!("waiting for {what}")));
            }
            std::thread::sleep(POLL);
        }
        Ok(true)
    }

    /// Notes whether something is as it should be. `detail` says what was found.
    pub fn check(&mut self, what: impl Into<String>, is_so: bool, detail: impl Into<String>) -> bool {
        self.note(what.into(), is_so.into(), detail.into());
        is_so
    }

    /// Notes what was found, with its outcome.
    pub fn note(&mut self, what: String, outcome: Outcome, detail: String) {
        do_not_go_on_while_stopping();
        let check = Check { what, outcome, detail };
        print::check(&check);
        self.checks.push(check);
    }

    /// Notes whether a program succeeded, with its message if not.
    pub fn check_success(&mut self, what: impl Into<String>, ended: &Ended) -> bool {
        if ended.succeeded() {
            return self.check(what, true, format!("{:.1} s", ended.seconds));
        }
        let message = ended.message();
        let why = if message.is_empty() { ended.how() } else { format!("{}: {message}", ended.how()) };
        self.lines.extend(ended.last_lines(LINES));
        self.check(what, false, why)
    }

    /// As [`Self::check_success`], where nothing else can be checked without it.
    ///
    /// # Errors
    /// When the program failed.
    pub fn require_success(&mut self, what: &str, ended: &Ended) -> Result<(), Stop> {
        if self.check_success(what, ended) {
            return Ok(());
        }
        Err(Stop::Failed(format!("`{}` ended with {}", ended.shown, ended.how())))
    }

    /// Notes that a feature does not exist yet. It counts neither as passed nor as failed.
    pub fn not_built(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.note(what.into(), Outcome::NotBuilt, why.into());
    }

    /// Notes that something that must be checked was not, for lack of time. The stage does not pass then.
    pub fn unfinished(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.note(what.into(), Outcome::Unfinished, why.into());
    }

    /// Notes that something was not checked on purpose, or that nobody asked for it, and why.
    pub fn skip(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.note(what.into(), Outcome::Skipped, why.into());
    }

    /// Notes something that was measured.
    pub fn figure(&mut self, what: impl Into<String>, value: f64, unit: &str) {
        self.figures.push(Figure { of: None, what: what.into(), value, unit: unit.to_owned() });
    }

    /// Notes one of several things that were measured of a subject.
    pub fn figure_of(&mut self, subject: &str, what: &str, value: f64, unit: &str) {
        let of = Some(subject.to_owned());
        self.figures.push(Figure { of, what: what.to_owned(), value, unit: unit.to_owned() });
    }

    /// Checks that no process is left, and kills those that are.
    pub fn check_nothing_left(&mut self, after: &str) {
        let began = Instant::now();
        while !processes::alive(&self.session.mark).is_empty() && began.elapsed() < LAST_BREATH {
            std::thread::sleep(POLL);
        }
        let left = processes::kill_all(&self.session.mark);
        let detail = match left {
            0 => "none".to_owned(),
            _ => format!("{left} still ran {} s later and were killed", LAST_BREATH.as_secs()),
        };
        self.check(format!("no process is left after {after}"), left == 0, detail);
    }

    /// A file of the working folder as text; empty if it does not exist yet.
    pub fn text(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.session.work.join(path)).unwrap_or_default()
    }
}
