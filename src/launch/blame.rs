//! Which rank failed first, and the failure that is reported.

use super::checkpoint::LastCheckpoint;
use super::failure::{RankFailure, describe, last_lines};
use super::rank::RankState;

/// The failure of the rank to blame.
pub(super) fn failure(ranks: &[RankState], checkpoint: &LastCheckpoint) -> RankFailure {
    let world = ranks.len();
    let culprit = culprit(ranks);
    let state = &ranks[culprit];
    let resume =
        checkpoint.path().map(|last| format!("resume the run with `yolo train --resume {}`", last.display()));
    let failure = RankFailure {
        rank: culprit,
        world,
        doing: state.doing.clone(),
        why: String::new(),
        hint: None,
        last_lines: Vec::new(),
        log: state.log.clone(),
        reported: false,
    };
    match (&state.given_up, &state.failed) {
        (Some(why), _) => RankFailure { why: why.clone(), hint: resume, ..failure },
        (None, Some(failed)) => RankFailure {
            doing: failed.doing.clone(),
            why: if world == 1 { failed.message.clone() } else { format!("failed: {}", failed.message) },
            hint: failed.hint.clone().or(resume),
            reported: true,
            ..failure
        },
        (None, None) => {
            let (why, hint) = match state.ended {
                _ if state.killed => ("hung, did not stop when asked to, and was killed".to_owned(), None),
                Some(status) => describe(status),
                None => ("ended".to_owned(), None),
            };
            let hints: Vec<String> = hint.map(str::to_owned).into_iter().chain(resume).collect();
            RankFailure {
                why,
                hint: (!hints.is_empty()).then(|| hints.join("; ")),
                last_lines: last_lines(&state.log),
                ..failure
            }
        }
    }
}

/// The rank to blame: one that was given up, else one that died silently or failed by itself, else
/// one that had to be killed, else one that lost a peer. Ranks that this process stopped afterwards
/// come last.
fn culprit(ranks: &[RankState]) -> usize {
    let blame = |rank: &RankState| match (&rank.failed, rank.ended) {
        _ if rank.given_up.is_some() => 0,
        (Some(failed), _) if !failed.peer_lost => 1,
        (None, Some(status)) if rank.killed && !status.success() => 2,
        (None, Some(status)) if !status.success() && !rank.stopped_when_asked() => 1,
        (Some(_), _) => 3,
        (None, Some(status)) if !status.success() => 4,
        _ => 5,
    };
    (0..ranks.len()).min_by_key(|&index| blame(&ranks[index])).unwrap_or(0)
}
