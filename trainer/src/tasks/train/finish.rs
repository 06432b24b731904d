//! The end of a run: the checkpoints are stripped to the averaged weights, `best.pt` is validated
//! as `yolo val` does, and the plots are drawn (spec §10).

use std::path::Path;

use yolo_base::format;
use yolo_plan::event::{Event, OutputFile};

use super::training::Training;
use crate::checkpoint::Checkpoint;
use crate::detection::{LoadedModel, load_model};
use crate::error::TrainError;
use crate::model::Model;
use crate::report::{ValPictures, WorstImages, plot_confusion, plot_curves, plot_results};
use crate::tasks::val::{gather_worst, write_pictures};

impl Training<'_> {
    /// Leaves the files of a finished run. All ranks validate, rank 0 writes.
    ///
    /// Invariant: `last.pt` is stripped at the very end, and everything before can be repeated. A run
    /// that is killed here resumes from `last.pt` and finishes.
    pub(super) fn finish(&mut self, seconds: f64, stopped_early: bool) -> Result<(), TrainError> {
        self.report_shared_images();
        let (last, best) = (self.weights_file("last.pt"), self.weights_file("best.pt"));
        let main = self.context.is_main();
        let has_best = main && best.exists();
        if has_best {
            self.strip(&best)?;
        }
        if self.context.broadcast(u8::from(has_best))? > 0 {
            self.validate_best(&best)?;
        }
        if !main {
            return Ok(());
        }
        let results = self.plot_results()?;
        self.write_report()?;
        self.events.finish(self.progress.epochs_done);
        if last.exists() {
            self.strip(&last)?;
        }
        let weights = [("last weights", last), ("best weights", best)];
        let weights = weights.into_iter().filter(|(_, path)| path.exists());
        let files = weights.map(|(what, path)| OutputFile { what: what.to_owned(), path }).chain(results);
        self.context.reporter.send(&Event::Finished {
            files: files.collect(),
            epochs: self.progress.epochs_done,
            seconds,
            stopped_early,
        });
        Ok(())
    }

    /// Says how many images the ranks of this machine shared, if they did. Of each rank, it is in its log.
    fn report_shared_images(&self) {
        let Some(loader) = &self.loader else { return };
        let kept = loader.kept();
        if kept.ranks > 1 && kept.images > 0 {
            self.context.reporter.note(format!(
                "{} ranks shared {} of {} decoded images in memory ({}), and decoded {} in all",
                kept.ranks,
                kept.images,
                kept.of,
                format::memory(kept.bytes),
                format::count(kept.decoded as usize, "image")
            ));
        }
    }

    /// Replaces a checkpoint by only the averaged weights, in half precision. Stripping a stripped
    /// one leaves it as it is.
    fn strip(&self, path: &Path) -> Result<(), TrainError> {
        self.context.reporter.phase("stripping the checkpoints");
        let file = torch_checkpoint::read(path)?;
        let model = Model::from_weights(&file, None, None, self.context.device)?;
        model.transfer(&file, false)?;
        Checkpoint { task: self.task }.write_final(path, &model)
    }

    /// Validates the file, so that the table is the one that `yolo val` prints for it.
    fn validate_best(&mut self, best: &Path) -> Result<(), TrainError> {
        self.context.reporter.phase("validating best.pt");
        let mut model = self.best_model(best)?;
        if self.validates_half() {
            model.to_half()?;
        }
        let (task, folder) = (self.task, &self.plan.run_dir);
        let mut pictures = ValPictures::new(folder, &task.data.names);
        let mut worst = WorstImages::default();
        let validation = self.validate_final(&model, &mut |image| {
            if !task.plots {
                return Ok(());
            }
            worst.add(image);
            pictures.add(image)
        })?;
        write_pictures(self.context, pictures.finish()?)?;
        let worst = gather_worst(self.context, worst.finish()?)?;
        if !self.context.is_main() {
            return Ok(());
        }
        let Some(validation) = validation else {
            self.context.reporter.note(format!(
                "interrupted: best.pt was not validated; `yolo val --weights {}` does it",
                best.display()
            ));
            return Ok(());
        };
        let title = format!("best.pt, fitness {:.4}", validation.metrics.fitness());
        self.keep_for_report("best.pt".to_owned(), &validation, worst);
        self.context.reporter.send(&Event::Validated { title, table: validation.table });
        if task.plots {
            plot_curves(&validation.scores, &task.data.names, folder)?;
            plot_confusion(&validation.confusion, &task.data.names, folder)?;
        }
        Ok(())
    }

    /// The model of the file, fused, on the devices of training. Only rank 0 needs the file: it sends the
    /// tensors to the others.
    fn best_model(&self, best: &Path) -> Result<Model, TrainError> {
        let model = if self.context.is_main() {
            let LoadedModel { model, .. } = load_model(best, self.context.device, false)?;
            model.placed_like(self.learner.model())?
        } else {
            self.learner.model().fuse()?
        };
        if let Some(group) = &self.context.group {
            let state: Vec<_> = model.state().iter().map(|entry| &entry.tensor).collect();
            group.verify_shapes(&state)?;
            group.broadcast(&state, 0)?;
        }
        Ok(model)
    }

    /// Draws `results.csv`. Returns both files.
    fn plot_results(&self) -> Result<Vec<OutputFile>, TrainError> {
        let Some(results) = &self.results else { return Ok(Vec::new()) };
        let mut files = vec![OutputFile { what: "results".to_owned(), path: results.path().to_owned() }];
        if self.task.plots {
            let plot = self.plan.run_dir.join("results.svg");
            plot_results(results.path(), &plot)?;
            files.push(OutputFile { what: "plot".to_owned(), path: plot });
        }
        Ok(files)
    }
}
