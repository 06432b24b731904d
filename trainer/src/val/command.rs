//! `yolo val`: a weights file over a split, with the options of the original (spec §12): accuracy,
//! speed, or a study over image sizes; detections saved as text or COCO's JSON on demand.

use std::io::Write as _;
use std::sync::Arc;

use yolo_data::loader::{ValLoader, ValSettings as LoaderSettings};
use yolo_data::scan::{Sample, ScanOptions, scan};
use yolo_plan::RunPlan;
use yolo_plan::event::{Event, OutputFile, Step};
use yolo_plan::run::{Split, ValMode, ValTask};

use super::run::{ImageResult, ValOutcome, ValSettings, validate};
use super::saved::Saved;
use crate::error::TrainError;
use crate::model::Model;
use crate::rank::{Ending, Rank};
use crate::report::{ValPictures, plot_confusion, plot_curves};

/// Image sizes of a study: 256 to 1536 in steps of 128 (spec §9).
fn study_sizes() -> impl Iterator<Item = usize> {
    (256..=1536).step_by(128)
}

/// Validates as the plan says.
pub fn run(context: &Rank, plan: &RunPlan, task: &ValTask) -> Result<Ending, TrainError> {
    let began = std::time::Instant::now();
    context.reporter.phase("reading labels");
    let (name, roots) = match task.split {
        Split::Train => ("train", &task.data.train),
        Split::Val => ("val", &task.data.val),
        Split::Test => ("test", &task.data.test),
    };
    let options =
        ScanOptions { single_cls: task.single_cls, ..ScanOptions::new(name, task.data.names.len()) };
    let found = scan(roots, &options)?;
    found.messages.iter().for_each(|message| context.reporter.warning(message));
    let samples: Arc<[Sample]> = found.samples.into();
    if task.half && !context.device.is_cuda() {
        context.reporter.warning("--half has no effect on the CPU: half precision needs a CUDA device");
    }

    let mut files = Vec::new();
    for path in &task.weights {
        context.reporter.phase("reading the weights");
        let file = torch_checkpoint::read(path)?;
        let model = Model::from_weights(&file, None, context.device)?;
        let transfer = model.transfer(&file, false)?;
        if transfer.matched < transfer.total {
            context.reporter.warning(format!("{}: {}", path.display(), transfer.summary()));
        }
        if model.spec().nc != task.data.names.len() {
            return Err(TrainError::new(format!(
                "{} knows {} classes and {} names {}",
                path.display(),
                model.spec().nc,
                task.data.yaml.display(),
                task.data.names.len()
            ))
            .with_hint(if task.single_cls {
                "--single-cls measures weights that were trained with --single-cls"
            } else {
                "validate weights on the data set that they were trained on"
            }));
        }
        let mut pass = Pass { context, plan, task, samples: &samples, model: model.fuse()? };
        if task.half && context.device.is_cuda() {
            pass.model.to_half()?;
        }
        context.reporter.note(pass.model.summary()?.to_string());
        if task.mode == ValMode::Study {
            files.push(pass.study(path)?);
        } else {
            files.extend(pass.once(path)?);
        }
    }
    context.reporter.send(&Event::Finished {
        files,
        epochs: 0,
        seconds: began.elapsed().as_secs_f64(),
        stopped_early: false,
    });
    Ok(Ending::Finished)
}

struct Pass<'a> {
    context: &'a Rank,
    plan: &'a RunPlan,
    task: &'a ValTask,
    samples: &'a Arc<[Sample]>,
    model: Model,
}

impl Pass<'_> {
    /// One pass at the planned size, its table and what was asked to be saved.
    fn once(&self, weights: &std::path::Path) -> Result<Vec<OutputFile>, TrainError> {
        let mut saved = Saved::new(self.task, self.plan, weights)?;
        let names = &self.task.data.names;
        let mut pictures = ValPictures::new(&self.plan.run_dir, names);
        let outcome = self.measure(self.task.image_size, names, &mut |image| {
            pictures.add(image)?;
            saved.add(image)
        })?;
        pictures.write()?;
        let mut table = outcome.table.clone();
        if !self.task.verbose && table.rows.len() > 50 {
            // The original names classes by themselves only when there are few of them.
            table.rows.truncate(1);
        }
        let title = weights.display().to_string();
        self.context.reporter.send(&Event::Validated { title, table });
        let mut files = saved.finish()?;
        for path in plot_curves(&outcome.scores, names, &self.plan.run_dir)? {
            files.push(OutputFile { what: "plot".to_owned(), path });
        }
        let path = plot_confusion(&outcome.confusion, names, &self.plan.run_dir)?;
        files.push(OutputFile { what: "plot".to_owned(), path });
        Ok(files)
    }

    /// Accuracy and speed at many sizes, a line each in `study_*.txt`.
    fn study(&self, weights: &std::path::Path) -> Result<OutputFile, TrainError> {
        let stem =
            |path: &std::path::Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("study_{}_{}.txt", stem(&self.task.data.yaml), stem(weights));
        let path = self.plan.run_dir.join(name);
        let unwritable = |error: std::io::Error| {
            TrainError::new(format!("{} could not be written: {error}", path.display()))
        };
        let mut file = fs_err::File::create(&path).map_err(unwritable)?;
        for size in study_sizes() {
            let outcome = self.measure(size, &self.task.data.names, &mut |_| Ok(()))?;
            let title = format!("{} at {size} px", weights.display());
            let metrics = outcome.metrics;
            let [before, inference, nms] = outcome.table.speed_ms;
            let mut table = outcome.table;
            table.rows.truncate(1);
            self.context.reporter.send(&Event::Validated { title, table });
            let numbers =
                [metrics.precision, metrics.recall, metrics.map50, metrics.map50_95, before, inference, nms];
            let cells: Vec<String> = std::iter::once(size.to_string())
                .chain(numbers.map(|value| crate::report::general(value, 4)))
                .collect();
            writeln!(file, "{}", cells.join(" ")).map_err(unwritable)?;
        }
        Ok(OutputFile { what: "study".to_owned(), path })
    }

    fn measure(
        &self,
        image_size: usize,
        names: &[String],
        on_image: &mut dyn FnMut(&ImageResult<'_>) -> Result<(), TrainError>,
    ) -> Result<ValOutcome, TrainError> {
        let stride = self.model.strides().iter().copied().fold(32.0, f64::max) as usize;
        let speed = self.task.mode == ValMode::Speed;
        let mut loader = ValLoader::new(
            Arc::clone(self.samples),
            LoaderSettings {
                image_size,
                stride,
                batch: self.task.batch,
                workers: self.task.workers,
                rect: !speed,
                pad: if speed { 0.0 } else { 0.5 },
                cache: None,
            },
        )?;
        let mut settings = ValSettings::standard(self.task.single_cls);
        settings.nms.conf_thres = self.task.conf_thres as f32;
        settings.nms.iou_thres = self.task.iou_thres as f32;
        settings.nms.max_det = self.task.max_det;
        settings.augment = self.task.augment;
        settings.hybrid = self.task.save_hybrid;
        settings.half = self.task.half && self.context.device.is_cuda();
        self.context.reporter.phase("validating");
        let batch = self.task.batch;
        let began = std::time::Instant::now();
        validate(
            &self.model,
            &mut loader,
            self.samples,
            names,
            &settings,
            None,
            &mut |done, of| {
                if self.context.asked_to_stop() {
                    return Err(TrainError::new("the validation was interrupted"));
                }
                self.context.reporter.send(&Event::Step(Step {
                    epoch: 0,
                    epochs: 0,
                    batch: done,
                    batches: of,
                    losses: [0.0; 3],
                    images_per_second: (done * batch) as f64 / began.elapsed().as_secs_f64(),
                    image_size,
                    memory: 0,
                    instances: 0,
                }));
                Ok(())
            },
            on_image,
        )
    }
}
