//! What the user means to run, as far as checks judge the host against it. The command fills it
//! from the options of `yolo train`; a recording may carry it, so that a replay judges the same run.

use serde::{Deserialize, Serialize};

/// Images a step over all ranks unless the run says otherwise, as in YOLOv5.
const DEFAULT_BATCH: i64 = 16;
/// Pixels unless the run says otherwise, as in YOLOv5.
const DEFAULT_IMAGE_SIZE: usize = 640;

/// Options of runs that a later release has: the doctor understands them after `--`, and `yolo train`
/// of this one refuses them. A remedy may name them to who said them already; others could not use it.
pub const NOT_YET_OF_TRAIN: [&str; 6] =
    ["--nnodes", "--node-rank", "--master-addr", "--master-port", "--backend", "--amp"];

/// A run that is meant. What is `None` was not said: defaults are the plan's to choose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Intent {
    /// Whether a run is meant at all: then what would stop it is an error.
    pub run: bool,
    /// GPUs by nvidia-smi's number, in the order of the ranks.
    pub devices: Vec<usize>,
    /// `--device cpu`.
    pub cpu: bool,
    /// The words of `--device`, where they could not be read as devices.
    pub device_words: Option<String>,
    /// Ranks on this machine.
    pub ranks: Option<usize>,
    /// Machines of the run.
    pub nnodes: Option<usize>,
    /// Which of them this is.
    pub node_rank: Option<usize>,
    /// Where the ranks of several machines meet.
    pub master_addr: Option<String>,
    /// The port there.
    pub master_port: Option<u16>,
    /// Images a step over all ranks.
    pub batch: Option<i64>,
    /// Pixels.
    pub image_size: Option<usize>,
    /// Letter of the model, `n`, `s`, `m`, `l` or `x`, or its file.
    pub model: Option<String>,
    /// The file of weights.
    pub weights: Option<String>,
    /// The data set's yaml.
    pub data: Option<String>,
    /// Threads that load images, a rank.
    pub workers: Option<usize>,
    /// `ram` or `disk`.
    pub cache: Option<String>,
    /// The folder of all runs.
    pub project: Option<String>,
    /// The checkpoint to go on from; empty for the newest.
    pub resume: Option<String>,
    /// Batch normalisation over all ranks.
    pub sync_bn: bool,
    /// Mixed precision.
    pub amp: Option<bool>,
    /// `nccl` or `gloo`.
    pub backend: Option<String>,
}

impl Intent {
    /// Whether a remedy may name an option of this run: `yolo train` has it, or it was said.
    pub fn may_name(&self, option: &str) -> bool {
        match option {
            "--nnodes" => self.nnodes.is_some(),
            "--node-rank" => self.node_rank.is_some(),
            "--master-addr" => self.master_addr.is_some(),
            "--master-port" => self.master_port.is_some(),
            "--backend" => self.backend.is_some(),
            "--amp" => self.amp.is_some(),
            _ => true,
        }
    }

    /// Ranks on this machine, as far as the options tell: one a device, at least one.
    pub fn ranks_here(&self) -> usize {
        self.ranks.unwrap_or(self.devices.len()).max(1)
    }

    /// Ranks on this machine that each have a GPU: several ranks without `--device cpu` are NCCL's.
    pub fn ranks_on_gpus(&self) -> usize {
        if self.cpu || self.devices.is_empty() { 0 } else { self.devices.len() }
    }

    /// Ranks of all machines.
    pub fn ranks_in_all(&self) -> usize {
        self.ranks_here() * self.nnodes.unwrap_or(1).max(1)
    }

    /// Images a step over all ranks; `None` where the program shall choose.
    pub fn images_a_step(&self) -> Option<usize> {
        usize::try_from(self.batch.unwrap_or(DEFAULT_BATCH)).ok().filter(|&images| images > 0)
    }

    /// Side of the images in pixels.
    pub fn pixels(&self) -> usize {
        self.image_size.unwrap_or(DEFAULT_IMAGE_SIZE)
    }

    /// Whether several machines take part.
    pub fn has_several_nodes(&self) -> bool {
        self.nnodes.is_some_and(|nodes| nodes > 1)
    }
}
