//! The view of a run: a status line for the running epoch, one line per finished epoch, and warnings
//! and notes as the ranks send them.

use std::time::{Duration, Instant};

use yolo_base::format::{count, duration, memory};
use yolo_checks::GpuMonitor;
use yolo_plan::bench_report::Measurement;
use yolo_plan::event::{EpochSummary, Event, OutputFile, Predicted, Step, unread};
use yolo_plan::run::Task;

use super::predictions::{Predictions, frame, objects, predicted_line};
use super::rank_rates::RankRates;
use super::status_line::StatusLine;
use super::{Graphics, Printer, coco_table, gpu_loads, val_table};

/// Time between plain lines about a running epoch.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

/// What a run leaves for its command to print.
#[derive(Debug, Default)]
pub(crate) struct RunResults {
    /// The files that it wrote.
    pub(crate) files: Vec<OutputFile>,
    /// What it measured.
    pub(crate) measurements: Vec<Measurement>,
    /// What it did with pictures.
    pub(crate) predictions: Predictions,
}

/// Draws the events of a run.
#[derive(Debug)]
pub(crate) struct RunView<'a> {
    printer: &'a Printer,
    doing: &'static str,
    /// Whether steps have epochs and losses.
    trains: bool,
    /// Whether tables are printed to stdout.
    tables: bool,
    line: StatusLine,
    /// When the first step was seen, and the share of the run that was done then.
    first_step: Option<(Instant, f64)>,
    header_shown: bool,
    rate: f64,
    ranks: RankRates,
    gpus: Option<&'a GpuMonitor>,
    /// The terminal, if it shows pictures.
    graphics: Option<Graphics>,
    /// The lines of the frame above, over which the next one is drawn.
    frame_above: Option<usize>,
    results: RunResults,
}

impl<'a> RunView<'a> {
    /// An empty view of a run with this task. With `tables`, the tables of validations are printed as
    /// results; without, something else prints the results.
    pub(crate) fn new(printer: &'a Printer, task: &Task, tables: bool) -> Self {
        Self {
            printer,
            doing: task.doing(),
            trains: task.train().is_some(),
            tables,
            line: StatusLine::new(printer, PLAIN_INTERVAL),
            first_step: None,
            header_shown: false,
            rate: 0.0,
            ranks: RankRates::default(),
            gpus: None,
            graphics: None,
            frame_above: None,
            results: RunResults::default(),
        }
    }

    /// Shows the use and the memory of these GPUs with each step.
    #[must_use]
    pub(crate) fn with_gpus(self, gpus: &'a GpuMonitor) -> Self {
        Self { gpus: Some(gpus), ..self }
    }

    /// Shows pictures with their boxes.
    #[must_use]
    pub(crate) fn with_graphics(self, graphics: Option<Graphics>) -> Self {
        Self { graphics, ..self }
    }

    /// Shows one event of a rank; `None` is the supervisor, which only warns. Only rank 0 reports progress; warnings
    /// come from any rank.
    pub(crate) fn show(&mut self, rank: Option<usize>, event: &Event) {
        if matches!(event, Event::Warning { .. } | Event::Skipped { .. } | Event::Note { .. }) {
            // What is printed is not drawn over.
            self.frame_above = None;
        }
        if let Event::Warning { message } = event {
            let rank = rank.filter(|rank| *rank > 0 && !self.printer.is_of_rank());
            self.line.bar().suspend(|| match rank {
                Some(rank) => self.printer.warning(format_args!("rank {rank}: {message}")),
                None => self.printer.warning(message),
            });
        }
        let Some(rank) = rank else { return };
        match event {
            Event::Predicted(picture) => self.predicted(picture),
            Event::Skipped { reason, frames, .. } => {
                self.results.predictions.skipped += 1;
                self.line.bar().suspend(|| self.printer.warning(unread(reason, *frames)));
            }
            Event::Alive { progress: Some(progress) } => self.ranks.add(rank, Instant::now(), progress),
            _ if rank > 0 => {}
            Event::Note { message } => self.line.bar().suspend(|| self.printer.say(message)),
            Event::Phase { doing, .. } => self.line.bar().set_message(format!("{doing} …")),
            Event::Step(step) => self.step(step),
            Event::Epoch(epoch) => self.epoch(epoch),
            Event::Validated { title, table } => {
                let [before, inference, nms] = table.speed_ms;
                self.line.bar().suspend(|| {
                    self.printer.say(format_args!(
                        "\n{title}: {}; per image {before:.1} ms preprocessing, \
                         {inference:.1} ms inference, {nms:.1} ms NMS",
                        count(table.images, "image")
                    ));
                    if self.tables {
                        self.printer.result(val_table(table));
                    }
                });
            }
            Event::CocoEvaluated { title, scores } => self.line.bar().suspend(|| {
                self.printer.say(format_args!("\n{title} by COCO's rules:"));
                if self.tables {
                    self.printer.result(coco_table(scores));
                }
            }),
            Event::Kept { files } => self.results.files.clone_from(files),
            Event::BenchMeasured { measurement } => self.results.measurements.push(measurement.clone()),
            Event::Finished { files, epochs, seconds, stopped_early } => {
                self.results.files.clone_from(files);
                if *epochs > 0 {
                    let early = if *stopped_early { "; stopped early: no more improvement" } else { "" };
                    self.line.bar().suspend(|| {
                        let epochs = count(*epochs, "epoch");
                        self.printer.say(format_args!("\n{epochs} in {}{early}", duration(*seconds)));
                        if let Some(shares) = self.ranks.all_shares() {
                            self.printer.say(format_args!("time of the steps: {shares}"));
                        }
                    });
                }
            }
            Event::Hello { .. }
            | Event::Warning { .. }
            | Event::Alive { .. }
            | Event::Split(_)
            | Event::Measured { .. }
            | Event::Copied { .. }
            | Event::Interrupted { .. }
            | Event::Failed { .. } => {}
        }
    }

    /// One line per picture, as YOLOv5 prints them; on a terminal, one that changes.
    fn predicted(&mut self, picture: &Predicted) {
        self.results.predictions.add(picture);
        self.show_picture(picture);
        if self.printer.is_terminal() {
            let done = self.results.predictions.done();
            let rate = rate(self.results.predictions.rate());
            let name = picture.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = format!(
                "{}  {done}/{}  {rate} images/s  {}{name}: {}",
                self.doing,
                picture.pictures,
                frame(picture),
                objects(picture)
            );
            self.line.update(self.printer, text);
        } else if self.tables {
            self.printer.say(predicted_line(picture));
        }
    }

    /// Draws a picture below the earlier ones, and a frame of a video over the one before.
    fn show_picture(&mut self, picture: &Predicted) {
        let (Some(graphics), Some(preview)) = (self.graphics, &picture.preview) else { return };
        let above = self.frame_above.take().filter(|_| picture.frame.is_some());
        // In kitty, a frame is a picture that later ones replace, also if it is the first.
        let replaces = picture.frame.map(|_| above.unwrap_or(0));
        let Some((drawn, lines)) = graphics.draw(preview, replaces) else { return };
        self.line.bar().suspend(|| {
            if picture.frame.is_none() {
                self.printer.say(predicted_line(picture));
            }
            self.printer.picture(&drawn);
        });
        self.frame_above = picture.frame.map(|_| lines);
    }

    /// Clears the status line and returns the results of the run.
    pub(crate) fn finish(self) -> RunResults {
        self.line.bar().finish_and_clear();
        if let Some(summary) = self.results.predictions.summary() {
            self.printer.say(summary);
        }
        self.results
    }

    fn step(&mut self, step: &Step) {
        self.rate = step.images_per_second;
        let text = if self.trains {
            let [bbox, objectness, class] = step.losses;
            format!(
                "epoch {}/{}  {}/{}  box {bbox:.4}  obj {objectness:.4}  cls {class:.4}  {} images/s{}  {}  ETA {}",
                step.epoch + 1,
                step.epochs,
                step.batch,
                step.batches,
                rate(step.images_per_second),
                self.of_ranks(),
                self.memory(step),
                self.remaining(step),
            )
        } else {
            format!(
                "{}  {}/{}  {} images/s",
                self.doing,
                step.batch,
                step.batches,
                rate(step.images_per_second)
            )
        };
        // A validation is short: without a terminal its table says enough.
        if self.trains || self.printer.is_terminal() {
            self.line.update(self.printer, text);
        }
    }

    /// The rates of several ranks, and where the time goes.
    fn of_ranks(&self) -> String {
        let each = self.ranks.each().map(|each| format!(" ({each})"));
        let shares = self.ranks.shares().map(|shares| format!("  {shares}"));
        each.into_iter().chain(shares).collect()
    }

    /// Use and memory of the GPUs; on the CPU, the memory of the process.
    fn memory(&self, step: &Step) -> String {
        let loads = self.gpus.map(GpuMonitor::latest).unwrap_or_default();
        gpu_loads::in_words(&loads).unwrap_or_else(|| memory(step.memory))
    }

    /// Time left, estimated from the progress since the first step.
    fn remaining(&mut self, step: &Step) -> String {
        let done = (step.epoch as f64 + step.batch as f64 / step.batches.max(1) as f64) / step.epochs as f64;
        let &mut (start, share) = self.first_step.get_or_insert((Instant::now(), done));
        let passed = done - share;
        if passed <= 0.0 {
            return "–".to_owned();
        }
        duration(start.elapsed().as_secs_f64() / passed * (1.0 - done))
    }

    fn epoch(&mut self, epoch: &EpochSummary) {
        let mut text = String::new();
        if !self.header_shown {
            self.header_shown = true;
            text.push_str(
                "    epoch       box       obj       cls         P         R     mAP50  mAP50-95  images/s\n",
            );
        }
        let counter = format!("{}/{}", epoch.epoch + 1, epoch.epochs);
        text.push_str(&format!("{counter:>9}"));
        epoch.train_losses.iter().for_each(|loss| text.push_str(&format!(" {loss:>9.4}")));
        match epoch.metrics {
            Some(metrics) => [metrics.precision, metrics.recall, metrics.map50, metrics.map50_95]
                .iter()
                .for_each(|metric| text.push_str(&format!(" {metric:>9.3}"))),
            None => (0..4).for_each(|_| text.push_str("         –")),
        }
        text.push_str(&format!(
            " {:>9}{}",
            rate(self.rate),
            if epoch.best && epoch.metrics.is_some() { "  best" } else { "" }
        ));
        self.line.bar().suspend(|| self.printer.say(text));
    }
}

/// Images per second, or a dash until two steps or pictures were timed.
fn rate(images_per_second: f64) -> String {
    if images_per_second > 0.0 { format!("{images_per_second:.1}") } else { "–".to_owned() }
}
