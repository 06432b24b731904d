//! The machines of a run, as the master sees them: which ranks each has, and when it was last heard. The
//! master is machine 0 and hears itself always.

use std::ops::Range;
use std::time::Duration;

/// One machine.
#[derive(Debug, Clone)]
struct Machine {
    ranks: Range<usize>,
    heard: Duration,
    lost: bool,
}

/// All machines, in order.
#[derive(Debug, Clone)]
pub(crate) struct Machines(Vec<Machine>);

impl Machines {
    /// Machines with these numbers of ranks, heard just now.
    pub(crate) fn new(ranks: &[usize], now: Duration) -> Self {
        let mut first = 0;
        let machine = |&ranks: &usize| {
            let range = first..first + ranks;
            first = range.end;
            Machine { ranks: range, heard: now, lost: false }
        };
        Self(ranks.iter().map(machine).collect())
    }

    /// The number of ranks on all machines.
    pub(crate) fn all_ranks(&self) -> usize {
        self.0.last().map_or(0, |last| last.ranks.end)
    }

    /// The ranks of a machine.
    pub(crate) fn ranks(&self, machine: usize) -> Range<usize> {
        self.0[machine].ranks.clone()
    }

    /// A machine has sent something.
    pub(crate) fn heard(&mut self, machine: usize, now: Duration) {
        self.0[machine].heard = now;
    }

    /// Nothing could be heard until now.
    pub(crate) fn restart(&mut self, now: Duration) {
        self.0.iter_mut().for_each(|machine| machine.heard = now);
    }

    /// The other machines that have been silent for `limit`, and for how long.
    pub(crate) fn silent(&self, now: Duration, limit: Duration) -> Vec<(usize, Duration)> {
        let others = self.0.iter().enumerate().skip(1).filter(|(_, machine)| !machine.lost);
        let silence = others.map(|(number, machine)| (number, now.saturating_sub(machine.heard)));
        silence.filter(|(_, silent)| *silent >= limit).collect()
    }

    /// Gives a machine up. Returns whether it was there.
    pub(crate) fn lose(&mut self, machine: usize) -> bool {
        !std::mem::replace(&mut self.0[machine].lost, true)
    }

    /// Whether a machine was given up.
    pub(crate) fn some_lost(&self) -> bool {
        self.0.iter().any(|machine| machine.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_silent_until_it_is_heard() {
        let second = Duration::from_secs(1);
        let mut machines = Machines::new(&[2, 1, 3], Duration::ZERO);
        assert_eq!((machines.all_ranks(), machines.ranks(2)), (6, 3..6));
        machines.heard(2, second * 5);
        assert_eq!(machines.silent(second * 10, second * 10), [(1, second * 10)], "the master hears itself");
        assert!(machines.lose(1) && !machines.lose(1) && machines.some_lost());
        assert_eq!(machines.silent(second * 20, second * 10), [(2, second * 15)]);
        machines.restart(second * 20);
        assert!(machines.silent(second * 20, second).is_empty());
    }
}
