//! The detection loss in plain tch operations, in the precision of the heads. It shares with the trainer
//! the assignment of targets, which is integers, and the formula of the complete IoU; both have
//! tests of their own against YOLOv5.

use tch::{Device, Kind, Tensor};
use yolo_trainer::loss::assign::{AnchorSize, Assignment, Target, assign_level};
use yolo_trainer::loss::{LossSettings, complete_iou};

/// Weight of the objectness of each level.
const BALANCE: [f64; 3] = [4.0, 1.0, 0.4];

/// Settings in which every constant has an effect.
pub(crate) const SETTINGS: LossSettings = LossSettings {
    box_gain: 0.05,
    objectness_gain: 0.7,
    class_gain: 0.3,
    objectness_positive_weight: 1.3,
    class_positive_weight: 0.8,
    label_smoothing: 0.1,
    focal_gamma: 0.0,
    anchor_threshold: 4.0,
    total_gain: 4.0,
};

/// What is differentiated, from the items of a batch of `images` images.
pub(crate) fn total(items: &Tensor, images: usize) -> Tensor {
    items.sum(Kind::Double) * (images as f64 * SETTINGS.total_gain)
}

/// Box, objectness and class loss after their gains: (3), with their graph. `anchors` is (levels, anchors,
/// 2), in cells.
pub(crate) fn items(heads: &[Tensor], targets: &[Target], anchors: &Tensor) -> Tensor {
    let zero = || Tensor::zeros([], (Kind::Double, Device::Cpu));
    let (mut boxes, mut objectness, mut classes) = (zero(), zero(), zero());
    for (level, head) in heads.iter().enumerate() {
        let anchors =
            Vec::<f32>::try_from(anchors.get(level as i64).to_kind(Kind::Float).reshape([-1])).unwrap();
        let anchors: Vec<AnchorSize> = anchors.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        let size = head.size();
        let (rows, columns) = (size[2], size[3]);
        let assigned = assign_level(targets, &anchors, [rows, columns], SETTINGS.anchor_threshold as f32);
        let mut wanted = vec![0.0; (size[0] * size[1] * rows * columns) as usize];
        if !assigned.is_empty() {
            let matched = matched(head, &assigned);
            let overlap = overlap(&matched, &assigned);
            boxes += (-&overlap + 1.0).mean(Kind::Double);
            classes += class_loss(&matched, &assigned);
            // Of several targets for one anchor of a cell, the last one counts.
            for (a, overlap) in
                assigned.iter().zip(Vec::<f64>::try_from(overlap.detach().clamp_min(0)).unwrap())
            {
                let at = ((a.image * size[1] + a.anchor) * rows + a.cell[0]) * columns + a.cell[1];
                wanted[at as usize] = overlap;
            }
        }
        let wanted = Tensor::from_slice(&wanted).reshape(&size[..4]);
        let loss = cross_entropy(&head.select(4, 4), &wanted, SETTINGS.objectness_positive_weight);
        objectness += loss.mean(Kind::Double) * BALANCE[level];
    }
    Tensor::stack(
        &[boxes * SETTINGS.box_gain, objectness * SETTINGS.objectness_gain, classes * SETTINGS.class_gain],
        0,
    )
}

/// The rows of a head that learn a target: (n, 5 + classes).
fn matched(head: &Tensor, assigned: &[Assignment]) -> Tensor {
    let column =
        |of: fn(&Assignment) -> i64| Some(Tensor::from_slice(&assigned.iter().map(of).collect::<Vec<i64>>()));
    head.index(&[column(|a| a.image), column(|a| a.anchor), column(|a| a.cell[0]), column(|a| a.cell[1])])
}

/// Complete IoU of predictions and targets: (n).
fn overlap(matched: &Tensor, assigned: &[Assignment]) -> Tensor {
    let table = |width: i64, of: fn(&Assignment) -> Vec<f32>| {
        let numbers: Vec<f32> = assigned.iter().flat_map(of).collect();
        Tensor::from_slice(&numbers).reshape([-1, width]).to_kind(Kind::Double)
    };
    let target = table(4, |a| a.bbox.to_vec());
    let anchors = table(2, |a| a.anchor_size.to_vec());
    let score = matched.narrow(1, 0, 4).sigmoid();
    let center = score.narrow(1, 0, 2) * 2.0 - 0.5;
    let size = (score.narrow(1, 2, 2) * 2.0).square() * anchors;
    complete_iou(&center, &size, &target.narrow(1, 0, 2), &target.narrow(1, 2, 2)).unwrap()
}

/// Mean over targets and classes.
fn class_loss(matched: &Tensor, assigned: &[Assignment]) -> Tensor {
    let logits = matched.narrow(1, 5, matched.size()[1] - 5);
    let wanted = logits.detach().full_like(0.5 * SETTINGS.label_smoothing);
    for (row, assignment) in (0..).zip(assigned) {
        let _ = wanted.get(row).get(assignment.class).fill_(1.0 - 0.5 * SETTINGS.label_smoothing);
    }
    cross_entropy(&logits, &wanted, SETTINGS.class_positive_weight).mean(Kind::Double)
}

/// Binary cross-entropy of logits, element by element.
fn cross_entropy(logits: &Tensor, wanted: &Tensor, positive_weight: f64) -> Tensor {
    -(wanted * positive_weight * logits.log_sigmoid() + (-wanted + 1.0) * (-logits).log_sigmoid())
}
