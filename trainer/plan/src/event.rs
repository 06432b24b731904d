//! The events that a rank sends to its supervisor: one JSON object per line, on a separate file
//! descriptor, because libtorch writes to stdout. The first event is always [`Event::Hello`]; a
//! supervisor refuses another [`PROTOCOL`]. Unknown fields are ignored, so that fields can be added
//! without a new protocol version.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use yolo_base::env::YOLO_SILENCE_SECONDS;
use yolo_base::seconds;

use crate::bench_report::Measurement;
use crate::dataset::SplitSummary;

/// Version of the events, incremented when an old reader would misunderstand new events.
pub const PROTOCOL: u32 = 2;

/// The default of [`silence_limit`].
const SILENCE: Duration = Duration::from_secs(60);
/// Heartbeats within that time.
const HEARTBEATS: u32 = 60;

/// How long a stopped rank may send no heartbeat before its run is ended: a minute, while its peers
/// would wait hours for it in a collective.
pub fn silence_limit() -> Duration {
    seconds::of(YOLO_SILENCE_SECONDS).map_or(SILENCE, Duration::from_secs)
}

/// The time between two heartbeats of a rank.
pub fn sign_interval() -> Duration {
    silence_limit() / HEARTBEATS
}

/// One line from a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Event {
    /// The rank has started: its number, process and device.
    Hello { protocol: u32, version: String, rank: usize, pid: u32, device: String, threads: usize },
    /// A heartbeat, sent from a separate thread however long a step takes. `progress` is that of the main
    /// thread, once it trains.
    Alive {
        #[serde(default)]
        progress: Option<Progress>,
    },
    /// What the rank is doing now, as a phrase that completes "rank 1 was …": `reading labels`, `training`.
    /// `steps` is set in a phase whose progress is counted in steps.
    Phase {
        doing: String,
        #[serde(default)]
        steps: bool,
    },
    /// Something that the user should know.
    Warning { message: String },
    /// What a split of the data set has. Only the generations of an evolution send it, so it needed no new [`PROTOCOL`].
    Split(SplitSummary),
    /// One line of information: the model's summary, the transferred tensors, the fit of the anchors.
    Note { message: String },
    /// A training step ended.
    Step(Step),
    /// An epoch ended, with its row of `results.csv`.
    Epoch(EpochSummary),
    /// A validation ended, with its table.
    Validated { title: String, table: ValTable },
    /// The detections of `--save-json` were evaluated by COCO's rules.
    CocoEvaluated { title: String, scores: CocoScores },
    /// `yolo predict` is done with a picture. Any rank sends it, each for its pictures.
    Predicted(Predicted),
    /// `yolo predict` could not read a picture or a part of a video, and goes on with the others.
    Skipped {
        picture: usize,
        path: PathBuf,
        reason: String,
        /// The frames of a video that were searched all the same; 0 of a picture.
        #[serde(default)]
        frames: usize,
    },
    /// `yolo doctor --deep` has measured something on this rank.
    Measured { measure: Measure, value: f64 },
    /// `yolo doctor --deep` has copied bytes from one of this rank's devices to another, at `rate` GB/s, directly or
    /// by the host's memory; `wrong` of them arrived wrong.
    Copied { from: usize, to: usize, by_host: bool, rate: f64, wrong: u64 },
    /// `yolo bench` has measured something. Only a `yolo` that knows this event starts such a run, so
    /// it needed no new [`PROTOCOL`].
    BenchMeasured { measurement: Measurement },
    /// The run finished.
    Finished { files: Vec<OutputFile>, epochs: usize, seconds: f64, stopped_early: bool },
    /// What an interrupted run leaves, before [`Self::Interrupted`]. Only a `yolo` that knows this event starts such a
    /// run, so it needed no new [`PROTOCOL`].
    Kept { files: Vec<OutputFile> },
    /// The run was interrupted and has saved its state.
    Interrupted { resume_from: Option<PathBuf> },
    /// The run cannot continue. `doing` completes "rank 1 was …"; `peer_lost` is set if the rank only
    /// noticed that another rank is gone, so that the supervisor names that one; `of_data` if a file of the data set is
    /// the cause.
    Failed {
        message: String,
        hint: Option<String>,
        doing: String,
        #[serde(default)]
        peer_lost: bool,
        #[serde(default)]
        of_data: bool,
        #[serde(default)]
        progress: Option<Progress>,
    },
}

/// How far the main thread of a rank is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The epoch it trains, from 0.
    pub epoch: usize,
    /// The batch of that epoch in work, from 0.
    pub batch: usize,
    /// Batches of an epoch.
    pub batches: usize,
    /// Batches done since the process started. Invariant: never decreases.
    pub steps: u64,
    /// Images of those batches, of this rank alone.
    pub images: u64,
    /// What it is doing with the batch.
    pub stage: Stage,
    /// Seconds spent in each stage, in the order of [`Stage::ALL`].
    pub seconds: [f64; 3],
}

/// What a rank is doing with a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Waiting for images.
    Loading,
    /// Forward pass, backward pass with its exchange of gradients, and optimizer step.
    Computing,
    /// Waiting for the other ranks after the step.
    Exchanging,
}

impl Stage {
    /// All stages, in the order of a step.
    pub const ALL: [Self; 3] = [Self::Loading, Self::Computing, Self::Exchanging];
}

/// What `yolo doctor --deep` measures, with the unit of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// TFLOP/s of a matrix product with a correct result.
    MatrixProduct,
    /// GB/s that a copy within the device's memory reads and writes.
    MemoryCopy,
    /// GB/s from pinned memory to the device.
    PinnedCopy,
    /// MiB of memory that could be pinned at once, at most those that the run wants.
    PinnedMemory,
    /// TFLOP/s of matrix products in the precision in which GPUs train, in the last seconds of some load.
    LoadedProduct,
    /// Milliseconds of the first all-reduce with a correct result.
    AllReduce,
    /// GB/s that each rank sends in an all-reduce of 64 MB.
    AllReduceRate,
    /// MB/s of images read from the disk.
    DiskRead,
    /// Images per second that one thread decodes.
    Decode,
    /// Bytes of an image of the data set, on average.
    ImageBytes,
}

/// One training step, reported by rank 0. Losses are running means over the epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct Step {
    pub epoch: usize,
    pub epochs: usize,
    pub batch: usize,
    pub batches: usize,
    /// box, objectness, class.
    #[serde(deserialize_with = "lossy_losses")]
    pub losses: [f32; 3],
    /// Over all ranks and the last few seconds.
    pub images_per_second: f64,
    pub image_size: usize,
    /// Bytes that libtorch has reserved on the GPUs of the rank; on the CPU, the resident memory of its process, 0 if
    /// unknown.
    pub memory: u64,
    /// Targets in the batch.
    pub instances: usize,
}

/// One row of `results.csv`. Metrics are absent when the epoch was not validated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the columns of results.csv")]
pub struct EpochSummary {
    pub epoch: usize,
    pub epochs: usize,
    #[serde(deserialize_with = "lossy_losses")]
    pub train_losses: [f64; 3],
    pub metrics: Option<Metrics>,
    #[serde(default, deserialize_with = "optional_lossy_losses")]
    pub val_losses: Option<[f64; 3]>,
    pub lr: [f64; 3],
    pub seconds: f64,
    pub best: bool,
}

/// The columns of a validation in `results.csv` and `evolve.csv` (spec §10): the fields of [`Metrics`], then box,
/// objectness and class loss.
pub const VALIDATION_COLUMNS: [&str; 7] = [
    "metrics/precision",
    "metrics/recall",
    "metrics/mAP_0.5",
    "metrics/mAP_0.5:0.95",
    "val/box_loss",
    "val/obj_loss",
    "val/cls_loss",
];

/// Precision, recall and average precision, averaged over the classes that have labels.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "standard terms")]
pub struct Metrics {
    pub precision: f64,
    pub recall: f64,
    pub map50: f64,
    pub map50_95: f64,
}

impl Metrics {
    /// What early stopping and `best.pt` compare: 0.1·mAP50 + 0.9·mAP50-95 (spec §6).
    pub fn fitness(&self) -> f64 {
        0.1 * self.map50 + 0.9 * self.map50_95
    }
}

/// The twelve numbers of COCO's evaluation, in pycocotools' order; `None` where no label has such an area.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CocoScores(pub [Option<f64>; 12]);

impl CocoScores {
    /// The names of the numbers for programs, and what pycocotools prints before them: the kind, the IoU, the area
    /// of the labels, and the most detections per image.
    pub const NAMES: [(&'static str, &'static str); 12] = [
        ("AP", "Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ]"),
        ("AP50", "Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ]"),
        ("AP75", "Average Precision  (AP) @[ IoU=0.75      | area=   all | maxDets=100 ]"),
        ("APsmall", "Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ]"),
        ("APmedium", "Average Precision  (AP) @[ IoU=0.50:0.95 | area=medium | maxDets=100 ]"),
        ("APlarge", "Average Precision  (AP) @[ IoU=0.50:0.95 | area= large | maxDets=100 ]"),
        ("AR1", "Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ]"),
        ("AR10", "Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets= 10 ]"),
        ("AR100", "Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ]"),
        ("ARsmall", "Average Recall     (AR) @[ IoU=0.50:0.95 | area= small | maxDets=100 ]"),
        ("ARmedium", "Average Recall     (AR) @[ IoU=0.50:0.95 | area=medium | maxDets=100 ]"),
        ("ARlarge", "Average Recall     (AR) @[ IoU=0.50:0.95 | area= large | maxDets=100 ]"),
    ];
}

/// A picture with what `yolo predict` has found in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Predicted {
    /// Its number, or that of its video, among the pictures and videos of the run, from 0.
    pub picture: usize,
    /// The pictures and videos of the run.
    pub pictures: usize,
    /// The file, or the camera or stream, without a password.
    pub path: PathBuf,
    /// If it is a frame of a video, its number among the frames that are used, from 1.
    #[serde(default)]
    pub frame: Option<usize>,
    /// The frames of the video that are used, if it says how many it has.
    #[serde(default)]
    pub frames: Option<usize>,
    /// Its height and width in pixels.
    pub size: [usize; 2],
    /// Height and width of what the network saw of it.
    pub input: [usize; 2],
    /// The objects, most confident first.
    pub found: Vec<FoundObject>,
    /// Milliseconds that the network took for its batch, divided by the pictures of the batch.
    pub milliseconds: f64,
    /// The picture or video with its boxes, if one is written.
    pub saved: Option<PathBuf>,
    /// With `--view-img`, the picture with its boxes as JPEG in base64, small enough for the terminal. Not of every
    /// frame of a video.
    #[serde(default)]
    pub preview: Option<String>,
}

/// An object in a picture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FoundObject {
    /// The number of its class.
    pub class: usize,
    /// The name of its class.
    pub name: String,
    /// From 0 to 1.
    pub confidence: f32,
    /// Left, top, right and bottom in whole pixels of the picture.
    pub corners: [u32; 4],
}

/// The table that a validation prints: the row `all`, then one row per class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the columns of the printed table")]
pub struct ValTable {
    pub rows: Vec<ValRow>,
    /// Milliseconds per image: preprocessing, inference, NMS.
    pub speed_ms: [f64; 3],
    pub images: usize,
}

/// One row of a [`ValTable`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the columns of the printed table")]
pub struct ValRow {
    pub class: String,
    pub images: usize,
    pub instances: usize,
    pub metrics: Metrics,
}

/// A file that a run has written, and what it is (`best weights`, `results`, `plot`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct OutputFile {
    pub what: String,
    pub path: PathBuf,
}

/// What people are told about a picture, or a part of a video, that could not be read ([`Event::Skipped`]).
pub fn unread(reason: &str, frames: usize) -> String {
    match frames {
        0 => format!("{reason}; skipped"),
        1 => format!("{reason}; 1 frame was searched"),
        all => format!("{reason}; {all} frames were searched"),
    }
}

/// Reads null as NaN: JSON has no NaN or infinity, and serde_json writes null for a diverged loss.
fn lossy_losses<'de, D, T>(deserializer: D) -> Result<[T; 3], D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + From<f32>,
{
    let losses: [Option<T>; 3] = Deserialize::deserialize(deserializer)?;
    Ok(losses.map(|loss| loss.unwrap_or_else(|| T::from(f32::NAN))))
}

/// As [`lossy_losses`], but all three may be absent.
fn optional_lossy_losses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[f64; 3]>, D::Error> {
    let losses: Option<[Option<f64>; 3]> = Deserialize::deserialize(deserializer)?;
    Ok(losses.map(|losses| losses.map(|loss| loss.unwrap_or(f64::NAN))))
}
