//! How a split is validated.

use crate::detection::NmsSettings;

/// How a split is validated.
#[derive(Debug, Clone)]
pub struct ValidateOptions {
    /// Suppression of each image.
    pub nms: NmsSettings,
    /// Treat all classes as one.
    pub single_cls: bool,
    /// Half precision; the model and the device must support it.
    pub half: bool,
    /// Test-time augmentation.
    pub augment: bool,
    /// Labels enter suppression as detections (`--save-hybrid`).
    pub hybrid: bool,
    /// The result has the detections of each image.
    pub keep_detections: bool,
    /// Suppression of a batch runs while the network computes the next one. Without it, the times of both are those of
    /// each alone.
    pub overlap: bool,
    /// Threads for suppression and the comparison with the labels.
    pub threads: usize,
}

impl ValidateOptions {
    /// The options of YOLOv5's validation (spec §9): confidence 0.001, IoU 0.6, several classes per
    /// box, 300 detections per image.
    pub fn standard(single_cls: bool, threads: usize) -> Self {
        Self {
            nms: NmsSettings {
                conf_thres: 0.001,
                iou_thres: 0.6,
                multi_label: true,
                agnostic: single_cls,
                classes: None,
                max_det: 300,
            },
            single_cls,
            half: false,
            augment: false,
            hybrid: false,
            keep_detections: false,
            overlap: true,
            threads,
        }
    }
}
