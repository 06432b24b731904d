//! What users rely on when machines meet: everybody ends, either all start with parts that fit together or nobody
//! does, the true reason is named, and all who were there hear it.

use std::time::Duration;

use yolo_protocol::meeting::{Layout, MeetingError};

use crate::history::{End, History};
use crate::schedule::{Fault, MasterFault, Program, Schedule};

const SECOND: Duration = Duration::from_secs(1);
/// The longest silence of a master that a machine bears, unless its patience is shorter.
const SILENCE: Duration = Duration::from_secs(30);

/// Checks all properties. The error says which does not hold.
pub(crate) fn check(schedule: &Schedule, history: &History) -> Result<(), String> {
    everybody_ends(schedule, history)?;
    let Some((_, end)) = &history.master else { return Err("the master does not end".to_owned()) };
    match end {
        End::Started => all_start(schedule, history)?,
        _ => nobody_starts(history)?,
    }
    if let End::Failed(error) = end {
        reason_is_true(schedule, history, error)?;
        all_are_told(schedule, history, error)?;
    }
    if is_healthy(schedule) && *end != End::Started {
        return Err(format!("nothing was wrong, and the master ended with {end:?}"));
    }
    for (program, end) in schedule.programs.iter().zip(&history.programs) {
        if let Some((_, End::Failed(error))) = end {
            reason_of_program_is_true(schedule, history, program, error)?;
        }
    }
    Ok(())
}

fn is_suspended(schedule: &Schedule) -> Duration {
    let of = |fault: &Option<Fault>| match fault {
        Some(Fault::Suspended(_, time)) => *time,
        _ => Duration::ZERO,
    };
    let master = match schedule.master_fault {
        Some(MasterFault::Suspended(_, time)) => time,
        _ => Duration::ZERO,
    };
    master + schedule.programs.iter().map(|program| of(&program.fault)).max().unwrap_or_default()
}

/// Nobody waits for longer than it is prepared to.
fn everybody_ends(schedule: &Schedule, history: &History) -> Result<(), String> {
    let patience = schedule.patience;
    let suspended = is_suspended(schedule);
    let limit = schedule.looks + schedule.plans + patience * 2 + suspended + SECOND * 5;
    let master = match &history.master {
        Some((at, _)) if *at <= limit => *at,
        other => return Err(format!("the master should end before {limit:?}: {other:?}")),
    };
    for (number, (program, end)) in schedule.programs.iter().zip(&history.programs).enumerate() {
        // It tries to connect, waits to be let in, and then for the master or the news of its end.
        let limit = (program.start + patience * 2).max(master) + program.plans + SILENCE * 2 + suspended;
        match end {
            Some((at, _)) if *at <= limit => {}
            other => return Err(format!("program {number} should end before {limit:?}: {other:?}")),
        }
    }
    Ok(())
}

/// The programs that were started, with their parts.
fn started<'a>(schedule: &'a Schedule, history: &'a History) -> Vec<(&'a Program, &'a Layout)> {
    let all = schedule.programs.iter().zip(&history.layouts).zip(&history.programs);
    all.filter_map(|((program, layout), end)| match (layout, end) {
        (Some(layout), Some((_, End::Started))) => Some((program, layout)),
        _ => None,
    })
    .collect()
}

fn all_start(schedule: &Schedule, history: &History) -> Result<(), String> {
    let mut next = schedule.own_ranks;
    let parts = schedule.programs.iter().zip(&history.layouts);
    let mut parts: Vec<_> = parts.filter_map(|(program, layout)| Some((program, layout.as_ref()?))).collect();
    parts.sort_by_key(|(_, layout)| layout.first);
    for (program, layout) in &parts {
        if layout.first != next {
            return Err(format!(
                "machine {} has ranks from {}, and should from {next}",
                program.machine, layout.first
            ));
        }
        next += program.ranks;
        if matches!(program.fault, Some(Fault::OtherOptions | Fault::OtherVersion | Fault::OtherCount)) {
            return Err(format!("machine {} differs and takes part", program.machine));
        }
    }
    if parts.len() != schedule.machines - 1 || parts.iter().any(|(_, layout)| layout.world_size != next) {
        return Err(format!("the parts do not fit together: {parts:?}"));
    }
    let lost =
        |program: &Program| matches!(program.fault, Some(Fault::Killed(_) | Fault::Gone(_) | Fault::Cut(_)));
    let started = started(schedule, history).len();
    let expected = parts.iter().filter(|(program, _)| !lost(program)).count();
    if started < expected { Err(format!("{started} of {expected} machines have started")) } else { Ok(()) }
}

fn nobody_starts(history: &History) -> Result<(), String> {
    match history.programs.iter().flatten().any(|(_, end)| *end == End::Started) {
        true => Err("a machine has started ranks of a run that there is not".to_owned()),
        false => Ok(()),
    }
}

/// Whether nothing is wrong that should keep the run from starting.
fn is_healthy(schedule: &Schedule) -> bool {
    let (patience, margin) = (schedule.patience, SECOND * 2 + schedule.latency * 4);
    let suspended = match schedule.master_fault {
        None => Duration::ZERO,
        Some(MasterFault::Suspended(_, time)) if time + margin < SILENCE.min(patience) => time,
        Some(_) => return false,
    };
    let harmless = |fault: Option<Fault>| {
        matches!(fault, None | Some(Fault::Twin | Fault::OtherVersion | Fault::OtherCount))
    };
    let in_time = |program: &Program| {
        program.start + margin < schedule.looks + patience
            && schedule.looks + suspended + margin < program.start + patience
            && program.plans + margin < patience
    };
    (1..schedule.machines).all(|machine| {
        let mut programs = schedule.programs.iter().filter(|program| program.machine == machine);
        programs.clone().all(|program| harmless(program.fault))
            && programs.any(|program| program.fault.is_none() && in_time(program))
    })
}

/// Whether a program that could have come in time, and stay, tried to be this machine.
fn came(schedule: &Schedule, machine: usize) -> bool {
    let margin = SECOND * 3 + schedule.latency * 4;
    schedule.programs.iter().any(|program| {
        program.machine == machine
            && matches!(
                program.fault,
                None | Some(Fault::OtherOptions | Fault::CannotStart | Fault::InterruptedWhenReady)
            )
            && program.start + margin < schedule.looks + schedule.patience
            && schedule.looks + is_suspended(schedule) + margin < program.start + schedule.patience
    })
}

/// Whether a program of this machine has such a fault.
fn has(schedule: &Schedule, machine: usize, kind: impl Fn(Fault) -> bool) -> bool {
    let mut programs = schedule.programs.iter().filter(|program| program.machine == machine);
    programs.any(|program| program.fault.is_some_and(&kind))
}

fn is_lost(fault: Fault) -> bool {
    matches!(fault, Fault::Killed(_) | Fault::Gone(_) | Fault::Cut(_))
}

/// What the master says is what happened.
fn reason_is_true(schedule: &Schedule, history: &History, error: &MeetingError) -> Result<(), String> {
    let suspended = |fault: Fault| matches!(fault, Fault::Suspended(..));
    let is_true = match error {
        MeetingError::Missing { missing, .. } => {
            let joined: Vec<usize> = history.joined.iter().map(|(machine, _)| *machine).collect();
            // Machines leave a master that is suspended for long.
            let left = matches!(schedule.master_fault, Some(MasterFault::Suspended(_, time))
                if time + SECOND * 3 >= SILENCE.min(schedule.patience));
            missing.iter().all(|machine| (left || !came(schedule, *machine)) && !joined.contains(machine))
                && (1..schedule.machines)
                    .all(|machine| missing.contains(&machine) || joined.contains(&machine))
        }
        MeetingError::Differs(difference) => {
            difference.what == "--epochs"
                && has(schedule, difference.member.0, |fault| fault == Fault::OtherOptions)
        }
        MeetingError::Late(members) => members
            .iter()
            .all(|(machine, _)| has(schedule, *machine, |fault| is_lost(fault) || suspended(fault))),
        // A suspended machine takes the silence of a suspended master for its end.
        MeetingError::MemberLeft(machine, _) => {
            has(schedule, *machine, is_lost) || is_suspended(schedule) > Duration::ZERO
        }
        MeetingError::CannotStart { machine, .. } => {
            has(schedule, *machine, |fault| fault == Fault::CannotStart)
        }
        MeetingError::MemberInterrupted(machine, _) => {
            has(schedule, *machine, |fault| fault == Fault::InterruptedWhenReady)
        }
        MeetingError::Refused { .. } => schedule.master_fault == Some(MasterFault::CannotPlan),
        _ => false,
    };
    if is_true { Ok(()) } else { Err(format!("the master says {error:?}, which is not true")) }
}

/// Who had joined a run that does not start knows why, as the master knows it.
fn all_are_told(schedule: &Schedule, history: &History, error: &MeetingError) -> Result<(), String> {
    // One that cannot start either says why itself.
    let hears = |program: &Program| {
        matches!(program.fault, None | Some(Fault::Twin | Fault::OtherOptions | Fault::InterruptedWhenReady))
    };
    for (machine, _) in &history.joined {
        let mut programs = schedule.programs.iter().zip(&history.programs);
        let mut of_it = programs.clone().filter(|(program, _)| program.machine == *machine);
        let told = programs.any(|(program, end)| match end {
            Some((_, End::Failed(MeetingError::Refused { message, .. }))) => {
                program.machine == *machine && *message == error.to_string()
            }
            _ => false,
        });
        if is_suspended(schedule).is_zero() && !told && of_it.all(|(program, _)| hears(program)) {
            return Err(format!("machine {machine} does not hear that {error}"));
        }
    }
    Ok(())
}

/// What a program says is what happened.
fn reason_of_program_is_true(
    schedule: &Schedule,
    history: &History,
    program: &Program,
    error: &MeetingError,
) -> Result<(), String> {
    let master = history.master.as_ref().map(|(_, end)| end);
    let own = |kind: fn(Fault) -> bool| program.fault.is_some_and(kind);
    let suspended = !is_suspended(schedule).is_zero();
    let master_lost = matches!(master, Some(End::Killed));
    let cut = own(|fault| matches!(fault, Fault::Cut(_) | Fault::Suspended(..)));
    let ended = history.master.as_ref().map_or(Duration::MAX, |(at, _)| *at);
    let is_true = match error {
        MeetingError::Refused { message, .. } if message.contains("is taken") => {
            let same = schedule.programs.iter().filter(|other| other.machine == program.machine);
            same.count() > 1 && taken_is_true(schedule, history, program)
        }
        MeetingError::Refused { message, .. } if message.starts_with("--nnodes") => {
            own(|fault| fault == Fault::OtherCount)
        }
        MeetingError::Refused { message, .. } if message.contains("cannot work together") => {
            own(|fault| fault == Fault::OtherVersion)
        }
        MeetingError::Refused { message, .. } if message.contains("has begun") => history.complete.is_some(),
        MeetingError::Refused { message, .. } => {
            matches!(master, Some(End::Failed(error)) if error.to_string() == *message)
        }
        MeetingError::Unreachable { .. } => {
            // The port was closed when it tried last.
            let last = program.start + schedule.patience;
            cut || last < schedule.opens + SECOND * 7 || last + SECOND * 7 > ended
        }
        MeetingError::Silent { .. } => {
            cut || suspended || master_lost || program.start + schedule.patience < schedule.looks + SECOND * 7
        }
        // Without a word: it was not told, since it had not joined, or could not be.
        MeetingError::MasterLeft => cut || suspended || master.is_some_and(|end| *end != End::Started),
        _ => false,
    };
    if is_true {
        Ok(())
    } else {
        Err(format!("machine {} says {error:?}, which is not true", program.machine))
    }
}

/// Whether another program of the same number was there when this one came, or its end not yet known.
fn taken_is_true(schedule: &Schedule, history: &History, program: &Program) -> bool {
    let late =
        |fault: Option<Fault>| matches!(fault, Some(Fault::Gone(_) | Fault::Cut(_) | Fault::Suspended(..)));
    schedule.programs.iter().zip(&history.programs).any(|(other, end)| {
        other.machine == program.machine
            && other.start != program.start
            && (late(other.fault)
                || is_suspended(schedule) > Duration::ZERO
                || end
                    .as_ref()
                    .is_none_or(|(at, _)| *at + schedule.latency * 3 >= program.start.max(schedule.looks)))
    })
}

/// Everything that a test of the schedules wants to have seen.
pub(crate) const KINDS: [&str; 12] = [
    "started",
    "missing",
    "differs",
    "late",
    "left",
    "cannot start",
    "interrupted",
    "cannot plan",
    "refused: taken",
    "refused: begun",
    "unreachable",
    "silent",
];

/// Which of [`KINDS`] a meeting was.
pub(crate) fn kinds(history: &History) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    match history.master.as_ref().map(|(_, end)| end) {
        Some(End::Started) => kinds.push("started"),
        Some(End::Failed(error)) => kinds.push(match error {
            MeetingError::Missing { .. } => "missing",
            MeetingError::Differs(_) => "differs",
            MeetingError::Late(_) => "late",
            MeetingError::MemberLeft(..) => "left",
            MeetingError::CannotStart { .. } => "cannot start",
            MeetingError::MemberInterrupted(..) => "interrupted",
            _ => "cannot plan",
        }),
        _ => {}
    }
    for (_, end) in history.programs.iter().flatten() {
        match end {
            End::Failed(MeetingError::Refused { message, .. }) if message.contains("is taken") => {
                kinds.push("refused: taken");
            }
            End::Failed(MeetingError::Refused { message, .. }) if message.contains("has begun") => {
                kinds.push("refused: begun");
            }
            End::Failed(MeetingError::Unreachable { .. }) => kinds.push("unreachable"),
            End::Failed(MeetingError::Silent { .. }) => kinds.push("silent"),
            _ => {}
        }
    }
    kinds
}
