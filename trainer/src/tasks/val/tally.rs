//! What a validation adds up over its images, on one rank or several, and the result.

use std::time::Duration;

use tch::{Device, Tensor};
use tch_distributed::ProcessGroup;
use yolo_plan::event::{Metrics, ValRow, ValTable};

use super::message::{Reader, Writer};
use crate::detection::{Detection, Truth};
use crate::error::TrainError;
use crate::metrics::{ClassScore, ConfusionMatrix, Hits, Judged, score};

/// The result of a validation.
#[derive(Debug, Clone)]
pub struct Validation {
    /// The printed table.
    pub table: ValTable,
    /// The metrics over all classes, the row `all` of the table.
    pub metrics: Metrics,
    /// Mean box, objectness and class loss over the batches, if there was a loss.
    pub losses: Option<[f64; 3]>,
    /// Metrics and curves of each class that has labels.
    pub scores: Vec<ClassScore>,
    /// Which class was predicted for which.
    pub confusion: ConfusionMatrix,
    /// The detections of each image, in the order of validation, if they were to be kept.
    pub detections: Vec<ImageDetections>,
}

impl Validation {
    /// The mAP50-95 of each of `classes` classes. Classes without labels have that of all classes, as in YOLOv5.
    pub fn average_precisions(&self, classes: usize) -> Vec<f64> {
        let mut all = vec![self.metrics.map50_95; classes];
        for score in &self.scores {
            if let Some(of_class) = all.get_mut(score.class) {
                *of_class = score.ap50_95();
            }
        }
        all
    }
}

/// The detections of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct ImageDetections {
    /// The index of its sample.
    pub sample: usize,
    /// What was found, in pixels of its file, most confident first.
    pub detections: Vec<Detection>,
}

/// Sums over the images of a validation.
pub(super) struct Tally {
    /// What depends on the order, batch by batch.
    batches: Vec<BatchTally>,
    labels: Vec<usize>,
    images_with: Vec<usize>,
    images: usize,
    confusion: ConfusionMatrix,
    seconds: [f64; 3],
}

/// What one batch adds.
#[derive(Default)]
struct BatchTally {
    /// Its number among the batches of all ranks.
    number: usize,
    losses: Option<[f32; 3]>,
    judged: Vec<Judged>,
    kept: Vec<ImageDetections>,
}

impl Tally {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            batches: Vec::new(),
            labels: vec![0; classes],
            images_with: vec![0; classes],
            images: 0,
            confusion: ConfusionMatrix::new(classes),
            seconds: [0.0; 3],
        }
    }

    fn start_batch(&mut self, number: usize) {
        self.batches.push(BatchTally { number, ..BatchTally::default() });
    }

    /// The batch with this number, among the last ones.
    fn batch(&mut self, number: usize) -> &mut BatchTally {
        let index = self.batches.iter().rposition(|batch| batch.number == number).unwrap_or_else(|| {
            self.start_batch(number);
            self.batches.len() - 1
        });
        &mut self.batches[index]
    }

    /// Adds the loss items of a batch. Waits for the device.
    pub(super) fn add_losses(&mut self, number: usize, items: &Tensor) -> Result<(), TrainError> {
        let items = Vec::<f32>::try_from(items.f_to_device(Device::Cpu)?)?;
        self.batch(number).losses =
            Some(std::array::from_fn(|index| items.get(index).copied().unwrap_or_default()));
        Ok(())
    }

    /// Adds an image of a batch. `hits` says which detections are correct.
    pub(super) fn add_image(&mut self, number: usize, found: &[Detection], truths: &[Truth], hits: &[Hits]) {
        self.images += 1;
        let mut present = vec![false; self.labels.len()];
        for truth in truths {
            self.labels[truth.class] += 1;
            present[truth.class] = true;
        }
        for (count, _) in self.images_with.iter_mut().zip(present).filter(|(_, present)| *present) {
            *count += 1;
        }
        self.batch(number).judged.extend(found.iter().zip(hits).map(|(detection, hits)| Judged {
            hits: *hits,
            confidence: detection.confidence,
            class: detection.class,
        }));
        // As in YOLOv5, images without labels do not count in the confusion matrix.
        if !truths.is_empty() {
            self.confusion.add_image(found, truths);
        }
    }

    /// Keeps the detections of an image for the result.
    pub(super) fn keep(&mut self, number: usize, sample: usize, found: &[Detection]) {
        self.batch(number).kept.push(ImageDetections { sample, detections: found.to_vec() });
    }

    /// Adds the times of a batch: preparing the input, the model, suppression with matching.
    pub(super) fn add_times(&mut self, times: [Duration; 3]) {
        for (sum, time) in self.seconds.iter_mut().zip(times) {
            *sum += time.as_secs_f64();
        }
    }

    /// The sums over all ranks, on every rank; `None` if one of them has no result of its own.
    pub(super) fn of_all_ranks(
        group: &ProcessGroup,
        own: Option<Self>,
        classes: usize,
    ) -> Result<Option<Self>, TrainError> {
        let message = own.map_or_else(Vec::new, |own| own.write());
        let messages = group.all_gather_bytes(&message)?;
        if messages.iter().any(Vec::is_empty) {
            return Ok(None);
        }
        let mut all = Self::new(classes);
        for message in &messages {
            all.add_message(&mut Reader::new(message))?;
        }
        // Equal confidences keep the order of the batches, as on one rank.
        all.batches.sort_by_key(|batch| batch.number);
        Ok(Some(all))
    }

    fn write(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.number(self.images as u64);
        self.seconds.iter().for_each(|seconds| to.double(*seconds));
        self.labels.iter().chain(&self.images_with).for_each(|count| to.number(*count as u64));
        self.confusion.counts().iter().for_each(|count| to.number(*count));
        to.number(self.batches.len() as u64);
        self.batches.iter().for_each(|batch| batch.write(&mut to));
        to.finish()
    }

    /// Adds what another tally wrote.
    fn add_message(&mut self, from: &mut Reader<'_>) -> Result<(), TrainError> {
        self.images += from.number()? as usize;
        for sum in &mut self.seconds {
            *sum += from.double()?;
        }
        for count in self.labels.iter_mut().chain(&mut self.images_with) {
            *count += from.number()? as usize;
        }
        let counts = self.confusion.counts().iter().map(|_| from.number()).collect::<Result<Vec<_>, _>>()?;
        self.confusion.merge(&counts);
        for _ in 0..from.count()? {
            self.batches.push(BatchTally::read(from)?);
        }
        Ok(())
    }

    pub(super) fn finish(self, names: &[String]) -> Validation {
        let mut judged = Vec::with_capacity(self.batches.iter().map(|batch| batch.judged.len()).sum());
        let (mut losses, mut batches_with_loss) = ([0.0; 3], 0_u32);
        let mut detections = Vec::new();
        for batch in self.batches {
            for (sum, item) in losses.iter_mut().zip(batch.losses.into_iter().flatten()) {
                *sum += f64::from(item);
            }
            batches_with_loss += u32::from(batch.losses.is_some());
            judged.extend(batch.judged);
            detections.extend(batch.kept);
        }
        let scores = score(&judged, &self.labels);
        let metrics = mean_metrics(&scores);
        let all = ValRow {
            class: "all".to_owned(),
            images: self.images,
            instances: self.labels.iter().sum(),
            metrics,
        };
        let rows = scores.iter().map(|score| ValRow {
            class: names.get(score.class).cloned().unwrap_or_else(|| format!("class {}", score.class)),
            images: self.images_with[score.class],
            instances: score.labels,
            metrics: metrics_of(score),
        });
        let table = ValTable {
            rows: std::iter::once(all).chain(rows).collect(),
            speed_ms: self.seconds.map(|seconds| seconds * 1000.0 / self.images.max(1) as f64),
            images: self.images,
        };
        let losses = (batches_with_loss > 0).then(|| losses.map(|sum| sum / f64::from(batches_with_loss)));
        Validation { table, metrics, losses, scores, confusion: self.confusion, detections }
    }
}

impl BatchTally {
    fn write(&self, to: &mut Writer) {
        to.number(self.number as u64);
        to.number(u64::from(self.losses.is_some()));
        self.losses.iter().flatten().for_each(|item| to.float(*item));
        to.number(self.judged.len() as u64);
        for judged in &self.judged {
            to.short(judged.hits.iter().rev().fold(0, |bits, &hit| bits << 1 | u16::from(hit)));
            to.float(judged.confidence);
            to.number(judged.class as u64);
        }
        to.number(self.kept.len() as u64);
        for image in &self.kept {
            to.number(image.sample as u64);
            to.number(image.detections.len() as u64);
            for found in &image.detections {
                found.corners.iter().for_each(|corner| to.float(*corner));
                to.float(found.confidence);
                to.number(found.class as u64);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, TrainError> {
        let number = from.number()? as usize;
        let losses = match from.number()? {
            0 => None,
            _ => Some([from.float()?, from.float()?, from.float()?]),
        };
        let count = from.count()?;
        let mut judged = Vec::with_capacity(count);
        for _ in 0..count {
            let bits = from.short()?;
            let hits = std::array::from_fn(|level| bits >> level & 1 == 1);
            judged.push(Judged { hits, confidence: from.float()?, class: from.number()? as usize });
        }
        let mut kept = Vec::new();
        for _ in 0..from.count()? {
            let sample = from.number()? as usize;
            let detections = (0..from.count()?).map(|_| read_detection(from)).collect::<Result<_, _>>()?;
            kept.push(ImageDetections { sample, detections });
        }
        Ok(Self { number, losses, judged, kept })
    }
}

fn read_detection(from: &mut Reader<'_>) -> Result<Detection, TrainError> {
    let corners = [from.float()?, from.float()?, from.float()?, from.float()?];
    Ok(Detection { corners, confidence: from.float()?, class: from.number()? as usize })
}

fn metrics_of(score: &ClassScore) -> Metrics {
    Metrics {
        precision: score.precision,
        recall: score.recall,
        map50: score.ap50(),
        map50_95: score.ap50_95(),
    }
}

/// The mean over the classes that have labels; zeros if there are none.
fn mean_metrics(scores: &[ClassScore]) -> Metrics {
    let mean = |of: &dyn Fn(&ClassScore) -> f64| {
        if scores.is_empty() { 0.0 } else { scores.iter().map(of).sum::<f64>() / scores.len() as f64 }
    };
    Metrics {
        precision: mean(&|score| score.precision),
        recall: mean(&|score| score.recall),
        map50: mean(&ClassScore::ap50),
        map50_95: mean(&ClassScore::ap50_95),
    }
}
