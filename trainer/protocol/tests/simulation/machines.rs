//! What a user relies on when a run has several machines: agents end with the run or without the master,
//! and leave nothing behind.

use std::time::Duration;

use yolo_protocol::{MemberVerdict, Notice};

use crate::history::History;
use crate::schedule::{Fault, Schedule};

const SECOND: Duration = Duration::from_secs(1);

/// Whether a fault is about a machine or its connection.
pub(crate) fn is_fault(fault: Fault) -> bool {
    matches!(
        fault,
        Fault::AgentKilled(_) | Fault::MachineGone(_) | Fault::Cut(_) | Fault::Broken(_) | Fault::Delayed(..)
    )
}

/// Whether ranks of a machine with this fault may still report.
pub(crate) fn may_report(fault: Fault) -> bool {
    matches!(fault, Fault::Delayed(..))
}

/// Whether time stands still for a while, or a signal does not end a rank.
fn takes_longer(fault: Fault) -> bool {
    matches!(fault, Fault::Sleep(_) | Fault::Suspend(_) | Fault::Unkillable(_))
}

/// Whether somebody told the user that this rank stays behind. An agent that was killed tells nothing.
pub(crate) fn is_said_to_be_left(schedule: &Schedule, history: &History, rank: usize) -> bool {
    let machine = schedule.machine_of(rank);
    let by_master = history.notices.iter().any(|(_, notice)| match notice {
        Notice::LeftBehind(ranks) => ranks.contains(&rank),
        _ => false,
    });
    let by_agent = history.members.iter().any(|(_, _, verdict)| match verdict {
        MemberVerdict::MasterLost { left, .. } => left.contains(&rank),
        MemberVerdict::Over { .. } => false,
    });
    by_master || by_agent || history.agents_killed.iter().any(|(killed, _)| *killed == machine)
}

/// Every agent ends soon after the master, and says that it lost the master only if something was wrong.
pub(crate) fn agents_end(schedule: &Schedule, history: &History, master: Duration) -> Result<(), String> {
    for machine in 1..schedule.machines.len() {
        if history.agents_killed.iter().any(|(killed, _)| *killed == machine) {
            continue;
        }
        let of_machine = |fault: &Fault| match fault {
            Fault::Cut(of) | Fault::Broken(of) | Fault::Delayed(of, _) => *of == machine,
            _ => false,
        };
        let wrong = history.supervisor_killed.is_some() || schedule.has(|fault| of_machine(&fault));
        match history.members.iter().find(|(of, ..)| *of == machine) {
            None if schedule.has(|fault| matches!(fault, Fault::Sleep(_))) => {}
            None => return Err(format!("the agent of machine {machine} never ends")),
            Some((_, at, _)) if *at > master + SECOND * 40 && !schedule.has(takes_longer) => {
                return Err(format!("the agent of machine {machine} ends {:?} after the run", *at - master));
            }
            Some((_, _, MemberVerdict::MasterLost { .. })) if !wrong => {
                return Err(format!("machine {machine} lost the master without a reason"));
            }
            Some(_) => {}
        }
    }
    let only_asked = schedule.faults.iter().all(|(_, fault)| matches!(fault, Fault::InterruptOn(_)));
    if let Some(asked) = history.asked_elsewhere
        && only_asked
        && history.signals.is_empty()
        && master > asked + SECOND
    {
        return Err("nobody knows of a Ctrl-C on another machine".to_owned());
    }
    Ok(())
}

/// Without the master, ranks on other machines end within five seconds.
pub(crate) fn end_without_master(
    schedule: &Schedule,
    history: &History,
    killed: Duration,
) -> Result<(), String> {
    let faults = schedule.has(|fault| is_fault(fault) || takes_longer(fault));
    match history.last_end_elsewhere {
        Some(end) if end > killed + SECOND * 5 && !faults => {
            Err(format!("ranks of other machines live {:?} without the master", end - killed))
        }
        _ => Ok(()),
    }
}

/// The run ends soon after a machine is lost: at once if its agent was killed or its connection broke, else
/// when its silence is noticed.
pub(crate) fn end_in_time(schedule: &Schedule, history: &History, at: Duration) -> Result<(), String> {
    let several = schedule.faults.iter().filter(|(_, fault)| is_fault(*fault)).count() > 1;
    if several
        || schedule.stays.is_some()
        || schedule.has(takes_longer)
        || schedule.restarts > 0
        || !history.signals.is_empty()
    {
        return Ok(());
    }
    let limit = |fault: Fault| match fault {
        Fault::AgentKilled(_) | Fault::Broken(_) => SECOND * 5,
        Fault::MachineGone(_) | Fault::Cut(_) => SECOND * 16,
        _ => Duration::MAX,
    };
    let late = history.causes.first().filter(|(since, _, fault)| {
        is_fault(*fault)
            && limit(*fault) < Duration::MAX
            && history.finished.is_none_or(|finished| *since < finished)
            && at > *since + limit(*fault) + schedule.latency * 3
    });
    match late {
        Some((since, _, fault)) => Err(format!("the run ends {:?} after {fault:?}", at - *since)),
        None => Ok(()),
    }
}
