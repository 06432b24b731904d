//! A validation over a few images on disk.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use tch::Device;
use yolo_data::image::Image;
use yolo_data::image::encode::write_jpeg;
use yolo_data::loader::{ValLoader, ValSettings};
use yolo_data::scan::Sample;
use yolo_plan::model::ModelSpec;
use yolo_trainer::detection::ImageResult;
use yolo_trainer::error::TrainError;
use yolo_trainer::model::Model;
use yolo_trainer::tasks::val::{Observer, Split, ValidateOptions, validate};

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
    let settings =
        ValSettings { image_size: 64, stride: 32, batch: 1, workers: 1, rect: false, pad: 0.0, cache: None };
    let loader = ValLoader::new(Arc::clone(&samples), settings).unwrap();
    let mut split = Split { samples, loader };
    let model = Model::new(&ModelSpec::load("yolov5n", 1, None).unwrap(), Device::Cpu).unwrap();
    let mut run = |observer: &mut StopAfter| {
        let options = ValidateOptions::standard(false);
        validate(&model, &mut split, &["one".to_owned()], &options, None, observer).unwrap()
    };

    let mut early = StopAfter { batches: 2, images: 0 };
    assert!(run(&mut early).is_none());
    assert_eq!(early.images, 2);

    // A loader that was left in the middle starts again.
    let mut whole = StopAfter { batches: 5, images: 0 };
    let result = run(&mut whole).unwrap();
    assert_eq!((whole.images, result.table.images, result.table.rows[0].instances), (4, 4, 4));
}
