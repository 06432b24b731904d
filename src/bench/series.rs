//! The runs of the tables, one after the other. Memory that runs out ends a series, because the rows that
//! follow need more; another failure does not.

use yolo_base::format::count;
use yolo_plan::bench_report::Source;
use yolo_plan::bench_tables::{Outcome, Row, Tables};
use yolo_plan::device::Device;
use yolo_plan::run::{PlannedRow, Table, Task};

use super::memory::refusal;

/// How the run of a row ended.
#[derive(Debug)]
pub(crate) enum RowEnd {
    /// By itself.
    Outcome(Outcome),
    /// The user ended it, and thereby all that follow.
    Interrupted,
}

/// What the runs need from outside.
pub(crate) trait Runs {
    /// Makes the run of a row. `number` counts from 1.
    fn run(&mut self, number: usize, row: &PlannedRow) -> RowEnd;

    /// Gets a row that has its outcome.
    fn show(&mut self, row: &Row);

    /// The memory that runs on the CPU can take, in bytes, if it is known.
    fn available_memory(&self) -> Option<u64>;

    /// Whether the user wants to end.
    fn interrupted(&self) -> bool;
}

/// Makes the runs of `rows` and adds their outcomes to `tables`.
pub(crate) fn measure(tables: &mut Tables, rows: &[PlannedRow], runs: &mut impl Runs) {
    let mut ended: Vec<(Table, Option<usize>)> = Vec::new();
    for (number, row) in (1..).zip(rows) {
        let series = series_of(row);
        if ended.contains(&series) {
            continue;
        }
        let outcome = match reason_to_skip(tables, row, runs) {
            Some(message) => Outcome::NotMeasured { message },
            None if runs.interrupted() => return tables.interrupted = true,
            None => match runs.run(number, row) {
                RowEnd::Outcome(outcome) => outcome,
                RowEnd::Interrupted => return tables.interrupted = true,
            },
        };
        if matches!(outcome, Outcome::OutOfMemory { .. } | Outcome::NotMeasured { .. }) {
            ended.push(series);
        }
        tables.add(row, outcome);
        if let Some(added) = tables.rows(row.table).last() {
            runs.show(added);
        }
    }
}

/// The rows of a series need more and more memory: those of one number of devices in the table of batches,
/// and all of the other table.
fn series_of(row: &PlannedRow) -> (Table, Option<usize>) {
    let devices = (row.table == Table::Batches).then_some(row.plan.ranks.devices.len());
    (row.table, devices)
}

/// Why a run cannot give a result.
fn reason_to_skip(tables: &Tables, planned: &PlannedRow, runs: &impl Runs) -> Option<String> {
    let Task::Bench(task) = &planned.plan.task else { return None };
    let batch = task.training.batch;
    let images = tables.all_rows().find_map(|row| Some(row.outcome.epochs()?.images));
    if let Some(images) = images.filter(|images| *images < batch && tables.source == Source::Files) {
        return Some(format!(
            "the training split has {}, less than a batch of {batch}; --synthetic has no such limit",
            count(images, "image")
        ));
    }
    let ranks = &planned.plan.ranks;
    if !ranks.devices.contains(&Device::Cpu) {
        return None;
    }
    let is_of_series =
        |row: &&Row| planned.table == Table::Scaling || row.devices.len() == ranks.devices.len();
    let before: Vec<&Row> = tables.rows(planned.table).iter().filter(is_of_series).collect();
    refusal(&before, ranks.devices.len(), ranks.share(batch), runs.available_memory()?)
}

#[cfg(test)]
mod tests {
    use yolo_plan::bench_report::{Rate, Together};

    use super::*;

    const GIB: u64 = 1 << 30;

    /// Runs of two devices with these batches; the ends are those of the function.
    struct Fake<F> {
        end: F,
        available: Option<u64>,
        started: Vec<(usize, usize)>,
        shown: usize,
    }

    impl<F: FnMut(usize, usize) -> RowEnd> Runs for Fake<F> {
        fn run(&mut self, _number: usize, row: &PlannedRow) -> RowEnd {
            let Task::Bench(task) = &row.plan.task else { unreachable!() };
            let at = (row.plan.ranks.devices.len(), task.training.batch);
            self.started.push(at);
            (self.end)(at.0, at.1)
        }

        fn show(&mut self, _row: &Row) {
            self.shown += 1;
        }

        fn available_memory(&self) -> Option<u64> {
            self.available
        }

        fn interrupted(&self) -> bool {
            false
        }
    }

    /// The planned rows of `--batches sizes` on two CPU ranks, and with `--scaling`.
    fn planned(sizes: &str, scaling: bool) -> Vec<PlannedRow> {
        use yolo_plan::options::BenchOptions;
        use yolo_plan::run::{PlanContext, TablesPlanning, plan_bench_tables};

        let root = tempfile::tempdir().unwrap();
        fs_err::create_dir(root.path().join("images")).unwrap();
        fs_err::write(root.path().join("data.yaml"), "train: images\nval: images\nnames: [cat]\n").unwrap();
        let places = yolo_plan::dataset::Places {
            working_dir: root.path().to_owned(),
            data_sets: root.path().to_owned(),
        };
        let inventory = yolo_plan::device::Inventory { cores: 2, ..Default::default() };
        let context = PlanContext {
            inventory,
            places,
            fetched: Default::default(),
            generated: true,
            part: None,
            measured_batch: None,
            unavailable: Default::default(),
        };
        let options = BenchOptions {
            scaling,
            batches: Some(sizes.to_owned()),
            device: Some("cpu,cpu".to_owned()),
            weights: Some(String::new()),
            cfg: Some("yolov5n".to_owned()),
            data: Some("data.yaml".to_owned()),
            ..BenchOptions::default()
        };
        match plan_bench_tables(&options, &context).unwrap() {
            TablesPlanning::Ready(tables) => tables.rows,
            TablesPlanning::Missing(needs) => panic!("{needs:?}"),
        }
    }

    /// A measured run of a split of `images` whose ranks took this memory.
    fn measured(images: usize, memory: u64) -> RowEnd {
        RowEnd::Outcome(Outcome::of(&Together {
            training: vec![Rate::new(64, 1.0)],
            training_images: images,
            validation: Vec::new(),
            validation_images: 0,
            memory: vec![memory],
        }))
    }

    /// What was started, and the tables.
    fn after(
        rows: &[PlannedRow],
        available: Option<u64>,
        end: impl FnMut(usize, usize) -> RowEnd,
    ) -> (Vec<(usize, usize)>, Tables) {
        let mut tables = Tables::new(&rows[0]).unwrap();
        let mut fake = Fake { end, available, started: Vec::new(), shown: 0 };
        measure(&mut tables, rows, &mut fake);
        assert_eq!(fake.shown, tables.all_rows().count());
        (fake.started, tables)
    }

    #[test]
    fn memory_that_runs_out_ends_the_series_and_not_the_command() {
        let out = || RowEnd::Outcome(Outcome::OutOfMemory { message: "out of memory".to_owned() });
        let (started, tables) =
            after(&planned("4,8,16", false), None, |devices, batch| match (devices, batch) {
                (1, 8..) | (2, 16..) => out(),
                _ => measured(1000, GIB),
            });
        assert_eq!(started, [(1, 4), (1, 8), (2, 4), (2, 8), (2, 16)]);
        let ran_out = |row: &&Row| matches!(row.outcome, Outcome::OutOfMemory { .. });
        assert_eq!(tables.batches.iter().filter(ran_out).count(), 2);
        assert!(!tables.interrupted);
    }

    #[test]
    fn the_rows_after_another_failure_are_measured() {
        let (started, tables) = after(&planned("4,8", true), None, |devices, _| match devices {
            2 => RowEnd::Outcome(Outcome::Failed { message: "rank 1 failed".to_owned() }),
            _ => measured(1000, GIB),
        });
        assert_eq!(started, [(1, 16), (2, 32), (1, 4), (1, 8), (2, 4), (2, 8)]);
        let speed_ups: Vec<_> =
            tables.all_rows().map(|row| row.outcome.epochs().and_then(|epochs| epochs.speed_up)).collect();
        assert_eq!(speed_ups, [Some(1.0), None, Some(1.0), Some(1.0), None, None]);
    }

    #[test]
    fn an_interrupted_command_keeps_the_rows_before() {
        let mut left = 2;
        let (started, tables) = after(&planned("4,8", false), None, |_, _| {
            left -= 1;
            if left == 0 { RowEnd::Interrupted } else { measured(1000, GIB) }
        });
        assert_eq!((started.len(), tables.batches.len(), tables.interrupted), (2, 1, true));
    }

    #[test]
    fn a_batch_is_not_larger_than_the_split() {
        let (started, tables) = after(&planned("4,8,16", false), None, |_, _| measured(10, GIB));
        assert_eq!(started, [(1, 4), (1, 8), (2, 4), (2, 8)]);
        let Outcome::NotMeasured { message } = &tables.batches[2].outcome else { panic!() };
        assert!(
            message.starts_with("the training split has 10 images, less than a batch of 16"),
            "{message}"
        );
    }

    #[test]
    fn ranks_that_would_take_all_memory_are_not_started() {
        let rows: Vec<PlannedRow> =
            planned("4", true).into_iter().filter(|row| row.table == Table::Scaling).collect();
        let (started, tables) = after(&rows, Some(3 * GIB), |_, _| measured(1000, 2 * GIB));
        assert_eq!(started, [(1, 16)]);
        assert!(matches!(tables.scaling[1].outcome, Outcome::NotMeasured { .. }));
    }

    #[test]
    fn a_run_that_would_take_all_memory_is_not_started() {
        let rows = planned("4,8,16,32", false);
        let (started, tables) = after(&rows, Some(6 * GIB), |devices, batch| {
            measured(1000, GIB + batch as u64 / devices as u64 * GIB / 4)
        });
        // A rank takes 3 GiB with 8 images and 5 GiB with 16, so 9 GiB with 32, and two with 16 take 10 GiB.
        assert_eq!(started, [(1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (2, 16)]);
        let Outcome::NotMeasured { message } = &tables.batches[3].outcome else { panic!() };
        assert!(message.starts_with("it would need about 9.0 GiB"), "{message}");
    }
}
