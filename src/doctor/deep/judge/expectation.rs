//! What a planned run can expect: the images per second that the disk, the decoder, the devices and the links each
//! allow at most. Each bound is for one part alone, with everything else for free, so that a run reaches at most the
//! least of them. That of the devices is far from what they reach: no network multiplies matrices without a pause. So
//! the part with the least bound is named as the bottleneck only if the devices would have to be slower than in any
//! published run for it to be wrong.

use serde::Serialize;
use yolo_base::format::count;
use yolo_plan::event::Measure;

use crate::doctor::deep::observed::{Observed, Planned, Rank};

/// The backward pass takes twice the operations of the forward pass.
const PASSES: f64 = 3.0;
/// The part of a card's matrix rate that a network reaches at least with batches of [`FULL`] images or more on each rank. In
/// the published table of YOLOv5, YOLOv5n with 4.5 GFLOP takes 6.3 ms on a V100 for one image and 19.2 ms for 32 at a time.
/// Between the two, 8 images take at most 9.2 ms: 3.9 TFLOP/s, which is 3 % of the card's 125 TFLOP/s.
const LEAST_REACHED: f64 = 0.02;
/// The same for smaller batches: one image alone gets 0.7 TFLOP/s, which is 0.6 %.
const LEAST_REACHED_ALONE: f64 = 0.005;
/// So many images keep a card reasonably busy.
const FULL: usize = 8;
/// The time for a small batch through YOLOv5x forward, the largest of the five networks for 640 pixels, on any published card,
/// in seconds. Starting the many small operations takes this time, on a faster card too, so that a small batch is no
/// faster there than on a V100.
const FORWARD: f64 = 12.1e-3;
/// Bytes of a gradient.
const GRADIENT: f64 = 4.0;
/// What the run can expect.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Expectation {
    /// The model and its settings, for the heading.
    pub(crate) run: String,
    /// What each part allows.
    pub(crate) bounds: Vec<Bound>,
    /// The part that limits the run, if that is certain.
    pub(crate) bottleneck: Option<Part>,
    /// Whether the ranks exchange gradients over a link whose rate is not known.
    pub(crate) link_unknown: bool,
    /// Images per second at most.
    pub(crate) images_per_second: Option<f64>,
}

/// What one part allows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Bound {
    pub(crate) part: Part,
    /// Images per second over all ranks.
    pub(crate) images_per_second: f64,
    /// How it follows from what was measured.
    pub(crate) how: String,
    /// Whether it counts in the first epoch only.
    pub(crate) first_epoch_only: bool,
}

/// A part of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    Disk,
    Decoder,
    Device,
    Link,
}

impl Part {
    /// As the text shows it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Decoder => "decoder",
            Self::Device => "device",
            Self::Link => "link",
        }
    }

    /// What helps if this part limits the run.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Disk => {
                "`--cache ram` reads each image once, if they fit; otherwise put the images on a faster disk"
            }
            Self::Decoder => {
                "more loader threads (`--workers`) if cores are free, `--cache ram` to decode each image once, or images \
                 that are not much larger than --imgsz"
            }
            Self::Device => {
                "the devices are what they are: a smaller model or --imgsz, or more devices; `yolo bench` measures the real rate"
            }
            Self::Link => "a larger --batch exchanges gradients less often; or fewer ranks",
        }
    }
}

/// The bounds for the planned run; `None` without one.
pub(super) fn of(seen: &Observed) -> Option<Expectation> {
    let planned = seen.planned.as_ref()?;
    let bounds: Vec<Bound> =
        [disk(seen, planned), decoder(seen, planned), devices(seen, planned), link(seen, planned)]
            .into_iter()
            .flatten()
            .collect();
    let link_unknown = seen.ranks.len() > 1 && bounds.iter().all(|bound| bound.part != Part::Link);
    let lasting = bounds.iter().filter(|bound| !bound.first_epoch_only);
    let least = lasting.min_by(|one, other| one.images_per_second.total_cmp(&other.images_per_second));
    Some(Expectation {
        run: format!(
            "{} at {} px, batch {}, {} with {} each",
            planned.model,
            planned.image_size,
            planned.batch,
            count(seen.ranks.len(), "rank"),
            count(planned.workers, "loader thread"),
        ),
        bottleneck: least
            .filter(|least| !link_unknown && is_certain(least, &bounds, planned, seen.ranks.len()))
            .map(|bound| bound.part),
        link_unknown,
        images_per_second: least.map(|bound| bound.images_per_second),
        bounds,
    })
}

/// The images per second that the devices reach at least, if this is their bound.
fn least_reached(planned: &Planned, ranks: usize, bound: f64) -> f64 {
    let smallest = planned.smallest_share.unwrap_or(planned.batch / ranks.max(1));
    let part = if smallest >= FULL { LEAST_REACHED } else { LEAST_REACHED_ALONE };
    (part * bound).min(planned.batch as f64 / (PASSES * FORWARD))
}

/// Whether the part with the least bound is the bottleneck, although the bound of the devices is loose.
fn is_certain(least: &Bound, bounds: &[Bound], planned: &Planned, ranks: usize) -> bool {
    let devices = bounds.iter().find(|bound| bound.part == Part::Device);
    match least.part {
        Part::Device => bounds.iter().all(|bound| bound.part == Part::Device || bound.first_epoch_only),
        // The backward pass hides a part of it.
        Part::Link => false,
        Part::Disk | Part::Decoder => devices.is_some_and(|devices| {
            least.images_per_second < least_reached(planned, ranks, devices.images_per_second)
        }),
    }
}

/// The sum over all ranks, if all have measured it.
pub(super) fn sum(seen: &Observed, measure: Measure) -> Option<f64> {
    let all: Option<Vec<f64>> = seen.ranks.iter().map(|rank| rank.value(measure)).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

/// All ranks read at once, so their rates add up to that of the disk.
fn disk(seen: &Observed, planned: &Planned) -> Option<Bound> {
    let rate = sum(seen, Measure::DiskRead)?;
    let bytes = sum(seen, Measure::ImageBytes)? / seen.ranks.len() as f64;
    let images = rate * 1e6 / bytes / planned.decoded_per_image;
    let file_system =
        seen.host.file_system.as_deref().map_or_else(String::new, |kind| format!(" from {kind}"));
    let how = format!("{rate:.0} MB/s{file_system}, {:.0} kB an image{}", bytes / 1e3, mosaic(planned));
    Some(Bound { part: Part::Disk, images_per_second: images, how, first_epoch_only: planned.cached })
}

/// Each loader thread decodes, as far as there are cores.
fn decoder(seen: &Observed, planned: &Planned) -> Option<Bound> {
    let ranks = seen.ranks.len();
    let per_thread = sum(seen, Measure::Decode)? / ranks as f64;
    let threads = (planned.workers.max(1) * ranks).min(seen.host.cores.max(1));
    let images = per_thread * threads as f64 / planned.decoded_per_image;
    let threads = count(threads, "thread");
    let how = format!("{per_thread:.0} images/s in a thread, {threads}{}", mosaic(planned));
    Some(Bound { part: Part::Decoder, images_per_second: images, how, first_epoch_only: planned.cached })
}

fn mosaic(planned: &Planned) -> String {
    let decoded = planned.decoded_per_image;
    if decoded > 1.0 { format!(", {decoded:.1} for one that is trained (mosaic)") } else { String::new() }
}

/// All devices take the same share of a step, so that the slowest counts.
fn devices(seen: &Observed, planned: &Planned) -> Option<Bound> {
    let measure = |rank: &Rank| {
        let half = rank.value(Measure::LoadedProduct).filter(|_| planned.half);
        half.or_else(|| rank.value(Measure::MatrixProduct))
    };
    let rates: Option<Vec<f64>> = seen.ranks.iter().map(measure).collect();
    let slowest = rates?.into_iter().min_by(f64::total_cmp)?;
    let ranks = seen.ranks.len();
    let images = slowest * 1e12 * ranks as f64 / (PASSES * planned.gflops * 1e9);
    let all = if ranks > 1 { ", the slowest of all" } else { "" };
    let how = format!(
        "{slowest:.2} TFLOP/s{all}, of which a network reaches a fraction; {:.1} GFLOP an image, three times for a \
         training step",
        planned.gflops
    );
    Some(Bound { part: Part::Device, images_per_second: images, how, first_epoch_only: false })
}

/// Gradients are exchanged once per step. The backward pass hides a part of it, so that this is a bound as well.
fn link(seen: &Observed, planned: &Planned) -> Option<Bound> {
    let ranks = seen.ranks.len();
    let rates = seen.ranks.iter().filter_map(|rank| rank.value(Measure::AllReduceRate));
    let rate = rates.min_by(f64::total_cmp).filter(|_| ranks > 1)?;
    // In a ring, each rank sends 2 (n - 1) / n of the gradients.
    let bytes = GRADIENT * planned.parameters as f64 * 2.0 * (ranks - 1) as f64 / ranks as f64;
    let seconds = bytes / (rate * 1e9);
    let how = format!(
        "{:.1} ms for the gradients of {:.1} million parameters at {rate:.2} GB/s, once per step",
        seconds * 1e3,
        planned.parameters as f64 / 1e6
    );
    Some(Bound {
        part: Part::Link,
        images_per_second: planned.batch as f64 / seconds,
        how,
        first_epoch_only: false,
    })
}
