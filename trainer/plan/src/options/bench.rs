//! The options of `yolo bench`: those of `yolo train` that change its speed, and what to measure. A
//! new one is a field here, and a field of [`BenchTask`](crate::run::BenchTask) or of
//! [`TrainOptions`], from which the measured run is planned.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;

use super::train::{Cache, PrecisionOption, TrainOptions};
use super::workers::Workers;
use crate::number::whole;

/// The options of `yolo bench`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Args)]
pub struct BenchOptions {
    /// Initial weights: a file, a URL, or a pretrained model (yolov5n, s, m, l, x, n6 … x6), downloaded if missing; '' for random weights [default: yolov5s.pt]
    #[arg(long, value_name = "FILE", help_heading = "Model and data", value_hint = ValueHint::FilePath)]
    pub weights: Option<String>,
    /// Model: yolov5n, s, m, l, x, n6 … x6, or a YAML file [default: the model stored in the weights]
    #[arg(long, value_name = "MODEL", help_heading = "Model and data", value_hint = ValueHint::FilePath)]
    pub cfg: Option<String>,
    /// Data set: a YOLOv5 YAML file, or shapes, coco128, coco8, VOC or coco; downloaded if missing [default: coco128]
    #[arg(long, value_name = "YAML", help_heading = "Model and data", value_hint = ValueHint::FilePath)]
    pub data: Option<String>,
    /// Hyperparameters, which include augmentation: low, med, high, no-augmentation, objects365, voc, or a YAML file [default: low]
    #[arg(long, value_name = "YAML", help_heading = "Model and data", value_hint = ValueHint::FilePath)]
    pub hyp: Option<String>,
    /// Image size in pixels, rounded up to a multiple of the stride [default: 640]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, visible_aliases = ["img", "img-size"], value_name = "PIXELS", help_heading = "Model and data")]
    pub imgsz: Option<usize>,
    /// Images per training step; with --scaling, of each device [default: 16]
    #[arg(long = "batch", value_parser = whole::<i64>, allow_negative_numbers = true, visible_alias = "batch-size", value_name = "N", help_heading = "Model and data")]
    pub batch_size: Option<i64>,
    /// Number format of the network in training: fp32, or mixed precision with fp16 or bf16 [default: auto, which is fp16 on GPUs and fp32 on the CPU]
    #[arg(long, value_name = "FORMAT", ignore_case = true, help_heading = "Model and data")]
    pub precision: Option<PrecisionOption>,
    /// Let libtorch use its fastest algorithms, as with yolo train --nondeterministic
    #[arg(long, help_heading = "Model and data")]
    pub nondeterministic: bool,
    /// Where to keep decoded images, all of which are loaded first: ram (also if no value is given), disk, or none [default: up to 256 MB in memory]
    #[arg(long, value_name = "WHERE", num_args = 0..=1, default_missing_value = "ram", help_heading = "Model and data")]
    pub cache: Option<Cache>,

    /// Measure training on the images of the data set
    #[arg(long, help_heading = "Measurements [default: all]")]
    pub training: bool,
    /// Measure training on a single batch that stays on the device, so that nothing waits for the loader
    #[arg(long, help_heading = "Measurements [default: all]")]
    pub synthetic: bool,
    /// Measure the data loader alone: with 1, 2, 4, … threads up to --workers (all, also if no value is given), or only with --workers (most)
    #[arg(long, value_name = "THREADS", num_args = 0..=1, default_missing_value = "all", help_heading = "Measurements [default: all]")]
    pub loader: Option<LoaderThreads>,
    /// Measure validation
    #[arg(long, help_heading = "Measurements [default: all]")]
    pub validation: bool,
    /// Seconds per measurement, in a table per row [default: 8]
    #[arg(long, value_parser = whole::<usize>, allow_negative_numbers = true, value_name = "N", help_heading = "Measurements [default: all]")]
    pub seconds: Option<usize>,

    /// Compare 1, 2, 4, … of the devices: memory, minutes per epoch, speed-up and efficiency
    #[arg(long, help_heading = "Tables", conflicts_with_all = ["training", "loader", "validation"])]
    pub scaling: bool,
    /// Compare batch sizes, on one and on two of the devices [default if no value is given: 4,8,16,32,64,128,256,512]
    #[arg(long, value_name = "SIZES", num_args = 0..=1, default_missing_value = "4,8,16,32,64,128,256,512", help_heading = "Tables", conflicts_with_all = ["training", "loader", "validation"])]
    pub batches: Option<String>,

    /// cpu, or a GPU index as listed by nvidia-smi; for the tables several, for example 0,1 or cpu,cpu [default: a usable GPU, else cpu; for the tables all GPUs]
    #[arg(long, allow_negative_numbers = true, value_name = "DEVICE", help_heading = "Devices")]
    pub device: Option<String>,
    /// Data loader threads; auto measures how many a run needs [default: the number of CPU cores; no more than images in a batch]
    #[arg(long, value_parser = Workers::parse, allow_negative_numbers = true, value_name = "N|auto", help_heading = "Devices")]
    pub workers: Option<Workers>,

    /// Folder that contains the folders of benchmarks, with their plans and logs [default: runs/bench]
    #[arg(long, value_name = "FOLDER", help_heading = "Output")]
    pub project: Option<PathBuf>,
    /// Name of the folder [default: exp, exp2, …]
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub name: Option<String>,
    /// Reuse the folder if it exists
    #[arg(long, help_heading = "Output")]
    pub exist_ok: bool,
}

/// With how many threads the loader alone is measured: 1, 2, 4 and so on up to those of training, or only these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "documented above; clap would make long help of it")]
pub enum LoaderThreads {
    All,
    Most,
}

impl BenchOptions {
    /// The options of the training run whose speed is measured.
    pub fn as_train(&self) -> TrainOptions {
        TrainOptions {
            weights: self.weights.clone(),
            cfg: self.cfg.clone(),
            data: self.data.clone(),
            hyp: self.hyp.clone(),
            imgsz: self.imgsz,
            batch_size: self.batch_size,
            precision: self.precision,
            nondeterministic: self.nondeterministic,
            cache: self.cache,
            device: self.device.clone(),
            workers: self.workers,
            project: Some(self.project.clone().unwrap_or_else(|| PathBuf::from("runs/bench"))),
            name: self.name.clone(),
            exist_ok: self.exist_ok,
            ..TrainOptions::default()
        }
    }
}
