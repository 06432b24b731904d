//! The settings of non-maximum suppression.

/// Which boxes are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NmsSettings {
    /// Minimum confidence, exclusive.
    pub conf_thres: f32,
    /// IoU above which the less confident box is dropped. In double precision, as YOLOv5 compares it: the float
    /// nearest to 0.6 is above 0.6.
    pub iou_thres: f64,
    /// A box may have several classes.
    pub multi_label: bool,
    /// Boxes of different classes suppress each other.
    pub agnostic: bool,
    /// Keep only these classes; `None` keeps all.
    pub classes: Option<Vec<usize>>,
    /// Maximum detections per image.
    pub max_det: usize,
}
