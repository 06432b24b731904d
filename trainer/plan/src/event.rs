//! What a rank tells its supervisor: one JSON object a line, on a descriptor of its own
//! (libtorch writes to stdout, so stdout cannot carry them). The first event is always
//! [`Event::Hello`]; a supervisor refuses another [`PROTOCOL`]. Unknown fields are ignored,
//! so that a field can be added without a new protocol.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use yolo_base::env::YOLO_SILENCE_SECONDS;

/// Version of the events; raised when a reader of the old form would misunderstand the new one.
pub const PROTOCOL: u32 = 2;

/// How long a rank that is stopped may give no sign of life before it is given up.
const SILENCE: Duration = Duration::from_secs(60);
/// Signs of life in that time.
const SIGNS: u32 = 12;

/// How long a rank that is stopped may give no sign of life before its run is ended: a minute, far
/// less than the hours that its peers would wait for it in a collective.
pub fn silence_limit() -> Duration {
    let named = std::env::var(YOLO_SILENCE_SECONDS).ok().and_then(|text| text.parse().ok());
    named.filter(|seconds| *seconds > 0).map_or(SILENCE, Duration::from_secs)
}

/// How often a rank gives a sign of life.
pub fn sign_interval() -> Duration {
    silence_limit() / SIGNS
}

/// One line from a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each field is what its name and variant say")]
pub enum Event {
    /// The rank is alive: who it is and where it runs.
    Hello { protocol: u32, version: String, rank: usize, pid: u32, device: String, threads: usize },
    /// A sign of life, sent from a thread of its own however long a step takes.
    Alive,
    /// What the rank is doing now, as words that complete "rank 1 was …": `reading labels`, `training`.
    Phase { doing: String },
    /// Something the user should read once.
    Warning { message: String },
    /// Something worth a line: the model's summary, transferred tensors, the anchors' fit.
    Note { message: String },
    /// A training step ended.
    Step(Step),
    /// An epoch ended, with what goes into `results.csv`.
    Epoch(EpochSummary),
    /// A validation ended, with its table.
    Validated { title: String, table: ValTable },
    /// `yolo doctor --deep` has measured something on this rank.
    Measured { measure: Measure, value: f64 },
    /// The run ended well.
    Finished { files: Vec<OutputFile>, epochs: usize, seconds: f64, stopped_early: bool },
    /// The run was asked to stop and has saved its state.
    Interrupted { resume_from: Option<PathBuf> },
    /// The run cannot go on. `doing` completes "rank 1 was …"; `peer_lost` is set when the rank
    /// only noticed that another one is gone, so that the supervisor names that one.
    Failed {
        message: String,
        hint: Option<String>,
        doing: String,
        #[serde(default)]
        peer_lost: bool,
    },
}

/// What `yolo doctor --deep` measures, with the unit of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// 10^12 floating-point operations a second of a matrix product whose result was right.
    MatrixProduct,
    /// GB/s that a copy reads and writes in the device's memory.
    MemoryCopy,
    /// GB/s from pinned memory to the device.
    PinnedCopy,
    /// Milliseconds of the first sum over all ranks whose result was right.
    AllReduce,
    /// GB/s that each rank sends in a sum of 64 MB over all ranks.
    AllReduceRate,
    /// MB/s of images read from the disk.
    DiskRead,
    /// Images a second that one thread decodes.
    Decode,
}

/// One training step, as rank 0 sees it. Losses are running means over the epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Step {
    pub epoch: usize,
    pub epochs: usize,
    pub batch: usize,
    pub batches: usize,
    /// box, objectness, class.
    #[serde(deserialize_with = "lossy_losses")]
    pub losses: [f32; 3],
    /// Over all ranks, over the last seconds.
    pub images_per_second: f64,
    pub image_size: usize,
    /// Resident memory of the rank on the host, in bytes, on every device; 0 if unknown.
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

/// Mean precision, recall and average precisions over the classes that have labels.
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

/// The table that a validation prints: the row `all` first, then one a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the columns of the printed table")]
pub struct ValTable {
    pub rows: Vec<ValRow>,
    /// Milliseconds an image: pre-process, inference, NMS.
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

/// A file that a run leaves behind, and what it is (`best weights`, `results`, `plot`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct OutputFile {
    pub what: String,
    pub path: PathBuf,
}

/// JSON has no number for NaN or infinity and writes null, which a diverged loss must survive.
fn lossy_losses<'de, D, T>(deserializer: D) -> Result<[T; 3], D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + From<f32>,
{
    let losses: [Option<T>; 3] = Deserialize::deserialize(deserializer)?;
    Ok(losses.map(|loss| loss.unwrap_or_else(|| T::from(f32::NAN))))
}

/// As [`lossy_losses`], where all three may be absent.
fn optional_lossy_losses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<[f64; 3]>, D::Error> {
    let losses: Option<[Option<f64>; 3]> = Deserialize::deserialize(deserializer)?;
    Ok(losses.map(|losses| losses.map(|loss| loss.unwrap_or(f64::NAN))))
}
