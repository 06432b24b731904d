//! Trains one generation after the other: what each trains, when the table is published, and when failures end the
//! search.

use yolo_data::random::{Purpose, Random};
use yolo_plan::event::Metrics;
use yolo_plan::evolve::{Generation, Table, mutate};

/// Failures in a row that end a search in which no generation has ever been trained: the cause is not the
/// hyperparameters.
const FAILURES_AT_THE_START: usize = 2;
/// Failures in a row that end a search that has worked.
const FAILURES_LATER: usize = 5;

/// What a search is.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    /// How many generations the table will have.
    pub(crate) generations: usize,
    /// The seed of the run.
    pub(crate) seed: u64,
    /// The hyperparameters of the first generations.
    pub(crate) first: Vec<Vec<f64>>,
}

/// Why a generation has no metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The number of the generation, from 0.
    pub(crate) generation: usize,
    /// The whole message.
    pub(crate) message: String,
}

/// How the training of a generation ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TrainingEnd {
    /// With the metrics of the last epoch, and its losses on the validation split.
    Trained(Metrics, [f64; 3]),
    /// Without, because of this.
    Failed(String),
    /// The user interrupted it.
    Interrupted {
        /// Whether ranks had to be killed.
        killed: bool,
    },
}

/// How the search ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// The table has as many generations as were wanted.
    Finished,
    /// The user interrupted it.
    Interrupted {
        /// Whether ranks had to be killed.
        killed: bool,
    },
    /// Too many generations failed in a row. This is the first one.
    Failed {
        /// Why the first one failed.
        first: Failure,
        /// How many failed.
        count: usize,
    },
}

/// Trains generations, and publishes their table.
pub(crate) trait Trainings {
    /// Why training or publishing is impossible, whatever the hyperparameters.
    type Error;

    /// Trains generation `number`, counted from 0, a mutation of generation `parent`.
    fn train(
        &mut self,
        number: usize,
        parent: Option<usize>,
        values: &[f64],
    ) -> Result<TrainingEnd, Self::Error>;

    /// Shows the last generation of the table, and why it failed, if it did.
    fn show(&mut self, table: &Table, parent: Option<usize>, failure: Option<&Failure>);

    /// Publishes the table.
    fn publish(&mut self, table: &Table) -> Result<(), Self::Error>;

    /// Whether the user wants to stop.
    fn interrupted(&self) -> bool;
}

/// Trains until the table has as many generations as the search wants.
pub(crate) fn evolve<T: Trainings>(
    search: &Search,
    table: &mut Table,
    trainings: &mut T,
) -> Result<End, T::Error> {
    let mut has_worked = !table.rows().is_empty();
    let mut first_failure: Option<Failure> = None;
    let mut failures = 0;
    while table.rows().len() < search.generations {
        if trainings.interrupted() {
            return Ok(End::Interrupted { killed: false });
        }
        let number = table.rows().len();
        let Some((parent, values)) = candidate(search, table) else { break };
        match trainings.train(number, parent, &values)? {
            TrainingEnd::Interrupted { killed } => return Ok(End::Interrupted { killed }),
            TrainingEnd::Trained(metrics, losses) => {
                (has_worked, failures, first_failure) = (true, 0, None);
                table.push(Generation { metrics, losses, values });
                trainings.show(table, parent, None);
            }
            TrainingEnd::Failed(message) => {
                failures += 1;
                let failure = Failure { generation: number, message };
                table.push(Generation::failed(values));
                trainings.show(table, parent, Some(&failure));
                first_failure.get_or_insert(failure);
            }
        }
        // Before anything has worked, a failure says nothing about the hyperparameters, so it must not become a part of
        // the table.
        if has_worked {
            trainings.publish(table)?;
        }
        let limit = if has_worked { FAILURES_LATER } else { FAILURES_AT_THE_START };
        if failures >= limit
            && let Some(first) = first_failure
        {
            return Ok(End::Failed { first, count: failures });
        }
    }
    if !has_worked {
        // All of the generations, fewer than the limit, have failed.
        if let Some(first) = first_failure {
            return Ok(End::Failed { first, count: failures });
        }
    }
    Ok(End::Finished)
}

/// The parent and the hyperparameters of the next generation. It depends on the seed and the table only, so a resumed
/// search continues as if it had not been interrupted.
fn candidate(search: &Search, table: &Table) -> Option<(Option<usize>, Vec<f64>)> {
    let number = table.rows().len();
    if let Some(values) = search.first.get(number) {
        return Some((None, values.clone()));
    }
    let mut random = Random::keyed(search.seed, number as u64, Purpose::Evolution, 0);
    mutate(table, &mut random).map(|child| (Some(child.parent), child.values))
}

#[cfg(test)]
mod tests {
    use yolo_plan::evolve::Genes;
    use yolo_plan::hyp::HyperParameters;

    use super::*;

    /// Ends each training as a function says.
    struct Fake<F> {
        end: F,
        trained: Vec<(usize, Option<usize>, Vec<f64>)>,
        published: Option<Table>,
    }

    impl<F: FnMut(usize) -> TrainingEnd> Trainings for Fake<F> {
        type Error = ();

        fn train(&mut self, number: usize, parent: Option<usize>, values: &[f64]) -> Result<TrainingEnd, ()> {
            self.trained.push((number, parent, values.to_vec()));
            Ok((self.end)(number))
        }

        fn show(&mut self, _table: &Table, _parent: Option<usize>, _failure: Option<&Failure>) {}

        fn publish(&mut self, table: &Table) -> Result<(), ()> {
            self.published = Some(table.clone());
            Ok(())
        }

        fn interrupted(&self) -> bool {
            false
        }
    }

    const GENES: fn() -> Genes = || Genes::new(true);

    fn search(generations: usize, seed: u64) -> Search {
        Search { generations, seed, first: vec![GENES().of_hyp(&HyperParameters::low())] }
    }

    fn trained(map: f64) -> TrainingEnd {
        let metrics = Metrics { precision: 0.1, recall: 0.1, map50: map, map50_95: map };
        TrainingEnd::Trained(metrics, [0.1; 3])
    }

    fn failed() -> TrainingEnd {
        TrainingEnd::Failed("the box loss became NaN".to_owned())
    }

    /// The end, what was trained, and what was published.
    fn run(
        search: &Search,
        table: &mut Table,
        end: impl FnMut(usize) -> TrainingEnd,
    ) -> (End, usize, Option<Table>) {
        let mut fake = Fake { end, trained: Vec::new(), published: None };
        let ended = evolve(search, table, &mut fake).unwrap();
        (ended, fake.trained.len(), fake.published)
    }

    #[test]
    fn a_search_that_is_interrupted_and_resumed_is_the_same_search() {
        let search = search(8, 3);
        let mut whole = Table::new(GENES());
        assert_eq!(run(&search, &mut whole, |number| trained(number as f64 / 10.0)).0, End::Finished);
        let mut parts = Table::new(GENES());
        let stop = |number| match number {
            5 => TrainingEnd::Interrupted { killed: false },
            _ => trained(number as f64 / 10.0),
        };
        let (end, _, published) = run(&search, &mut parts, stop);
        assert_eq!(end, End::Interrupted { killed: false });
        // What the file has is enough.
        let csv = published.unwrap().to_csv();
        let (mut read, warning) = Table::parse(&csv, "evolve.csv", GENES()).unwrap();
        assert_eq!((read.rows().len(), warning), (5, None));
        run(&search, &mut read, |number| trained(number as f64 / 10.0));
        assert_eq!(read.to_csv(), whole.to_csv());
        let mut other = Table::new(GENES());
        run(&super::Search { seed: 4, ..search }, &mut other, |number| trained(number as f64 / 10.0));
        assert_ne!(other.to_csv(), whole.to_csv());
    }

    #[test]
    fn two_failures_at_the_start_end_the_search_without_a_table() {
        let mut table = Table::new(GENES());
        let (end, trained, published) = run(&search(300, 0), &mut table, |_| failed());
        let first = Failure { generation: 0, message: "the box loss became NaN".to_owned() };
        assert_eq!((end, trained, published), (End::Failed { first, count: 2 }, 2, None));
    }

    #[test]
    fn a_failure_counts_as_nothing_and_the_search_goes_on() {
        let mut table = Table::new(GENES());
        let mut parents = Vec::new();
        let end = |number| if number % 2 == 0 { failed() } else { trained(0.5) };
        let mut fake = Fake { end, trained: Vec::new(), published: None };
        assert_eq!(evolve(&search(9, 0), &mut table, &mut fake).unwrap(), End::Finished);
        parents.extend(fake.trained.iter().skip(2).map(|(_, parent, _)| parent.unwrap()));
        assert!(parents.iter().all(|parent| parent % 2 == 1), "a failed one was mutated: {parents:?}");
        assert_eq!(fake.published.unwrap().rows().len(), 9);
        assert_eq!((table.rows()[0].fitness(), table.best()), (0.0, Some(1)));
    }

    #[test]
    fn a_search_that_has_worked_ends_after_five_failures() {
        let mut table = Table::new(GENES());
        let end = |number| if number == 0 { trained(0.5) } else { failed() };
        let (end, trained, _) = run(&search(300, 0), &mut table, end);
        assert!(matches!(end, End::Failed { first: Failure { generation: 1, .. }, count: 5 }), "{end:?}");
        assert_eq!(trained, 6);
    }

    #[test]
    fn the_only_generation_that_fails_is_a_failure() {
        let (end, ..) = run(&search(1, 0), &mut Table::new(GENES()), |_| failed());
        assert!(matches!(end, End::Failed { count: 1, .. }), "{end:?}");
    }

    #[test]
    fn the_files_of_a_population_come_first() {
        let low = GENES().of_hyp(&HyperParameters::low());
        let voc = GENES().of_hyp(&HyperParameters::preset("voc").unwrap());
        let search = Search { first: vec![low.clone(), voc.clone()], ..search(3, 0) };
        let mut fake = Fake { end: |_| trained(0.1), trained: Vec::new(), published: None };
        evolve(&search, &mut Table::new(GENES()), &mut fake).unwrap();
        assert_eq!(fake.trained[..2], [(0, None, low), (1, None, voc)]);
        assert!(fake.trained[2].1.is_some());
    }
}
