//! Reading a checkpoint to continue its run: the weights of the last step, the averaged ones, the
//! optimizer's state and how far the run had come.

use std::path::Path;

use indexmap::IndexMap;
use torch_checkpoint::{TensorData, Value, WeightsFile};

use super::Progress;
use crate::error::TrainError;

/// A run to be continued.
#[derive(Debug)]
pub struct Resume {
    /// Weights of the last step.
    pub model: WeightsFile,
    /// Averaged weights.
    pub averaged: WeightsFile,
    /// Updates of the averaged weights.
    pub updates: u64,
    /// State of the optimizer.
    pub optimizer: Value,
    /// Gradients of batches after the last step, when the run was interrupted between two steps.
    pub gradients: Option<IndexMap<String, TensorData>>,
    /// How far the run had come.
    pub progress: Progress,
}

/// Reads the checkpoint at `path`; an error when its run is finished, or when it holds only weights.
pub fn read_resume(path: &Path) -> Result<Resume, TrainError> {
    let file = torch_checkpoint::read(path)?;
    let shown = path.display();
    if field(&file.root, "finished") == Some(&Value::Bool(true)) {
        return Err(TrainError::new(format!("{shown} is of a finished run: there is nothing to resume"))
            .with_hint(format!("to train on from its weights, start a new run with `--weights {shown}`")));
    }
    let incomplete = |name: &str| {
        TrainError::new(format!("{shown} cannot be resumed: it holds no `{name}`"))
            .with_hint(format!("to start from its weights, use `--weights {shown}` instead of `--resume`"))
    };
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
    let best_fitness = match field(&file.root, "best_fitness") {
        Some(Value::Float(value)) => *value,
        _ => return Err(incomplete("best_fitness")),
    };
    Ok(Resume {
        model: with(tensors("model")?),
        averaged: with(tensors("ema")?),
        updates: integer("updates")?.unsigned_abs(),
        gradients: field(&file.root, "gradients").and_then(self::tensors),
        optimizer: field(&file.root, "optimizer").cloned().ok_or_else(|| incomplete("optimizer"))?,
        progress: Progress {
            epochs_done: usize::try_from(integer("epoch")? + 1).map_err(|_| incomplete("epoch"))?,
            batches_done: usize::try_from(integer("batches_done")?)
                .map_err(|_| incomplete("batches_done"))?,
            last_optimizer_step: integer("last_optimizer_step")?,
            best_fitness,
        },
    })
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
