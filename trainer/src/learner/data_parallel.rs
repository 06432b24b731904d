//! Data-parallel training: every rank holds the same model and trains on its own share of each
//! batch, and c10d's reducer averages the gradients during the backward pass (spec §11). Batches
//! before the last of a nominal batch only add to the gradients of their rank.

use std::rc::Rc;

use tch::{Tensor, no_grad};
use tch_distributed::{ProcessGroup, Reducer, ReducerOptions};

use crate::error::TrainError;
use crate::model::Model;

/// Keeps the model of this rank equal to those of the other ranks.
#[derive(Debug)]
pub(super) struct DataParallel {
    group: Rc<ProcessGroup>,
    reducer: Reducer,
    /// All buffers of the model, in a few tensors.
    buffers: Vec<Tensor>,
    /// Whether the gradients of this rank contain some that the other ranks do not have.
    own_gradients: bool,
}

impl DataParallel {
    /// Gives every rank the weights and buffers of rank 0, and prepares the exchange of gradients.
    pub(super) fn new(model: &Model, group: &Rc<ProcessGroup>) -> Result<Self, TrainError> {
        let state: Vec<_> = model.state().iter().map(|entry| &entry.tensor).collect();
        group.broadcast(&state, 0)?;
        let parameters = model.state().parameters().map(|entry| &entry.tensor);
        let trained: Vec<_> = parameters.filter(|tensor| tensor.requires_grad()).collect();
        let reducer = Reducer::new(group, &trained, ReducerOptions::default())?;
        let buffers = model.buffers().iter().map(Tensor::shallow_clone).collect();
        Ok(Self { group: Rc::clone(group), reducer, buffers, own_gradients: false })
    }

    /// Call before each forward pass that [`Self::backward`] follows: sends rank 0's buffers to all
    /// ranks.
    pub(super) fn before_forward(&mut self) -> Result<(), TrainError> {
        self.group.broadcast(&self.buffers, 0)?;
        Ok(self.reducer.prepare_forward()?)
    }

    /// Runs the backward pass of `loss`, which may have a scale, and adds up the gradients over all ranks, also those that
    /// [`Self::accumulate`] has left.
    pub(super) fn backward(&mut self, loss: &Tensor) -> Result<(), TrainError> {
        self.reducer.backward(&self.scaled(loss)?)?;
        self.own_gradients = false;
        Ok(())
    }

    /// Runs the backward pass of `loss` and adds its gradients to those of this rank only.
    pub(super) fn accumulate(&mut self, loss: &Tensor) -> Result<(), TrainError> {
        // The reducer is not prepared for this backward pass, so it exchanges nothing.
        self.scaled(loss)?.f_backward()?;
        self.own_gradients = true;
        Ok(())
    }

    /// Adds up over all ranks what [`Self::accumulate`] has left in `gradients`.
    pub(super) fn share(&mut self, gradients: &[Tensor]) -> Result<(), TrainError> {
        if !std::mem::take(&mut self.own_gradients) {
            return Ok(());
        }
        let flat =
            gradients.iter().map(|gradient| gradient.f_reshape([-1])).collect::<Result<Vec<_>, _>>()?;
        let sum = Tensor::f_cat(&flat, 0)?;
        self.group.all_reduce(&sum)?;
        let mean = sum.f_div_scalar(self.group.world() as f64)?;
        let mut start = 0;
        for gradient in gradients {
            let length = gradient.numel() as i64;
            let shared = mean.f_narrow(0, start, length)?.f_view(gradient.size().as_slice())?;
            no_grad(|| gradient.shallow_clone().f_copy_(&shared))?;
            start += length;
        }
        Ok(())
    }

    /// Gives the tensors of rank 0's model to those of this rank, which has the same ones.
    pub(super) fn share_model(&self, model: &Model) -> Result<(), TrainError> {
        let state: Vec<_> = model.state().iter().map(|entry| &entry.tensor).collect();
        Ok(self.group.broadcast(&state, 0)?)
    }

    /// The reducer averages over ranks; YOLOv5 trains on the sum.
    fn scaled(&self, loss: &Tensor) -> Result<Tensor, TrainError> {
        Ok(loss.f_mul_scalar(self.group.world() as f64)?)
    }
}
