//! Why a run could not go on, in words that name the rank, what it was doing and what to do next.

use std::path::PathBuf;
use std::process::ExitStatus;

/// Lines of a rank's log that are shown when the rank itself could not say why it ended.
const LOG_LINES: usize = 8;

/// A run that did not end well.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// The folder of the logs cannot be made.
    #[error("the run folder cannot be written: {source}")]
    Folder {
        /// With the path.
        source: std::io::Error,
    },
    /// The rendezvous socket cannot be bound.
    #[error("no socket could be opened on 127.0.0.1 for the ranks to meet: {source}")]
    Socket {
        /// Why.
        source: std::io::Error,
    },
    /// The trainer cannot be started.
    #[error("{} could not be started: {source}", program.display())]
    Spawn {
        /// The trainer.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Signals cannot be watched.
    #[cfg_attr(not(unix), expect(dead_code, reason = "on Windows no ranks are started"))]
    #[error("Ctrl-C could not be handled: {source}")]
    Signals {
        /// Why.
        source: std::io::Error,
    },
    /// A rank failed.
    #[error(transparent)]
    Rank(Box<RankFailure>),
    /// The ranks were not done in the time that they had.
    #[error("{}", late(.doing))]
    Late {
        /// What each was doing that had not ended, with its number.
        doing: Vec<(usize, String)>,
    },
}

fn late(doing: &[(usize, String)]) -> String {
    let each: Vec<String> = doing.iter().map(|(rank, doing)| format!("rank {rank} was {doing}")).collect();
    format!("the ranks hang, and were ended: {}", each.join(", "))
}

impl LaunchError {
    /// What to do next.
    pub(crate) fn hint(&self) -> Option<&str> {
        match self {
            Self::Rank(failure) => failure.hint.as_deref(),
            Self::Folder { .. } => Some("choose a folder that you may write with `--project`"),
            _ => None,
        }
    }
}

/// The rank that failed first.
#[derive(Debug, thiserror::Error)]
pub(crate) struct RankFailure {
    /// Its number.
    pub(crate) rank: usize,
    /// How many ranks there were.
    pub(crate) world: usize,
    /// What it was doing: completes "it was …".
    pub(crate) doing: String,
    /// Why it ended, in its own words or those of the system.
    pub(crate) why: String,
    /// What to do next.
    pub(crate) hint: Option<String>,
    /// What it printed last, when it could not say why itself.
    pub(crate) last_lines: Vec<String>,
    /// Its log.
    pub(crate) log: PathBuf,
    /// Whether the rank itself said why.
    pub(crate) spoke: bool,
}

impl std::fmt::Display for RankFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.spoke && self.world == 1 {
            // The user's one process says it all; that it is a rank would only confuse.
            return write!(f, "{}", self.why);
        }
        write!(f, "rank {} of {} {}", self.rank, self.world, self.why)?;
        if !self.doing.is_empty() {
            write!(f, " (it was {})", self.doing)?;
        }
        if !self.last_lines.is_empty() {
            write!(f, "\nits last words in {}:", self.log.display())?;
            for line in &self.last_lines {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}

/// How a process ended, in words that follow "rank 1".
pub(super) fn describe(status: ExitStatus) -> (String, Option<String>) {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt as _;
        if let Some(signal) = status.signal() {
            let name = signal_name(signal);
            let hint = match signal {
                9 => Some(
                    "the system kills processes when memory runs out (see `dmesg`): a smaller --batch-size, \
                     --imgsz or no --cache needs less; or somebody ran `kill -9`"
                        .to_owned(),
                ),
                7 => Some("the shared memory may be full: `df /dev/shm`".to_owned()),
                _ => None,
            };
            return (format!("was killed by signal {signal} ({name})"), hint);
        }
    }
    match status.code() {
        Some(127) => ("could not load its libraries".to_owned(), Some("run `yolo setup` again".to_owned())),
        Some(code) => (format!("ended with exit code {code} and without a reason"), None),
        None => ("ended without a reason".to_owned(), None),
    }
}

#[cfg(unix)]
fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => "see `kill -l`",
    }
}

/// The last lines of a log, without the frames of C++ backtraces.
pub(super) fn last_lines(log: &std::path::Path) -> Vec<String> {
    let Ok(bytes) = fs_err::read(log) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("frame #"))
        .collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}
