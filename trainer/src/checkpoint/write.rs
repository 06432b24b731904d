//! Writing a checkpoint. Invariant: the file appears by one rename, so a kill at any moment, or a
//! full disk, leaves the old file as it was.

use std::path::Path;

use torch_checkpoint::Value;
use yolo_plan::dataset::SplitSummary;
use yolo_plan::run::TrainTask;

use super::progress::Progress;
use crate::error::TrainError;
use crate::model::Model;

/// What all checkpoints of a run have in common.
pub struct Checkpoint<'a> {
    /// The training task of the run.
    pub task: &'a TrainTask,
}

/// Everything that training changes.
pub struct TrainingState<'a> {
    /// The trained model.
    pub model: &'a Model,
    /// Its moving average.
    pub ema: &'a Model,
    /// Updates of the moving average.
    pub ema_updates: u64,
    /// The optimizer's `state_dict`.
    pub optimizer: Value,
    /// The gradients since the last step, by name; `None` at the end of an epoch.
    pub gradients: Value,
    /// The loss scale of float16; `None` without one.
    pub scaler: Value,
    /// How far the run has come.
    pub progress: Progress,
    /// Batches of an epoch, by which steps are counted.
    pub batches: usize,
    /// What the splits of the data set had.
    pub data: &'a [SplitSummary],
}

impl Checkpoint<'_> {
    /// Writes everything that is needed to resume the run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_running(&self, path: &Path, state: TrainingState<'_>) -> Result<(), TrainError> {
        let progress = state.progress;
        let mut fields = vec![
            entry("epoch", Value::Int(progress.epochs_done as i64 - 1)),
            entry("best_fitness", Value::Float(progress.best_fitness)),
            entry("best_epoch", Value::Int(progress.best_epoch as i64)),
            entry("model", state.model.state().to_value(false)?),
            entry("ema", state.ema.state().to_value(false)?),
            entry("updates", Value::Int(state.ema_updates as i64)),
            entry("optimizer", state.optimizer),
            entry("gradients", state.gradients),
            entry("scaler", state.scaler),
            entry("batches_done", Value::Int(progress.batches_done as i64)),
            entry("average_precisions", numbers(progress.average_precisions)),
            entry("loss_sums", numbers(progress.losses.sums)),
            entry("losses_left_out", Value::Int(progress.losses.left_out as i64)),
            entry("last_optimizer_step", Value::Int(progress.last_optimizer_step)),
            entry("batches", Value::Int(state.batches as i64)),
            entry("data", Value::List(state.data.iter().map(split).collect())),
            entry("finished", Value::Bool(false)),
        ];
        fields.extend(self.description(state.model)?);
        Ok(torch_checkpoint::write_pt(path, &Value::Dict(fields))?)
    }

    /// Writes only the averaged weights, in half precision, as a finished run leaves them.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_final(&self, path: &Path, averaged: &Model) -> Result<(), TrainError> {
        let mut fields = vec![
            entry("epoch", Value::Int(-1)),
            entry("best_fitness", Value::None),
            entry("model", averaged.state().to_value(true)?),
            entry("ema", Value::None),
            entry("updates", Value::None),
            entry("optimizer", Value::None),
            entry("finished", Value::Bool(true)),
        ];
        fields.extend(self.description(averaged)?);
        Ok(torch_checkpoint::write_pt(path, &Value::Dict(fields))?)
    }

    /// What a reader needs to rebuild the model, and where it came from.
    fn description(&self, model: &Model) -> Result<Vec<(Value, Value)>, TrainError> {
        let names = self
            .task
            .data
            .names
            .iter()
            .enumerate()
            .map(|(index, name)| (Value::Int(index as i64), Value::Str(name.clone())));
        let hyp = serde_json::to_value(&self.task.hyp)
            .map_err(|error| TrainError::new(format!("cannot write the hyperparameters: {error}")))?;
        Ok(vec![
            entry("names", Value::Dict(names.collect())),
            entry("nc", Value::Int(model.spec().nc as i64)),
            entry("yaml", json(&model.spec().yaml)),
            entry(
                "stride",
                Value::List(model.strides().iter().map(|&stride| Value::Float(stride)).collect()),
            ),
            entry("image_size", Value::Int(self.task.image_size as i64)),
            entry("hyp", json(&hyp)),
            entry("yolo_version", Value::Str(env!("CARGO_PKG_VERSION").to_owned())),
        ])
    }
}

fn split(summary: &SplitSummary) -> Value {
    let SplitSummary { split, images, objects, hash } = summary;
    Value::Dict(vec![
        entry("split", Value::Str(split.clone())),
        entry("images", Value::Int(*images as i64)),
        entry("objects", Value::Int(*objects as i64)),
        entry("hash", Value::Int(hash.cast_signed())),
    ])
}

fn numbers(all: impl IntoIterator<Item = f64>) -> Value {
    Value::List(all.into_iter().map(Value::Float).collect())
}

fn entry(name: &str, value: Value) -> (Value, Value) {
    (Value::Str(name.to_owned()), value)
}

/// JSON as plain values of a checkpoint.
pub(crate) fn json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::None,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(integer) => Value::Int(integer),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Str(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(json).collect()),
        serde_json::Value::Object(fields) => {
            Value::Dict(fields.iter().map(|(name, value)| (Value::Str(name.clone()), json(value))).collect())
        }
    }
}
