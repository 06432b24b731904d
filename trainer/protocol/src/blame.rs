//! Which rank failed first. When a rank dies, the others lose it and fail too, and those that the supervisor
//! ends may crash on the way out. So failures are initiating, cascades or teardown, and the first of the
//! lowest class is named.

use std::time::Duration;

use yolo_base::exit;

use crate::input::End;
use crate::rank::{Lost, Rank};
use crate::verdict::{Cause, Failure};

/// Number of the signal of `abort`, with which libtorch ends a process whose collective timed out.
const SIGABRT: i32 = 6;

/// A rank that did not end when asked may only be slow, if it made progress within this time.
const SLOW: Duration = Duration::from_secs(20);

/// A rank that sent nothing for this time does not work: heartbeats come every second.
const SILENT: Duration = Duration::from_secs(8);

/// What a failure is in the course of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// The rank failed by itself.
    Initiating,
    /// The rank ended before its time, without an error.
    LeftEarly,
    /// The rank stood still and had to be killed; it may be what the others waited for.
    Hung,
    /// The rank aborted while it waited for another, as after a time-out.
    Aborted,
    /// The rank lost another.
    Cascade,
    /// The rank was ended by the supervisor.
    Teardown,
}

/// The failure to name; `None` if no rank failed.
pub(crate) fn failure(ranks: &[Rank]) -> Option<Failure> {
    let all = (0..ranks.len()).filter_map(|rank| {
        let (class, at, cause) = of_rank(ranks, rank)?;
        Some(((class, at, rank), cause))
    });
    let ((_, _, rank), cause) = all.min_by_key(|(order, _)| *order)?;
    Some(Failure { rank, cause })
}

/// How and when a rank failed, if it did.
fn of_rank(ranks: &[Rank], number: usize) -> Option<(Class, Duration, Cause)> {
    let rank = &ranks[number];
    if let Some((at, what)) = &rank.other_version {
        return Some((Class::Initiating, *at, Cause::OtherVersion(what.clone())));
    }
    if let Some((at, seconds, state)) = rank.silent {
        return Some((Class::Initiating, at, Cause::Silent { seconds, state }));
    }
    let torn_down = |at: Duration| rank.torn_down.is_some_and(|since| at >= since);
    // A machine that is gone is why its ranks lost others, but not why one failed by itself before.
    if let Some(Lost { at, machine, silent }) = rank.lost
        && rank.failed.as_ref().is_none_or(|(_, failed)| failed.peer_lost)
    {
        let class = if torn_down(at) || rank.killed { Class::Teardown } else { Class::Initiating };
        return Some((class, at, Cause::MachineLost { machine, silent }));
    }
    if let Some((at, reported)) = &rank.failed {
        let class = match reported.peer_lost {
            false if torn_down(*at) => Class::Teardown,
            false => Class::Initiating,
            true => Class::Cascade,
        };
        return Some((class, *at, Cause::Reported(reported.clone())));
    }
    // Without an end, no signal could end it.
    let Some((at, end)) = rank.ended else { return Some((Class::Hung, Duration::MAX, Cause::Hung)) };
    if rank.killed {
        let stood = at.saturating_sub(rank.moved) >= SLOW;
        let silent = at.saturating_sub(rank.heard) >= SILENT;
        let hung = (stood || silent) && !rank.killed_by_user && !waits_for_others(ranks, number);
        let class = if hung { Class::Hung } else { Class::Teardown };
        return Some((class, at, Cause::Hung));
    }
    if end.is_success() {
        let lost = ranks.iter().any(|other| matches!(&other.failed, Some((_, failed)) if failed.peer_lost));
        return (lost && !torn_down(at)).then_some((Class::LeftEarly, at, Cause::LeftEarly));
    }
    if rank.asked && rank.ended_as_asked() {
        return None;
    }
    let interrupted = end == End::Exited(i32::from(exit::INTERRUPTED));
    let class = if torn_down(at) {
        Class::Teardown
    } else if interrupted && ranks.iter().any(|other| other.lost.is_some()) {
        // The agent of the lost machine has asked its ranks to end, and ranks end together.
        Class::Cascade
    } else if end == End::Signalled(SIGABRT) && waits_for_others(ranks, number) {
        Class::Aborted
    } else {
        Class::Initiating
    };
    Some((class, at, Cause::Ended(end)))
}

/// Whether another rank that has not finished is behind this one.
fn waits_for_others(ranks: &[Rank], number: usize) -> bool {
    let unfinished = |rank: &Rank| !rank.ended.is_some_and(|(_, end)| end.is_success());
    ranks.iter().any(|other| unfinished(other) && ranks[number].is_ahead_of(other))
}

#[cfg(test)]
mod tests {
    use yolo_plan::event::{Progress, Stage};

    use super::*;
    use crate::rank::Reported;

    const SECOND: Duration = Duration::from_secs(1);

    fn ended(at: u32, end: End) -> Rank {
        Rank { ended: Some((SECOND * at, end)), ..Rank::new() }
    }

    fn reported(at: u32, peer_lost: bool) -> Rank {
        let message = if peer_lost { "lost a peer" } else { "out of memory" }.to_owned();
        let report = Reported { message, hint: None, doing: String::new(), peer_lost, of_data: false };
        Rank { failed: Some((SECOND * at, report)), ..ended(at, End::Exited(1)) }
    }

    fn named(ranks: &[Rank]) -> usize {
        failure(ranks).unwrap().rank
    }

    fn at_step(steps: u64, rank: Rank) -> Rank {
        let (stage, seconds) = (Stage::Computing, [0.0; 3]);
        let progress = Progress { epoch: 0, batch: 0, batches: 9, steps, images: 0, stage, seconds };
        Rank { progress: Some(progress), ..rank }
    }

    #[test]
    fn the_first_that_failed_by_itself_is_named() {
        assert_eq!(named(&[reported(1, true), ended(2, End::Signalled(9))]), 1);
        assert_eq!(named(&[reported(3, false), reported(2, false)]), 1, "the order of time, not of numbers");
        assert_eq!(named(&[reported(3, true), reported(2, true)]), 1);
        assert_eq!(failure(&[Rank { ..ended(1, End::Exited(0)) }]), None);
    }

    #[test]
    fn crashes_of_ranks_that_were_being_ended_come_last() {
        let crashed = Rank { torn_down: Some(SECOND), ..ended(2, End::Signalled(11)) };
        assert_eq!(named(&[crashed.clone(), reported(3, true)]), 1);
        let failed = Rank { torn_down: Some(SECOND), ..reported(2, false) };
        assert_eq!(named(&[failed, reported(3, true)]), 1);
    }

    #[test]
    fn a_rank_that_ignored_the_request_is_named_unless_it_waited() {
        let killed = Rank { killed: true, torn_down: Some(SECOND), ..ended(30, End::Signalled(9)) };
        assert_eq!(named(&[reported(1, true), killed.clone()]), 1);
        let ranks = [at_step(3, reported(1, true)), at_step(4, killed.clone())];
        assert_eq!(named(&ranks), 0, "rank 1 was ahead");
        let slow = Rank { moved: SECOND * 20, heard: SECOND * 28, ..killed };
        assert_eq!(named(&[reported(1, true), slow.clone()]), 0, "it made progress just before");
        let silent = Rank { heard: SECOND * 20, ..slow };
        assert_eq!(named(&[reported(1, true), silent]), 1);
    }

    #[test]
    fn a_rank_that_aborted_while_it_waited_comes_after_the_one_that_hung() {
        let hung = Rank { killed: true, torn_down: Some(SECOND), ..ended(30, End::Signalled(9)) };
        let aborted = ended(1, End::Signalled(SIGABRT));
        assert_eq!(named(&[at_step(8, aborted.clone()), at_step(7, hung)]), 1);
        assert_eq!(named(&[at_step(7, aborted), at_step(7, reported(2, true))]), 0);
    }

    #[test]
    fn a_machine_that_is_gone_comes_before_those_that_lost_it() {
        let lost = |at| Some(Lost { at: SECOND * at, machine: 1, silent: Some(10) });
        let gone = Rank { lost: lost(2), ..Rank::new() };
        assert_eq!(named(&[reported(1, true), gone.clone()]), 1);
        let told = Rank { ended: None, lost: lost(2), ..reported(1, true) };
        assert_eq!(failure(&[told]).unwrap().cause, Cause::MachineLost { machine: 1, silent: Some(10) });
        let failed = Rank { ended: None, lost: lost(2), ..reported(1, false) };
        assert!(matches!(failure(&[failed]).unwrap().cause, Cause::Reported(_)), "it failed before");
        let later = Rank { torn_down: Some(SECOND), ..gone };
        assert_eq!(named(&[reported(1, true), later]), 0, "the run was being ended");
    }

    #[test]
    fn a_rank_that_left_early_is_named_before_those_that_lost_it() {
        assert_eq!(named(&[reported(2, true), ended(1, End::Exited(0))]), 1);
    }
}
