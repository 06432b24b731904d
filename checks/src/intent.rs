//! The planned run, as far as the checks need it. The command fills it from the options of
//! `yolo train`; a recording may contain it, so that a replay checks the same run.

use serde::{Deserialize, Serialize};

/// The default batch over all ranks, as in YOLOv5.
const DEFAULT_BATCH: i64 = 16;
/// The default image size in pixels, as in YOLOv5.
const DEFAULT_IMAGE_SIZE: usize = 640;

/// Options of a future release: the doctor accepts them after `--`, but `yolo train` does not yet.
/// Suggest these only if the user already passed them.
pub const NOT_YET_OF_TRAIN: [&str; 0] = [];

/// A planned run. `None` means that the option was not given; the plan chooses the default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Intent {
    /// Whether a run is planned at all; then whatever would stop it is an error.
    pub run: bool,
    /// GPUs by their nvidia-smi number, in rank order.
    pub devices: Vec<usize>,
    /// `--device cpu`.
    pub cpu: bool,
    /// Ranks are on MIG instances, which are named; `devices` are the GPUs that they are parts of.
    pub mig: bool,
    /// The argument of `--device`, if it is invalid.
    pub device_words: Option<String>,
    /// Ranks on this machine; in a single process, its devices.
    pub ranks: Option<usize>,
    /// `dp` or `model`, if a single process uses all devices.
    pub parallel: Option<String>,
    /// Number of machines.
    pub nnodes: Option<usize>,
    /// The number of this machine.
    pub node_rank: Option<usize>,
    /// The address of machine 0.
    pub master_addr: Option<String>,
    /// The port on machine 0.
    pub master_port: Option<u16>,
    /// Batch size over all ranks.
    pub batch: Option<i64>,
    /// Images of each rank, `16,8` or `auto`, if their shares of the batch are unequal.
    pub batch_split: Option<String>,
    /// Image size in pixels.
    pub image_size: Option<usize>,
    /// Whether each batch has a size of its own, up to one and a half times the image size.
    pub multi_scale: bool,
    /// The model's letter, `n`, `s`, `m`, `l` or `x`, or its file.
    pub model: Option<String>,
    /// The weights file.
    pub weights: Option<String>,
    /// The data set's YAML file or name.
    pub data: Option<String>,
    /// Data loader threads per rank.
    pub workers: Option<usize>,
    /// `ram` or `disk`.
    pub cache: Option<String>,
    /// The folder for runs.
    pub project: Option<String>,
    /// The checkpoint to resume from; empty for the newest.
    pub resume: Option<String>,
    /// Synchronized batch normalization.
    pub sync_bn: bool,
    /// Mixed precision; `None` if the plan chooses it.
    pub amp: Option<bool>,
    /// `nccl` or `gloo`.
    pub backend: Option<String>,
}

impl Intent {
    /// Whether a remedy may suggest an option: `yolo train` has it, or the user passed it.
    pub fn may_name(&self, option: &str) -> bool {
        !NOT_YET_OF_TRAIN.contains(&option)
    }

    /// Ranks on this machine: one per device, and at least one.
    pub fn ranks_here(&self) -> usize {
        if self.is_one_process() { 1 } else { self.devices_here() }
    }

    /// Devices that train on this machine; the CPU counts as often as it is named.
    fn devices_here(&self) -> usize {
        self.ranks.unwrap_or(self.devices.len()).max(1)
    }

    /// Whether a single process uses all devices.
    pub fn is_one_process(&self) -> bool {
        self.parallel.is_some()
    }

    /// Whether the layers of the model are spread over the devices.
    pub fn is_model_parallel(&self) -> bool {
        self.parallel.as_deref() == Some("model")
    }

    /// Ranks on this machine that each have a GPU.
    pub fn ranks_on_gpus(&self) -> usize {
        match self.devices.len() {
            0 => 0,
            _ if self.cpu => 0,
            _ if self.is_one_process() => 1,
            devices => devices,
        }
    }

    /// Into how many equal shares the batch is divided, unless it is split: one per rank or replica.
    pub fn shares_of_batch(&self) -> usize {
        match self.parallel.as_deref() {
            None => self.ranks_in_all(),
            Some("model") => 1,
            Some(_) => self.devices_here(),
        }
    }

    /// Ranks on all machines.
    pub fn ranks_in_all(&self) -> usize {
        self.ranks_here() * self.nnodes.unwrap_or(1).max(1)
    }

    /// Batch size over all ranks; `None` if it is chosen automatically.
    pub fn images_a_step(&self) -> Option<usize> {
        usize::try_from(self.batch.unwrap_or(DEFAULT_BATCH)).ok().filter(|&images| images > 0)
    }

    /// Images per step of one rank; `None` if the batch is chosen automatically.
    pub fn images_a_rank(&self) -> Option<usize> {
        Some(self.images_a_step()?.div_ceil(self.ranks_in_all()))
    }

    /// Image size in pixels.
    pub fn pixels(&self) -> usize {
        self.image_size.unwrap_or(DEFAULT_IMAGE_SIZE)
    }

    /// The largest side of a batch's images in pixels.
    pub(crate) fn largest_pixels(&self) -> usize {
        if self.multi_scale { self.pixels() * 3 / 2 } else { self.pixels() }
    }

    /// Whether the run uses several machines.
    pub fn has_several_nodes(&self) -> bool {
        self.nnodes.is_some_and(|nodes| nodes > 1)
    }
}
