//! `--image-weights`: the weights are those of numpy's formulas, images of classes that are found poorly are drawn
//! more often, and the batches do not depend on threads, ranks or the step from which a run is resumed.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it skips"
)]

#[path = "support/painted.rs"]
mod painted;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use painted::{painted, settings};
use serde_json::Value;
use yolo_base::env::YOLO_GOLDEN;
use yolo_data::image_weights::{WeightedImages, class_weights, epoch_weights, image_weights};
use yolo_data::loader::{Batch, LoaderSettings, TrainLoader};
use yolo_data::scan::Sample;
use yolo_plan::options::Balance;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// An image with a box of each of these classes.
fn with_classes(classes: impl IntoIterator<Item = f32>) -> Sample {
    let boxes = classes.into_iter().map(|class| [class, 0.5, 0.5, 0.1, 0.1]).collect();
    Sample { boxes, ..Sample::default() }
}

#[track_caller]
fn assert_close(ours: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), expected.len());
    for (one, other) in ours.iter().zip(expected) {
        assert!((one - other).abs() <= tolerance, "{ours:?}, expected {expected:?}");
    }
}

#[test]
fn the_weights_are_those_of_numpy() {
    let golden: Value = serde_json::from_str(include_str!("golden/image_weights.json")).unwrap();
    let labels = golden["labels"].as_array().unwrap();
    let samples: Vec<Sample> = labels
        .iter()
        .map(|classes| with_classes(numbers(classes).into_iter().map(|class| class as f32)))
        .collect();
    let classes = class_weights(&samples, 5);
    assert_close(&classes, &numbers(&golden["class_weights"]), 1e-15);
    for case in golden["cases"].as_array().unwrap() {
        let epoch = epoch_weights(&classes, &numbers(&case["average_precisions"]));
        assert_close(&epoch, &numbers(&case["epoch"]), 1e-15);
        assert_close(&image_weights(&samples, &epoch), &numbers(&case["images"]), 1e-15);
    }
}

#[test]
fn the_weights_of_an_epoch_are_those_of_the_original() {
    let folder = std::env::var_os(YOLO_GOLDEN).map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/golden")),
        PathBuf::from,
    );
    let Ok(file) = File::open(folder.join("g_geometry.json")) else {
        eprintln!("skipped: {} does not exist", folder.display());
        return;
    };
    let recorded: Value = serde_json::from_reader(file).unwrap();
    let example = &recorded["image_weights_example"];
    let classes = numbers(&recorded["class_weights_train_nc10"]);
    // The original calculates in single precision.
    assert_close(
        &epoch_weights(&classes, &numbers(&example["maps"])),
        &numbers(&example["class_weights_in"]),
        1e-7,
    );
}

#[test]
fn images_of_classes_with_low_average_precision_are_drawn_more_often() {
    // Half of the images have class 0 and half class 1; one has no object.
    let samples: Arc<[Sample]> = (0..40)
        .map(|index| with_classes([(index % 2) as f32]))
        .chain([with_classes([])])
        .collect::<Vec<_>>()
        .into();
    let drawn = |average_precisions: &[f64]| -> [f64; 3] {
        let images = WeightedImages::new(Arc::clone(&samples), 2, 7);
        images.set_average_precisions(average_precisions);
        let mut counts = [0.0; 3];
        for epoch in 0..200 {
            for &image in images.of_epoch(epoch).iter() {
                counts[if image == 40 { 2 } else { image % 2 }] += 1.0 / (200.0 * 41.0);
            }
        }
        counts
    };
    let [equal, poor, unknown] = [drawn(&[0.5, 0.5]), drawn(&[0.9, 0.1]), drawn(&[])];
    assert!((equal[0] - 0.5).abs() < 0.02, "{equal:?}");
    // (1 − 0.1)² is 81 times (1 − 0.9)².
    assert!((poor[1] - 81.0 / 82.0).abs() < 0.01, "{poor:?}");
    // Before the first validation, all classes have the average precision 0.
    assert!((unknown[0] - 0.5).abs() < 0.02, "{unknown:?}");
    assert!(equal[2] + poor[2] + unknown[2] == 0.0, "an image without objects has no weight");
}

/// Two epochs, with a validation between them.
fn epochs(samples: &Arc<[Sample]>, settings: LoaderSettings) -> Vec<Batch> {
    let mut loader = TrainLoader::new(Arc::clone(samples), settings).unwrap();
    let mut batches: Vec<Batch> = loader.epoch(0, 0).map(Result::unwrap).collect();
    loader.set_average_precisions(&[0.9, 0.0, 0.5]);
    batches.extend(loader.epoch(1, 0).map(Result::unwrap));
    batches
}

fn images(batches: &[Batch]) -> Vec<usize> {
    batches.iter().flat_map(|batch| batch.items.iter().map(|item| item.sample)).collect()
}

#[test]
fn batches_do_not_depend_on_threads_or_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    let weighted = |workers| LoaderSettings { image_weights: Some(3), ..settings(workers) };
    let expected = epochs(&samples, weighted(0));
    assert_eq!(images(&expected).len(), 44, "an epoch has as many images as the data set");
    for workers in [1, 2, 4] {
        assert_eq!(epochs(&samples, weighted(workers)), expected, "{workers} workers");
    }
    for balance in [None, Some(Balance::Boxes)] {
        let [first, second] = [0, 1].map(|rank| {
            epochs(&samples, LoaderSettings { rank, shares: vec![2, 2], balance, ..weighted(2) })
        });
        for (whole, (first, second)) in expected.iter().zip(first.into_iter().zip(second)) {
            let mut items = [first.items, second.items].concat();
            let mut of_one = whole.items.clone();
            if balance.is_none() {
                assert_eq!(whole.pixels, [first.pixels, second.pixels].concat());
            } else {
                // Balance moves images between the ranks.
                items.sort_by_key(|item| item.sample);
                of_one.sort_by_key(|item| item.sample);
            }
            assert_eq!(items, of_one);
        }
    }
}

#[test]
fn an_image_that_is_drawn_again_is_augmented_anew_and_mosaics_have_drawn_images_only() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = painted(folder.path(), 22).to_vec();
    // Only two images have objects, and so a weight.
    samples.iter_mut().skip(2).for_each(|sample| sample.boxes.clear());
    let settings = LoaderSettings { image_weights: Some(3), ..settings(1) };
    let mut loader = TrainLoader::new(samples.into(), settings).unwrap();
    let batches: Vec<Batch> = loader.epoch(0, 0).map(Result::unwrap).collect();
    assert!(images(&batches).iter().all(|image| *image < 2));
    let size = 3 * 64 * 64;
    let mut pictures: Vec<&[u8]> = batches.iter().flat_map(|batch| batch.pixels.chunks_exact(size)).collect();
    pictures.sort_unstable();
    pictures.dedup();
    assert!(pictures.len() > 18, "only {} of 22 differ", pictures.len());
    // All tiles have a rectangle, so most mosaics show more than one.
    let shown: usize = batches.iter().map(|batch| batch.targets.len()).sum();
    assert!(shown > 30, "{shown} objects on 22 images");
}

#[test]
fn a_resumed_epoch_has_the_batches_of_the_interrupted_one() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    let weighted = || LoaderSettings { image_weights: Some(3), ..settings(2) };
    let expected = epochs(&samples, weighted());
    let mut resumed = TrainLoader::new(Arc::clone(&samples), weighted()).unwrap();
    resumed.set_average_precisions(&[0.9, 0.0, 0.5]);
    resumed.prefetch(1, 4);
    assert_eq!(resumed.epoch(1, 4).map(Result::unwrap).collect::<Vec<_>>(), expected[10..]);
    let mut forgotten = TrainLoader::new(samples, weighted()).unwrap();
    assert_ne!(
        images(&forgotten.epoch(1, 0).map(Result::unwrap).collect::<Vec<_>>()),
        images(&expected[6..])
    );
}
