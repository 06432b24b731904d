//! Images with labels: painted ones, which are always the same, or the first of the folder that
//! `YOLO_TEST_DATA` names, whose labels are where YOLO data sets have them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tch::{Kind, Tensor};
use tempfile::TempDir;
use yolo_base::env::YOLO_TEST_DATA;
use yolo_data::image::Image;
use yolo_data::image::encode::write_jpeg;
use yolo_data::loader::{Batch, ImageMemory, ValLoader, ValSettings};
use yolo_data::scan::{Sample, ScanOptions, scan};

use crate::compare::device;

/// Classes of the painted objects.
pub(crate) const CLASSES: usize = 5;

/// Side of the network's input in pixels. On the CPU, libtorch normalizes channels_last batches with float32
/// sums that it adds up number by number: the statistics lose about a digit whenever the side doubles.
const CPU_SIDE: usize = 128;
const CUDA_SIDE: usize = 320;

/// Some images on disk, with their labels.
pub(crate) struct Scenes {
    pub(crate) samples: Arc<[Sample]>,
    /// Deleted with this.
    _folder: TempDir,
}

impl Scenes {
    /// `count` images. Labels are of classes below `classes`.
    pub(crate) fn new(count: usize, classes: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let samples: Vec<Sample> = match std::env::var_os(YOLO_TEST_DATA) {
            None => (0..count).map(|index| paint(folder.path(), index)).collect(),
            Some(named) => {
                let options = ScanOptions { cache: false, ..ScanOptions::new("train", classes) };
                let found = scan(&[PathBuf::from(named)], &options);
                let mut samples = found.unwrap_or_else(|error| panic!("{YOLO_TEST_DATA}: {error}")).samples;
                assert!(samples.len() >= count, "{YOLO_TEST_DATA}: {count} images are needed");
                samples.truncate(count);
                samples
            }
        };
        Self { samples: samples.into(), _folder: folder }
    }

    /// All images as one batch.
    pub(crate) fn batch(&self) -> Batch {
        let mut loader = loader(&self.samples, self.samples.len());
        loader.iter().next().unwrap().unwrap()
    }
}

/// A loader of square batches.
pub(crate) fn loader(samples: &Arc<[Sample]>, batch: usize) -> ValLoader {
    let settings = ValSettings {
        image_size: if device().is_cuda() { CUDA_SIDE } else { CPU_SIDE },
        stride: 32,
        batch,
        workers: 0,
        rect: false,
        pad: 0.0,
        cache: None,
        memory: ImageMemory::default(),
        promised: 0,
        rank: 0,
        world: 1,
    };
    ValLoader::new(Arc::clone(samples), settings).unwrap()
}

/// The images of a batch from 0 to 1, in double precision on the CPU.
pub(crate) fn images_in_double(batch: &Batch) -> Tensor {
    let shape = [batch.items.len() as i64, 3, batch.height as i64, batch.width as i64];
    Tensor::from_data_size(&batch.pixels, &shape, Kind::Uint8).to_kind(Kind::Double) / 255.0
}

/// Random numbers that are the same everywhere: a linear congruential generator.
struct Numbers(u64);

impl Numbers {
    /// A number from `low` to below `high`.
    fn draw(&mut self, low: usize, high: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + (self.0 >> 33) as usize % (high - low)
    }
}

/// Paints objects of one color per class, square or round, on noise, and writes the image.
fn paint(folder: &Path, index: usize) -> Sample {
    const COLORS: [[u8; 3]; CLASSES] =
        [[220, 40, 30], [30, 200, 60], [40, 70, 230], [230, 210, 40], [200, 60, 220]];
    let mut numbers = Numbers(index as u64 + 1);
    let (width, height) = [(320, 240), (240, 320), (256, 256)][index % 3];
    let mut image = Image::filled(width, height, [0; 3]);
    image.data.iter_mut().for_each(|byte| *byte = numbers.draw(60, 160) as u8);
    let mut boxes = Vec::new();
    for object in 0..3 + index % 4 {
        let class = (object + index) % CLASSES;
        let (w, h) = (numbers.draw(16, 120), numbers.draw(16, 120));
        let (left, top) = (numbers.draw(0, width - w), numbers.draw(0, height - h));
        for y in 0..h {
            for x in 0..w {
                let from_center = |at: usize, side: usize| (2 * at + 1) as f32 / side as f32 - 1.0;
                let round = from_center(x, w).powi(2) + from_center(y, h).powi(2) <= 1.0;
                if round || class.is_multiple_of(2) {
                    let at = ((top + y) * width + left + x) * 3;
                    image.data[at..at + 3].copy_from_slice(&COLORS[class]);
                }
            }
        }
        let share =
            |start: usize, side: usize, whole: usize| (start as f32 + side as f32 / 2.0) / whole as f32;
        let size = [w as f32 / width as f32, h as f32 / height as f32];
        boxes.push([class as f32, share(left, w, width), share(top, h, height), size[0], size[1]]);
    }
    let file = folder.join(format!("{index:03}.jpg"));
    write_jpeg(&file, &image).unwrap();
    Sample { image: file, width: width as u32, height: height as u32, boxes, ..Sample::default() }
}
