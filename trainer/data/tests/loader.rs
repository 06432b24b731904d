//! The loaders return the same batches for any number of threads and ranks and from any starting point, and
//! labels stay on their objects through every transform.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/painted.rs"]
mod painted;

use std::fs;
use std::sync::Arc;

use painted::{augment, painted, settings};
use proptest::prelude::*;
use yolo_data::augment::Augment;
use yolo_data::loader::{Batch, ImageMemory, LoaderSettings, TrainLoader, ValLoader, ValSettings};
use yolo_data::scan::Sample;
use yolo_plan::options::{Balance, Cache};

fn epochs(samples: &Arc<[Sample]>, settings: LoaderSettings) -> Vec<Batch> {
    let mut loader = TrainLoader::new(Arc::clone(samples), settings).unwrap();
    (0..2).flat_map(|epoch| loader.epoch(epoch, 0).map(Result::unwrap).collect::<Vec<_>>()).collect()
}

#[test]
fn batches_do_not_depend_on_threads_or_caches() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    let expected = epochs(&samples, settings(0));
    assert_eq!(expected.len(), 12);
    assert_eq!(expected[5].items.len(), 2, "the last, partial batch is kept");
    assert_ne!(expected[0], expected[6], "epochs differ");
    for workers in [1, 2, 4] {
        assert_eq!(epochs(&samples, settings(workers)), expected, "{workers} workers");
    }
    for cache in [Cache::Ram, Cache::Disk, Cache::Disk] {
        assert_eq!(epochs(&samples, LoaderSettings { cache: Some(cache), ..settings(2) }), expected);
    }
}

#[test]
fn a_loader_can_pause_and_change_its_threads() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    let expected = epochs(&samples, settings(0));
    let mut loader = TrainLoader::new(Arc::clone(&samples), settings(1)).unwrap();
    for (index, workers) in [1, 2, 0, 3].into_iter().enumerate() {
        loader = loader.with_workers(workers).unwrap();
        let batch = loader.epoch(0, index).next().unwrap().unwrap();
        assert_eq!(batch, expected[index], "{workers} workers");
        loader.pause();
    }
    // The images are in memory by now, so their files are not needed again.
    let _rest: Vec<Batch> = loader.epoch(0, 0).map(Result::unwrap).collect();
    samples.iter().for_each(|sample| fs::remove_file(&sample.image).unwrap());
    let mut loader = loader.with_workers(2).unwrap();
    assert_eq!(loader.epoch(1, 0).map(Result::unwrap).collect::<Vec<_>>(), expected[6..]);
}

#[test]
fn two_ranks_load_the_batches_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    for rect in [false, true] {
        let one = epochs(&samples, LoaderSettings { rect, ..settings(2) });
        let ranks = [0, 1]
            .map(|rank| epochs(&samples, LoaderSettings { rank, shares: vec![2, 2], rect, ..settings(2) }));
        assert_eq!(one.len(), ranks[0].len());
        for (whole, (first, second)) in one.iter().zip(ranks[0].iter().zip(&ranks[1])) {
            assert_eq!(whole.pixels, [&first.pixels[..], &second.pixels].concat());
            assert_eq!(whole.items, [&first.items[..], &second.items].concat());
            assert_eq!([whole.height, whole.width], [second.height, second.width]);
        }
    }
}

#[test]
fn ranks_with_unequal_shares_and_balance_load_the_images_of_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut samples = painted(folder.path(), 11).to_vec();
    // A third of the images has many boxes.
    for sample in samples.iter_mut().step_by(3) {
        sample.boxes = vec![sample.boxes[0]; 40];
    }
    let samples: Arc<[Sample]> = samples.into();
    let images = |shares: &[usize], rank, balance, rect| -> Vec<Vec<usize>> {
        let settings = LoaderSettings { shares: shares.to_vec(), rank, balance, rect, ..settings(2) };
        let batches = epochs(&samples, settings);
        batches.iter().map(|batch| batch.items.iter().map(|item| item.sample).collect()).collect()
    };
    for (rect, balance) in [(false, None), (false, Some(Balance::Boxes)), (true, Some(Balance::Bytes))] {
        let one = images(&[4], 0, None, rect);
        let [many, few] = [0, 1].map(|rank| images(&[3, 1], rank, balance, rect));
        assert_eq!((many.len(), few.len()), (one.len(), one.len()));
        for ((one, many), few) in one.iter().zip(&many).zip(&few) {
            let sorted = |mut images: Vec<usize>| {
                images.sort_unstable();
                images
            };
            assert_eq!(few.len(), 1, "rect {rect}");
            assert_eq!(sorted([many.clone(), few.clone()].concat()), sorted(one.clone()), "rect {rect}");
        }
    }
    let plain = images(&[2, 2], 0, None, false);
    let balanced = images(&[2, 2], 0, Some(Balance::Boxes), false);
    assert_ne!(plain, balanced, "--balance had no effect");
}

#[test]
fn an_epoch_can_be_resumed_aborted_and_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    let mut loader = TrainLoader::new(samples, settings(2)).unwrap();
    let whole: Vec<Batch> = loader.epoch(3, 0).map(Result::unwrap).collect();
    let recycler = loader.recycler();
    let mut seen = 0;
    for (batch, expected) in loader.epoch(3, 4).map(Result::unwrap).zip(&whole[4..]) {
        assert_eq!(&batch, expected);
        recycler.give(batch.pixels);
        seen += 1;
    }
    assert_eq!(seen, 2);
    assert_eq!(loader.epoch(3, 0).next().unwrap().unwrap(), whole[0]);
    assert_eq!(loader.epoch(3, 1).next().unwrap().unwrap(), whole[1]);
    assert!(loader.epoch(3, 6).next().is_none());
}

#[test]
fn a_loader_that_was_halted_makes_no_more_batches_until_it_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    let expected = epochs(&samples, settings(0));
    for workers in [0, 1, 3] {
        let mut loader = TrainLoader::new(Arc::clone(&samples), settings(workers)).unwrap();
        let halt = loader.halt();
        let mut epoch = loader.epoch(0, 0);
        assert_eq!(epoch.next().unwrap().unwrap(), expected[0]);
        halt.stop();
        // Batches that were ready still come: two of each of the two threads that make them.
        let rest: Vec<_> = epoch.collect();
        let (last, ready) = rest.split_last().unwrap();
        assert!(last.is_err() && ready.len() <= 4, "{workers} workers: {} batches", rest.len());
        for (batch, expected) in ready.iter().zip(&expected[1..]) {
            assert_eq!(batch.as_ref().unwrap(), expected);
        }
        let again: Vec<Batch> = loader.epoch(0, 3).map(Result::unwrap).collect();
        assert_eq!(again, expected[3..6], "{workers} workers");
    }
}

#[test]
fn a_missing_image_ends_the_epoch_with_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 8);
    fs::remove_file(&samples[5].image).unwrap();
    for workers in [0, 2] {
        let mut loader = TrainLoader::new(Arc::clone(&samples), settings(workers)).unwrap();
        let error = loader.epoch(0, 0).find_map(Result::err).unwrap().to_string();
        assert!(error.contains("005.bmp"), "{error}");
        assert!(loader.epoch(0, 0).filter(Result::is_err).count() == 1, "it ends after the error");
    }
}

#[test]
fn without_a_cache_every_epoch_reads_the_files() {
    for (cache, reads_again) in [(None, false), (Some(Cache::Ram), false), (Some(Cache::None), true)] {
        let folder = tempfile::tempdir().unwrap();
        let samples = painted(folder.path(), 8);
        let mut loader =
            TrainLoader::new(Arc::clone(&samples), LoaderSettings { cache, ..settings(0) }).unwrap();
        assert!(loader.epoch(0, 0).all(|batch| batch.is_ok()));
        fs::remove_file(&samples[5].image).unwrap();
        assert_eq!(loader.epoch(0, 0).any(|batch| batch.is_err()), reads_again, "{cache:?}");
    }
}

/// The box around the red pixels of an image.
fn red_bounds(batch: &Batch, image: usize) -> Option<[f32; 4]> {
    let (w, h) = (batch.width, batch.height);
    let plane = |channel: usize| &batch.pixels[(image * 3 + channel) * w * h..][..w * h];
    let mut bounds: Option<[f32; 4]> = None;
    for (i, (&r, (&g, &b))) in plane(0).iter().zip(plane(1).iter().zip(plane(2))).enumerate() {
        // More than half red; the border is gray, and the background black.
        if i32::from(r) - i32::from(g.max(b)) > 64 {
            let (x, y) = ((i % w) as f32, (i / w) as f32);
            let [l, t, r, d] = bounds.unwrap_or([x, y, x, y]);
            bounds = Some([l.min(x), t.min(y), r.max(x + 1.0), d.max(y + 1.0)]);
        }
    }
    bounds
}

#[track_caller]
fn assert_on_object(batch: &Batch, tolerance: f32) -> usize {
    let mut checked = 0;
    for image in 0..batch.items.len() {
        let mut targets = batch.targets.iter().filter(|t| t[0] == image as f32);
        let Some(&[_, _, cx, cy, w, h]) = targets.next() else { continue };
        let (wide, high) = (batch.width as f32, batch.height as f32);
        let label =
            [(cx - w / 2.0) * wide, (cy - h / 2.0) * high, (cx + w / 2.0) * wide, (cy + h / 2.0) * high];
        let seen = red_bounds(batch, image).expect("a labeled object is visible");
        for (a, b) in label.iter().zip(seen) {
            assert!((a - b).abs() <= tolerance, "label {label:?}, pixels {seen:?}");
        }
        checked += 1;
    }
    checked
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn labels_stay_on_their_objects_through_perspective_and_flips(seed: u64, rect: bool) {
        let folder = tempfile::tempdir().unwrap();
        let samples = painted(folder.path(), 9);
        let augment = Augment { hsv: [0.0; 3], ..augment(0.8, 0.0) };
        let settings = LoaderSettings { seed, rect, augment, image_size: 96, ..settings(0) };
        let mut loader = TrainLoader::new(samples, settings).unwrap();
        let checked: usize = loader.epoch(0, 0).map(|batch| assert_on_object(&batch.unwrap(), 1.6)).sum();
        prop_assert!(checked > 3);
    }
}

#[test]
fn every_object_of_a_mosaic_has_its_label() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 9);
    let augment = Augment { hsv: [0.0; 3], ..augment(0.0, 1.0) };
    let mut loader =
        TrainLoader::new(samples, LoaderSettings { augment, image_size: 96, ..settings(0) }).unwrap();
    let mut several = 0;
    for batch in (0..3).flat_map(|epoch| loader.epoch(epoch, 0).map(Result::unwrap).collect::<Vec<_>>()) {
        several += usize::from(batch.targets.len() > batch.items.len());
        let (w, h) = (batch.width as f32, batch.height as f32);
        for &[image, _, cx, cy, bw, bh] in &batch.targets {
            // A point well inside each box is red.
            let at = (cy * h) as usize * batch.width + (cx * w) as usize;
            let start = image as usize * 3 * batch.width * batch.height;
            assert_red(batch.pixels[start + at], [cx, cy, bw, bh]);
        }
    }
    assert!(several > 3, "mosaics hold several objects");
}

#[track_caller]
fn assert_red(red: u8, target: [f32; 4]) {
    assert!(red > 200, "the center of {target:?} is {red}");
}

#[test]
fn validation_returns_every_image_once_and_boxes_map_back() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 10);
    for (rect, workers) in [(true, 0), (true, 2), (false, 2)] {
        let settings = ValSettings {
            image_size: 128,
            stride: 32,
            batch: 4,
            workers,
            rect,
            pad: 0.5,
            cache: None,
            memory: ImageMemory::default(),
            promised: 0,
            rank: 0,
            world: 1,
        };
        let mut loader = ValLoader::new(Arc::clone(&samples), settings).unwrap();
        for _ in 0..2 {
            let mut seen = Vec::new();
            for batch in loader.iter().map(Result::unwrap) {
                assert_on_object(&batch, 2.1);
                for (target, item) in batch.targets.iter().zip(&batch.items) {
                    let sample = &samples[item.sample];
                    let back = |at: f32, side: usize, pad: f32, ratio: f32| (at * side as f32 - pad) / ratio;
                    let x = back(target[2], batch.width, item.pad[0], item.ratio[1]);
                    let y = back(target[3], batch.height, item.pad[1], item.ratio[0]);
                    let [_, cx, cy, ..] = sample.boxes[0];
                    assert!((x - cx * sample.width as f32).abs() < 0.01, "{item:?}");
                    assert!((y - cy * sample.height as f32).abs() < 0.01, "{item:?}");
                    seen.push(item.sample);
                }
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..10).collect::<Vec<_>>());
        }
    }
}

#[test]
fn ranks_share_the_batches_of_a_validation() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 7);
    let load = |rect, rank, world| {
        let settings = ValSettings {
            image_size: 128,
            stride: 32,
            batch: 2,
            workers: rank % 2,
            rect,
            pad: 0.5,
            cache: None,
            memory: ImageMemory::default(),
            promised: 0,
            rank,
            world,
        };
        let mut loader = ValLoader::new(Arc::clone(&samples), settings).unwrap();
        let numbers: Vec<usize> = (0..loader.batches()).map(|index| loader.number(index)).collect();
        // A second pass returns the same.
        let _first: Vec<Batch> = loader.iter().map(Result::unwrap).collect();
        numbers.into_iter().zip(loader.iter().map(Result::unwrap)).collect::<Vec<(usize, Batch)>>()
    };
    for rect in [false, true] {
        let all = load(rect, 0, 1);
        assert_eq!(all.len(), 4);
        for world in [2, 3, 6] {
            let mut shared: Vec<(usize, Batch)> =
                (0..world).flat_map(|rank| load(rect, rank, world)).collect();
            shared.sort_by_key(|(number, _)| *number);
            assert!(shared == all, "{world} ranks, rect {rect}");
        }
    }
}

#[test]
fn a_damaged_image_is_named_once_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let samples = painted(folder.path(), 22);
    let without_cache = |workers| LoaderSettings { cache: Some(Cache::None), ..settings(workers) };
    let damaged = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/jpeg/whole.jpg")).unwrap();
    let mut samples = samples.to_vec();
    let whole = yolo_data::image::decode::decode_bytes(&damaged).unwrap();
    (samples[3].width, samples[3].height) = (whole.width as u32, whole.height as u32);
    let samples: Arc<[Sample]> = samples.into();
    fs::write(&samples[3].image, &damaged).unwrap();
    let mut loader = TrainLoader::new(Arc::clone(&samples), without_cache(2)).unwrap();
    loader.epoch(0, 0).for_each(|batch| drop(batch.unwrap()));
    assert_eq!(loader.take_warnings(), [""; 0]);
    // The file is cut between two epochs.
    fs::write(&samples[3].image, &damaged[..damaged.len() / 2]).unwrap();
    let mut loader = TrainLoader::new(Arc::clone(&samples), without_cache(2)).unwrap();
    for epoch in [1, 2] {
        loader.epoch(epoch, 0).for_each(|batch| drop(batch.unwrap()));
    }
    let name = samples[3].image.display();
    let warning = format!(
        "{name} is damaged: its data ends early, so a part of it is gray; it is used as it is, as YOLOv5 does"
    );
    assert_eq!(loader.take_warnings(), [warning]);
}
