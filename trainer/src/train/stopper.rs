//! Early stopping (spec §6): training ends when the fitness has not risen for a number of epochs.

/// Watches the fitness of each epoch.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Stopper {
    patience: Option<usize>,
    best: f64,
    best_epoch: usize,
}

/// What the fitness of an epoch means for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Training ends after this epoch.
    pub(super) stop: bool,
    /// The next epoch may be the last: it must be validated even with `--noval`.
    pub(super) may_stop_next: bool,
}

impl Stopper {
    /// Ends after `patience` epochs without a rise; `None` never ends.
    pub(super) fn new(patience: Option<usize>) -> Self {
        Self { patience, best: -1.0, best_epoch: 0 }
    }

    /// Takes the fitness of an epoch. Only a strictly greater one counts as a rise (spec §6, HEAD).
    pub(super) fn judge(&mut self, epoch: usize, fitness: f64) -> Verdict {
        if fitness > self.best {
            self.best = fitness;
            self.best_epoch = epoch;
        }
        let Some(patience) = self.patience else { return Verdict { stop: false, may_stop_next: false } };
        let since = epoch - self.best_epoch;
        Verdict { stop: since >= patience, may_stop_next: since + 1 >= patience }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_after_patience_epochs_without_a_rise() {
        let mut stopper = Stopper::new(Some(2));
        assert!(!stopper.judge(0, 0.5).stop);
        let next = stopper.judge(1, 0.5);
        assert!(!next.stop && next.may_stop_next, "an equal fitness is no rise");
        assert!(stopper.judge(2, 0.4).stop);
    }

    #[test]
    fn a_rise_starts_the_count_again() {
        let mut stopper = Stopper::new(Some(2));
        for (epoch, fitness) in [0.1, 0.1, 0.2, 0.2].into_iter().enumerate() {
            assert!(!stopper.judge(epoch, fitness).stop);
        }
    }

    #[test]
    fn without_patience_it_never_stops() {
        let mut stopper = Stopper::new(None);
        assert!((0..500).all(|epoch| !stopper.judge(epoch, 0.0).stop));
    }
}
