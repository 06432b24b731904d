//! The one view of a run: a line that is redrawn while an epoch runs, a line that stays for each
//! epoch that ended, and warnings and notes as the ranks send them. Without a terminal, a plain
//! line comes every ten seconds instead of the redrawn one.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use yolo_plan::event::{EpochSummary, Event, OutputFile, Step};

use super::{Printer, bytes, duration, val_table};

/// Without a terminal, how often a line tells about a running epoch.
const PLAIN_EVERY: Duration = Duration::from_secs(10);

/// Draws the events of a run.
#[derive(Debug)]
pub(crate) struct LiveView<'a> {
    printer: &'a Printer,
    line: ProgressBar,
    began: Option<(Instant, f64)>,
    last_plain: Option<Instant>,
    header_shown: bool,
    rate: f64,
    files: Vec<OutputFile>,
}

impl<'a> LiveView<'a> {
    /// A view that draws nothing yet.
    pub(crate) fn new(printer: &'a Printer) -> Self {
        Self {
            printer,
            line: printer.line(),
            began: None,
            last_plain: None,
            header_shown: false,
            rate: 0.0,
            files: Vec::new(),
        }
    }

    /// Takes one event of a rank. Only rank 0 tells of the run; warnings come from any rank.
    pub(crate) fn show(&mut self, rank: usize, event: &Event) {
        match event {
            Event::Warning { message } if rank == 0 => self.line.suspend(|| self.printer.warning(message)),
            Event::Warning { message } => {
                self.line.suspend(|| self.printer.warning(format_args!("rank {rank}: {message}")));
            }
            _ if rank > 0 => {}
            Event::Note { message } => self.line.suspend(|| self.printer.say(message)),
            Event::Phase { doing } => self.line.set_message(format!("{doing} …")),
            Event::Step(step) => self.step(step),
            Event::Epoch(epoch) => self.epoch(epoch),
            Event::Validated { title, table } => {
                let [before, inference, nms] = table.speed_ms;
                self.line.suspend(|| {
                    self.printer.say(format_args!(
                        "\n{title}: {} images, {before:.1} ms pre-process, {inference:.1} ms inference, \
                         {nms:.1} ms NMS an image",
                        table.images
                    ));
                    self.printer.result(val_table(table));
                });
            }
            Event::Finished { files, epochs, seconds, stopped_early } => {
                self.files.clone_from(files);
                if *epochs > 0 {
                    let early = if *stopped_early {
                        ", stopped early: the fitness did not rise any more"
                    } else {
                        ""
                    };
                    self.line.suspend(|| {
                        let epochs =
                            if *epochs == 1 { "1 epoch".to_owned() } else { format!("{epochs} epochs") };
                        self.printer.say(format_args!("\n{epochs} in {}{early}", duration(*seconds)));
                    });
                }
            }
            Event::Hello { .. }
            | Event::Alive
            | Event::Measured { .. }
            | Event::Interrupted { .. }
            | Event::Failed { .. } => {}
        }
    }

    /// Removes the redrawn line and gives the files that the run left.
    pub(crate) fn finish(self) -> Vec<OutputFile> {
        self.line.finish_and_clear();
        self.files
    }

    fn step(&mut self, step: &Step) {
        self.rate = step.images_per_second;
        let text = if step.epochs == 0 {
            format!("validating  {}/{}  {} images/s", step.batch, step.batches, rate(step.images_per_second))
        } else {
            let [bbox, objectness, class] = step.losses;
            format!(
                "epoch {}/{}  {}/{}  box {bbox:.4}  obj {objectness:.4}  cls {class:.4}  {} images/s  {}  ETA {}",
                step.epoch + 1,
                step.epochs,
                step.batch,
                step.batches,
                rate(step.images_per_second),
                bytes(step.memory),
                self.remaining(step),
            )
        };
        if self.printer.is_terminal() {
            self.line.set_message(text);
        } else if step.epochs > 0 && self.last_plain.is_none_or(|last| last.elapsed() >= PLAIN_EVERY) {
            self.last_plain = Some(Instant::now());
            self.printer.say(text);
        }
    }

    /// Time left, from the share of the run that is done since the first step that was seen.
    fn remaining(&mut self, step: &Step) -> String {
        let done = (step.epoch as f64 + step.batch as f64 / step.batches.max(1) as f64) / step.epochs as f64;
        let &mut (began, share) = self.began.get_or_insert((Instant::now(), done));
        let passed = done - share;
        if passed <= 0.0 {
            return "–".to_owned();
        }
        duration(began.elapsed().as_secs_f64() / passed * (1.0 - done))
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
                .for_each(|figure| text.push_str(&format!(" {figure:>9.3}"))),
            None => (0..4).for_each(|_| text.push_str("         –")),
        }
        text.push_str(&format!(" {:>9}{}", rate(self.rate), if epoch.best { "  best" } else { "" }));
        self.line.suspend(|| self.printer.say(text));
    }
}

/// Images a second, or a dash before two steps were timed.
fn rate(images_per_second: f64) -> String {
    if images_per_second > 0.0 { format!("{images_per_second:.1}") } else { "–".to_owned() }
}
