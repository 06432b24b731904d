//! What a validation adds up over its images, and the result.

use std::time::Duration;

use tch::{Device, Tensor};
use yolo_plan::event::{Metrics, ValRow, ValTable};

use crate::detection::{Detection, Truth};
use crate::error::TrainError;
use crate::metrics::{ClassScore, ConfusionMatrix, Judged, match_image, score};

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
}

/// Sums over the images of a validation.
pub(super) struct Tally {
    judged: Vec<Judged>,
    labels: Vec<usize>,
    images_with: Vec<usize>,
    images: usize,
    confusion: ConfusionMatrix,
    losses: [f64; 3],
    batches_with_loss: usize,
    seconds: [f64; 3],
}

impl Tally {
    pub(super) fn new(classes: usize) -> Self {
        Self {
            judged: Vec::new(),
            labels: vec![0; classes],
            images_with: vec![0; classes],
            images: 0,
            confusion: ConfusionMatrix::new(classes),
            losses: [0.0; 3],
            batches_with_loss: 0,
            seconds: [0.0; 3],
        }
    }

    /// Adds the loss items of a batch. Waits for the device.
    pub(super) fn add_losses(&mut self, items: &Tensor) -> Result<(), TrainError> {
        let items = Vec::<f32>::try_from(items.f_to_device(Device::Cpu)?)?;
        for (sum, item) in self.losses.iter_mut().zip(items) {
            *sum += f64::from(item);
        }
        self.batches_with_loss += 1;
        Ok(())
    }

    pub(super) fn add_image(&mut self, found: &[Detection], truths: &[Truth]) {
        self.images += 1;
        let mut present = vec![false; self.labels.len()];
        for truth in truths {
            self.labels[truth.class] += 1;
            present[truth.class] = true;
        }
        for (count, _) in self.images_with.iter_mut().zip(present).filter(|(_, present)| *present) {
            *count += 1;
        }
        let hits = match_image(found, truths);
        self.judged.extend(found.iter().zip(hits).map(|(detection, hits)| Judged {
            hits,
            confidence: detection.confidence,
            class: detection.class,
        }));
        // As in YOLOv5, images without labels do not count in the confusion matrix.
        if !truths.is_empty() {
            self.confusion.add_image(found, truths);
        }
    }

    /// Adds the times of a batch: preparing the input, the model, suppression with matching.
    pub(super) fn add_times(&mut self, times: [Duration; 3]) {
        for (sum, time) in self.seconds.iter_mut().zip(times) {
            *sum += time.as_secs_f64();
        }
    }

    pub(super) fn finish(self, names: &[String]) -> Validation {
        let scores = score(&self.judged, &self.labels);
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
        let losses =
            (self.batches_with_loss > 0).then(|| self.losses.map(|sum| sum / self.batches_with_loss as f64));
        Validation { table, metrics, losses, scores, confusion: self.confusion }
    }
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
