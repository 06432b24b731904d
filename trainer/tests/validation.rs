//! A validation over a few images on disk, on one rank and on several.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking and says what it skips"
)]

mod support;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use support::ranks::{on_ranks, on_two_ranks};
use tch::Device;
use tch_distributed::ProcessGroup;
use yolo_data::image::Image;
use yolo_data::image::encode::write_jpeg;
use yolo_data::loader::{ImageMemory, ValLoader, ValSettings};
use yolo_data::scan::Sample;
use yolo_plan::model::ModelSpec;
use yolo_trainer::detection::ImageResult;
use yolo_trainer::error::TrainError;
use yolo_trainer::loss::{DetectionLoss, LossSettings};
use yolo_trainer::model::Model;
use yolo_trainer::tasks::val::{Observer, Split, ValidateOptions, Validation, validate};

/// Stops after some batches, and counts the images that it sees.
struct StopAfter {
    batches: usize,
    images: usize,
}

impl Observer for StopAfter {
    fn image(&mut self, _: &ImageResult<'_>) -> Result<(), TrainError> {
        self.images += 1;
        Ok(())
    }

    fn batch_done(&mut self, done: usize, _: usize) -> bool {
        done < self.batches
    }
}

#[test]
fn an_observer_sees_each_image_and_can_stop() {
    let folder = tempfile::tempdir().unwrap();
    let sample = |index: usize| {
        let image = folder.path().join(format!("{index}.jpg"));
        write_jpeg(&image, &Image::filled(64, 64, [100; 3])).unwrap();
        Sample { image, width: 64, height: 64, boxes: vec![[0.0, 0.5, 0.5, 0.5, 0.5]], ..Sample::default() }
    };
    let samples: Arc<[Sample]> = (0..4).map(sample).collect();
    let settings = ValSettings {
        image_size: 64,
        stride: 32,
        batch: 1,
        workers: 1,
        rect: false,
        pad: 0.0,
        cache: None,
        memory: ImageMemory::default(),
        promised: 0,
        rank: 0,
        world: 1,
    };
    let loader = ValLoader::new(Arc::clone(&samples), settings).unwrap();
    let mut split = Split { samples, loader, group: None };
    let model = Model::new(&ModelSpec::load("yolov5n", 1, None).unwrap(), Device::Cpu).unwrap();
    let mut run = |observer: &mut StopAfter| {
        let options = ValidateOptions::standard(false, 2);
        validate(std::slice::from_ref(&model), &mut split, &["one".to_owned()], &options, None, observer)
            .unwrap()
    };

    let mut early = StopAfter { batches: 2, images: 0 };
    assert!(run(&mut early).is_none());
    assert_eq!(early.images, 2);

    // A loader that was left in the middle starts again.
    let mut whole = StopAfter { batches: 5, images: 0 };
    let result = run(&mut whole).unwrap();
    assert_eq!((whole.images, result.table.images, result.table.rows[0].instances), (4, 4, 4));
}

/// Sees everything to its end.
struct Patient;

impl Observer for Patient {
    fn batch_done(&mut self, _: usize, _: usize) -> bool {
        true
    }
}

/// A model that every rank draws alike, and images of several shapes with noise.
struct Scene {
    model: Model,
    samples: Arc<[Sample]>,
}

impl Scene {
    /// The labels of each image are some of the boxes that the model finds there, so that the metrics are
    /// neither 0 nor 1.
    fn new(folder: &Path, images: usize) -> Self {
        tch::manual_seed(3);
        let model = Model::new(&ModelSpec::load("yolov5n", 3, None).unwrap(), Device::Cpu).unwrap();
        let noise = |index: usize| {
            let image = folder.join(format!("{index:02}.jpg"));
            let (width, height) = (64 + 32 * (index % 3), 64 + 32 * (index % 2));
            let mut picture = Image::filled(width, height, [0; 3]);
            let mut state = index as u32 + 1;
            for byte in &mut picture.data {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *byte = (state >> 24) as u8;
            }
            write_jpeg(&image, &picture).unwrap();
            Sample { image, width: width as u32, height: height as u32, ..Sample::default() }
        };
        let mut scene = Self { model, samples: (0..images).map(noise).collect() };
        let found = scene.validate(true, None, (0, 1), &mut Patient).unwrap().detections;
        let mut samples = scene.samples.to_vec();
        for image in found {
            let sample = &mut samples[image.sample];
            let (width, height) = (sample.width as f32, sample.height as f32);
            let boxes = image.detections.iter().skip(image.sample % 4).step_by(5).take(6).map(|found| {
                let [left, top, right, bottom] = found.corners;
                let (x, y) = ((left + right) / 2.0 / width, (top + bottom) / 2.0 / height);
                [found.class as f32, x, y, 0.8 * (right - left) / width, 0.9 * (bottom - top) / height]
            });
            sample.boxes = boxes.collect();
        }
        scene.samples = samples.into();
        scene
    }

    fn validate(
        &self,
        rect: bool,
        group: Option<&Rc<ProcessGroup>>,
        (rank, world): (usize, usize),
        observer: &mut dyn Observer,
    ) -> Option<Validation> {
        let settings = ValSettings {
            image_size: 96,
            stride: 32,
            batch: 2,
            workers: 1,
            rect,
            pad: 0.5,
            cache: None,
            memory: ImageMemory::default(),
            promised: 0,
            rank,
            world,
        };
        let samples = Arc::clone(&self.samples);
        let loader = ValLoader::new(Arc::clone(&samples), settings).unwrap();
        let mut split = Split { samples, loader, group: group.cloned() };
        let mut options = ValidateOptions::standard(false, 2);
        // An untrained model is confident of nothing.
        options.nms.conf_thres = 1e-6;
        options.keep_detections = true;
        // Neither the ranks nor the order of the work change the result.
        options.overlap = group.is_some();
        let (anchors, device) = (self.model.anchors().unwrap(), Device::Cpu);
        let loss = DetectionLoss::new(anchors, 3, LossSettings::NEUTRAL, device).unwrap();
        let names = ["a", "b", "c"].map(str::to_owned);
        validate(std::slice::from_ref(&self.model), &mut split, &names, &options, Some(&loss), observer)
            .unwrap()
    }
}

/// Compares everything but the times, to the last bit.
fn assert_equal(got: &Validation, want: &Validation, what: &str) {
    assert_eq!(got.metrics, want.metrics, "{what}");
    assert_eq!(got.losses, want.losses, "{what}");
    assert_eq!((&got.table.rows, got.table.images), (&want.table.rows, want.table.images), "{what}");
    assert!(got.scores == want.scores, "{what}: the curves differ");
    assert_eq!(got.confusion, want.confusion, "{what}");
    assert!(got.detections == want.detections, "{what}: the detections differ");
}

#[test]
fn ranks_have_the_result_of_one_rank() {
    on_two_ranks("ranks_have_the_result_of_one_rank", |rank, group| shared_exactly(rank, 2, group));
}

#[test]
fn more_ranks_than_batches_have_the_result_of_one_rank() {
    on_ranks("more_ranks_than_batches_have_the_result_of_one_rank", 3, |rank, group| {
        shared_exactly(rank, 3, group);
    });
}

fn shared_exactly(rank: usize, world: usize, group: &Rc<ProcessGroup>) {
    for images in [1, 3, 7] {
        let folder = tempfile::tempdir().unwrap();
        let scene = Scene::new(folder.path(), images);
        for rect in [false, true] {
            let what = format!("{images} images, {world} ranks, rect {rect}");
            let alone = scene.validate(rect, None, (0, 1), &mut Patient).unwrap();
            let map = alone.metrics.map50;
            assert!(alone.table.images == images && map > 0.0 && map < 1.0, "{what}: {:?}", alone.metrics);
            let shared = scene.validate(rect, Some(group), (rank, world), &mut Patient).unwrap();
            assert_equal(&shared, &alone, &what);
        }
    }
}

#[test]
fn a_rank_that_is_stopped_stops_all() {
    on_two_ranks("a_rank_that_is_stopped_stops_all", |rank, group| {
        let folder = tempfile::tempdir().unwrap();
        let scene = Scene::new(folder.path(), 7);
        let mut early = StopAfter { batches: 1, images: 0 };
        let observer: &mut dyn Observer = if rank == 1 { &mut early } else { &mut Patient };
        assert!(scene.validate(true, Some(group), (rank, 2), observer).is_none());
        assert!(
            scene.validate(true, Some(group), (rank, 2), &mut Patient).is_some(),
            "the next one is whole"
        );
    });
}
