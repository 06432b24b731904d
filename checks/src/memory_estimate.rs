//! Estimates the memory that a run needs from its model, image size, batch and ranks. The size of the
//! activations was measured, and grows with the image area; the rest is computed.

use yolo_base::format;

use crate::intent::Intent;
use crate::wsl::sizing::{self, Training};

/// GPU memory that the CUDA context and libraries use before the first tensor: the least measured.
const CUDA: u64 = 600_000_000;
/// Weights, gradients, momentum and EMA weights: four times four bytes per parameter.
const BYTES_A_PARAMETER: u64 = 16;

/// A model's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Model {
    /// Such as `yolov5s`.
    pub(crate) name: &'static str,
    /// Number of parameters, for 80 classes.
    pub(crate) parameters: u64,
    /// Bytes of activations for one image of 320 pixels in single precision: the storages that
    /// autograd saves in a forward pass of the original in training mode, without parameters
    /// (measured with PyTorch's `saved_tensors_hooks`, 2026-11-21).
    pub(crate) saved_at_320: u64,
}

const fn model(name: &'static str, parameters: u64, saved_at_320: u64) -> Model {
    Model { name, parameters, saved_at_320 }
}

/// All models; those with a 6 have a fourth detection layer.
const MODELS: [Model; 10] = [
    model("yolov5n", 1_872_157, 38_629_632),
    model("yolov5s", 7_235_389, 76_030_464),
    model("yolov5m", 21_190_557, 142_988_544),
    model("yolov5l", 46_563_709, 229_651_456),
    model("yolov5x", 86_749_405, 336_019_200),
    model("yolov5n6", 3_246_940, 38_820_096),
    model("yolov5s6", 12_626_620, 76_411_392),
    model("yolov5m6", 35_731_932, 144_278_784),
    model("yolov5l6", 76_770_172, 232_330_240),
    model("yolov5x6", 140_794_780, 340_565_760),
];

/// The model if neither --cfg nor --weights names one, as in `yolo train`.
const DEFAULT: &str = "yolov5s";

/// An amount of memory and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    /// Bytes.
    pub(crate) bytes: u64,
    /// A description of the parts.
    pub(crate) from: String,
}

impl Model {
    /// The model of a run: the named one, else the one in the name of the weights, else the default.
    pub(crate) fn of(intent: &Intent) -> Self {
        let words = [&intent.model, &intent.weights];
        let named = words.into_iter().flatten().find_map(|word| Self::named(word));
        named.or_else(|| Self::named(DEFAULT)).unwrap_or(MODELS[0])
    }

    /// `s`, `yolov5s`, `yolov5s.yaml`, `weights/yolov5s6.pt`.
    pub(crate) fn named(word: &str) -> Option<Self> {
        let file = word.rsplit(['/', '\\']).next().unwrap_or(word).to_ascii_lowercase();
        let stem = file.split('.').next().unwrap_or_default();
        let letter = stem.strip_prefix("yolov5").unwrap_or(stem);
        MODELS.into_iter().find(|model| model.name.strip_prefix("yolov5") == Some(letter))
    }

    /// The size of a batch's activations.
    fn saved(self, images: usize, pixels: usize, halved: bool) -> u64 {
        let area = (pixels as f64 / 320.0).powi(2);
        let bytes = self.saved_at_320 as f64 * area * images as f64;
        (if halved { bytes / 2.0 } else { bytes }) as u64
    }
}

/// The memory that a run needs on one GPU; `None` if the batch is chosen automatically, or if the layers are
/// spread over several devices, which the trainer decides and reports.
pub(crate) fn on_gpu(intent: &Intent) -> Option<Need> {
    if intent.is_model_parallel() {
        return None;
    }
    let images = intent.images_a_step()?.div_ceil(intent.shares_of_batch());
    let model = Model::of(intent);
    let saved = model.saved(images, intent.largest_pixels(), intent.amp == Some(true));
    let fixed = model.parameters * BYTES_A_PARAMETER;
    Some(Need {
        bytes: CUDA + fixed + saved,
        from: format!(
            "{} for the activations of {images} images of {} px, {} for {} and its optimizer, and {} for CUDA",
            format::memory(saved),
            intent.largest_pixels(),
            format::memory(fixed),
            model.name,
            format::memory(CUDA)
        ),
    })
}

/// The largest of half, a quarter, … of this run's batch for which each rank's share fits into this
/// many bytes of GPU memory.
pub(crate) fn fitting_batch(intent: &Intent, bytes: u64) -> Option<usize> {
    let (batch, ranks) = (intent.images_a_step()?, intent.shares_of_batch());
    std::iter::successors(Some(batch / 2), |half| (*half > ranks).then_some(half / 2))
        .map(|batch| batch / ranks * ranks)
        .find(|&batch| {
            let smaller = Intent { batch: i64::try_from(batch).ok(), ..intent.clone() };
            batch > 0 && on_gpu(&smaller).is_some_and(|need| need.bytes <= bytes)
        })
}

/// The system memory that all ranks on this machine need, in addition to what is already in use.
pub(crate) fn in_memory(intent: &Intent, workers: usize) -> Need {
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let ranks = intent.ranks_here();
    if !intent.cpu {
        let training = Training {
            ranks: count(ranks),
            machines: count(intent.nnodes.unwrap_or(1)),
            image_size: count(intent.pixels()),
            workers: count(workers),
            batch: intent.images_a_rank().map_or(Training::default().batch, count),
            cached_images: 0,
        };
        let bytes = training.memory() - sizing::LINUX;
        let each = format::memory(bytes / ranks as u64);
        let from = format!(
            "{each} per rank: libtorch with the CUDA libraries, and the images of its data \
                            loaders"
        );
        return Need { bytes, from };
    }
    let (model, images) = (Model::of(intent), intent.images_a_rank().unwrap_or(1));
    let saved = model.saved(images, intent.largest_pixels(), false);
    let fixed = model.parameters * BYTES_A_PARAMETER;
    Need {
        bytes: (saved + fixed + LIBTORCH) * ranks as u64,
        from: format!(
            "for each of {ranks} ranks, {} for the activations of {images} images of {} px, {} for {} and \
             its optimizer, {} for libtorch and data loaders",
            format::memory(saved),
            intent.largest_pixels(),
            format::memory(fixed),
            model.name,
            format::memory(LIBTORCH)
        ),
    }
}

/// libtorch, the data loaders' images and the prefetched batches: the original with yolov5n at 320 px
/// and batch 8 was measured at 1.4 GB, of which activations and weights are 0.3 GB.
const LIBTORCH: u64 = 1_100_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn run(batch: i64, devices: &[usize]) -> Intent {
        Intent { run: true, batch: Some(batch), devices: devices.to_vec(), ..Intent::default() }
    }

    #[test]
    fn models_are_known_by_letter_file_and_weights() {
        for word in ["s", "yolov5s", "yolov5s.yaml", "/data/models/yolov5s.pt", r"C:\w\YOLOv5s.pt"] {
            assert_eq!(Model::named(word).map(|model| model.name), Some("yolov5s"), "{word}");
        }
        assert_eq!(Model::named("yolov5x6.pt").unwrap().name, "yolov5x6");
        assert_eq!(Model::named("best.pt"), None);
    }

    #[test]
    fn four_times_the_area_and_half_the_devices_need_more() {
        let small = on_gpu(&run(16, &[0, 1])).unwrap().bytes;
        let large = on_gpu(&run(16, &[0])).unwrap().bytes;
        assert!(small < large);
        let pixels = |pixels| Intent { image_size: Some(pixels), ..run(16, &[0]) };
        let scaled = Intent { multi_scale: true, ..pixels(640) };
        assert_eq!(on_gpu(&scaled), on_gpu(&pixels(960)), "its largest batches count");
        let saved = |pixels_| on_gpu(&pixels(pixels_)).unwrap().bytes - on_gpu(&pixels(32)).unwrap().bytes;
        assert!(saved(1280) > 3 * saved(640));
        assert_eq!(on_gpu(&run(-1, &[0])), None);
    }

    #[test]
    fn replicas_share_the_batch_but_not_a_process() {
        let in_mode = |parallel: &str| Intent { parallel: Some(parallel.into()), ..run(16, &[0, 1]) };
        assert_eq!(on_gpu(&in_mode("dp")), on_gpu(&run(16, &[0, 1])));
        assert_eq!(on_gpu(&in_mode("model")), None);
        assert!(in_memory(&in_mode("dp"), 8).bytes < in_memory(&run(16, &[0, 1]), 8).bytes);
    }

    #[test]
    fn two_ranks_of_yolov5s_at_640_need_about_11_gb() {
        let need = in_memory(&Intent { model: Some("s".into()), ..run(16, &[0, 1]) }, 8).bytes;
        assert!((10_000_000_000..12_000_000_000).contains(&need), "{need}");
    }
}
