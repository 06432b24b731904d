//! `--quad`: four images of a batch become one of twice the size, pixel by pixel as the original makes it, with
//! labels that stay on their objects, for any number of threads and ranks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/painted.rs"]
mod painted;

use std::collections::HashMap;
use std::sync::Arc;

use painted::{painted, settings};
use serde_json::Value;
use yolo_base::Hint as _;
use yolo_data::augment::quad::{enlarge, place, placed};
use yolo_data::loader::{Batch, LoaderSettings, TrainLoader};
use yolo_data::scan::Sample;

#[test]
fn an_enlarged_image_has_the_bytes_of_pytorch() {
    let golden: Value = serde_json::from_str(include_str!("golden/quad.json")).unwrap();
    let bytes = |value: &Value| -> Vec<u8> {
        value.as_array().unwrap().iter().map(|byte| byte.as_u64().unwrap() as u8).collect()
    };
    for case in golden["cases"].as_array().unwrap() {
        let [height, width] = ["height", "width"].map(|side| case[side].as_u64().unwrap() as usize);
        let expected = bytes(&case["enlarged"]);
        let mut enlarged = vec![1; expected.len()];
        enlarge(&bytes(&case["image"]), [height, width], &mut enlarged);
        assert!(enlarged == expected, "{height} by {width}");
    }
}

#[test]
fn four_images_are_next_to_each_other() {
    // Three planes of two rows and three columns; the second image is below the first, the third beside it.
    let image = |value: u8| -> Vec<u8> { (0..18).map(|pixel| 20 * value + pixel).collect() };
    let mut planes = vec![255; 4 * 18];
    for (value, quadrant) in [[0, 0], [1, 0], [0, 1], [1, 1]].into_iter().enumerate() {
        place(&image(value as u8), [2, 3], quadrant, &mut planes);
    }
    assert_eq!(planes[..6], [0, 1, 2, 40, 41, 42]);
    assert_eq!(planes[6..12], [3, 4, 5, 43, 44, 45]);
    assert_eq!(planes[12..18], [20, 21, 22, 60, 61, 62]);
    assert_eq!(planes[24..30], [6, 7, 8, 46, 47, 48], "the second plane");
    assert_eq!(planes[66..], [35, 36, 37, 75, 76, 77], "the last row of the last plane");
    let label = [7.0, 0.5, 0.25, 0.2, 0.1];
    let places = [[0, 0], [1, 0], [0, 1], [1, 1]].map(|quadrant| placed(label, quadrant));
    // What the original's collation gives for this label.
    assert_eq!(
        places,
        [
            [7.0, 0.25, 0.125, 0.1, 0.05],
            [7.0, 0.25, 0.625, 0.1, 0.05],
            [7.0, 0.75, 0.125, 0.1, 0.05],
            [7.0, 0.75, 0.625, 0.1, 0.05],
        ]
    );
}

fn load(samples: &Arc<[Sample]>, settings: LoaderSettings) -> Vec<Batch> {
    let mut loader = TrainLoader::new(Arc::clone(samples), settings).unwrap();
    (0..2).flat_map(|epoch| loader.epoch(epoch, 0).map(Result::unwrap).collect::<Vec<_>>()).collect()
}

fn quads(workers: usize) -> LoaderSettings {
    LoaderSettings { quad: true, shares: vec![8], ..settings(workers) }
}

/// One image of a batch with its targets.
fn picture(batch: &Batch, index: usize) -> (Vec<u8>, Vec<[f32; 5]>) {
    let size = 3 * batch.height * batch.width;
    let targets = batch.targets.iter().filter(|target| target[0] == index as f32);
    let targets = targets.map(|&[_, class, x, y, w, h]| [class, x, y, w, h]).collect();
    (batch.pixels[index * size..][..size].to_vec(), targets)
}

#[test]
fn a_batch_has_the_images_of_one_without_quad() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    for rect in [false, true] {
        let plain = load(&samples, LoaderSettings { shares: vec![8], rect, ..settings(1) });
        let joined = load(&samples, LoaderSettings { rect, ..quads(1) });
        // Two of the three batches are full.
        assert_eq!((plain.len(), joined.len()), (6, 4));
        let full: Vec<&Batch> = plain.iter().filter(|batch| batch.items.len() == 8).collect();
        let (mut enlarged, mut next_to_each_other) = (0, 0);
        for (plain, joined) in full.into_iter().zip(&joined) {
            assert_eq!([joined.height, joined.width], [2 * plain.height, 2 * plain.width]);
            assert_eq!(joined.items.len(), 2);
            for index in 0..2 {
                let four: Vec<_> = (0..4).map(|image| picture(plain, 4 * index + image)).collect();
                let half = [plain.height, plain.width];
                let mut large = vec![0; 4 * four[0].0.len()];
                enlarge(&four[0].0, half, &mut large);
                let mut expected = (large, four[0].1.clone());
                let (pixels, targets) = picture(joined, index);
                if pixels == expected.0 {
                    enlarged += 1;
                } else {
                    expected.1.clear();
                    for ((image, labels), quadrant) in four.iter().zip([[0, 0], [1, 0], [0, 1], [1, 1]]) {
                        place(image, half, quadrant, &mut expected.0);
                        expected.1.extend(labels.iter().map(|label| placed(*label, quadrant)));
                    }
                    next_to_each_other += 1;
                }
                assert!(pixels == expected.0);
                assert_eq!(targets, expected.1);
            }
        }
        assert!(enlarged > 0 && next_to_each_other > 0, "{enlarged} and {next_to_each_other}, rect {rect}");
    }
}

#[test]
fn batches_do_not_depend_on_threads_or_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    let expected = load(&samples, quads(0));
    for workers in [1, 3] {
        assert_eq!(load(&samples, quads(workers)), expected, "{workers} workers");
    }
    let ranks = [0, 1].map(|rank| load(&samples, LoaderSettings { rank, shares: vec![4, 4], ..quads(2) }));
    for (whole, (first, second)) in expected.iter().zip(ranks[0].iter().zip(&ranks[1])) {
        assert_eq!(whole.pixels, [&first.pixels[..], &second.pixels].concat());
    }
    // An epoch can begin in its middle.
    let mut loader = TrainLoader::new(samples, quads(2)).unwrap();
    assert_eq!(loader.epoch(1, 1).map(Result::unwrap).collect::<Vec<_>>(), expected[3..]);
}

#[test]
fn images_of_a_quad_can_be_drawn_by_weight() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = painted(folder.path(), 22).to_vec();
    samples.iter_mut().skip(3).for_each(|sample| sample.boxes.clear());
    let batches = load(&samples.into(), LoaderSettings { image_weights: Some(3), ..quads(2) });
    let mut shown: HashMap<usize, usize> = HashMap::new();
    batches
        .iter()
        .flat_map(|batch| &batch.items)
        .for_each(|item| *shown.entry(item.sample).or_default() += 1);
    assert!(shown.keys().all(|image| *image < 3) && shown.values().sum::<usize>() == 8, "{shown:?}");
}

#[test]
fn a_batch_that_cannot_be_joined_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 6);
    let error = |shares: &[usize]| {
        let settings = LoaderSettings { shares: shares.to_vec(), ..quads(0) };
        TrainLoader::new(Arc::clone(&samples), settings).err().unwrap()
    };
    assert_eq!(error(&[6]).to_string(), "the batch of a rank is 6; it must be a multiple of 4");
    let few = error(&[4, 4]);
    assert_eq!(few.to_string(), "--quad trains full batches only, and 6 images are fewer than a batch of 8");
    assert!(few.hint().unwrap().contains("smaller --batch"));
}
