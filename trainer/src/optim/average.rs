//! The exponential moving average of a model (spec §6), which is what is validated and saved. It
//! follows every floating entry, running statistics and anchors too; counters stay as they were.

use tch::Tensor;
use tch_train::foreach_ema;
use torch_checkpoint::WeightsFile;
use yolo_plan::schedule::ema_decay;

use crate::error::TrainError;
use crate::model::{Model, State};
use crate::tensor_io::fill;

/// A model whose tensors are the moving average of another's.
#[derive(Debug)]
pub struct Average {
    model: Model,
    updates: u64,
}

impl Average {
    /// The average of nothing but the model as it is now: a copy without gradients.
    ///
    /// # Errors
    /// When there is no memory for the copy.
    pub fn new(model: &Model) -> Result<Self, TrainError> {
        Ok(Self { model: model.copy()?, updates: 0 })
    }

    /// Moves the average towards `state`, which must be that of the model it was made from.
    ///
    /// # Errors
    /// When the entries are not those of the average.
    pub fn update(&mut self, state: &State) -> Result<(), TrainError> {
        let mut averages: Vec<&Tensor> = Vec::with_capacity(state.len());
        let mut values: Vec<&Tensor> = Vec::with_capacity(state.len());
        if state.len() != self.model.state().len() {
            let (own, other) = (self.model.state().len(), state.len());
            return Err(TrainError::new(format!("the average has {own} tensors, and the model {other}")));
        }
        for (average, value) in self.model.state().iter().zip(state) {
            if average.name != value.name {
                let (own, other) = (&average.name, &value.name);
                return Err(TrainError::new(format!("the average has {own} where the model has {other}")));
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

    /// How often it was updated.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Continues the average that was saved in `file` after `updates` updates.
    ///
    /// # Errors
    /// When the file lacks a tensor, has one of another shape, or has one too many. The average is
    /// then partly that of the file and must not be used.
    pub fn restore(&mut self, file: &WeightsFile, updates: u64) -> Result<(), TrainError> {
        let state = self.model.state();
        for entry in state {
            let saved = file.tensors.get(&entry.name).ok_or_else(|| {
                TrainError::new(format!("the saved average lacks the tensor {}", entry.name))
            })?;
            fill(&entry.tensor, saved)
                .map_err(|error| error.at(format!("the saved average of {}", entry.name)))?;
        }
        if let Some(extra) = file.tensors.keys().find(|name| state.get(name).is_none()) {
            return Err(TrainError::new(format!(
                "the saved average has the tensor {extra}, which the model has not"
            )));
        }
        self.updates = updates;
        Ok(())
    }
}
