//! Sums over pairs of ranks, to identify a bad device or link. The pairs follow the rounds of a round-robin
//! tournament: those of a round have no rank in common and are tested at once, and every device is tested
//! after one round, however little time is left. A pair that fails is tried again without direct copies.

use std::time::{Duration, Instant};

use yolo_plan::device::Device;
use yolo_plan::event::Measure;

use super::observed::{Again, Pair};
use super::trial::{Trial, Trials, Wanted, links_only};

/// The time limit for one pair: libtorch starts slowly from a cold disk.
const PAIR_LIMIT: Duration = Duration::from_secs(9);
/// Less time than this is not worth a start.
const LEAST: Duration = Duration::from_secs(3);

/// Tests every pair while there is time. `retry`: a pair that fails is tried without direct copies.
pub(super) fn run(trials: &Trials, devices: &[Device], retry: bool, deadline: Instant) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for round in rounds(devices.len()) {
        pairs.extend(std::thread::scope(|scope| {
            let tests: Vec<_> = round
                .into_iter()
                .map(|ranks| (ranks, scope.spawn(move || test(trials, devices, ranks, retry, deadline))))
                .collect();
            let result = |(ranks, test): ((usize, usize), std::thread::ScopedJoinHandle<'_, Pair>)| {
                test.join().unwrap_or(Pair { ranks, ..Pair::default() })
            };
            tests.into_iter().map(result).collect::<Vec<Pair>>()
        }));
    }
    pairs
}

fn test(trials: &Trials, devices: &[Device], ranks: (usize, usize), retry: bool, deadline: Instant) -> Pair {
    let mut pair = Pair { ranks, ..Pair::default() };
    let Some(trial) = attempt(trials, devices, ranks, false, deadline) else { return pair };
    pair.tried = true;
    pair.rate =
        trial.measured.values().flatten().find(|(seen, _)| *seen == Measure::AllReduceRate).map(|one| one.1);
    pair.failure = trial.failure;
    if retry && pair.failure.is_some() {
        let again = attempt(trials, devices, ranks, true, deadline);
        pair.again = again.map(|again| if again.failure.is_some() { Again::Fails } else { Again::Works });
    }
    pair
}

fn attempt(
    trials: &Trials,
    devices: &[Device],
    ranks: (usize, usize),
    without_p2p: bool,
    deadline: Instant,
) -> Option<Trial> {
    let limit = deadline.saturating_duration_since(Instant::now()).min(PAIR_LIMIT);
    let wanted = Wanted { ranks: &[ranks.0, ranks.1], task: links_only(), without_p2p, limit };
    (limit > LEAST).then(|| trials.run(devices, wanted, &|_, _| ()))
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
    fn the_pairs_of_a_round_have_no_rank_in_common() {
        for count in 0..10 {
            for round in rounds(count) {
                let ranks: BTreeSet<usize> = round.iter().flat_map(|pair| [pair.0, pair.1]).collect();
                assert_eq!(ranks.len(), 2 * round.len(), "{round:?}");
            }
        }
    }
}
