//! The end of a run: checkpoints are stripped to the averaged weights, `best.pt` is validated as
//! `yolo val` would do it, and the plots are drawn (spec §10).

use yolo_plan::event::{Event, OutputFile};

use super::setup::Training;
use crate::checkpoint::Checkpoint;
use crate::error::TrainError;
use crate::model::Model;
use crate::report::{ValPictures, plot_confusion, plot_curves, plot_results};
use crate::val::{ValSettings, validate};

impl Training<'_> {
    pub(super) fn finish(
        &mut self,
        epochs: usize,
        seconds: f64,
        stopped_early: bool,
    ) -> Result<(), TrainError> {
        let mut files = Vec::new();
        let (last, best) = (self.weights_file("last.pt"), self.weights_file("best.pt"));
        for (what, path) in [("last weights", &last), ("best weights", &best)] {
            if path.exists() {
                self.context.reporter.phase("stripping the checkpoints");
                self.strip(path)?;
                files.push(OutputFile { what: what.to_owned(), path: path.clone() });
            }
        }
        let names = &self.task.data.names;
        if best.exists()
            && let Some(val) = &mut self.val
        {
            self.context.reporter.phase("validating best.pt");
            // The file is read back, so that these are the numbers that `yolo val` prints of it.
            let file = torch_checkpoint::read(&best)?;
            let model = Model::from_weights(&file, None, self.context.device)?;
            model.transfer(&file, false)?;
            let mut pictures = ValPictures::new(&self.plan.run_dir, names);
            let outcome = validate(
                &model.fuse()?,
                &mut val.loader,
                &val.samples,
                names,
                &ValSettings::standard(self.task.single_cls),
                None,
                &mut |_, _| Ok(()),
                &mut |image| if self.task.plots { pictures.add(image) } else { Ok(()) },
            )?;
            pictures.write()?;
            let title = format!("best.pt, fitness {:.4}", outcome.metrics.fitness());
            self.context.reporter.send(&Event::Validated { title, table: outcome.table.clone() });
            if self.task.plots {
                plot_curves(&outcome.scores, names, &self.plan.run_dir)?;
                plot_confusion(&outcome.confusion, names, &self.plan.run_dir)?;
            }
        }
        if let Some(results) = &self.results {
            files.push(OutputFile { what: "results".to_owned(), path: results.path().to_owned() });
            if self.task.plots {
                let plot = self.plan.run_dir.join("results.svg");
                plot_results(results.path(), &plot)?;
                files.push(OutputFile { what: "plot".to_owned(), path: plot });
            }
        }
        self.context.reporter.send(&Event::Finished { files, epochs, seconds, stopped_early });
        Ok(())
    }

    /// Replaces a running checkpoint by the averaged weights alone, in half precision.
    fn strip(&self, path: &std::path::Path) -> Result<(), TrainError> {
        let file = torch_checkpoint::read(path)?;
        let model = Model::from_weights(&file, None, self.context.device)?;
        model.transfer(&file, false)?;
        Checkpoint { plan: self.plan, task: self.task }.write_final(path, &model)
    }
}
