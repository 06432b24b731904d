//! What a user can lower when memory runs out, with the values to try: half the images per step, or, if
//! that is not possible, smaller images.

use yolo_plan::RunPlan;
use yolo_plan::batch::QUAD;
use yolo_plan::options::Parallel;
use yolo_plan::run::{Task, TrainTask};

/// The advice for a run of this plan; `None` for tasks whose sizes the user does not choose.
pub(super) fn advice(plan: &RunPlan) -> Option<String> {
    match &plan.task {
        Task::Train(task) if task.parallel == Parallel::Dp => {
            Some(of_training(task, plan.ranks.all_devices().len(), "device"))
        }
        Task::Train(task) => Some(of_training(task, plan.ranks.world_size, "rank")),
        Task::Bench(task) => Some(of_training(&task.training, plan.ranks.world_size, "rank")),
        Task::Val(task) if task.batch > 1 => Some(format!("lower --batch to {}", task.batch / 2)),
        Task::Predict(task) if task.batch > 1 => Some(format!("lower --batch to {}", task.batch / 2)),
        Task::Export(task) if task.batch > 1 => Some(format!("lower --batch to {}", task.batch / 2)),
        Task::Val(_) | Task::Predict(_) | Task::Export(_) => Some("lower --imgsz".to_owned()),
        Task::Join(_) | Task::DeepCheck(_) => None,
    }
}

/// `parts` is the number of ranks, or of replicas, which `what` says.
fn of_training(task: &TrainTask, parts: usize, what: &str) -> String {
    let shares = task.shares(parts);
    let unit = if task.quad { QUAD } else { 1 };
    let halves: Vec<usize> = shares.iter().map(|share| (share / 2 / unit * unit).max(unit)).collect();
    let smaller = smaller_size(task.image_size);
    let images = smaller.map(|size| format!("--imgsz from {} to {size}", task.image_size));
    let unequal = shares.windows(2).any(|pair| pair[0] != pair[1]);
    let batch = if halves == shares {
        None
    } else if unequal {
        let split: Vec<String> = halves.iter().map(ToString::to_string).collect();
        Some(format!("--batch-split to {}", split.join(",")))
    } else {
        let total: usize = halves.iter().sum();
        let each = if parts > 1 { format!(", {} per {what}", halves[0]) } else { String::new() };
        Some(format!("--batch from {} to {total}{each}", task.batch))
    };
    let lower: Vec<String> = batch.into_iter().chain(images).collect();
    if lower.is_empty() {
        return "use a smaller model".to_owned();
    }
    format!("lower {}, or use a smaller model", lower.join(", or "))
}

/// About half the pixels: the largest multiple of 64, the largest stride of all models, that is at most
/// 0.71 times as wide.
fn smaller_size(size: usize) -> Option<usize> {
    let smaller = size * 71 / 100 / 64 * 64;
    (smaller >= 64).then_some(smaller)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use yolo_plan::hyp::HyperParameters;

    use super::*;

    fn task(batch: usize, split: &[usize], image_size: usize) -> TrainTask {
        serde_json::from_value(json!({
            "weights": null, "model": null, "hyp": HyperParameters::low(), "epochs": 3, "batch": batch,
            "batch_split": split, "nominal_batch": 64, "image_size": image_size, "rect": false, "resume": null,
            "data": { "yaml": "data.yaml", "train": [], "val": [], "test": [], "names": ["red"] },
            "nosave": false, "noval": false, "autoanchor": true, "plots": false, "cache": null,
            "single_cls": false, "optimizer": "SGD", "sync_bn": false, "workers": 0, "cos_lr": false,
            "label_smoothing": 0.0, "patience": null, "freeze": [], "save_period": null, "seed": 0,
        }))
        .unwrap()
    }

    #[test]
    fn the_advice_names_what_to_lower_and_to_what() {
        let advice =
            |batch, split: &[usize], size, ranks| of_training(&task(batch, split, size), ranks, "rank");
        assert_eq!(
            advice(16, &[], 640, 1),
            "lower --batch from 16 to 8, or --imgsz from 640 to 448, or use a smaller model"
        );
        assert_eq!(
            advice(64, &[], 640, 4),
            "lower --batch from 64 to 32, 8 per rank, or --imgsz from 640 to 448, or use a smaller model"
        );
        assert!(
            of_training(&task(6, &[], 64), 2, "device")
                .starts_with("lower --batch from 6 to 2, 1 per device")
        );
        assert_eq!(
            advice(24, &[16, 8], 640, 2),
            "lower --batch-split to 8,4, or --imgsz from 640 to 448, or use a smaller model"
        );
        assert_eq!(advice(2, &[], 640, 2), "lower --imgsz from 640 to 448, or use a smaller model");
        assert_eq!(advice(1, &[], 64, 1), "use a smaller model");
        let quad = |batch| of_training(&TrainTask { quad: true, ..task(batch, &[], 64) }, 1, "rank");
        assert_eq!(
            (quad(24).as_str(), quad(4).as_str()),
            ("lower --batch from 24 to 12, or use a smaller model", "use a smaller model")
        );
    }

    #[test]
    fn smaller_images_have_about_half_the_pixels() {
        assert_eq!(smaller_size(640), Some(448));
        assert_eq!(smaller_size(1280), Some(896));
        assert_eq!(smaller_size(64), None);
    }
}
