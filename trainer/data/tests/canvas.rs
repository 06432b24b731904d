//! The loader never paints the canvas of a mosaic, and does several steps in one pass over the pixels. These
//! tests do the same step by step, in the order of spec §7, and compare every byte: with rotation, shear,
//! perspective, mixup, copy-paste and seams between tiles.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use yolo_data::augment::Augment;
use yolo_data::augment::copy_paste::copy_paste;
use yolo_data::augment::label::{Label, normalize};
use yolo_data::augment::mixup::{draw_share, mixup};
use yolo_data::augment::mosaic::{draw_center, mosaic, places};
use yolo_data::augment::perspective::perspective;
use yolo_data::augment::picture::{Picture, PictureBuffers};
use yolo_data::augment::transform::{Draws, Transform};
use yolo_data::image::encode::write_jpeg;
use yolo_data::image::finish::Finish;
use yolo_data::image::letterbox::{Letterbox, LetterboxOptions};
use yolo_data::image::tiles::{Tile, View};
use yolo_data::image::warp::Matrix;
use yolo_data::image::{Image, resize};
use yolo_data::loader::{ImageMemory, LoaderSettings, TrainLoader};
use yolo_data::random::{Purpose, Random};
use yolo_data::scan::Sample;
use yolo_plan::hyp::HyperParameters;

/// An image of noise, in which no two neighbors are alike.
fn noise(width: usize, height: usize, seed: u64) -> Image {
    let mut random = Random::keyed(seed, 0, Purpose::Augment, 0);
    let data = (0..width * height * 3).map(|_| random.below(256) as u8).collect();
    Image { width, height, data }
}

/// A 24-bit BMP file.
fn bmp(image: &Image) -> Vec<u8> {
    let row = (image.width * 3).next_multiple_of(4);
    let mut bytes = b"BM".to_vec();
    for word in [54 + row * image.height, 0, 54, 40, image.width, image.height] {
        bytes.extend((word as u32).to_le_bytes());
    }
    bytes.extend([1, 0, 24, 0]);
    bytes.extend([0; 24]);
    for y in (0..image.height).rev() {
        let start = bytes.len();
        bytes.extend(image.row(y).chunks_exact(3).flat_map(|rgb| [rgb[2], rgb[1], rgb[0]]));
        bytes.resize(start + row, 0);
    }
    bytes
}

/// Images of several shapes with two objects each. Some fill a square of [`SIZE`] on one side; the others are
/// resized when they are loaded.
fn write_images(folder: &Path) -> (Arc<[Sample]>, Vec<Image>) {
    let sizes = [(64, 48), (40, 64), (64, 64), (80, 50), (30, 20), (64, 9)];
    let (samples, images): (Vec<_>, Vec<_>) = sizes
        .into_iter()
        .enumerate()
        .map(|(index, (width, height))| {
            let image = noise(width, height, index as u64);
            let path = folder.join(format!("{index}.bmp"));
            fs::write(&path, bmp(&image)).unwrap();
            let outline = |x: f32, y: f32| vec![[x, y], [x + 0.2, y + 0.05], [x + 0.1, y + 0.4]];
            let sample = Sample {
                image: path,
                width: width as u32,
                height: height as u32,
                boxes: vec![[0.0, 0.2, 0.3, 0.2, 0.4], [1.0, 0.8, 0.6, 0.2, 0.4]],
                segments: vec![outline(0.1, 0.1), outline(0.7, 0.4)],
            };
            (sample, image)
        })
        .unzip();
    (samples.into(), images)
}

/// The side of the loader's output.
const SIZE: usize = 64;

/// The loader's work, step by step.
struct StepByStep<'a> {
    samples: &'a [Sample],
    /// The images as the loader keeps them: the longer side is [`SIZE`].
    images: Vec<Image>,
    augment: &'a Augment,
}

impl<'a> StepByStep<'a> {
    fn new(samples: &'a [Sample], images: &[Image], augment: &'a Augment) -> Self {
        let resized = |image: &Image| {
            let ratio = SIZE as f64 / image.width.max(image.height) as f64;
            let [width, height] =
                [image.width, image.height].map(|side| (side as f64 * ratio).ceil() as usize);
            resize::linear(image, width, height)
        };
        Self { samples, images: images.iter().map(resized).collect(), augment }
    }

    fn mosaic(&self, index: usize, random: &mut Random) -> (Image, Vec<Label>) {
        let center = draw_center(SIZE, random);
        let mut indices = [index, 0, 0, 0];
        for other in &mut indices[1..] {
            *other = random.below(self.samples.len());
        }
        random.shuffle(&mut indices);
        let tiles = indices.map(|i| (&self.images[i], &self.samples[i]));
        let (mut image, mut spare, mut labels) = Default::default();
        mosaic(tiles, center, SIZE, &mut image, &mut labels);
        copy_paste(self.augment.copy_paste, &mut image, &mut labels, random);
        perspective(&Draws::random(self.augment, random), [SIZE; 2], &mut image, &mut spare, &mut labels);
        (image, labels)
    }

    fn single(&self, index: usize, random: &mut Random) -> (Image, Vec<Label>) {
        let loaded = &self.images[index];
        let letterbox =
            Letterbox::new(loaded.height, loaded.width, &LetterboxOptions::exact([SIZE; 2], true));
        let (mut image, mut spare) = Default::default();
        letterbox.apply(loaded, &mut image);
        let extent = [loaded.width as f64 * letterbox.ratio[1], loaded.height as f64 * letterbox.ratio[0]];
        let mut labels = Label::of_sample(&self.samples[index], extent, letterbox.pad).collect();
        perspective(&Draws::random(self.augment, random), [SIZE; 2], &mut image, &mut spare, &mut labels);
        (image, labels)
    }

    /// The planes and the targets of an image.
    fn make(&self, seed: u64, epoch: u64, index: usize) -> (Vec<u8>, Vec<[f32; 5]>) {
        let mut random = Random::keyed(seed, epoch, Purpose::Augment, index as u64);
        let (mut image, mut labels);
        if random.chance(self.augment.mosaic) {
            (image, labels) = self.mosaic(index, &mut random);
            if random.chance(self.augment.mixup) {
                let second = random.below(self.samples.len());
                let (other, other_labels) = self.mosaic(second, &mut random);
                mixup(draw_share(&mut random), &mut image, &mut labels, &other, other_labels);
            }
        } else {
            (image, labels) = self.single(index, &mut random);
        }
        let finish = self.augment.draw_finish(&mut random);
        let mut planes = vec![0; 3 * SIZE * SIZE];
        finish.write(&image, &mut planes);
        (planes, normalize(&labels, [SIZE; 2], finish.up_down, finish.left_right).collect())
    }
}

prop_compose! {
    /// Any mixture of augmentations; each is off in half of the cases.
    fn augmentations()(
        hsv in prop::option::of(prop::array::uniform3(0.0..1.0)),
        [degrees, translate, scale, shear, perspective] in [
            prop::option::of(0.0..180.0),
            prop::option::of(0.0..0.9),
            prop::option::of(0.0..0.95),
            prop::option::of(0.0..30.0),
            prop::option::of(0.0..0.005),
        ],
        mosaic in prop::sample::select(vec![0.0, 0.8, 1.0]),
        [mixup, copy_paste] in [prop::option::of(Just(0.5)), prop::option::of(Just(0.7))],
    ) -> Augment {
        let [degrees, translate, scale, shear, perspective, mixup, copy_paste] =
            [degrees, translate, scale, shear, perspective, mixup, copy_paste].map(Option::unwrap_or_default);
        let hsv = hsv.unwrap_or_default();
        let (flipud, fliplr) = (0.5, 0.5);
        Augment { hsv, degrees, translate, scale, shear, perspective, flipud, fliplr, mosaic, mixup, copy_paste }
    }
}

#[test]
fn the_loader_gives_the_bytes_of_the_steps_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let (samples, images) = write_images(folder.path());
    let config = ProptestConfig { cases: 24, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let run = runner.run(&(augmentations(), any::<u64>()), |(augment, seed)| {
        let steps = StepByStep::new(&samples, &images, &augment);
        let settings = LoaderSettings {
            image_size: SIZE,
            stride: 32,
            shares: vec![samples.len()],
            balance: None,
            rank: 0,
            seed,
            workers: 0,
            rect: false,
            image_weights: None,
            quad: false,
            cache: None,
            memory: ImageMemory::default(),
            augment: augment.clone(),
        };
        let mut loader = TrainLoader::new(Arc::clone(&samples), settings).unwrap();
        for epoch in 0..2 {
            let batch = loader.epoch(epoch, 0).next().unwrap().unwrap();
            for (slot, item) in batch.items.iter().enumerate() {
                let (planes, targets) = steps.make(seed, epoch, item.sample);
                let ours = &batch.pixels[slot * planes.len()..][..planes.len()];
                prop_assert!(ours == planes, "image {} in epoch {epoch} has other pixels", item.sample);
                let of_item = batch.targets.iter().filter(|target| target[0] == slot as f32);
                let ours: Vec<[f32; 5]> = of_item.map(|&[_, a, b, c, d, e]| [a, b, c, d, e]).collect();
                prop_assert_eq!(ours, targets);
            }
        }
        Ok(())
    });
    run.unwrap();
}

/// Of images that are not kept, only the window that is shown is decoded and resized, and into used memory.
#[test]
fn images_that_are_not_kept_give_the_same_batches() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Arc<[Sample]> = [(320, 240), (200, 320), (320, 320), (500, 400), (900, 130), (77, 150)]
        .into_iter()
        .enumerate()
        .map(|(index, (width, height))| {
            let image = folder.path().join(format!("{index}.jpg"));
            write_jpeg(&image, &noise(width, height, index as u64)).unwrap();
            Sample { image, width: width as u32, height: height as u32, ..Sample::default() }
        })
        .collect();
    let augment = Augment::from(&HyperParameters::load("scratch-low").unwrap());
    for degrees in [0.0, 30.0] {
        let load = |keep: usize| -> Vec<_> {
            let settings = LoaderSettings {
                image_size: 320,
                stride: 32,
                shares: vec![6],
                balance: None,
                rank: 0,
                seed: 5,
                workers: 0,
                rect: false,
                image_weights: None,
                quad: false,
                cache: None,
                memory: ImageMemory::default(),
                augment: Augment { degrees, ..augment.clone() },
            };
            let mut loader = TrainLoader::new(Arc::clone(&samples), settings).unwrap();
            loader.keep_at_most(keep);
            (0..3).flat_map(|epoch| loader.epoch(epoch, 0).map(Result::unwrap).collect::<Vec<_>>()).collect()
        };
        assert!(load(0) == load(usize::MAX), "with rotations of {degrees} degrees");
    }
}

/// A mosaic of four noise images, shown through `matrix`, equals the painted canvas.
#[track_caller]
fn assert_same_bytes(sizes: [[usize; 2]; 4], center: [usize; 2], size: usize, matrix: &Matrix) {
    let images: [Image; 4] = std::array::from_fn(|i| noise(sizes[i][0], sizes[i][1], i as u64));
    let sample = Sample::default();
    let (mut canvas, mut expected, mut labels) = Default::default();
    mosaic(images.each_ref().map(|image| (image, &sample)), center, size, &mut canvas, &mut labels);
    yolo_data::image::warp::warp(&canvas, matrix, size, size, &mut expected);
    let places = places(sizes, center, size);
    let tiles = images.iter().zip(places).map(|(image, place)| Tile { image: image.view(), place }).collect();
    let picture = Picture { view: View::new(tiles, matrix), mixed: None, finish: Finish::default() };
    let (mut ours, mut theirs) = (vec![0; 3 * size * size], vec![1; 3 * size * size]);
    picture.write([size; 2], &mut PictureBuffers::default(), &mut ours);
    Finish::default().write(&expected, &mut theirs);
    assert!(ours == theirs, "{sizes:?} around {center:?} through {matrix:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Any tiles, also of one pixel, through any transform that the hyperparameters allow.
    #[test]
    fn tiles_equal_their_canvas(
        sizes in prop::array::uniform4(prop::array::uniform2(1_usize..150)),
        center in prop::array::uniform2(48_usize..=144),
        perspective in prop::option::of(prop::array::uniform2(-0.01..0.01)),
        angle in prop::option::of(-180.0..180.0),
        scale in 0.02..3.0,
        shear in prop::option::of(prop::array::uniform2(-60.0..60.0)),
        translate in prop::array::uniform2(-0.5..1.5),
    ) {
        let draws = Draws {
            perspective: perspective.unwrap_or_default(),
            angle: angle.unwrap_or_default(),
            scale,
            shear: shear.unwrap_or_default(),
            translate,
        };
        assert_same_bytes(sizes, center, 96, &Transform::new(&draws, [192; 2], [96; 2]).matrix);
    }
}

/// Matrices at the edges of the arithmetic: whole pixels, mirrors, no extent, and positions out of range.
#[test]
fn extreme_matrices_equal_the_canvas() {
    for [a, b, c, d] in [
        [1.0, 0.0, 0.0, 1.0],
        [-1.0, 0.0, 0.0, 1.0],
        [0.0, 1.0, -1.0, 0.0],
        [0.0, -2.0, 0.5, 0.0],
        [1e-9, 0.0, 0.0, 1.0],
        [1e9, 0.0, 0.0, 1.0],
        [1e-300, 0.0, 0.0, 1e-300],
        [1.0, 1.0, 1.0, 1.0],
        [f64::NAN, 0.0, 0.0, 1.0],
        [f64::INFINITY, 0.0, 0.0, 1.0],
    ] {
        for shift in [0.0, 0.5, 40.0, -31.25, 1e9, -1e15] {
            let matrix = [[a, b, shift], [c, d, shift], [0.0, 0.0, 1.0]];
            assert_same_bytes([[80, 66], [14, 120], [128, 4], [40, 40]], [60, 50], 64, &matrix);
        }
    }
}
