//! What a run writes for TensorBoard, and when. The run is what counts: an event file that cannot be written is a
//! warning, after which nothing more is written to it.

use std::cell::RefCell;
use std::io;
use std::path::Path;

use serde_json::Value;
use yolo_plan::RunPlan;
use yolo_plan::event::EpochSummary;
use yolo_plan::run::{TrainTask, opt_yaml};

use crate::rank::context::Context;
use crate::report::EventFile;

/// The pictures that a finished run adds, with the parts of the page on which they are.
const PICTURES: [(&str, &str); 13] = [
    ("batches", "val_batch0_labels.jpg"),
    ("batches", "val_batch0_pred.jpg"),
    ("batches", "val_batch1_labels.jpg"),
    ("batches", "val_batch1_pred.jpg"),
    ("batches", "val_batch2_labels.jpg"),
    ("batches", "val_batch2_pred.jpg"),
    ("plots", "labels.jpg"),
    ("plots", "results.png"),
    ("plots", "confusion_matrix.png"),
    ("plots", "PR_curve.png"),
    ("plots", "F1_curve.png"),
    ("plots", "P_curve.png"),
    ("plots", "R_curve.png"),
];

/// The event file of a run; without one on other ranks, without `--tensorboard`, and after a failed write.
pub(super) struct EventLog<'a> {
    run_dir: &'a Path,
    file: RefCell<Option<EventFile>>,
    /// Tells the user.
    warn: Box<dyn Fn(String) + 'a>,
}

impl<'a> EventLog<'a> {
    /// Begins the event file of a run that starts or continues with `first_epoch`.
    pub(super) fn open(
        context: &'a Context,
        plan: &'a RunPlan,
        task: &TrainTask,
        first_epoch: usize,
    ) -> Self {
        let warn = Box::new(|message| context.reporter.warning(message));
        let log = Self { run_dir: &plan.run_dir, file: RefCell::new(None), warn };
        // The generations of an evolution are compared in its own table.
        if task.tensorboard && !task.evolve && context.is_main() {
            match EventFile::create(&plan.run_dir, first_epoch) {
                Ok(file) => *log.file.borrow_mut() = Some(file),
                Err(error) => log.failed(&error),
            }
            let hyp = serde_json::to_value(&task.hyp).unwrap_or(Value::Null);
            let options = opt_yaml(plan, task).unwrap_or_default();
            log.add(|file| file.settings([&options].into_iter().chain(hyp.as_object())));
        }
        log
    }

    /// The scalars of an epoch.
    pub(super) fn epoch(&self, summary: &EpochSummary) {
        self.add(|file| file.epoch(summary));
    }

    /// The picture of a batch.
    pub(super) fn picture(&self, path: &Path, epoch: usize) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        self.add(|file| file.picture(&format!("batches/{name}"), path, epoch));
    }

    /// The pictures that a run of so many epochs has left, and its end.
    pub(super) fn finish(&self, epochs: usize) {
        let last = epochs.saturating_sub(1);
        for (group, name) in PICTURES {
            let tag = format!("{group}/{}", name.split('.').next().unwrap_or(name));
            self.add(|file| file.picture(&tag, &self.run_dir.join(name), last));
        }
        self.add(|file| file.finished(last));
    }

    fn add(&self, write: impl FnOnce(&EventFile) -> io::Result<()>) {
        let mut file = self.file.borrow_mut();
        let Some(Err(error)) = file.as_ref().map(write) else { return };
        // A record may be cut now, and readers stop at it.
        *file = None;
        self.failed(&error);
    }

    fn failed(&self, error: &io::Error) {
        (self.warn)(format!(
            "cannot write the event file for TensorBoard, and the run goes on without it: {error}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    /// Writing to `/dev/full` fails as on a full disk.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_one_warning() {
        let warnings = Rc::new(RefCell::new(Vec::new()));
        let heard = Rc::clone(&warnings);
        let log = EventLog {
            run_dir: Path::new("/nowhere"),
            file: RefCell::new(Some(EventFile::append_to(Path::new("/dev/full")).unwrap())),
            warn: Box::new(move |message| heard.borrow_mut().push(message)),
        };
        let summary = EpochSummary {
            epoch: 0,
            epochs: 2,
            train_losses: [1.0; 3],
            metrics: None,
            val_losses: None,
            lr: [0.1; 3],
            seconds: 1.0,
            best: false,
        };
        log.epoch(&summary);
        log.epoch(&summary);
        log.finish(2);
        let warnings = warnings.borrow();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].contains("the run goes on") && warnings[0].contains("No space left"),
            "{warnings:?}"
        );
    }
}
