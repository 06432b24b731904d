//! `DistributedDataParallel`: all that a rank does so that its copy of a model trains as one with those of
//! the other ranks. The [`Reducer`] does the work during the backward pass.

use std::borrow::Borrow;

use tch::{Tensor, nn::VarStore};

use crate::error::{Error, Result};
use crate::process_group::ProcessGroup;
use crate::reducer::{Reducer, ReducerOptions};

/// Options of [`DistributedDataParallel`].
#[derive(Clone, Copy, Debug)]
pub struct DdpOptions {
    /// Buckets, unused parameters, static graph and compression. The default differs from that of
    /// [`ReducerOptions`] in that gradients are not views of the buckets, as in PyTorch: the `zero_grad` of
    /// tch's optimizers panics on views.
    pub reducer: ReducerOptions,
    /// Give all ranks the buffers of rank 0, such as the running statistics of batch normalization, before
    /// each forward pass that is synchronized. The default is `true`, as in PyTorch.
    pub broadcast_buffers: bool,
}

impl Default for DdpOptions {
    fn default() -> Self {
        let reducer = ReducerOptions { gradient_as_bucket_view: false, ..ReducerOptions::default() };
        Self { reducer, broadcast_buffers: true }
    }
}

/// Trains a model on several ranks, each with its share of every batch. `G` is the group or a reference to it.
///
/// A step is [`Self::forward`], [`Self::backward`], and the optimizer's step. Afterwards the gradients are the
/// mean over the ranks, so all ranks take the same step.
///
/// ```no_run
/// # use tch::{Device, Kind, Tensor, nn, nn::Module, nn::OptimizerConfig};
/// # use tch_distributed::{DdpOptions, DistributedDataParallel, ProcessGroup};
/// # fn train(group: &ProcessGroup, batches: &[(Tensor, Tensor)]) -> Result<(), Box<dyn std::error::Error>> {
/// let variables = nn::VarStore::new(Device::Cpu);
/// let model = nn::linear(variables.root(), 8, 1, Default::default());
/// let mut optimizer = nn::Sgd::default().build(&variables, 0.1)?;
/// let mut ddp = DistributedDataParallel::from_var_store(group, &variables, DdpOptions::default())?;
/// for (x, y) in batches {
///     let output = ddp.forward(|| model.forward(x))?;
///     ddp.backward(&output.f_mse_loss(y, tch::Reduction::Mean)?)?;
///     optimizer.step();
///     optimizer.zero_grad();
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct DistributedDataParallel<G: Borrow<ProcessGroup>> {
    group: G,
    reducer: Reducer,
    /// Empty if they are not synchronized.
    buffers: Vec<Tensor>,
    synchronizes: bool,
}

impl<G: Borrow<ProcessGroup>> DistributedDataParallel<G> {
    /// Gives all ranks the parameters and buffers of rank 0. `parameters` are the tensors that are trained, in
    /// the order in which the model registers them; `buffers` are those that it changes itself. Order, shapes
    /// and kinds must be the same on all ranks.
    ///
    /// # Errors
    /// As [`Reducer::new`].
    pub fn new<P: Borrow<Tensor>, B: Borrow<Tensor>>(
        group: G,
        parameters: &[P],
        buffers: &[B],
        options: DdpOptions,
    ) -> Result<Self> {
        let buffers: Vec<Tensor> = buffers.iter().map(|buffer| buffer.borrow().shallow_clone()).collect();
        group.borrow().broadcast(parameters, 0)?;
        if !buffers.is_empty() {
            group.borrow().broadcast(&buffers, 0)?;
        }
        let reducer = Reducer::new(group.borrow(), parameters, options.reducer)?;
        let buffers = if options.broadcast_buffers { buffers } else { Vec::new() };
        Ok(Self { group, reducer, buffers, synchronizes: true })
    }

    /// Takes the parameters and buffers of a model from the store of its variables. Variables that do not
    /// require a gradient are buffers.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_var_store(group: G, variables: &VarStore, options: DdpOptions) -> Result<Self> {
        // The names are in no particular order, which must be the same on all ranks.
        let mut buffers: Vec<(String, Tensor)> =
            variables.variables().into_iter().filter(|(_, tensor)| !tensor.requires_grad()).collect();
        buffers.sort_by(|(a, _), (b, _)| a.cmp(b));
        let buffers: Vec<Tensor> = buffers.into_iter().map(|(_, tensor)| tensor).collect();
        let parameters: Vec<Tensor> =
            variables.trainable_variables().into_iter().filter(Tensor::requires_grad).collect();
        Self::new(group, &parameters, &buffers, options)
    }

    /// Runs the forward pass of a step.
    ///
    /// # Errors
    /// If a peer is lost or too slow, or the last backward pass is incomplete.
    pub fn forward<T>(&mut self, forward: impl FnOnce() -> T) -> Result<T> {
        if self.synchronizes {
            if !self.buffers.is_empty() {
                self.group.borrow().broadcast(&self.buffers, 0)?;
            }
            self.reducer.prepare_forward()?;
        }
        Ok(forward())
    }

    /// Computes the gradients of `loss` and averages them over the ranks.
    ///
    /// # Errors
    /// As [`Reducer::backward`].
    pub fn backward(&mut self, loss: &Tensor) -> Result<()> {
        if self.synchronizes {
            return self.reducer.backward(loss);
        }
        let action = self.group.borrow().action("backward pass without exchange");
        loss.f_backward().map_err(|error| Error::from_tch(action, &error))
    }

    /// Runs `body`, in which [`Self::forward`] and [`Self::backward`] send nothing: gradients of this rank add
    /// up. The first backward pass after it averages the sums. Use it for all but the last of the batches that
    /// make up a step of the optimizer.
    pub fn no_sync<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.synchronizes, false);
        let result = body(self);
        self.synchronizes = before;
        result
    }

    /// The Reducer, for its statistics.
    pub fn reducer(&mut self) -> &mut Reducer {
        &mut self.reducer
    }
}
