//! Early stopping (spec §6): training ends when the fitness has not risen for some epochs.

/// Remembers the epoch with the best fitness.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EarlyStopping {
    patience: Option<usize>,
    best_fitness: f64,
    best_epoch: usize,
}

impl EarlyStopping {
    /// Stops after `patience` epochs without a rise; `None` never stops.
    pub(super) fn new(patience: Option<usize>) -> Self {
        Self { patience, best_fitness: -1.0, best_epoch: 0 }
    }

    /// Continues with the best fitness of the epochs so far, and the epoch that had it.
    pub(super) fn resume(patience: Option<usize>, best_fitness: f64, best_epoch: usize) -> Self {
        Self { patience, best_fitness, best_epoch }
    }

    /// Adds the fitness of an epoch. Only a strictly greater one is a rise (spec §6).
    pub(super) fn add(&mut self, epoch: usize, fitness: f64) {
        if fitness > self.best_fitness {
            self.best_fitness = fitness;
            self.best_epoch = epoch;
        }
    }

    /// Whether training ends after this epoch. Asked before the epoch has run, whether it may be the
    /// last one, so that it must be validated even with `--noval`.
    pub(super) fn stops_after(&self, epoch: usize) -> bool {
        self.patience.is_some_and(|patience| epoch.saturating_sub(self.best_epoch) >= patience)
    }

    /// The epoch in which the fitness last rose.
    pub(super) fn best_epoch(&self) -> usize {
        self.best_epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The epochs of `fitness` after which training would stop.
    fn stops(patience: Option<usize>, fitness: &[f64]) -> Vec<usize> {
        let mut stopping = EarlyStopping::new(patience);
        let stops_after = |(epoch, &fitness): (usize, &f64)| {
            stopping.add(epoch, fitness);
            stopping.stops_after(epoch).then_some(epoch)
        };
        fitness.iter().enumerate().filter_map(stops_after).collect()
    }

    #[test]
    fn stops_after_patience_epochs_without_a_rise() {
        assert_eq!(stops(Some(2), &[0.5, 0.5, 0.4]), [2], "an equal fitness is not a rise");
    }

    #[test]
    fn a_rise_restarts_the_count() {
        assert!(stops(Some(2), &[0.1, 0.1, 0.2, 0.2]).is_empty());
    }

    #[test]
    fn never_stops_without_patience() {
        assert!(stops(None, &[0.0; 500]).is_empty());
    }

    #[test]
    fn the_epoch_that_may_be_the_last_is_known_before_it_runs() {
        let mut stopping = EarlyStopping::new(Some(2));
        stopping.add(0, 0.5);
        assert!(!stopping.stops_after(1));
        stopping.add(1, 0.5);
        assert!(stopping.stops_after(2));
    }

    #[test]
    fn a_resumed_run_keeps_its_patience() {
        let mut whole = EarlyStopping::new(Some(3));
        [0.5, 0.4].into_iter().enumerate().for_each(|(epoch, fitness)| whole.add(epoch, fitness));
        let resumed = EarlyStopping::resume(Some(3), 0.5, whole.best_epoch());
        assert_eq!(resumed, whole);
    }
}
