//! Why a run failed: a message that names the rank, what it was doing, and what to do next.

use std::borrow::Cow;
use std::net::IpAddr;
use std::path::PathBuf;

use yolo_base::Hint;
use yolo_plan::PlanError;

use super::machines::MachinesError;

/// A run that failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchError {
    /// What `--project` names is a file.
    #[error("--project {} is a file, not a folder", path.display())]
    ProjectIsFile {
        /// The file.
        path: PathBuf,
    },
    /// The run folder cannot be created or written; the source names the path.
    #[error("cannot write the run folder: {source}")]
    Folder {
        /// Why.
        source: std::io::Error,
    },
    /// Another run uses the run folder.
    #[error("the run folder {} is in use by another run{}", path.display(), process.map_or(String::new(), |process| format!(", process {process}")))]
    #[cfg_attr(not(unix), expect(dead_code, reason = "on Windows no ranks are started"))]
    InUse {
        /// The folder.
        path: PathBuf,
        /// The `yolo` that uses it, if that is known.
        process: Option<u32>,
    },
    /// The plan cannot be written, or there is no name for the run folder.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The rendezvous socket cannot be bound.
    #[error("cannot open the rendezvous socket on {address}: {source}")]
    Socket {
        /// Where.
        address: IpAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The trainer cannot be started.
    #[error("cannot start {}: {source}", program.display())]
    Spawn {
        /// The trainer.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Signals cannot be handled.
    #[cfg_attr(not(unix), expect(dead_code, reason = "on Windows no ranks are started"))]
    #[error("cannot handle Ctrl-C: {source}")]
    Signals {
        /// Why.
        source: std::io::Error,
    },
    /// A run on several machines did not begin, or this machine lost the others.
    #[error(transparent)]
    Machines(#[from] MachinesError),
    /// A rank failed.
    #[error(transparent)]
    Rank(Box<RankFailure>),
    /// All ranks exited with status 0, but none reported that the run finished.
    #[error("the trainer exited before the run finished, and reported no error")]
    Unfinished {
        /// The log of rank 0.
        log: PathBuf,
    },
    /// The ranks did not end within the time limit.
    #[error("{}", timeout(.doing))]
    Timeout {
        /// What each rank that had not ended was doing, with its number.
        doing: Vec<(usize, String)>,
    },
}

/// The message of a timeout.
pub(crate) fn timeout(doing: &[(usize, String)]) -> String {
    let each: Vec<String> = doing.iter().map(|(rank, doing)| format!("rank {rank} was {doing}")).collect();
    format!("the ranks hung and were stopped: {}", each.join(", "))
}

impl Hint for LaunchError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Rank(failure) => failure.hint.as_deref().map(Into::into),
            Self::InUse { .. } => Some("wait until that run has ended, or stop it; without --exist-ok, a new run gets a folder of its own".into()),
            Self::Plan(error) => error.hint(),
            Self::Machines(error) => error.hint(),
            Self::Unfinished { log } => Some(
                format!(
                    "see {}; if YOLO_TRAINER is set, it must be the yolo-trainer of this release",
                    log.display()
                )
                .into(),
            ),
            Self::ProjectIsFile { .. } | Self::Folder { .. } => {
                Some("choose a writable folder with `--project`".into())
            }
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
    /// Its device, `cuda:1`, or several between commas; empty if it is not known.
    pub(crate) device: String,
    /// Its machine, if the name is known.
    pub(crate) host: Option<String>,
    /// What it was doing: completes "it was …".
    pub(crate) doing: String,
    /// Why it ended: as it reported, or as seen from outside.
    pub(crate) why: String,
    /// What to do next.
    pub(crate) hint: Option<String>,
    /// What its libraries wrote last into its log, if it could not report a reason.
    pub(crate) last_lines: Vec<String>,
    /// Its log, if its process is on this machine.
    pub(crate) log: Option<PathBuf>,
    /// Whether the rank itself reported the reason.
    pub(crate) reported: bool,
    /// Whether a file of the data set is the cause.
    pub(crate) of_data: bool,
}

impl std::fmt::Display for RankFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.reported && self.world == 1 {
            // A user who started one process need not know that it is a rank.
            return write!(f, "{}", self.why);
        }
        write!(f, "rank {} of {} ", self.rank, self.world)?;
        match &self.host {
            // Which device a single rank uses is no question, unless it uses several.
            _ if self.world == 1 && !self.device.contains(',') => {}
            Some(host) if self.device.is_empty() => write!(f, "(on {host}) ")?,
            None if self.device.is_empty() => {}
            Some(host) => write!(f, "({} on {host}) ", self.device)?,
            None => write!(f, "({}) ", self.device)?,
        }
        write!(f, "{}", self.why)?;
        if !self.doing.is_empty() {
            write!(f, " (it was {})", self.doing)?;
        }
        if let Some(log) = self.log.as_ref().filter(|_| !self.last_lines.is_empty()) {
            write!(f, "\nthe last lines of {}:", log.display())?;
            for line in &self.last_lines {
                write!(f, "\n  {line}")?;
            }
        }
        Ok(())
    }
}
