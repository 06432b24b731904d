//! All-reduce over pairs of ranks, after the one over all ranks has failed, to identify the bad device
//! or link. The pairs follow the rounds of a round-robin tournament, so that every device is tested
//! after a few pairs, however little time is left.

use std::time::{Duration, Instant};

use yolo_plan::device::Device;

use super::trial::{Trial, Trials};

/// The time limit for one pair: libtorch starts slowly from a cold disk.
const PAIR_LIMIT: Duration = Duration::from_secs(15);

/// A trial of two ranks.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) ranks: (usize, usize),
    /// `None` if there was no time left.
    pub(super) trial: Option<Trial>,
}

/// Tests every pair while there is time.
pub(super) fn run(trials: &Trials, devices: &[Device], deadline: Instant) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for round in rounds(devices.len()) {
        // One after the other: a rank inherits descriptors, so that only one thread may start ranks.
        for ranks in round {
            let left = deadline.saturating_duration_since(Instant::now()).min(PAIR_LIMIT);
            let trial = (left > Duration::from_secs(1))
                .then(|| trials.run(devices, &[ranks.0, ranks.1], None, left, &|_, _| ()));
            pairs.push(Pair { ranks, trial });
        }
    }
    pairs
}

/// The rounds of a round-robin tournament: in each, a rank is in one pair at most.
fn rounds(count: usize) -> Vec<Vec<(usize, usize)>> {
    let seats = count + count % 2;
    let turn = |seat: usize, round: usize| match seat {
        0 => 0,
        seat => (seat - 1 + round) % (seats - 1) + 1,
    };
    (0..seats.saturating_sub(1))
        .map(|round| {
            (0..seats / 2)
                .map(|seat| (turn(seat, round), turn(seats - 1 - seat, round)))
                .map(|(one, other)| (one.min(other), one.max(other)))
                .filter(|&(_, last)| last < count)
                .collect()
        })
        .collect()
}

/// The one rank that is in all failed pairs and in no successful one, if there is one.
pub(super) fn culprit(bad: &[(usize, usize)], good: &[(usize, usize)]) -> Option<usize> {
    let &(one, other) = bad.first()?;
    let is_in = |rank: usize, pair: &(usize, usize)| pair.0 == rank || pair.1 == rank;
    let guilty = |&rank: &usize| {
        bad.iter().all(|pair| is_in(rank, pair)) && !good.iter().any(|pair| is_in(rank, pair))
    };
    let mut found = [one, other].into_iter().filter(guilty);
    match (found.next(), found.next()) {
        (Some(rank), None) => Some(rank),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_pair_is_tested_once() {
        for count in 0..10 {
            let all: Vec<(usize, usize)> = rounds(count).into_iter().flatten().collect();
            let different: BTreeSet<_> = all.iter().collect();
            assert_eq!(all.len(), different.len());
            assert_eq!(all.len(), count * count.saturating_sub(1) / 2, "{count}");
            assert!(all.iter().all(|(one, other)| one < other));
        }
    }

    #[test]
    fn a_rank_that_fails_with_every_other_is_named() {
        assert_eq!(culprit(&[(0, 2), (1, 2)], &[(0, 1)]), Some(2));
        // One bad link between two ranks that work with others.
        assert_eq!(culprit(&[(0, 1)], &[(0, 2), (1, 2)]), None);
        assert_eq!(culprit(&[], &[(0, 1)]), None);
    }
}
