//! `yolo val`: weights files over a split, with YOLOv5's options (spec §12). A task measures the
//! accuracy, the speed, or both at many image sizes (study). Several ranks share the batches; rank 0
//! writes and reports.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use yolo_base::format::count_of;
use yolo_base::percent_g::percent_g;
use yolo_data::loader::{self, ValLoader};
use yolo_data::scan::{Sample, Scan, ScanOptions, scan};
use yolo_plan::RunPlan;
use yolo_plan::event::{CocoScores, Event, Metrics, OutputFile, Step};
use yolo_plan::model::MIN_STRIDE;
use yolo_plan::report::{RunReport, WorstImage};
use yolo_plan::run::{SavedBoxes, Split as SplitName, ValMode, ValTask};

use super::coco_eval::{annotations_of_coco, by_annotations, by_labels};
use super::coco_json::{CocoDetections, write_annotations};
use super::options::ValidateOptions;
use super::pictures::{gather_worst, write_pictures};
use super::tally::Validation;
use super::validate::{Observer, Split, validate};
use crate::detection::{ImageResult, LabelFiles, LoadedModel, load_model};
use crate::error::TrainError;
use crate::model::Model;
use crate::rank::context::{Context, Ending};
use crate::report::{
    StudyLine, StudyPoint, ValPictures, WorstImages, facts_of_split, facts_of_validation, plot_confusion,
    plot_curves, plot_study, unwritable_letters, unwritable_report,
};

/// With more classes than this, the table has a row for each only with `--verbose`.
const LISTED_CLASSES: usize = 49;

/// Image sizes of a study: 256 to 1536 in steps of 128 (spec §9).
fn study_sizes() -> impl Iterator<Item = usize> {
    (256..=1536).step_by(128)
}

/// Validates all weights of the task.
///
/// # Errors
/// When the weights or the images cannot be read, do not fit each other, or a file cannot be written.
pub fn run(context: &Context, plan: &RunPlan, task: &ValTask) -> Result<Ending, TrainError> {
    let began = Instant::now();
    let scan = read_samples(context, task)?;
    let mut report = RunReport::new(&task.data.names);
    report.splits.push(facts_of_split(split_of(task).0, &scan, task.data.names.len()));
    let samples: Arc<[Sample]> = scan.samples.into();
    let reports = context.is_main() && task.mode == ValMode::Accuracy;
    if reports {
        // A validation that is interrupted has a report too.
        report.write(&plan.run_dir).map_err(unwritable_report)?;
    }
    if reports && let Some(warning) = unwritable_letters(task.data.names.iter().map(String::as_str)) {
        context.reporter.warning(warning);
    }
    context.hold_stop_requests();
    let mut files = Vec::new();
    let mut studied = Vec::new();
    // As in YOLOv5, several weights are an ensemble, but the speed of each is measured by itself.
    let together = if task.mode == ValMode::Accuracy { task.weights.len().max(1) } else { 1 };
    for paths in task.weights.chunks(together) {
        let models = paths.iter().map(|path| load(context, task, path)).collect::<Result<_, _>>()?;
        let pass = Pass { context, plan, task, samples: &samples, models };
        let written = match (task.mode, paths) {
            (ValMode::Study, [path]) => pass.study(path, &mut studied)?,
            _ => pass.once(paths, &mut report)?,
        };
        let Some(written) = written else {
            if context.is_main() {
                context.reporter.send(&Event::Interrupted { resume_from: None });
            }
            return Ok(Ending::Interrupted);
        };
        files.extend(written);
    }
    if context.is_main() && task.mode == ValMode::Study {
        let path = plan.run_dir.join("study.svg");
        plot_study(&studied, &path)?;
        files.push(OutputFile { what: "plot".to_owned(), path });
    }
    if context.is_main() {
        if reports {
            report.write(&plan.run_dir).map_err(unwritable_report)?;
        }
        context.reporter.send(&Event::Finished {
            files,
            epochs: 0,
            seconds: began.elapsed().as_secs_f64(),
            stopped_early: false,
        });
    }
    Ok(Ending::Finished)
}

/// The images of the split. Rank 0 goes first and leaves a cache for the others.
fn read_samples(context: &Context, task: &ValTask) -> Result<Scan, TrainError> {
    context.reporter.phase("reading labels");
    let (name, roots) = split_of(task);
    let options =
        ScanOptions { single_cls: task.single_cls, ..ScanOptions::new(name, task.data.names.len()) };
    let found = if context.is_main() {
        let found = scan(roots, &options)?;
        context.barrier()?;
        found.messages.iter().for_each(|message| context.reporter.warning(message));
        found
    } else {
        context.barrier()?;
        scan(roots, &options)?
    };
    Ok(found)
}

/// The name and the entries of the split that is validated.
fn split_of(task: &ValTask) -> (&'static str, &[PathBuf]) {
    match task.split {
        SplitName::Train => ("train", &task.data.train),
        SplitName::Val => ("val", &task.data.val),
        SplitName::Test => ("test", &task.data.test),
    }
}

/// The model of a weights file, fused, and in half precision if asked for.
fn load(context: &Context, task: &ValTask, path: &Path) -> Result<Model, TrainError> {
    context.reporter.phase("reading the weights");
    let LoadedModel { model, transfer, .. } = load_model(path, context.device, task.half)?;
    if context.is_main() && transfer.matched < transfer.total {
        context.reporter.warning(format!("{}: {}", path.display(), transfer.summary()));
    }
    let (trained, named) = (model.spec().nc, task.data.names.len());
    // With --single-cls, whatever class is detected counts as the only one.
    if trained != named && !task.single_cls {
        let classes = |count| count_of(count, "class", "classes");
        return Err(TrainError::new(format!(
            "{} was trained on {}, but {} has {}",
            path.display(),
            classes(trained),
            task.data.yaml.display(),
            classes(named),
        ))
        .with_hint("validate weights on the data set that they were trained on, or all classes as one with --single-cls"));
    }
    if context.is_main() {
        context.reporter.note(model.summary()?.to_string());
    }
    Ok(model)
}

/// A weights file to validate, or several as an ensemble.
struct Pass<'a> {
    context: &'a Context,
    plan: &'a RunPlan,
    task: &'a ValTask,
    samples: &'a Arc<[Sample]>,
    models: Vec<Model>,
}

impl Pass<'_> {
    /// One validation at the planned image size. Returns the files that it wrote; `None` if it was
    /// interrupted.
    fn once(
        &self,
        weights: &[PathBuf],
        report: &mut RunReport,
    ) -> Result<Option<Vec<OutputFile>>, TrainError> {
        let mut pictures = ValPictures::new(&self.plan.run_dir, &self.task.data.names);
        // Drawing would take time that is measured.
        let mut worst = WorstImages::default();
        let mut picture = |image: &ImageResult<'_>| {
            if !self.draws() {
                return Ok(());
            }
            worst.add(image);
            pictures.add(image)
        };
        let measured = self.measure(self.task.image_size, &mut picture)?;
        write_pictures(self.context, pictures.finish()?)?;
        let worst = gather_worst(self.context, worst.finish()?)?;
        let Some(measured) = measured else { return Ok(None) };
        if !self.context.is_main() {
            return Ok(Some(Vec::new()));
        }
        self.report(weights, &measured, worst, report)?;
        self.write(weights, measured).map(Some)
    }

    /// Adds a validation to the report of the run.
    fn report(
        &self,
        weights: &[PathBuf],
        measured: &Validation,
        worst: Vec<WorstImage>,
        report: &mut RunReport,
    ) -> Result<(), TrainError> {
        let Validation { table, scores, confusion, .. } = measured;
        let summaries: Vec<String> = self
            .models
            .iter()
            .map(|model| Ok(model.summary()?.to_string()))
            .collect::<Result<_, TrainError>>()?;
        report.model = Some(summaries.join("; "));
        let title = title_of(weights);
        report.validations.push(facts_of_validation(title, table, scores, confusion, worst));
        Ok(())
    }

    /// Reports a validation, and writes its detections and plots. Returns the files.
    fn write(&self, weights: &[PathBuf], measured: Validation) -> Result<Vec<OutputFile>, TrainError> {
        let (names, folder) = (&self.task.data.names, &self.plan.run_dir);
        let mut table = measured.table;
        if !self.task.verbose && table.rows.len() > LISTED_CLASSES + 1 {
            table.rows.truncate(1);
        }
        let title = title_of(weights);
        let mut files = Vec::new();
        let mut coco = None;
        if self.task.save_json {
            let found = CocoDetections::new(self.task, &measured.detections);
            let path = found.write(self.samples, folder, &weights[0])?;
            files.push(OutputFile { what: "predictions".to_owned(), path });
            coco = self.by_cocos_rules(&found, &mut files)?;
        }
        if let (true, Some(scores), Some(all)) = (self.task.data.is_coco(), coco, table.rows.first_mut()) {
            // As in YOLOv5, what COCO's evaluation says counts on COCO.
            all.metrics.map50_95 = scores.0[0].unwrap_or_default();
            all.metrics.map50 = scores.0[1].unwrap_or_default();
        }
        self.context.reporter.send(&Event::Validated { title: title.clone(), table });
        if let Some(scores) = coco {
            self.context.reporter.send(&Event::CocoEvaluated { title, scores });
        }
        let detected =
            measured.detections.iter().map(|image| (&self.samples[image.sample], &image.detections));
        if self.saves_labels() {
            let labels =
                LabelFiles::create(folder.join("labels"), self.task.save_conf, SavedBoxes::CenterAndSize)?;
            for (sample, found) in detected {
                let stem = sample.image.file_stem().unwrap_or_default().to_string_lossy();
                labels.write(&stem, [sample.height, sample.width], found)?;
            }
            files.push(OutputFile { what: "labels".to_owned(), path: labels.folder().to_owned() });
        }
        if self.draws() {
            let mut plots = plot_curves(&measured.scores, names, folder)?;
            plots.push(plot_confusion(&measured.confusion, names, folder)?);
            files.extend(plots.into_iter().map(|path| OutputFile { what: "plot".to_owned(), path }));
        }
        Ok(files)
    }

    /// Whether there are plots and pictures; as in YOLOv5, not when speed is measured.
    fn draws(&self) -> bool {
        self.task.mode == ValMode::Accuracy
    }

    /// What COCO's evaluation says about the detections; `None` without COCO's annotations, after a warning. On
    /// other data sets the labels are the annotations, and are written to a file.
    fn by_cocos_rules(
        &self,
        found: &CocoDetections,
        files: &mut Vec<OutputFile>,
    ) -> Result<Option<CocoScores>, TrainError> {
        let (data, samples) = (&self.task.data, self.samples);
        let scores = match annotations_of_coco(data) {
            Some(file) if !file.exists() => {
                self.context.reporter.warning(format!(
                    "COCO's numbers are missing: there is no {}, which has the crowds and areas that labels lack",
                    file.display()
                ));
                return Ok(None);
            }
            Some(file) => by_annotations(&file, samples, found),
            None => {
                let path = write_annotations(samples, &data.names, &self.plan.run_dir)?;
                files.push(OutputFile { what: "annotations".to_owned(), path });
                by_labels(samples, &data.names, found)
            }
        };
        // The detections are saved, so the validation goes on.
        Ok(scores.map_err(|error| self.context.reporter.warning(error.to_string())).ok())
    }

    fn saves_labels(&self) -> bool {
        self.task.save_txt || self.task.save_hybrid
    }

    /// Accuracy and speed at many image sizes, one line each in `study_*.txt`, and added to `studied` for the plot.
    /// Returns the file; `None` if it was interrupted.
    fn study(
        &self,
        weights: &Path,
        studied: &mut Vec<StudyLine>,
    ) -> Result<Option<Vec<OutputFile>>, TrainError> {
        let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("study_{}_{}.txt", stem(&self.task.data.yaml), stem(weights));
        let path = self.plan.run_dir.join(name);
        let unwritable = |error: std::io::Error| TrainError::new(format!("cannot write the study: {error}"));
        let main = self.context.is_main();
        let mut file = main.then(|| fs_err::File::create(&path)).transpose().map_err(unwritable)?;
        let mut points = Vec::new();
        for size in study_sizes() {
            let Some(measured) = self.measure(size, &mut |_| Ok(()))? else { return Ok(None) };
            let Some(file) = &mut file else { continue };
            let line = study_line(&measured);
            points.push(StudyPoint {
                image_size: size,
                milliseconds: measured.table.speed_ms.iter().sum(),
                map50_95: measured.metrics.map50_95,
            });
            let title = format!("{} at {size} px", weights.display());
            let mut table = measured.table;
            table.rows.truncate(1);
            self.context.reporter.send(&Event::Validated { title, table });
            writeln!(file, "{line}").map_err(unwritable)?;
        }
        studied.push(StudyLine { name: stem(weights), points });
        Ok(Some(vec![OutputFile { what: "study".to_owned(), path }]))
    }

    fn measure(
        &self,
        image_size: usize,
        on_image: &mut dyn FnMut(&ImageResult<'_>) -> Result<(), TrainError>,
    ) -> Result<Option<Validation>, TrainError> {
        let speed = self.task.mode == ValMode::Speed;
        let loader = ValLoader::new(
            Arc::clone(self.samples),
            loader::ValSettings {
                image_size,
                stride: self.models.iter().map(Model::largest_stride).max().unwrap_or(MIN_STRIDE),
                batch: self.task.batch,
                workers: self.task.workers,
                rect: !speed,
                pad: if speed { 0.0 } else { 0.5 },
                cache: None,
                memory: self.context.images.clone(),
                promised: 0,
                rank: self.context.rank,
                world: self.context.world,
            },
        )?;
        let mut options = ValidateOptions::standard(self.task.single_cls, self.context.threads);
        options.nms.conf_thres = self.task.conf_thres as f32;
        options.nms.iou_thres = self.task.iou_thres;
        options.nms.max_det = self.task.max_det;
        options.augment = self.task.augment;
        // What is measured must be the time of each stage alone.
        options.overlap = self.task.mode == ValMode::Accuracy;
        options.hybrid = self.task.save_hybrid;
        options.keep_detections = self.task.save_json || self.saves_labels();
        options.half = self.task.half;
        self.context.reporter.phase("validating");
        let group = self.context.group.clone();
        let mut split = Split { samples: Arc::clone(self.samples), loader, group };
        let mut progress = Progress {
            context: self.context,
            batch: self.task.batch * self.context.world,
            images: self.samples.len(),
            image_size,
            began: Instant::now(),
            on_image,
        };
        let result = validate(&self.models, &mut split, &self.task.data.names, &options, None, &mut progress);
        split.warn(self.context);
        result
    }
}

/// The weights of a validation, for people.
fn title_of(weights: &[PathBuf]) -> String {
    let names: Vec<String> = weights.iter().map(|path| path.display().to_string()).collect();
    names.join(" + ")
}

/// A line of `study_*.txt` in YOLOv5's format: metrics, the three losses, which a study does not compute, and
/// milliseconds per image. The lines are in the order of the image sizes.
fn study_line(measured: &Validation) -> String {
    let Metrics { precision, recall, map50, map50_95 } = measured.metrics;
    let [before, inference, nms] = measured.table.speed_ms;
    let numbers = [precision, recall, map50, map50_95, 0.0, 0.0, 0.0, before, inference, nms];
    numbers.map(|number| format!("{:>10}", percent_g(number, 4))).join(" ")
}

/// Reports each batch, and stops when the user interrupts.
struct Progress<'a> {
    context: &'a Context,
    /// Images per batch over all ranks.
    batch: usize,
    /// Images of the split.
    images: usize,
    image_size: usize,
    began: Instant,
    on_image: &'a mut dyn FnMut(&ImageResult<'_>) -> Result<(), TrainError>,
}

impl Observer for Progress<'_> {
    fn image(&mut self, image: &ImageResult<'_>) -> Result<(), TrainError> {
        (self.on_image)(image)
    }

    fn batch_done(&mut self, done: usize, batches: usize) -> bool {
        self.context.reporter.send(&Event::Step(Step {
            epoch: 0,
            epochs: 0,
            batch: done,
            batches,
            losses: [0.0; 3],
            images_per_second: (done * self.batch).min(self.images) as f64
                / self.began.elapsed().as_secs_f64(),
            image_size: self.image_size,
            memory: 0,
            instances: 0,
        }));
        // After the last batch the result is there, so it is used.
        done == batches || !self.context.asked_to_stop()
    }
}

#[cfg(test)]
mod tests {
    use yolo_plan::event::ValTable;

    use super::*;
    use crate::metrics::ConfusionMatrix;

    #[test]
    fn a_study_goes_over_yolov5s_image_sizes() {
        let sizes: Vec<usize> = study_sizes().collect();
        assert_eq!(sizes, [256, 384, 512, 640, 768, 896, 1024, 1152, 1280, 1408, 1536]);
    }

    #[test]
    fn a_line_of_a_study_has_metrics_losses_and_times() {
        let measured = Validation {
            table: ValTable { rows: Vec::new(), speed_ms: [0.5, 12.25, 1.0], images: 8 },
            metrics: Metrics { precision: 0.5, recall: 0.25, map50: 0.123_45, map50_95: 0.0625 },
            losses: None,
            scores: Vec::new(),
            confusion: ConfusionMatrix::new(1),
            detections: Vec::new(),
        };
        assert_eq!(
            study_line(&measured),
            "       0.5       0.25     0.1235     0.0625          0          0          0        0.5      12.25          1"
        );
    }
}
