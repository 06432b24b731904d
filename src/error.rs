//! Why a command failed: one message and, if there is one, the next step.

use std::borrow::Cow;
use std::path::PathBuf;

use yolo_base::seconds::NotSeconds;
use yolo_base::{Hint, exit};
use yolo_checks::facts::RecordingError;
use yolo_data::error::DataError;
use yolo_plan::PlanError;
use yolo_plan::run::Need;

use crate::dirs::YoloDirsError;
use crate::fetch::Redacted;
use crate::in_wsl::InWslError;
use crate::launch::LaunchError;
use crate::launch::machines::MachinesError;
use crate::setup::{SetupError, WslError};
use crate::undo::UndoError;

/// The error that a command ends with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Setup(#[from] SetupError),
    #[error(transparent)]
    Wsl(#[from] WslError),
    #[error(transparent)]
    Undo(#[from] UndoError),
    #[error(transparent)]
    InWsl(#[from] InWslError),
    /// WSL does not start, and it is known why.
    #[error("{error}\n{finding}")]
    NoWsl {
        error: Box<InWslError>,
        finding: String,
        /// The name of the finding.
        id: &'static str,
    },
    #[error(transparent)]
    Dirs(#[from] YoloDirsError),
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error(transparent)]
    Machines(#[from] MachinesError),
    #[error("{what}: {source}")]
    File { what: String, source: std::io::Error, hint: Option<String> },
    #[error("{file} is not a recording: {source}", file = .file.display())]
    Recording { file: PathBuf, source: RecordingError },
    #[error("preflight checks found errors:\n{findings}")]
    Preflight { findings: String },
    #[error("{} still missing after setup", missing(.needs))]
    StillMissing { needs: Vec<Need> },
    #[error(transparent)]
    Seconds(#[from] NotSeconds),
    #[error(transparent)]
    WeightsFile(#[from] torch_checkpoint::WeightsError),
    /// A weights file that is described, but refused.
    #[error("{what}")]
    Weights { what: String, hint: Option<String> },
    #[error("cannot write to stdout: {why}")]
    Output { why: String },
    /// Options are wrong: an invalid value, or values that contradict each other.
    #[error("{what}")]
    Usage { what: String, hint: String },
    #[error("{what}")]
    Failed { what: String, hint: String },
    /// An error of a rank that another launcher has started.
    #[error("{}", of_rank(*.rank, *.world, .error))]
    OfRank { rank: usize, world: usize, error: Box<Self> },
    /// An error of `yolo doctor` itself, whose status 1 means that findings are errors.
    #[error("{0}")]
    Doctor(Box<Self>),
}

impl CommandError {
    /// The exit status of the command.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Doctor(_)
            | Self::Machines(MachinesError::Options { .. })
            | Self::Seconds(_)
            | Self::InWsl(InWslError::NotWindows(_))
            | Self::Usage { .. } => exit::USAGE,
            Self::Plan(error) | Self::Setup(SetupError::Plan(error)) if error.is_usage() => exit::USAGE,
            Self::OfRank { error, .. } => error.exit_status(),
            _ => exit::FAILURE,
        }
    }
}

impl Hint for CommandError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Plan(error) => error.hint(),
            Self::Setup(error) => error.hint(),
            Self::Wsl(error) => error.hint(),
            Self::Undo(error) => error.hint(),
            Self::InWsl(error) => error.hint(),
            Self::NoWsl { id, .. } => Some(format!("`yolo doctor --explain {id}` explains it").into()),
            Self::Data(error) => error.hint(),
            Self::Launch(error) => error.hint(),
            Self::Doctor(error) | Self::OfRank { error, .. } => error.hint(),
            Self::Machines(error) => error.hint(),
            Self::File { hint, .. } => hint.as_deref().map(Into::into),
            Self::Usage { hint, .. } | Self::Failed { hint, .. } => Some(hint.into()),
            Self::Preflight { .. } => Some(
                "`yolo doctor --explain ID` explains a finding; `--no-preflight` starts the run anyway"
                    .into(),
            ),
            Self::Recording { .. } => Some(
                "`yolo doctor --record FILE` writes a recording; docs/recording.md describes the format"
                    .into(),
            ),
            Self::StillMissing { .. } => {
                Some("run `yolo setup --data` or `yolo setup --weights` to see why".into())
            }
            Self::Dirs(error) => error.hint(),
            Self::Seconds(error) => error.hint(),
            Self::WeightsFile(error) => error.hint().map(Into::into),
            Self::Weights { hint, .. } => hint.as_deref().map(Into::into),
            Self::Output { .. } => None,
        }
    }
}

/// The launcher mixes the output of all ranks, so each says who it is.
fn of_rank(rank: usize, world: usize, error: &CommandError) -> String {
    match error {
        CommandError::Launch(LaunchError::Rank(_)) => error.to_string(),
        _ => format!("rank {rank} of {world}: {error}"),
    }
}

fn missing(needs: &[Need]) -> String {
    let names: Vec<String> = needs
        .iter()
        .map(|need| match need {
            Need::Builtin(name) | Need::Data(name) => format!("the data set {name}"),
            Need::Weights(name) => format!("the weights {name}"),
            Need::Source(address) => Redacted::new(address).to_string(),
        })
        .collect();
    format!("{} {}", yolo_base::format::list(&names), if names.len() == 1 { "is" } else { "are" })
}
