//! Creates the tensors of a model, module by module. A [`Builder`] decides where they come from: new
//! random ones, copies of another model's, that model's with every batch normalization folded into its
//! convolution, or replicas on another device. So each module describes its tensors once, for training,
//! for the moving average and for fused inference.

use tch::{Device, Kind, Tensor};

use super::state::{Role, State};
use crate::error::TrainError;

/// Epsilon of every batch normalization of a finished model (spec §2).
pub(crate) const NORM_EPS: f64 = 1e-3;

/// Where tensors come from.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// Random, with torch's initialization (spec §2).
    Fresh,
    /// A copy of a model of the same structure.
    Copy(&'a State),
    /// A model of the same structure, into whose parameters the gradients of these flow.
    Replica(&'a State),
    /// A model whose batch normalizations are folded into its convolutions.
    Fuse(&'a State),
}

/// Registers tensors under the path of the module that asks for them.
pub(super) struct Builder<'a> {
    source: Source<'a>,
    fused: bool,
    /// Where the next tensors go.
    device: Device,
    prefix: String,
    state: State,
}

impl<'a> Builder<'a> {
    /// With `fused`, convolutions have a bias instead of a normalization.
    pub(super) fn new(source: Source<'a>, fused: bool, device: Device) -> Self {
        Self { source, fused, device, prefix: String::new(), state: State::default() }
    }

    /// The registered tensors.
    pub(super) fn finish(self) -> State {
        self.state
    }

    /// Builds on another device.
    pub(super) fn on<T>(&mut self, device: Device, build: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.device, device);
        let built = build(self);
        self.device = before;
        built
    }

    /// Whether convolutions have a bias instead of a normalization.
    pub(super) fn is_fused(&self) -> bool {
        self.fused
    }

    /// Builds a child module whose tensors are named `{name}.…`.
    pub(super) fn scope<T>(
        &mut self,
        name: impl std::fmt::Display,
        build: impl FnOnce(&mut Self) -> Result<T, TrainError>,
    ) -> Result<T, TrainError> {
        let length = self.prefix.len();
        self.prefix.push_str(&format!("{name}."));
        let built = build(self);
        self.prefix.truncate(length);
        built
    }

    /// A parameter drawn from U(±1/√fan_in), torch's default for convolutions and linear layers.
    pub(super) fn uniform(
        &mut self,
        name: &str,
        shape: &[usize],
        fan_in: usize,
        role: Role,
    ) -> Result<Tensor, TrainError> {
        // The steps of torch, so that the same seed gives the same bits: gain √(1/3), std, then bound.
        let std = (1.0f64 / 3.0).sqrt() / (fan_in.max(1) as f64).sqrt();
        let bound =
            if role == Role::Bias { 1.0 / (fan_in.max(1) as f64).sqrt() } else { 3.0f64.sqrt() * std };
        self.bounded(name, shape, bound, role)
    }

    /// A parameter drawn from U(±bound).
    pub(super) fn bounded(
        &mut self,
        name: &str,
        shape: &[usize],
        bound: f64,
        role: Role,
    ) -> Result<Tensor, TrainError> {
        self.take(name, shape, role, |shape| {
            // Drawn on the CPU for every device, so that a seed always gives the same model.
            let mut tensor = Tensor::f_empty(shape, (Kind::Float, Device::Cpu))?;
            Ok(tensor.f_uniform_(-bound, bound)?)
        })
    }

    /// A tensor filled with one value.
    pub(super) fn filled(
        &mut self,
        name: &str,
        shape: &[usize],
        value: f64,
        role: Role,
    ) -> Result<Tensor, TrainError> {
        self.take(name, shape, role, |shape| Ok(Tensor::f_full(shape, value, (Kind::Float, Device::Cpu))?))
    }

    /// A scalar integer buffer, which only the state has.
    pub(super) fn counter(&mut self, name: &str, value: i64) -> Result<(), TrainError> {
        self.take(name, &[], Role::Buffer, |shape| {
            Ok(Tensor::f_full(shape, value, (Kind::Int64, Device::Cpu))?)
        })
        .map(drop)
    }

    /// A buffer with these values, for the anchors of Detect.
    pub(super) fn values(
        &mut self,
        name: &str,
        shape: &[usize],
        values: &[f32],
    ) -> Result<Tensor, TrainError> {
        self.take(name, shape, Role::Buffer, |shape| Ok(Tensor::f_from_slice(values)?.f_reshape(shape)?))
    }

    /// Weight and bias of a convolution with its batch normalization `bn` folded in (spec §2).
    pub(super) fn folded(&mut self, shape: &[usize]) -> Result<(Tensor, Tensor), TrainError> {
        let (weight, bias) = match self.source {
            Source::Fuse(state) => {
                let of = |name: &str| self.find(state, name);
                let scale =
                    of("bn.weight")?.f_div(&of("bn.running_var")?.f_add_scalar(NORM_EPS)?.f_sqrt()?)?;
                let weight = of("conv.weight")?.f_mul(&scale.f_reshape([-1, 1, 1, 1])?)?;
                let bias = of("bn.bias")?.f_sub(&of("bn.running_mean")?.f_mul(&scale)?)?;
                (weight, bias)
            }
            Source::Copy(state) => (self.find(state, "conv.weight")?, self.find(state, "conv.bias")?),
            Source::Fresh | Source::Replica(_) => {
                return Err(TrainError::new(
                    "a fused model can only be built for inference from another model",
                ));
            }
        };
        let weight = self.put("conv.weight", shape, Role::Weight, weight)?;
        let bias = self.put("conv.bias", &shape[..1], Role::Bias, bias)?;
        Ok((weight, bias))
    }

    fn take(
        &mut self,
        name: &str,
        shape: &[usize],
        role: Role,
        fresh: impl FnOnce(&[i64]) -> Result<Tensor, TrainError>,
    ) -> Result<Tensor, TrainError> {
        let size: Vec<i64> = shape.iter().map(|&side| side as i64).collect();
        let tensor = match self.source {
            Source::Fresh => fresh(&size)?,
            Source::Copy(state) | Source::Fuse(state) => self.find(state, name)?,
            Source::Replica(state) => return self.replicate(state, name, role),
        };
        self.put(name, shape, role, tensor)
    }

    fn find(&self, state: &State, name: &str) -> Result<Tensor, TrainError> {
        copied(self.named(state, name)?)
    }

    fn named<'s>(&self, state: &'s State, name: &str) -> Result<&'s Tensor, TrainError> {
        let name = format!("{}{name}", self.prefix);
        state
            .get(&name)
            .ok_or_else(|| TrainError::new(format!("the model to copy has no tensor named {name}")))
    }

    /// A parameter through which gradients flow back, in the same memory if it is on the same device, or a
    /// buffer of its own. It is not registered, because it lives for one pass.
    fn replicate(&self, state: &State, name: &str, role: Role) -> Result<Tensor, TrainError> {
        let tensor = self.named(state, name)?;
        if role == Role::Buffer {
            return Ok(copied(tensor)?.f_to_device(self.device)?);
        }
        Ok(tensor.f_to_device(self.device)?)
    }

    fn put(&mut self, name: &str, shape: &[usize], role: Role, tensor: Tensor) -> Result<Tensor, TrainError> {
        let name = format!("{}{name}", self.prefix);
        if !tensor.size().iter().copied().eq(shape.iter().map(|&side| side as i64)) {
            return Err(TrainError::new(format!(
                "tensor {name} has the shape {:?}, but the module needs {shape:?}",
                tensor.size()
            )));
        }
        let tensor = tensor.f_to_device(self.device)?;
        let tensor = if shape.len() == 4 { channels_last(&tensor)? } else { tensor };
        let tensor = tensor.f_detach()?;
        let trains = role != Role::Buffer && matches!(self.source, Source::Fresh);
        let tensor = tensor.f_set_requires_grad(trains)?;
        self.state.register(name, tensor.shallow_clone(), role)?;
        Ok(tensor)
    }
}

/// A copy of a tensor without its graph, in the same memory layout.
fn copied(tensor: &Tensor) -> Result<Tensor, TrainError> {
    let tensor = tensor.f_detach()?;
    let mut copy = tensor.f_empty_like()?;
    copy.f_copy_(&tensor)?;
    Ok(copy)
}

/// The tensor in channels-last memory (N, H, W, C), in which convolutions need no reordering.
pub(super) fn channels_last(tensor: &Tensor) -> Result<Tensor, TrainError> {
    Ok(tensor.f_permute([0, 2, 3, 1])?.f_contiguous()?.f_permute([0, 3, 1, 2])?)
}
