//! A run for programs, `--json`: one JSON object per line on stdout, described by `run_events.schema.json`
//! next to this file. Tests validate real runs against it. Epochs and batches count from 1, as in the text
//! for people.

use std::cell::Cell;
use std::path::Path;
use std::time::Instant;

use serde_json::{Map, Value, json};
use yolo_base::Hint as _;
use yolo_checks::GpuLoad;
use yolo_plan::RunPlan;
use yolo_plan::event::{CocoScores, EpochSummary, Event, FoundObject, Metrics, OutputFile, Predicted, Step};
use yolo_plan::evolve::Table;

use super::Printer;
use super::rank_rates::RankRates;
use crate::error::CommandError;
use crate::launch::LaunchError;

/// Incremented when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// Prints the events of a run as JSON lines.
#[derive(Debug)]
pub(crate) struct RunEvents<'a> {
    printer: &'a Printer,
    began: Instant,
    /// Whether the first line was printed, which has the version of the schema.
    begun: Cell<bool>,
    ranks: RankRates,
    /// Whether the other ranks report elsewhere.
    one_of_several: bool,
    gpus: Vec<GpuLoad>,
    /// What an interrupted run leaves.
    kept: Option<Vec<OutputFile>>,
}

impl<'a> RunEvents<'a> {
    /// The events of a run that begins now.
    pub(crate) fn new(printer: &'a Printer) -> Self {
        let (began, ranks) = (Instant::now(), RankRates::default());
        let begun = Cell::new(false);
        Self { printer, began, begun, ranks, one_of_several: false, gpus: Vec::new(), kept: None }
    }

    /// The same for one rank of several, which does not hear the others. How fast each rank is, and where the
    /// time of all goes, is unknown then.
    pub(crate) fn of_one_of_several(self) -> Self {
        Self { one_of_several: true, ..self }
    }

    /// The run is planned, and its ranks are about to start.
    pub(crate) fn planned(&self, plan: &RunPlan) {
        self.print(
            "planned",
            json!({
                "yolo": env!("CARGO_PKG_VERSION"),
                "task": plan.task.doing(),
                "run": plan.task.has_folder().then_some(&plan.run_dir),
                "world_size": plan.ranks.world_size,
                "backend": plan.ranks.backend,
                "batch": plan.task.training().map(|task| task.batch),
                "image_size": plan.task.training().map(|task| task.image_size),
                "precision": plan.task.training().map(|task| task.precision),
                "epochs": plan.task.train().map(|task| task.epochs),
            }),
        );
    }

    /// How busy the GPUs are, for the steps that follow.
    pub(crate) fn gpus(&mut self, loads: Vec<GpuLoad>) {
        self.gpus = loads;
    }

    /// One event of a rank; `None` is the supervisor, which only warns.
    pub(crate) fn show(&mut self, rank: Option<usize>, event: &Event) {
        if let Event::Warning { message } = event {
            self.print("warning", json!({ "rank": rank, "message": message }));
        }
        let Some(rank) = rank else { return };
        match event {
            Event::Alive { progress } => {
                if let Some(progress) = progress.as_ref().filter(|_| !self.one_of_several) {
                    self.ranks.add(rank, Instant::now(), progress);
                }
            }
            Event::Hello { pid, device, threads, .. } => self
                .print("rank", json!({ "rank": rank, "device": device, "process": pid, "threads": threads })),
            Event::Phase { doing, .. } => self.print("phase", json!({ "rank": rank, "doing": doing })),
            Event::Note { message } if rank == 0 => self.print("note", json!({ "message": message })),
            Event::Step(step) => self.print("step", self.step(step)),
            Event::Epoch(epoch) => self.print("epoch", of_epoch(epoch)),
            Event::Validated { title, table } => {
                let rows: Vec<Value> = table
                    .rows
                    .iter()
                    .map(|row| {
                        let mut object = of_metrics(&row.metrics);
                        object["class"] = json!(row.class);
                        object["images"] = json!(row.images);
                        object["instances"] = json!(row.instances);
                        object
                    })
                    .collect();
                let [preprocessing, inference, nms] = table.speed_ms;
                let speed = json!({ "preprocessing": preprocessing, "inference": inference, "nms": nms });
                self.print(
                    "validated",
                    json!({
                        "title": title,
                        "images": table.images,
                        "rows": rows,
                        "milliseconds_per_image": speed,
                    }),
                );
            }
            Event::CocoEvaluated { title, scores } => {
                let scores: Map<String, Value> = CocoScores::NAMES
                    .iter()
                    .zip(scores.0)
                    .map(|((name, _), score)| ((*name).to_owned(), json!(score)))
                    .collect();
                self.print("coco", json!({ "title": title, "scores": scores }));
            }
            Event::Predicted(picture) => self.print("predicted", of_picture(picture)),
            Event::Skipped { picture, path, reason, frames } => self.print(
                "skipped",
                json!({ "picture": picture + 1, "source": path, "reason": reason, "frames": frames }),
            ),
            // The first rank of each machine reports it.
            Event::Finished { .. } if rank > 0 && !self.one_of_several => {}
            Event::Finished { files, epochs, seconds, stopped_early } => self.print(
                "finished",
                json!({
                    "files": files.iter().map(of_file).collect::<Vec<_>>(),
                    "epochs": epochs,
                    "seconds": seconds,
                    "stopped_early": stopped_early,
                }),
            ),
            Event::Kept { files } if rank == 0 => self.kept = Some(files.clone()),
            // `interrupted` and `failed` are printed when all ranks have ended.
            Event::Warning { .. }
            | Event::Note { .. }
            | Event::Split(_)
            | Event::Measured { .. }
            | Event::Copied { .. }
            | Event::BenchMeasured { .. }
            | Event::Kept { .. }
            | Event::Interrupted { .. }
            | Event::Failed { .. } => {}
        }
    }

    /// The ranks of another run of the same command start.
    pub(crate) fn next_run(&mut self) {
        self.ranks = RankRates::default();
        self.gpus = Vec::new();
    }

    /// The last generation of the table was trained, out of `all`; `failure` is why it has no metrics.
    pub(crate) fn generation(&self, table: &Table, all: usize, parent: Option<usize>, failure: Option<&str>) {
        let Some(row) = table.rows().last() else { return };
        let number = table.rows().len();
        let metrics = failure.is_none().then(|| of_metrics(&row.metrics));
        self.print(
            "generation",
            json!({
                "generation": number,
                "generations": all,
                "parent": parent.map(|parent| parent + 1),
                "hyperparameters": table.genes().named(&row.values),
                "metrics": metrics,
                "fitness": row.fitness(),
                "best": table.best() == Some(number - 1),
                "failure": failure,
            }),
        );
    }

    /// The search has all of its generations.
    pub(crate) fn evolved(&self, table: &Table, files: &[OutputFile]) {
        let best = table.best();
        self.print(
            "evolved",
            json!({
                "generations": table.rows().len(),
                "best": best.map(|best| best + 1),
                "fitness": best.map(|best| table.rows()[best].fitness()),
                "files": files,
            }),
        );
    }

    /// The run was interrupted, and all ranks have ended.
    pub(crate) fn interrupted(&self, resume_from: Option<&Path>, killed: bool) {
        let mut object = json!({ "resume_from": resume_from, "killed": killed });
        if let Some(files) = &self.kept {
            object["files"] = files.iter().map(of_file).collect();
        }
        self.print("interrupted", object);
    }

    /// What prints that the run was interrupted before it began, from any thread.
    pub(crate) fn interruption(&self) -> impl FnOnce() + Send + 'static {
        let (printer, began) = (self.printer.clone(), self.began);
        move || {
            let fields = json!({ "schema": SCHEMA, "resume_from": null, "killed": false });
            printer.result(line("interrupted", began, fields));
        }
    }

    /// The run failed, or could not be started.
    pub(crate) fn failed(&self, error: &CommandError) {
        let mut object = json!({ "message": error.to_string(), "hint": error.hint() });
        if let CommandError::Launch(LaunchError::Rank(failure)) = error {
            object["rank"] = json!(failure.rank);
            object["device"] = json!(failure.device);
            object["host"] = json!(failure.host);
            object["doing"] = json!(failure.doing);
            object["cause"] = json!(failure.why);
            // The log of a run that came to nothing is removed with its folder.
            object["log"] = json!(failure.log.as_ref().filter(|log| log.exists()));
        }
        self.print("failed", object);
    }

    fn step(&self, step: &Step) -> Value {
        let shares = self.ranks.recent_shares().map(|[loading, computing, waiting]| {
            json!({ "loading": loading, "computing": computing, "waiting": waiting })
        });
        json!({
            "epoch": step.epoch + 1,
            "epochs": step.epochs,
            "batch": step.batch,
            "batches": step.batches,
            "losses": losses(step.losses.map(f64::from)),
            "image_size": step.image_size,
            "images_per_second": step.images_per_second,
            "images_per_second_of_ranks": self.ranks.rates(),
            "share_of_time": shares,
            "memory": step.memory,
            "gpus": self.gpus.iter().map(of_gpu).collect::<Vec<_>>(),
        })
    }

    fn print(&self, event: &str, mut fields: Value) {
        if !self.begun.replace(true) {
            fields["schema"] = json!(SCHEMA);
        }
        self.printer.result(line(event, self.began, fields));
    }
}

/// One line: what happened, seconds after the beginning, and its fields.
fn line(event: &str, began: Instant, fields: Value) -> Value {
    let mut line = Map::new();
    line.insert("event".to_owned(), json!(event));
    line.insert("at".to_owned(), json!(began.elapsed().as_secs_f64()));
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    Value::Object(line)
}

/// A picture with its objects, the most confident first.
fn of_picture(picture: &Predicted) -> Value {
    let [height, width] = picture.size;
    let [input_height, input_width] = picture.input;
    let object = |found: &FoundObject| {
        let [left, top, right, bottom] = found.corners;
        json!({
            "class": found.class,
            "name": found.name,
            "confidence": found.confidence,
            "box": { "left": left, "top": top, "right": right, "bottom": bottom },
        })
    };
    json!({
        "picture": picture.picture + 1,
        "pictures": picture.pictures,
        "source": picture.path,
        "frame": picture.frame,
        "frames": picture.frames,
        "width": width,
        "height": height,
        "input": { "width": input_width, "height": input_height },
        "objects": picture.found.iter().map(object).collect::<Vec<_>>(),
        "milliseconds": picture.milliseconds,
        "saved": picture.saved,
    })
}

fn of_gpu(load: &GpuLoad) -> Value {
    let busy = load.busy.map(|percent| f64::from(percent) / 100.0);
    json!({ "gpu": load.gpu, "busy": busy, "memory": load.used, "memory_total": load.total })
}

/// A file that a run has written, with its size; a folder has none.
fn of_file(file: &OutputFile) -> Value {
    let length = std::fs::metadata(&file.path).ok().filter(|metadata| metadata.is_file());
    json!({ "what": file.what, "path": file.path, "bytes": length.map(|metadata| metadata.len()) })
}

fn of_epoch(epoch: &EpochSummary) -> Value {
    json!({
        "epoch": epoch.epoch + 1,
        "epochs": epoch.epochs,
        "losses": losses(epoch.train_losses),
        "validation_losses": epoch.val_losses.map(losses),
        "metrics": epoch.metrics.as_ref().map(of_metrics),
        "fitness": epoch.metrics.as_ref().map(Metrics::fitness),
        "learning_rates": epoch.lr,
        "seconds": epoch.seconds,
        "best": epoch.best,
    })
}

fn of_metrics(metrics: &Metrics) -> Value {
    json!({
        "precision": metrics.precision,
        "recall": metrics.recall,
        "map50": metrics.map50,
        "map50_95": metrics.map50_95,
    })
}

/// JSON has no NaN: a loss that is not finite is null.
fn losses([bbox, objectness, class]: [f64; 3]) -> Value {
    json!({ "box": bbox, "objectness": objectness, "class": class })
}

#[cfg(test)]
mod tests {
    use yolo_plan::event::{Progress, Stage};

    use super::*;

    #[test]
    fn a_rank_that_does_not_hear_the_others_says_nothing_about_them() {
        let printer = Printer::new(true);
        let heard = |mut events: RunEvents<'_>| {
            for steps in 0..3 {
                let seconds = [steps as f64; 3];
                let (images, stage) = (steps * 8, Stage::Loading);
                let progress = Progress { epoch: 0, batch: 0, batches: 9, steps, images, stage, seconds };
                events.show(Some(0), &Event::Alive { progress: Some(progress) });
            }
            let step = events.step(&Step {
                epoch: 0,
                epochs: 1,
                batch: 3,
                batches: 9,
                losses: [0.1; 3],
                images_per_second: 1.0,
                image_size: 64,
                memory: 0,
                instances: 8,
            });
            (step["images_per_second_of_ranks"].is_null(), step["share_of_time"].is_null())
        };
        assert_eq!(heard(RunEvents::new(&printer)), (false, false));
        assert_eq!(heard(RunEvents::new(&printer).of_one_of_several()), (true, true));
    }
}
