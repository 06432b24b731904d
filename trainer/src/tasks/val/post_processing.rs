//! What follows the network: suppression, and matching with the labels. The images of a batch are shared by
//! threads, while the caller runs the network on the next batch. Results come back in the order of the images, so
//! they do not depend on the threads.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rayon::ThreadPool;
use rayon::prelude::*;
use yolo_data::loader::Batch;

use super::options::ValidateOptions;
use crate::detection::{Corners, Detection, Rows, Suppressor, Truth, corners, find_objects, to_native};
use crate::error::TrainError;
use crate::metrics::{Hits, match_image};

/// The threads that process the outputs of batches.
pub(super) struct PostProcessing {
    pool: ThreadPool,
    classes: usize,
    options: Arc<ValidateOptions>,
}

/// A batch in work.
pub(super) struct Pending(Receiver<Processed>);

/// A batch with its detections.
pub(super) struct Processed {
    pub(super) batch: Batch,
    /// One for each image.
    pub(super) images: Vec<ProcessedImage>,
    /// What it took, from start to end.
    pub(super) time: Duration,
}

/// The detections and the labels of one image, both in pixels of the image file.
pub(super) struct ProcessedImage {
    pub(super) found: Vec<Detection>,
    pub(super) truths: Vec<Truth>,
    /// Which detections are correct.
    pub(super) hits: Vec<Hits>,
}

impl PostProcessing {
    /// Starts the threads, for a model with `classes` classes.
    pub(super) fn start(
        threads: usize,
        classes: usize,
        options: &ValidateOptions,
    ) -> Result<Self, TrainError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|index| format!("suppress-{index}"))
            // The batch is missing then, which `Pending::wait` reports.
            .panic_handler(|_| ())
            .build()
            .map_err(|error| {
                TrainError::new(format!("cannot start {threads} threads for suppression: {error}")).with_hint(
                    "the limits on processes and memory of this user may be too low: see `ulimit -a`",
                )
            })?;
        Ok(Self { pool, classes, options: Arc::new(options.clone()) })
    }

    /// Begins with a batch. Its images are done in parallel.
    pub(super) fn begin(&self, batch: Batch, rows: Rows) -> Pending {
        let (done, receiver) = channel();
        let (classes, options) = (self.classes, Arc::clone(&self.options));
        self.pool.spawn(move || {
            let began = Instant::now();
            let of_images: Vec<&[f32]> = rows.images().collect();
            let images = of_images
                .into_par_iter()
                .enumerate()
                .map_init(Suppressor::default, |suppressor, (index, rows)| {
                    process(suppressor, rows, &batch, index, classes, &options)
                });
            let images = images.collect();
            drop(rows);
            // Nobody waits any more if the validation was stopped.
            let _ = done.send(Processed { batch, images, time: began.elapsed() });
        });
        Pending(receiver)
    }
}

impl Pending {
    /// Waits for the batch.
    pub(super) fn wait(self) -> Result<Processed, TrainError> {
        self.0
            .recv()
            .map_err(|_| TrainError::new("a thread that suppresses detections has ended unexpectedly"))
    }
}

fn process(
    suppressor: &mut Suppressor,
    rows: &[f32],
    batch: &Batch,
    index: usize,
    classes: usize,
    options: &ValidateOptions,
) -> ProcessedImage {
    let item = &batch.items[index];
    let mut truths = labels_of(batch, index, options.single_cls);
    let known: Vec<(usize, Corners)> = if options.hybrid {
        truths.iter().map(|truth| (truth.class, truth.corners)).collect()
    } else {
        Vec::new()
    };
    let mut found = find_objects(suppressor, rows, classes, item, &known, &options.nms);
    if options.single_cls {
        found.iter_mut().for_each(|detection| detection.class = 0);
    }
    for truth in &mut truths {
        truth.corners = to_native(truth.corners, item.gain(), item.pad, item.native);
    }
    let hits = match_image(&found, &truths);
    ProcessedImage { found, truths, hits }
}

/// The labels of one image of a batch, in pixels of the batch.
fn labels_of(batch: &Batch, index: usize, single_cls: bool) -> Vec<Truth> {
    let (width, height) = (batch.width as f32, batch.height as f32);
    batch
        .targets
        .iter()
        .filter(|target| target[0] as usize == index)
        .map(|&[_, class, x, y, w, h]| Truth {
            corners: corners([x * width, y * height, w * width, h * height]),
            class: if single_cls { 0 } else { class as usize },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tch::Tensor;
    use yolo_data::loader::Item;

    use super::*;

    const IMAGES: usize = 13;
    const ROWS: usize = 60;
    const CLASSES: usize = 3;

    /// A batch of images with labels, and the outputs of a model that has seen them.
    fn batch() -> (Batch, Rows) {
        let mut state = 5_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 24) as f32
        };
        let mut targets = Vec::new();
        let mut outputs = Vec::new();
        for image in 0..IMAGES {
            for _ in 0..image % 4 {
                let class = (random() * CLASSES as f32).floor();
                targets.push([image as f32, class, random(), random(), 0.2, 0.3]);
            }
            for _ in 0..ROWS {
                let [x, y] = [random(), random()].map(|share| 64.0 * share);
                let [w, h] = [random(), random()].map(|share| 4.0 + 20.0 * share);
                outputs.extend([x, y, w, h, random(), random(), random(), random()]);
            }
        }
        let item = |sample| Item { sample, native: [128, 96], ratio: [0.5; 2], pad: [8.0, 0.0] };
        let items = (0..IMAGES).map(item).collect();
        let batch = Batch { height: 64, width: 64, pixels: Vec::new(), targets, items };
        let outputs = Tensor::from_slice(&outputs).view([IMAGES as i64, ROWS as i64, 5 + CLASSES as i64]);
        (batch, Rows::all(&outputs).unwrap())
    }

    #[test]
    fn several_threads_give_what_one_gives() {
        let run = |threads: usize| {
            let options = ValidateOptions::standard(false, 2);
            let post_processing = PostProcessing::start(threads, CLASSES, &options).unwrap();
            let (batch, rows) = batch();
            let images = post_processing.begin(batch, rows).wait().unwrap().images;
            images.into_iter().map(|image| (image.found, image.truths, image.hits)).collect::<Vec<_>>()
        };
        let one = run(1);
        assert_eq!(one.len(), IMAGES);
        assert!(one.iter().all(|(found, ..)| found.len() > 5));
        assert!(one.iter().enumerate().all(|(image, (_, truths, _))| truths.len() == image % 4));
        for threads in [2, 5, 32] {
            assert!(run(threads) == one, "{threads} threads");
        }
    }
}
