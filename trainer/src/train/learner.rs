//! What learns on one rank: the model, its loss, the optimizer and the average, and what ties them
//! to the other ranks. A step is [`Learner::backward`] for every batch of the nominal one, then
//! [`Learner::update`] (spec §6, §11).

use std::rc::Rc;

use indexmap::IndexMap;
use tch::Tensor;
use tch_distributed::{ProcessGroup, Reducer, ReducerOptions};
use torch_checkpoint::{TensorData, Value};

use crate::checkpoint::Progress;
use crate::error::TrainError;
use crate::loss::{DetectionLoss, LossSettings};
use crate::model::Model;
use crate::optim::{Average, Optimizer};
use crate::tensor_io::{fill, tensor_data};

/// Gradients are clipped to this global norm (spec §6).
const MAX_GRADIENT_NORM: f64 = 10.0;

/// The learning state of one rank.
#[derive(Debug)]
pub struct Learner {
    model: Model,
    optimizer: Optimizer,
    loss: DetectionLoss,
    /// Kept by rank 0, which validates and saves it.
    average: Option<Average>,
    peers: Option<Peers>,
}

/// The other ranks, and what they and this one keep equal.
#[derive(Debug)]
struct Peers {
    group: Rc<ProcessGroup>,
    reducer: Reducer,
    /// Running statistics and counters, shared with the model.
    buffers: Vec<Tensor>,
}

impl Peers {
    fn join(model: &Model, group: &Rc<ProcessGroup>) -> Result<Self, TrainError> {
        let state: Vec<_> = model.state().iter().map(|entry| &entry.tensor).collect();
        group.broadcast(&state, 0)?;
        let parameters = model.state().parameters().map(|entry| &entry.tensor);
        let learning: Vec<_> = parameters.filter(|tensor| tensor.requires_grad()).collect();
        let reducer = Reducer::new(group, &learning, ReducerOptions::default())?;
        let buffers = model.state().buffers().map(|entry| entry.tensor.shallow_clone()).collect();
        Ok(Self { group: Rc::clone(group), reducer, buffers })
    }
}

impl Learner {
    /// Makes a learner of a model on this rank. With a group, all its ranks first take over the
    /// weights and buffers of rank 0, anchors among them, and exchange gradients from then on;
    /// with `sync_bn` batch normalisation works on the images of all ranks.
    ///
    /// # Errors
    /// When the model is none for the loss, or a peer is lost or late.
    pub fn new(
        mut model: Model,
        optimizer: Optimizer,
        average: Option<Average>,
        loss: LossSettings,
        group: Option<&Rc<ProcessGroup>>,
        sync_bn: bool,
    ) -> Result<Self, TrainError> {
        let peers = match group {
            Some(group) => Some(Peers::join(&model, group)?),
            None => None,
        };
        if sync_bn {
            model.set_sync_bn(group.cloned());
        }
        let loss = DetectionLoss::new(model.anchors()?, model.spec().nc, loss, model.device())?;
        Ok(Self { model, optimizer, loss, average, peers })
    }

    /// One batch forward and back: its gradients are added to those that are there, summed over
    /// all ranks. Returns the loss items of this rank (box, objectness, class), on its device.
    ///
    /// # Errors
    /// When memory is out, or a peer is lost.
    pub fn backward(&mut self, images: &Tensor, targets: &[[f32; 6]]) -> Result<Tensor, TrainError> {
        let Some(peers) = &mut self.peers else {
            let loss = self.loss.compute(&self.model.forward_train(images)?, targets)?;
            loss.total.f_backward()?;
            return Ok(loss.items);
        };
        peers.group.broadcast(&peers.buffers, 0)?;
        peers.reducer.prepare_forward()?;
        let loss = self.loss.compute(&self.model.forward_train(images)?, targets)?;
        // The reducer averages over ranks where the original's numbers are those of a sum.
        peers.reducer.backward(&loss.total.f_mul_scalar(peers.group.world() as f64)?)?;
        Ok(loss.items)
    }

    /// Steps along the gradients, clipped, and sets them to zero; the average follows. Returns the
    /// norm that the gradients had before clipping, without waiting for the device.
    ///
    /// # Errors
    /// When libtorch refuses.
    pub fn update(&mut self) -> Result<Tensor, TrainError> {
        let norm = self.optimizer.clip_gradients(MAX_GRADIENT_NORM)?;
        self.optimizer.step()?;
        self.optimizer.zero_grad()?;
        if let Some(average) = &mut self.average {
            average.update(self.model.state())?;
        }
        Ok(norm)
    }

    /// What was added up since the last step, for a checkpoint: none at the end of an epoch, where
    /// it is dropped (spec §6). It is the same on all ranks.
    pub(crate) fn gradients(&self, progress: Progress) -> Result<Value, TrainError> {
        let mut entries = Vec::new();
        if progress.batches_done > 0 {
            for entry in self.model.state().parameters().filter(|entry| entry.tensor.requires_grad()) {
                let gradient = entry.tensor.f_grad()?;
                if gradient.defined() {
                    entries.push((entry.name.clone(), Value::Tensor(tensor_data(&gradient)?)));
                }
            }
        }
        Ok(if entries.is_empty() { Value::None } else { Value::dict(entries) })
    }

    /// Goes on from gradients that a checkpoint holds.
    pub(crate) fn restore_gradients(
        &mut self,
        saved: &IndexMap<String, TensorData>,
    ) -> Result<(), TrainError> {
        let mut total: Option<Tensor> = None;
        for entry in self.model.state().parameters() {
            let Some(data) = saved.get(&entry.name) else { continue };
            let gradient = entry.tensor.f_detach()?.f_zeros_like()?;
            fill(&gradient, data).map_err(|error| error.at(format!("the gradient of {}", entry.name)))?;
            // The derivative of Σ w·g by w is g itself. This backward is not announced to the
            // reducer, so nothing is exchanged.
            let term = entry.tensor.f_mul(&gradient)?.f_sum(entry.tensor.kind())?;
            total = Some(match total {
                Some(sum) => sum.f_add(&term)?,
                None => term,
            });
        }
        total.map_or(Ok(()), |total| Ok(total.f_backward()?))
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The averaged weights, on rank 0.
    pub fn average(&self) -> Option<&Average> {
        self.average.as_ref()
    }

    /// The loss, with which validation measures too.
    pub fn loss(&self) -> &DetectionLoss {
        &self.loss
    }

    /// The optimizer, to be read.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// The optimizer, whose rates follow the schedule.
    pub fn optimizer_mut(&mut self) -> &mut Optimizer {
        &mut self.optimizer
    }
}
