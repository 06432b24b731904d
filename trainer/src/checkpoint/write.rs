//! Writing a checkpoint. The file appears by one rename: a kill at any moment, or a full disk,
//! leaves the old file as it was.

use std::path::Path;

use torch_checkpoint::Value;
use yolo_plan::RunPlan;
use yolo_plan::run::TrainTask;

use crate::error::TrainError;
use crate::model::Model;
use crate::tensor_io::state_dict;
use crate::train::learner::Learner;

/// How far a run has come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Epochs that are complete.
    pub epochs_done: usize,
    /// Batches of the next epoch that are done (0 unless interrupted).
    pub batches_done: usize,
    /// The step, counted from the run's start, of the last optimizer step; -1 before the first.
    pub last_optimizer_step: i64,
    /// The best fitness so far.
    pub best_fitness: f64,
}

/// What every checkpoint of a run has in common.
pub struct Checkpoint<'a> {
    /// The plan of the run.
    pub plan: &'a RunPlan,
    /// Its training part.
    pub task: &'a TrainTask,
}

impl Checkpoint<'_> {
    /// Writes everything from which the run can go on.
    pub fn write_running(
        &self,
        path: &Path,
        learner: &Learner,
        progress: Progress,
    ) -> Result<(), TrainError> {
        let Some(average) = learner.average() else { return Err(TrainError::new("only rank 0 saves")) };
        let (model, averaged) = (learner.model(), average.model());
        let mut fields = vec![
            entry("epoch", Value::Int(progress.epochs_done as i64 - 1)),
            entry("best_fitness", Value::Float(progress.best_fitness)),
            entry("model", state_dict(model.state(), false)?),
            entry("ema", state_dict(averaged.state(), false)?),
            entry("updates", Value::Int(average.updates() as i64)),
            entry("optimizer", learner.optimizer().export()?),
            entry("gradients", learner.gradients(progress)?),
            entry("batches_done", Value::Int(progress.batches_done as i64)),
            entry("last_optimizer_step", Value::Int(progress.last_optimizer_step)),
            entry("finished", Value::Bool(false)),
        ];
        fields.extend(self.description(model)?);
        Ok(torch_checkpoint::write_pt(path, &Value::Dict(fields))?)
    }

    /// Writes the averaged weights alone, in half precision, as a finished run leaves them.
    pub fn write_final(&self, path: &Path, averaged: &Model) -> Result<(), TrainError> {
        let mut fields = vec![
            entry("epoch", Value::Int(-1)),
            entry("best_fitness", Value::None),
            entry("model", state_dict(averaged.state(), true)?),
            entry("ema", Value::None),
            entry("updates", Value::None),
            entry("optimizer", Value::None),
            entry("finished", Value::Bool(true)),
        ];
        fields.extend(self.description(averaged)?);
        Ok(torch_checkpoint::write_pt(path, &Value::Dict(fields))?)
    }

    /// What a reader needs to rebuild the model and to know where it came from.
    fn description(&self, model: &Model) -> Result<Vec<(Value, Value)>, TrainError> {
        let names = self
            .task
            .data
            .names
            .iter()
            .enumerate()
            .map(|(index, name)| (Value::Int(index as i64), Value::Str(name.clone())));
        let hyp = serde_json::to_value(&self.task.hyp).map_err(|error| {
            TrainError::new(format!("the hyper-parameters could not be written: {error}"))
        })?;
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

fn entry(name: &str, value: Value) -> (Value, Value) {
    (Value::Str(name.to_owned()), value)
}

/// JSON as the plain values of a checkpoint.
fn json(value: &serde_json::Value) -> Value {
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
