//! What learns on one rank: [`Learner`] joins the model, its loss, the optimizer, the moving average
//! and the exchange with other ranks, or with replicas on other devices of this one. A training step is
//! [`Learner::step`]: [`Learner::backward`] for the last batch of a nominal batch, [`Learner::accumulate`] for
//! those before it, then [`Learner::update`] (spec §6, §11).

mod data_parallel;
mod ema;
mod optimizer;
mod replicas;
mod scale;

use std::rc::Rc;

use indexmap::IndexMap;
use tch::{Device, Tensor};
use tch_distributed::ProcessGroup;
use tch_train::{GradScaler, ScalerSettings};
use torch_checkpoint::{TensorData, Value};
use yolo_plan::precision::Precision;
use yolo_plan::schedule::StepSettings;

use self::data_parallel::DataParallel;
pub use self::ema::Ema;
pub use self::optimizer::Optimizer;
use self::replicas::Replicas;
pub(crate) use self::scale::scaler_of;
use crate::error::TrainError;
use crate::loss::{Assigned, DetectionLoss, LossOutput, LossSettings};
use crate::model::Model;
use crate::precision::in_precision;
use crate::tensor_io::{fill, tensor_data};

/// Gradients are clipped to this global norm (spec §6).
const MAX_GRADIENT_NORM: f64 = 10.0;

/// Everything on one rank that training changes.
#[derive(Debug)]
pub struct Learner {
    model: Model,
    optimizer: Optimizer,
    loss: DetectionLoss,
    /// On rank 0, which saves it.
    ema: Option<Ema>,
    /// A copy of rank 0's moving average, on other ranks after [`Learner::share_average`].
    average: Option<Model>,
    parallel: Option<DataParallel>,
    replicas: Option<Replicas>,
    precision: Precision,
    /// In float16, whose range is small.
    scaler: Option<GradScaler>,
}

impl Learner {
    /// With a group, all ranks first take over the weights and buffers of rank 0, including the
    /// anchors, and exchange gradients from then on. With `sync_bn`, batch normalization uses the
    /// images of all ranks.
    ///
    /// # Errors
    /// When the loss does not support the model, or a peer is lost.
    pub fn new(
        mut model: Model,
        optimizer: Optimizer,
        ema: Option<Ema>,
        loss: LossSettings,
        group: Option<&Rc<ProcessGroup>>,
        sync_bn: bool,
    ) -> Result<Self, TrainError> {
        let parallel = group.map(|group| DataParallel::new(&model, group)).transpose()?;
        if sync_bn {
            model.set_sync_bn(group.cloned());
        }
        let loss = DetectionLoss::new(model.anchors()?, model.spec().nc, loss, model.device())?;
        let (precision, scaler) = (Precision::Fp32, None);
        Ok(Self { model, optimizer, loss, ema, average: None, parallel, replicas: None, precision, scaler })
    }

    /// Trains with a replica of the model on each of these devices, of which the first is that of the model.
    ///
    /// # Errors
    /// When the system refuses threads.
    pub fn with_replicas(self, devices: Vec<Device>) -> Result<Self, TrainError> {
        Ok(Self { replicas: Some(Replicas::on(devices)?), ..self })
    }

    /// Trains in this precision. Weights, average, optimizer and loss stay in float32.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn with_precision(self, precision: Precision) -> Result<Self, TrainError> {
        let device = self.model.device();
        let scaler = match precision {
            Precision::Fp16 => Some(GradScaler::new(device, ScalerSettings::default())?),
            Precision::Fp32 | Precision::Bf16 => None,
        };
        Ok(Self { precision, scaler, ..self })
    }

    /// Trains on one batch: sets the rates of the schedule, adds the gradients, and updates the weights
    /// when the nominal batch is full. `number` is that of the batch in the run; `last_update` that of
    /// the last batch after which the weights were updated. Returns what [`Self::backward`] returns.
    ///
    /// Ranks exchange gradients only when the nominal batch is full. The sums are the same as with an
    /// exchange after each batch.
    ///
    /// # Errors
    /// When the momentum is out of range, memory runs out, or a peer is lost.
    pub fn step(
        &mut self,
        images: &Tensor,
        targets: &[[f32; 6]],
        settings: &StepSettings,
        number: i64,
        last_update: &mut i64,
    ) -> Result<Tensor, TrainError> {
        self.set_rates(settings)?;
        if number - *last_update < settings.accumulate as i64 {
            return self.accumulate(images, targets);
        }
        let items = self.backward(images, targets)?;
        // Reading the norm would wait for the device, and nothing here needs it.
        let _norm = self.update()?;
        *last_update = number;
        Ok(items)
    }

    /// Sets the learning rates and the momentum of a step.
    fn set_rates(&mut self, settings: &StepSettings) -> Result<(), TrainError> {
        self.optimizer.set_lr(0, settings.lr_bias)?;
        self.optimizer.set_lr(1, settings.lr_other)?;
        self.optimizer.set_lr(2, settings.lr_other)?;
        self.optimizer.set_momentum(settings.momentum)
    }

    /// Runs one batch forward and backward and adds its gradients to the existing ones, on this rank
    /// only: nothing is exchanged. Returns what [`Self::backward`] returns.
    ///
    /// # Errors
    /// When memory runs out, or a peer is lost while SyncBatchNorm exchanges statistics.
    pub fn accumulate(&mut self, images: &Tensor, targets: &[[f32; 6]]) -> Result<Tensor, TrainError> {
        let (heads, assigned) = self.heads_and_assigned(images, targets)?;
        let LossOutput { total, items } = self.loss_assigned(&heads, targets, assigned)?;
        drop(heads);
        let total = self.scaled(total)?;
        match &mut self.parallel {
            Some(parallel) => parallel.accumulate(&total)?,
            None => total.f_backward()?,
        }
        Ok(items)
    }

    /// Runs one batch forward and backward. Its gradients and those that ranks have accumulated are
    /// summed over all ranks and added to the existing ones. Returns the loss items (box, objectness,
    /// class) of this rank, on its device.
    ///
    /// # Errors
    /// When memory runs out, or a peer is lost.
    pub fn backward(&mut self, images: &Tensor, targets: &[[f32; 6]]) -> Result<Tensor, TrainError> {
        if let Some(parallel) = &mut self.parallel {
            parallel.before_forward()?;
        }
        let (heads, assigned) = self.heads_and_assigned(images, targets)?;
        let loss = self.loss_assigned(&heads, targets, assigned)?;
        drop(heads);
        self.add_gradients(&loss)?;
        Ok(loss.items)
    }

    /// The first third of [`Self::backward`]: the raw heads of a batch.
    ///
    /// # Errors
    /// When memory runs out, or a peer is lost.
    pub fn forward(&mut self, images: &Tensor) -> Result<Vec<Tensor>, TrainError> {
        if let Some(parallel) = &mut self.parallel {
            parallel.before_forward()?;
        }
        self.heads(images)
    }

    fn heads(&self, images: &Tensor) -> Result<Vec<Tensor>, TrainError> {
        match &self.replicas {
            Some(replicas) => replicas.forward(&self.model, images, self.precision),
            None => in_precision(self.precision, images.device(), || self.model.forward_train(images)),
        }
    }

    /// The heads of a batch, and what its targets are assigned to. A GPU's work is launched by this thread while another
    /// assigns, because a small model is done nearly as soon as all of it is launched. On the CPU, which computes
    /// meanwhile, the loss assigns.
    fn heads_and_assigned(
        &self,
        images: &Tensor,
        targets: &[[f32; 6]],
    ) -> Result<(Vec<Tensor>, Option<Assigned>), TrainError> {
        match images.device().is_cuda() {
            true => self.heads_meanwhile_assign(images, targets),
            false => Ok((self.heads(images)?, None)),
        }
    }

    fn heads_meanwhile_assign(
        &self,
        images: &Tensor,
        targets: &[[f32; 6]],
    ) -> Result<(Vec<Tensor>, Option<Assigned>), TrainError> {
        self.loss.check_targets(targets, images.size().first().copied().unwrap_or(0))?;
        let (assigner, sizes) = (self.loss.assigner(), self.model.head_sizes(images));
        std::thread::scope(|scope| {
            let assign = move || assigner.assign(targets, sizes);
            // If the system refuses the thread, the loss assigns.
            let thread =
                std::thread::Builder::new().name("assign".to_owned()).spawn_scoped(scope, assign).ok();
            let heads = self.heads(images);
            let assigned = thread.map(std::thread::ScopedJoinHandle::join).transpose();
            let failed = |_| TrainError::new("the thread that assigns targets has failed");
            Ok((heads?, assigned.map_err(failed)?))
        })
    }

    fn loss_assigned(
        &self,
        heads: &[Tensor],
        targets: &[[f32; 6]],
        assigned: Option<Assigned>,
    ) -> Result<LossOutput, TrainError> {
        in_precision(self.precision, self.model.device(), || {
            self.loss.compute_assigned(heads, targets, assigned)
        })
    }

    /// The second third of [`Self::backward`]: the loss of these heads.
    ///
    /// # Errors
    /// When the heads do not fit the model, or memory runs out.
    pub fn loss_of(&self, heads: &[Tensor], targets: &[[f32; 6]]) -> Result<LossOutput, TrainError> {
        self.loss_assigned(heads, targets, None)
    }

    /// A loss with the scale of float16, if there is one.
    fn scaled(&self, total: Tensor) -> Result<Tensor, TrainError> {
        match &self.scaler {
            Some(scaler) => Ok(scaler.scale(&total)?),
            None => Ok(total),
        }
    }

    /// The last third of [`Self::backward`]: adds the gradients of a loss to the existing ones.
    ///
    /// # Errors
    /// When memory runs out, or a peer is lost.
    pub fn add_gradients(&mut self, loss: &LossOutput) -> Result<(), TrainError> {
        let total = self.scaled(loss.total.shallow_clone())?;
        match &mut self.parallel {
            Some(parallel) => parallel.backward(&total),
            None => Ok(total.f_backward()?),
        }
    }

    /// Clips the gradients, steps along them and sets them to zero; the moving average follows.
    /// Returns the norm of the gradients before clipping, without waiting for the device.
    ///
    /// In float16, a step whose gradients have overflowed changes nothing and lowers the scale, as in YOLOv5. All ranks
    /// do the same without asking each other: each has the sums over all ranks, in which an infinity or a NaN
    /// of one rank stays one, and each began with the same scale.
    ///
    /// # Errors
    /// When libtorch fails, or a peer is lost.
    pub fn update(&mut self) -> Result<Tensor, TrainError> {
        self.share_gradients()?;
        let norm = match &mut self.scaler {
            None => {
                let norm = self.optimizer.clip_gradients(MAX_GRADIENT_NORM)?;
                self.optimizer.step()?;
                norm
            }
            Some(scaler) => {
                let (norm, step) = scaler.clip(&self.optimizer.gradients()?, MAX_GRADIENT_NORM)?;
                self.optimizer.step_scaled(&step)?;
                scaler.update(&step)?;
                norm
            }
        };
        self.optimizer.zero_grad()?;
        if let Some(ema) = &mut self.ema {
            ema.update(self.model.state())?;
        }
        Ok(norm)
    }

    /// Sums over all ranks the gradients that each has accumulated on its own, if it has. Every rank
    /// calls this; then all have the same gradients.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn share_gradients(&mut self) -> Result<(), TrainError> {
        let Some(parallel) = &mut self.parallel else { return Ok(()) };
        parallel.share(&self.optimizer.gradients()?)
    }

    /// Sends the moving average of rank 0 to all ranks, which call this together.
    ///
    /// # Errors
    /// When memory runs out, or a peer is lost.
    pub fn share_average(&mut self) -> Result<(), TrainError> {
        let Some(parallel) = &self.parallel else { return Ok(()) };
        if self.ema.is_none() && self.average.is_none() {
            self.average = Some(self.model.copy()?);
        }
        self.averaged_model().map_or(Ok(()), |model| parallel.share_model(model))
    }

    /// The model with averaged weights: rank 0's, or what [`Self::share_average`] has sent last.
    pub fn averaged_model(&self) -> Option<&Model> {
        self.ema.as_ref().map(Ema::model).or(self.average.as_ref())
    }

    /// The gradients that were added up since the last step, as a dictionary for a checkpoint, or
    /// `None` if there are none. They have the scale of [`Self::scaler_state`]. They are those of this rank until [`Self::share_gradients`].
    pub(crate) fn gradients(&self) -> Result<Value, TrainError> {
        let mut entries = Vec::new();
        for entry in self.model.state().parameters().filter(|entry| entry.tensor.requires_grad()) {
            let gradient = entry.tensor.f_grad()?;
            if gradient.defined() {
                entries.push((entry.name.clone(), Value::Tensor(tensor_data(&gradient)?)));
            }
        }
        Ok(if entries.is_empty() { Value::None } else { Value::dict(entries) })
    }

    /// Restores the gradients that a checkpoint holds. Restore the scale first: `saved_scale` is that which they have.
    pub(crate) fn restore_gradients(
        &mut self,
        saved: &IndexMap<String, TensorData>,
        saved_scale: f64,
    ) -> Result<(), TrainError> {
        // 1 unless the run continues in another precision.
        let factor = self.scale()? / saved_scale;
        let mut total: Option<Tensor> = None;
        for entry in self.model.state().parameters() {
            let Some(data) = saved.get(&entry.name) else { continue };
            let gradient = entry.tensor.f_detach()?.f_zeros_like()?;
            fill(&gradient, data).map_err(|error| error.at(format!("the gradient of {}", entry.name)))?;
            let gradient = gradient.f_mul_scalar(factor)?;
            // The derivative of Σ w·g with respect to w is g. The reducer is not prepared for this
            // backward pass, so it exchanges nothing.
            let term = entry.tensor.f_mul(&gradient)?.f_sum(entry.tensor.kind())?;
            let term = term.f_to_device(self.model.device())?;
            total = Some(match total {
                Some(sum) => sum.f_add(&term)?,
                None => term,
            });
        }
        total.map_or(Ok(()), |total| Ok(total.f_backward()?))
    }

    /// The precision of training.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The moving average of the weights, on rank 0.
    pub fn ema(&self) -> Option<&Ema> {
        self.ema.as_ref()
    }

    /// The loss, which validation uses too.
    pub fn loss(&self) -> &DetectionLoss {
        &self.loss
    }

    /// The optimizer.
    pub fn optimizer(&self) -> &Optimizer {
        &self.optimizer
    }

    /// The optimizer, to set its rates.
    pub fn optimizer_mut(&mut self) -> &mut Optimizer {
        &mut self.optimizer
    }
}
