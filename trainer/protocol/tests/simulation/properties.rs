//! What a user relies on, whatever happens: the run ends, nothing is left, the first cause is named, and the
//! verdict is right.

use std::time::Duration;

use yolo_protocol::{Cause, Failure, Notice, ORPHAN_GRACE, Signal, Verdict};

use crate::history::History;
use crate::machines;
use crate::schedule::{Fault, Schedule};
use crate::world::COLLECTIVE;

const SECOND: Duration = Duration::from_secs(1);

/// Checks all properties. The error says which does not hold.
pub(crate) fn check(schedule: &Schedule, history: &History) -> Result<(), String> {
    nothing_is_left(schedule, history)?;
    let Some((at, verdict)) = &history.verdict else {
        return match history.supervisor_killed {
            Some(at) => machines::agents_end(schedule, history, at),
            None => Err("the run does not end".to_owned()),
        };
    };
    ends_in_time(schedule, history, *at)?;
    verdict_is_right(history, verdict)?;
    if let Verdict::Failed(failure) = verdict {
        first_cause_is_named(schedule, history, failure)?;
    }
    machines::agents_end(schedule, history, *at)?;
    stalls_are_noticed(schedule, history)?;
    if history.ran_while_suspended {
        return Err("a rank worked while the user had suspended the run".to_owned());
    }
    Ok(())
}

fn nothing_is_left(schedule: &Schedule, history: &History) -> Result<(), String> {
    if let Some((rank, _)) = history.left.iter().find(|(_, killable)| *killable) {
        return Err(format!("rank {rank} is left behind"));
    }
    if let Some(killed) = history.supervisor_killed {
        let sleeps = schedule.has(|fault| matches!(fault, Fault::Sleep(_)));
        machines::end_without_master(schedule, history, killed)?;
        let late = history.last_end.is_some_and(|end| end > killed + ORPHAN_GRACE + SECOND * 3);
        return if late && !sleeps { Err("ranks outlive their supervisor".to_owned()) } else { Ok(()) };
    }
    let left = history.left.iter().map(|(rank, _)| *rank);
    match left.filter(|&rank| !machines::is_said_to_be_left(schedule, history, rank)).min() {
        Some(rank) => Err(format!("nobody says that rank {rank} is left behind")),
        None => Ok(()),
    }
}

fn ends_in_time(schedule: &Schedule, history: &History, at: Duration) -> Result<(), String> {
    let paused = |fault: Fault| matches!(fault, Fault::Sleep(_) | Fault::Suspend(_));
    let hangs = |fault: Fault| matches!(fault, Fault::Hang(_) | Fault::Unkillable(_));
    if history.impatient && !schedule.has(hangs) {
        return Err("the user must end the run".to_owned());
    }
    machines::end_in_time(schedule, history, at)?;
    if schedule.has(paused) || schedule.has(machines::is_fault) {
        return Ok(());
    }
    let unkillable = schedule.has(|fault| matches!(fault, Fault::Unkillable(_)));
    let interrupt =
        |index: usize| history.signals.get(index).filter(|(_, signal)| *signal == Signal::Interrupt);
    if let (Some(_), Some((second, _))) = (interrupt(0), interrupt(1))
        && at > *second + SECOND * 6
    {
        return Err("a second Ctrl-C does not end the run at once".to_owned());
    }
    let early = |death: &&Duration| {
        history.finished.is_none_or(|finished| **death < finished)
            && history.signals.iter().all(|(signal, _)| signal > *death)
    };
    if let Some(death) = history.deaths.iter().find(early)
        && !unkillable
        && schedule.restarts == 0
        && at > *death + SECOND * 5
    {
        return Err(format!("ranks are alive {:?} after a death", at - *death));
    }
    Ok(())
}

fn verdict_is_right(history: &History, verdict: &Verdict) -> Result<(), String> {
    let complete = history.finished.is_some();
    let signalled = !history.signals.is_empty();
    let quiet = history.causes.is_empty();
    match verdict {
        Verdict::Finished if complete => Ok(()),
        _ if complete => Err("everything was done, and the verdict is another".to_owned()),
        Verdict::Finished => Err("finished before everything was done".to_owned()),
        Verdict::Interrupted { .. } if !signalled => Err("interrupted without a signal".to_owned()),
        Verdict::Interrupted { killed: true, .. } if quiet && is_one_request(&history.signals) => {
            Err("the ranks could have saved, and were killed".to_owned())
        }
        Verdict::Interrupted { killed: false, resume_from: None } if quiet => {
            Err("nothing to resume from".to_owned())
        }
        Verdict::Interrupted { .. } => Ok(()),
        Verdict::Failed(failure) if quiet => Err(format!("nothing happened, and {failure:?}")),
        Verdict::Failed(failure) if matches!(failure.cause, Cause::OtherVersion(_)) => {
            Err("there is no other version".to_owned())
        }
        Verdict::Failed(_) => Ok(()),
        Verdict::TimedOut(_) => Err("there is no time limit".to_owned()),
        // Rank 0 left early, with success.
        Verdict::Unfinished
            if history.causes.iter().any(|(_, _, fault)| matches!(fault, Fault::LeaveEarly(_))) =>
        {
            Ok(())
        }
        Verdict::Unfinished => Err("all ranks ended, and nobody knows why".to_owned()),
    }
}

/// Whether the user asked once, even if the request came twice.
fn is_one_request(signals: &[(Duration, Signal)]) -> bool {
    match signals {
        [_] => true,
        [(first, Signal::Terminate), (second, Signal::Terminate | Signal::HangUp)] => first == second,
        _ => false,
    }
}

fn first_cause_is_named(schedule: &Schedule, history: &History, failure: &Failure) -> Result<(), String> {
    let named = failure.rank;
    // What the master is told too late may be told out of order.
    let late = schedule.has(|fault| matches!(fault, Fault::Suspend(_))) && schedule.has(machines::is_fault);
    if schedule.faults.len() > 1 && (late || schedule.has(machines::may_report)) {
        return Ok(());
    }
    let sudden = |fault: &Fault| {
        matches!(fault, Fault::Signal(..) | Fault::Exit(_) | Fault::Error(_) | Fault::DiskFull)
            || (machines::is_fault(*fault) && !machines::may_report(*fault))
    };
    // How long it may take until a fault is known.
    let delay = |fault: &Fault| if machines::is_fault(*fault) { SECOND * 12 } else { SECOND };
    let first = history.causes.iter().filter(|(_, _, fault)| sudden(fault));
    let first = first.map(|(at, _, fault)| *at + delay(fault)).min();
    let right = history.causes.iter().any(|(at, rank, fault)| {
        let in_time = history.restarts > 0 || !sudden(fault) || first.is_none_or(|first| *at <= first);
        let it = match (machines::is_fault(*fault), &failure.cause) {
            (true, Cause::MachineLost { machine, .. }) => *machine == schedule.machine_of(*rank),
            (false, Cause::MachineLost { .. }) => false,
            // Orphans end.
            (true, _) => {
                schedule.machine_of(named) == schedule.machine_of(*rank) && machines::may_report(*fault)
            }
            (false, _) => *rank == named,
        };
        it && in_time
    });
    if right { Ok(()) } else { Err(format!("{failure:?} is named, but the causes are {:?}", history.causes)) }
}

fn stalls_are_noticed(schedule: &Schedule, history: &History) -> Result<(), String> {
    let stalls = |fault: &Fault| {
        matches!(fault, Fault::Hang(_) | Fault::Unkillable(_) | Fault::Stop(_)) || machines::is_fault(*fault)
    };
    let noticed = history.notices.iter().find_map(|(at, notice)| match notice {
        Notice::Stalled { ranks, .. } => Some((*at, ranks)),
        _ => None,
    });
    if let Some((at, ranks)) = &noticed
        && !history.causes.iter().any(|(since, _, fault)| since <= at && stalls(fault))
    {
        return Err(format!("ranks {ranks:?} work, and are called stalled"));
    }
    // The limit follows from the steps, so it may be longer than a collective waits.
    let Some((since, rank)) = history.hung_in_training.filter(|_| schedule.step <= SECOND) else {
        return Ok(());
    };
    if schedule.faults.len() > 1 || history.signals.iter().any(|(at, _)| *at < since + COLLECTIVE) {
        return Ok(());
    }
    match noticed {
        Some((at, ranks)) if ranks.contains(&rank) && at <= since + COLLECTIVE => Ok(()),
        other => Err(format!("rank {rank} hangs since {since:?}; noticed: {other:?}")),
    }
}

/// Everything that a test of the schedules wants to have seen.
pub(crate) const KINDS: [&str; 15] = [
    "left behind",
    "finished",
    "interrupted",
    "interrupted, killed",
    "reported",
    "ended",
    "silent",
    "hung",
    "left early",
    "unfinished",
    "stalled",
    "failed afterwards",
    "restarted",
    "machine closed",
    "machine silent",
];

/// Which of [`KINDS`] a run was.
pub(crate) fn kinds(history: &History) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    match history.verdict.as_ref().map(|(_, verdict)| verdict) {
        Some(Verdict::Finished) => kinds.push("finished"),
        Some(Verdict::Interrupted { killed: false, .. }) => kinds.push("interrupted"),
        Some(Verdict::Interrupted { killed: true, .. }) => kinds.push("interrupted, killed"),
        Some(Verdict::Failed(failure)) => kinds.push(match failure.cause {
            Cause::Reported(_) => "reported",
            Cause::Ended(_) => "ended",
            Cause::Silent { .. } => "silent",
            Cause::Hung => "hung",
            Cause::LeftEarly => "left early",
            Cause::OtherVersion(_) => "another version",
            Cause::MachineLost { silent: None, .. } => "machine closed",
            Cause::MachineLost { silent: Some(_), .. } => "machine silent",
        }),
        Some(Verdict::Unfinished) => kinds.push("unfinished"),
        Some(Verdict::TimedOut(_)) | None => {}
    }
    for (_, notice) in &history.notices {
        match notice {
            Notice::Stalled { .. } => kinds.push("stalled"),
            Notice::FailedAfterwards(_) => kinds.push("failed afterwards"),
            Notice::LeftBehind(_) => kinds.push("left behind"),
            Notice::Recovered { .. } => {}
        }
    }
    if history.restarts > 0 {
        kinds.push("restarted");
    }
    kinds
}
