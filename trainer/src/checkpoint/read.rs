//! Reading a checkpoint to resume its run: the weights of the last step, the averaged ones, the
//! optimizer's state and how far the run had come.

use std::path::Path;

use indexmap::IndexMap;
use tch_train::ScalerState;
use torch_checkpoint::{TensorData, Value, WeightsFile};
use yolo_plan::dataset::SplitSummary;
use yolo_plan::run::{WrittenBy, check_resumable, lacks};

use super::progress::Progress;
use crate::error::TrainError;
use crate::learner::scaler_of;
use crate::training::LossSums;

/// The state of a run to resume.
#[derive(Debug)]
pub struct Resume {
    /// Weights of the last step.
    pub model: WeightsFile,
    /// Averaged weights, on rank 0.
    pub averaged: Option<WeightsFile>,
    /// Updates of the averaged weights.
    pub updates: u64,
    /// State of the optimizer.
    pub optimizer: Value,
    /// The gradients since the last step, if the run was interrupted between two steps.
    pub gradients: Option<IndexMap<String, TensorData>>,
    /// The loss scale, which the gradients have, if the run was in float16.
    pub scaler: Option<ScalerState>,
    /// How far the run had come.
    pub progress: Progress,
    /// What the splits of the data set had; empty in checkpoints of YOLOv5.
    pub data: Vec<SplitSummary>,
    /// Batches of an epoch, by which `progress` counts; unknown in checkpoints of YOLOv5.
    pub batches: Option<usize>,
}

/// Finds the state of its run in a checkpoint, which was read from `path`.
///
/// # Errors
/// When its run is finished, or it holds only weights.
pub(super) fn parse_resume(file: &WeightsFile, path: &Path) -> Result<Resume, TrainError> {
    let finished = field(&file.root, "finished") == Some(&Value::Bool(true));
    check_resumable(path, WrittenBy::Yolo { finished }, |name| {
        field(&file.root, name).is_some_and(|value| *value != Value::None)
    })?;
    let incomplete = |name: &str| TrainError::from(lacks(path, name));
    let integer = |name: &str| match field(&file.root, name) {
        Some(Value::Int(value)) => Ok(*value),
        _ => Err(incomplete(name)),
    };
    let tensors = |name: &str| field(&file.root, name).and_then(tensors).ok_or_else(|| incomplete(name));
    let with = |tensors| WeightsFile {
        tensors,
        names: file.names.clone(),
        yaml: file.yaml.clone(),
        stride: file.stride.clone(),
        root: Value::None,
    };
    let count =
        |name: &str| integer(name).and_then(|value| usize::try_from(value).map_err(|_| incomplete(name)));
    let epochs_done =
        usize::try_from(integer("epoch")?.saturating_add(1)).map_err(|_| incomplete("epoch"))?;
    let best_fitness = match field(&file.root, "best_fitness") {
        Some(Value::Float(value)) => *value,
        _ => return Err(incomplete("best_fitness")),
    };
    Ok(Resume {
        model: with(tensors("model")?),
        averaged: tensors("ema").ok().map(with),
        updates: integer("updates")?.unsigned_abs(),
        gradients: field(&file.root, "gradients").and_then(self::tensors),
        scaler: match field(&file.root, "scaler") {
            None | Some(Value::None) => None,
            Some(saved) => Some(scaler_of(saved).ok_or_else(|| incomplete("scaler"))?),
        },
        optimizer: field(&file.root, "optimizer").cloned().ok_or_else(|| incomplete("optimizer"))?,
        batches: count("batches").ok(),
        data: field(&file.root, "data").and_then(splits).unwrap_or_default(),
        progress: Progress {
            epochs_done,
            batches_done: count("batches_done")?,
            losses: LossSums {
                sums: field(&file.root, "loss_sums").and_then(loss_sums).unwrap_or_default(),
                // Runs in float32 leave none out.
                left_out: count("losses_left_out").unwrap_or_default(),
            },
            last_optimizer_step: integer("last_optimizer_step")?,
            best_fitness,
            // Checkpoints of yolo 0.1.0 do not have it: their patience starts again.
            best_epoch: count("best_epoch").unwrap_or_else(|_| epochs_done.saturating_sub(1)),
            // Only runs with --image-weights have them.
            average_precisions: field(&file.root, "average_precisions").and_then(numbers).unwrap_or_default(),
        },
    })
}

fn loss_sums(value: &Value) -> Option<[f64; 3]> {
    numbers(value)?.try_into().ok()
}

fn splits(value: &Value) -> Option<Vec<SplitSummary>> {
    let number = |value: &Value, name: &str| usize::try_from(value.get(name)?.as_i64()?).ok();
    let split = |value: &Value| {
        Some(SplitSummary {
            split: value.get("split")?.as_str()?.to_owned(),
            images: number(value, "images")?,
            objects: number(value, "objects")?,
            hash: value.get("hash")?.as_i64()?.cast_unsigned(),
        })
    };
    value.as_slice()?.iter().map(split).collect()
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_slice()?.iter().map(Value::as_f64).collect()
}

fn field<'a>(root: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Dict(entries) = root else { return None };
    entries.iter().find(|(key, _)| matches!(key, Value::Str(text) if text == name)).map(|(_, value)| value)
}

fn tensors(value: &Value) -> Option<IndexMap<String, TensorData>> {
    let Value::Dict(entries) = value else { return None };
    entries
        .iter()
        .map(|(key, value)| match (key, value) {
            (Value::Str(name), Value::Tensor(tensor)) => Some((name.clone(), tensor.clone())),
            _ => None,
        })
        .collect()
}
