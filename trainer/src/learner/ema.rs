//! The exponential moving average (EMA) of a model, which is validated and saved (spec §6). It
//! follows every floating-point tensor, including running statistics and anchors; counters keep
//! their first value.

use tch::Tensor;
use tch_train::foreach_ema;
use torch_checkpoint::WeightsFile;
use yolo_plan::schedule::ema_decay;

use crate::error::TrainError;
use crate::model::{Model, State};
use crate::tensor_io::fill;

/// A model whose tensors are the moving average of another's.
#[derive(Debug)]
pub struct Ema {
    model: Model,
    updates: u64,
}

impl Ema {
    /// An average that starts as a copy of the model, without gradients.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new(model: &Model) -> Result<Self, TrainError> {
        Ok(Self { model: model.copy()?, updates: 0 })
    }

    /// Moves the average towards `state`, the state of the model that it was made from.
    ///
    /// # Errors
    /// When the tensors are not those of the average.
    pub fn update(&mut self, state: &State) -> Result<(), TrainError> {
        let mut averages: Vec<&Tensor> = Vec::with_capacity(state.len());
        let mut values: Vec<&Tensor> = Vec::with_capacity(state.len());
        if state.len() != self.model.state().len() {
            let (own, other) = (self.model.state().len(), state.len());
            return Err(TrainError::new(format!(
                "the moving average has {own} tensors, but the model has {other}"
            )));
        }
        for (average, value) in self.model.state().iter().zip(state) {
            if average.name != value.name {
                let (own, other) = (&average.name, &value.name);
                return Err(TrainError::new(format!(
                    "the moving average has {own} where the model has {other}"
                )));
            }
            if average.tensor.is_floating_point() {
                averages.push(&average.tensor);
                values.push(&value.tensor);
            }
        }
        foreach_ema(&averages, &values, ema_decay(self.updates + 1))?;
        self.updates += 1;
        Ok(())
    }

    /// The averaged model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Number of updates so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Restores the average that was saved in `file` after `updates` updates.
    ///
    /// # Errors
    /// When a tensor of the file is missing, has another shape, or is not in the model. The average
    /// is then partly restored and must not be used.
    pub fn restore(&mut self, file: &WeightsFile, updates: u64) -> Result<(), TrainError> {
        let state = self.model.state();
        for entry in state {
            let saved = file.tensors.get(&entry.name).ok_or_else(|| {
                TrainError::new(format!("the saved moving average lacks the tensor {}", entry.name))
            })?;
            fill(&entry.tensor, saved)
                .map_err(|error| error.at(format!("the saved moving average of {}", entry.name)))?;
        }
        if let Some(extra) = file.tensors.keys().find(|name| state.get(name).is_none()) {
            return Err(TrainError::new(format!(
                "the saved moving average has the tensor {extra}, which is not in the model"
            )));
        }
        self.updates = updates;
        Ok(())
    }
}
