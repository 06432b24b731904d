//! Why the machines of a run did not meet, as the master or another machine says it.

use std::borrow::Cow;

use yolo_base::Hint;
use yolo_base::env::YOLO_JOIN_SECONDS;
use yolo_base::format::list;

use super::fact::Difference;
use super::names::{missing_in_words, named};

/// Why there is no run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "a machine is a number and a name, and the texts below say the rest")]
pub enum MeetingError {
    /// Machines did not come in time.
    Missing { seconds: u64, missing: Vec<usize>, machines: usize },
    /// A machine differs from the master.
    Differs(Box<Difference>),
    /// Machines came, but did not get ready in time.
    Late(Vec<(usize, String)>),
    /// A machine closed its connection.
    MemberLeft(usize, String),
    /// A user ended the program on a machine.
    MemberInterrupted(usize, String),
    /// A machine sent what is no message.
    MemberGarbled(usize, String),
    /// A machine cannot start its ranks.
    CannotStart { machine: usize, host: String, message: String, hint: Option<String> },
    /// The master could not be reached.
    Unreachable { address: String, why: String },
    /// The master refused this machine or the run.
    Refused { message: String, hint: Option<String> },
    /// What answers is not the master.
    NoMaster { address: String },
    /// The master, or what listens in its place, is silent.
    Silent { address: String, seconds: u64 },
    /// The master closed the connection.
    MasterLeft,
}

impl std::fmt::Display for MeetingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing { seconds, missing, machines } => {
                write!(f, "waited {seconds} s, and {}", missing_in_words(missing, *machines))
            }
            Self::Differs(difference) => difference.fmt(f),
            Self::Late(members) => {
                let names: Vec<String> =
                    members.iter().map(|(machine, host)| named(*machine, host)).collect();
                write!(f, "{} did not get ready in time", list(&names))
            }
            Self::MemberLeft(machine, host) => {
                write!(f, "{} left before the run began", named(*machine, host))
            }
            Self::MemberInterrupted(machine, host) => {
                write!(f, "{} was interrupted before the run began", named(*machine, host))
            }
            Self::MemberGarbled(machine, host) => {
                write!(f, "{} sent what is no message", named(*machine, host))
            }
            Self::CannotStart { machine, host, message, .. } => {
                write!(f, "{} cannot start: {message}", named(*machine, host))
            }
            Self::Unreachable { address, why } => write!(f, "cannot reach machine 0 at {address}: {why}"),
            Self::Refused { message, .. } => f.write_str(message),
            Self::NoMaster { address } => {
                write!(f, "what answers at {address} is not a yolo of this version")
            }
            Self::Silent { address, seconds } => {
                write!(f, "what listens at {address} has sent nothing for {seconds} s")
            }
            Self::MasterLeft => f.write_str("machine 0 closed the connection before the run began"),
        }
    }
}

impl std::error::Error for MeetingError {}

impl Hint for MeetingError {
    fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Missing { .. } => Some(
                format!("start the same command there, each with its number in --node-rank; {YOLO_JOIN_SECONDS} changes the limit")
                    .into(),
            ),
            Self::Differs(difference) => Some(difference.remedy().into()),
            Self::Unreachable { .. } => Some(
                "start machine 0, and check that --master-addr and --master-port are the same everywhere and that no \
                 firewall blocks the port"
                    .into(),
            ),
            Self::CannotStart { hint, .. } | Self::Refused { hint, .. } => hint.as_deref().map(Into::into),
            _ => None,
        }
    }
}
