//! How large the runs of each stage are: on a GPU as a user trains, in a rehearsal so small that all
//! stages fit into two minutes on two cores.

use crate::kit::Kit;

/// The sizes of a run of the kit.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    /// The value of `--device`.
    pub device: String,
    /// The value of `YOLO_TEST_DEVICE` for the crates' tests.
    pub test_device: String,
    /// Whether this is a rehearsal on the CPU.
    pub rehearsal: bool,
    /// Whether every model and batch size is measured.
    pub full: bool,
    /// Accuracy that the training must reach, and how.
    pub accuracy: Accuracy,
}

/// A training with the accuracy that it must reach.
#[derive(Debug, Clone, PartialEq)]
pub struct Accuracy {
    /// The options of `yolo train`.
    pub options: String,
    /// At least this mAP50; 0 where a tiny run proves no accuracy.
    pub map50: f64,
    /// At least this mAP50-95.
    pub map50_95: f64,
}

impl Scale {
    /// The sizes for a kit on a GPU, or for a rehearsal.
    pub fn new(kit: &Kit, device: u32, rehearsal: bool, full: bool) -> Self {
        Self {
            device: if rehearsal { "cpu".to_owned() } else { device.to_string() },
            test_device: if rehearsal { "cpu".to_owned() } else { format!("cuda:{device}") },
            rehearsal,
            full,
            accuracy: Accuracy::of(kit, rehearsal),
        }
    }

    /// `gpu` on a GPU, `cpu` in a rehearsal.
    pub fn of<T>(&self, gpu: T, cpu: T) -> T {
        if self.rehearsal { cpu } else { gpu }
    }
}

impl Accuracy {
    /// With BCCD and pretrained weights, the run of the README: on the CPU it reaches 0.904 and 0.570
    /// in the mean of three seeds, and the bars leave room for what another seed changes. Otherwise the
    /// built-in data set from random weights, which reaches 0.81 and 0.51.
    fn of(kit: &Kit, rehearsal: bool) -> Self {
        if rehearsal {
            let options = "--data shapes --cfg yolov5n --weights= --imgsz 64 --batch 16 --epochs 2";
            return Self { options: options.to_owned(), map50: 0.0, map50_95: 0.0 };
        }
        if kit.bccd().is_some() && kit.weights().is_some() {
            let options = "--imgsz 320 --batch 16 --epochs 50 --seed 0";
            return Self { options: options.to_owned(), map50: 0.88, map50_95: 0.54 };
        }
        Self { options: "--data shapes".to_owned(), map50: 0.75, map50_95: 0.45 }
    }
}
