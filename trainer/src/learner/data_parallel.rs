//! Data-parallel training: every rank holds the same model and trains on its own share of each
//! batch, and c10d's reducer averages the gradients during the backward pass (spec §11).

use std::rc::Rc;

use tch::Tensor;
use tch_distributed::{ProcessGroup, Reducer, ReducerOptions};

use crate::error::TrainError;
use crate::model::Model;

/// Keeps the model of this rank equal to those of the other ranks.
#[derive(Debug)]
pub(super) struct DataParallel {
    group: Rc<ProcessGroup>,
    reducer: Reducer,
    /// Running statistics and counters, shared with the model.
    buffers: Vec<Tensor>,
}

impl DataParallel {
    /// Gives every rank the weights and buffers of rank 0, and prepares the exchange of gradients.
    pub(super) fn new(model: &Model, group: &Rc<ProcessGroup>) -> Result<Self, TrainError> {
        let state: Vec<_> = model.state().iter().map(|entry| &entry.tensor).collect();
        group.broadcast(&state, 0)?;
        let parameters = model.state().parameters().map(|entry| &entry.tensor);
        let trained: Vec<_> = parameters.filter(|tensor| tensor.requires_grad()).collect();
        let reducer = Reducer::new(group, &trained, ReducerOptions::default())?;
        let buffers = model.state().buffers().map(|entry| entry.tensor.shallow_clone()).collect();
        Ok(Self { group: Rc::clone(group), reducer, buffers })
    }

    /// Call before each forward pass: sends rank 0's buffers to all ranks.
    pub(super) fn before_forward(&mut self) -> Result<(), TrainError> {
        self.group.broadcast(&self.buffers, 0)?;
        Ok(self.reducer.prepare_forward()?)
    }

    /// Runs the backward pass of `loss` and adds up the gradients over all ranks.
    pub(super) fn backward(&mut self, loss: &Tensor) -> Result<(), TrainError> {
        // The reducer averages over ranks; YOLOv5 trains on the sum.
        Ok(self.reducer.backward(&loss.f_mul_scalar(self.group.world() as f64)?)?)
    }
}
