//! Optimizer steps over all parameters in one call, gradient clipping, and operations on lists of
//! tensors. The caller owns the state (momentum buffers, moments, step counts) and can save it;
//! tch's own optimizers cannot be saved. The tensors of a list may be on several devices: libtorch is then
//! called once for each, because its fused operations work on one.

#![expect(unsafe_code, reason = "calls the shim's optimizer functions")]

use std::borrow::Borrow;
use std::ptr;

use tch::{Device, Kind, Tensor};

use crate::error::{Error, Result};
use crate::ffi;

/// Hyperparameters of stochastic gradient descent, as in `torch.optim.SGD`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the momentum buffers. 0 needs no buffers.
    pub momentum: f64,
    /// Share of the gradient that is not added to the buffer.
    pub dampening: f64,
    /// L2 penalty: multiple of the parameter that is added to its gradient.
    pub weight_decay: f64,
    /// Whether to use Nesterov momentum.
    pub nesterov: bool,
}

/// Hyperparameters of Adam and AdamW, as in `torch.optim`, without amsgrad.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the square root of the second moment.
    pub eps: f64,
    /// Added to the gradient (Adam), or applied to the parameter itself (AdamW).
    pub weight_decay: f64,
}

/// The state of Adam and AdamW, with one entry per parameter in each list.
#[derive(Debug)]
pub struct AdamState {
    /// Running mean of the gradient, in the shape of the parameter.
    pub first_moments: Vec<Tensor>,
    /// Running mean of the squared gradient, in the shape of the parameter.
    pub second_moments: Vec<Tensor>,
    /// Number of steps taken: float32 scalars.
    pub steps: Vec<Tensor>,
}

impl AdamState {
    /// The state before the first step.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new<T: Borrow<Tensor>>(parameters: &[T]) -> Result<Self> {
        let tch = |error| Error::from_tch("allocating the state of Adam", &error);
        let zeros = || {
            parameters
                .iter()
                .map(|parameter| parameter.borrow().f_zeros_like())
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(tch)
        };
        let step = |parameter: &T| {
            let device = parameter.borrow().device();
            // The fused kernel needs the count on the device of the parameter.
            let device = if device.is_cuda() { device } else { Device::Cpu };
            Tensor::f_zeros([], (Kind::Float, device))
        };
        let steps = parameters.iter().map(step).collect::<std::result::Result<Vec<_>, _>>().map_err(tch)?;
        Ok(Self { first_moments: zeros()?, second_moments: zeros()?, steps })
    }
}

/// What a step needs to know about gradients of a scaled loss; [`GradScaler::clip`](crate::GradScaler::clip) makes
/// it. All of it stays on the device: the host need not know whether a step was taken.
#[derive(Debug)]
pub struct ScaledStep {
    /// What the step divides the gradients by: a float32 scalar.
    pub grad_scale: Tensor,
    /// 1 if the step must change nothing, else 0: a float32 scalar.
    pub found_inf: Tensor,
}

impl ScaledStep {
    /// The same on another device. The host waits for none of them.
    fn on(&self, device: Device) -> Result<Self> {
        let moved = |tensor: &Tensor| {
            tensor.f_to_device(device).map_err(|error| Error::from_tch("moving the loss scale", &error))
        };
        Ok(Self { grad_scale: moved(&self.grad_scale)?, found_inf: moved(&self.found_inf)? })
    }
}

/// Takes one step of SGD, in place on parameters and momentum buffers. If the momentum is 0,
/// `buffers` is not used and may be empty. With `first_step` the buffers are not initialized and
/// become the gradients; buffers of zeros give the same result if the dampening is 0.
///
/// # Errors
/// If the lists differ in length or shapes, or a gradient is undefined.
pub fn fused_sgd<P: Borrow<Tensor>, G: Borrow<Tensor>, B: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    buffers: &[B],
    sgd: &Sgd,
    first_step: bool,
) -> Result<()> {
    sgd_step(parameters, gradients, buffers, sgd, first_step, None)
}

/// Takes one step of SGD on gradients of a scaled loss, or none if one of them is not finite: parameters
/// and momentum buffers then keep their values. Buffers start as zeros. The gradients are divided by
/// the scale, in place.
///
/// # Errors
/// If the lists differ in length or shapes, or a gradient is undefined.
pub fn fused_sgd_scaled<P: Borrow<Tensor>, G: Borrow<Tensor>, B: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    buffers: &[B],
    sgd: &Sgd,
    step: &ScaledStep,
) -> Result<()> {
    sgd_step(parameters, gradients, buffers, sgd, false, Some(step))
}

fn sgd_step<P: Borrow<Tensor>, G: Borrow<Tensor>, B: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    buffers: &[B],
    sgd: &Sgd,
    first_step: bool,
    scaled: Option<&ScaledStep>,
) -> Result<()> {
    let action = "SGD step";
    same_length(action, parameters.len(), "gradients", gradients.len())?;
    // The kernel refuses buffers that it does not use.
    let without_buffers = sgd.momentum == 0.0;
    if !without_buffers {
        same_length(action, parameters.len(), "momentum buffers", buffers.len())?;
    }
    if parameters.is_empty() {
        return Ok(());
    }
    if let Some(devices) = several_devices(parameters) {
        return devices.iter().try_for_each(|at| {
            let buffers = if without_buffers { Vec::new() } else { chosen(buffers, at) };
            sgd_step(&chosen(parameters, at), &chosen(gradients, at), &buffers, sgd, first_step, scaled)
        });
    }
    let options = ffi::SgdOptions {
        lr: sgd.lr,
        momentum: sgd.momentum,
        dampening: sgd.dampening,
        weight_decay: sgd.weight_decay,
        nesterov: sgd.nesterov.into(),
        first_step: first_step.into(),
    };
    let scaled = scaled.map(|step| step.on(parameters[0].borrow().device())).transpose()?;
    let (grad_scale, found_inf) = scale_pointers(scaled.as_ref());
    let (parameters, gradients) = (ffi::pointers(parameters), defined(action, gradients)?);
    let buffers = ffi::pointers(buffers);
    let buffers = if without_buffers { ptr::null() } else { buffers.as_ptr() };
    // SAFETY: all tensors are alive during the call. The lists have the same length, except
    // `buffers`, which is null if it is not used, as are the tensors of the scale.
    let status = unsafe {
        ffi::tcht_fused_sgd(
            parameters.as_ptr(),
            gradients.as_ptr(),
            buffers,
            parameters.len(),
            &raw const options,
            grad_scale,
            found_inf,
        )
    };
    ffi::check(status, || action.to_owned())
}

/// Takes one step of Adam, which adds the weight decay to the gradient.
///
/// # Errors
/// If the lists differ in length or shapes, or a gradient is undefined.
pub fn fused_adam<P: Borrow<Tensor>, G: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    state: &AdamState,
    adam: &Adam,
) -> Result<()> {
    adam_step(parameters, gradients, state, adam, false, None)
}

/// Takes one step of AdamW, which applies the weight decay to the parameters themselves.
///
/// # Errors
/// If the lists differ in length or shapes, or a gradient is undefined.
pub fn fused_adamw<P: Borrow<Tensor>, G: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    state: &AdamState,
    adam: &Adam,
) -> Result<()> {
    adam_step(parameters, gradients, state, adam, true, None)
}

/// Takes one step of Adam, or of AdamW if the weight decay is `decoupled`, on gradients of a scaled loss, or
/// none if one of them is not finite: parameters, moments and step counts then keep their values. The
/// gradients are divided by the scale, in place.
///
/// # Errors
/// If the lists differ in length or shapes, or a gradient is undefined.
pub fn fused_adam_scaled<P: Borrow<Tensor>, G: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    state: &AdamState,
    adam: &Adam,
    decoupled: bool,
    step: &ScaledStep,
) -> Result<()> {
    adam_step(parameters, gradients, state, adam, decoupled, Some(step))
}

fn adam_step<P: Borrow<Tensor>, G: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    state: &AdamState,
    adam: &Adam,
    decoupled: bool,
    scaled: Option<&ScaledStep>,
) -> Result<()> {
    let action = if decoupled { "AdamW step" } else { "Adam step" };
    same_length(action, parameters.len(), "gradients", gradients.len())?;
    same_length(action, parameters.len(), "first moments", state.first_moments.len())?;
    same_length(action, parameters.len(), "second moments", state.second_moments.len())?;
    same_length(action, parameters.len(), "step counts", state.steps.len())?;
    if parameters.is_empty() {
        return Ok(());
    }
    if let Some(devices) = several_devices(parameters) {
        return devices.iter().try_for_each(|at| {
            let handles = |list: &[Tensor]| at.iter().map(|&index| list[index].shallow_clone()).collect();
            let state = AdamState {
                first_moments: handles(&state.first_moments),
                second_moments: handles(&state.second_moments),
                steps: handles(&state.steps),
            };
            adam_step(&chosen(parameters, at), &chosen(gradients, at), &state, adam, decoupled, scaled)
        });
    }
    let options = ffi::AdamOptions {
        lr: adam.lr,
        beta1: adam.beta1,
        beta2: adam.beta2,
        eps: adam.eps,
        weight_decay: adam.weight_decay,
        decoupled: decoupled.into(),
    };
    let scaled = scaled.map(|step| step.on(parameters[0].borrow().device())).transpose()?;
    let (grad_scale, found_inf) = scale_pointers(scaled.as_ref());
    let (parameters, gradients) = (ffi::pointers(parameters), defined(action, gradients)?);
    let (first, second) = (ffi::pointers(&state.first_moments), ffi::pointers(&state.second_moments));
    let steps = ffi::pointers(&state.steps);
    // SAFETY: all tensors are alive during the call, and the lists have the same length. The tensors of
    // the scale are null if there is none.
    let status = unsafe {
        ffi::tcht_fused_adam(
            parameters.as_ptr(),
            gradients.as_ptr(),
            first.as_ptr(),
            second.as_ptr(),
            steps.as_ptr(),
            parameters.len(),
            &raw const options,
            grad_scale,
            found_inf,
        )
    };
    ffi::check(status, || action.to_owned())
}

/// Sets all tensors to zero, in place.
///
/// # Errors
/// If a tensor is undefined.
pub fn foreach_zero<T: Borrow<Tensor>>(tensors: &[T]) -> Result<()> {
    let pointers = defined("setting tensors to zero", tensors)?;
    if pointers.is_empty() {
        return Ok(());
    }
    if let Some(devices) = several_devices(tensors) {
        return devices.iter().try_for_each(|at| foreach_zero(&chosen(tensors, at)));
    }
    // SAFETY: all tensors are alive during the call.
    let status = unsafe { ffi::tcht_foreach_zero(pointers.as_ptr(), pointers.len()) };
    ffi::check(status, || "setting tensors to zero".to_owned())
}

/// Multiplies all tensors by a number, in place.
///
/// # Errors
/// If a tensor is undefined.
pub fn foreach_mul<T: Borrow<Tensor>>(tensors: &[T], factor: f64) -> Result<()> {
    let pointers = defined("scaling tensors", tensors)?;
    if pointers.is_empty() {
        return Ok(());
    }
    if let Some(devices) = several_devices(tensors) {
        return devices.iter().try_for_each(|at| foreach_mul(&chosen(tensors, at), factor));
    }
    // SAFETY: all tensors are alive during the call.
    let status = unsafe { ffi::tcht_foreach_mul(pointers.as_ptr(), pointers.len(), factor) };
    ffi::check(status, || "scaling tensors".to_owned())
}

/// Updates exponential moving averages in place: `average * decay + value * (1 - decay)`.
///
/// # Errors
/// If the lists differ in length or shapes, or a tensor is undefined.
pub fn foreach_ema<A: Borrow<Tensor>, V: Borrow<Tensor>>(
    averages: &[A],
    values: &[V],
    decay: f64,
) -> Result<()> {
    let action = "updating moving averages";
    same_length(action, averages.len(), "values", values.len())?;
    let (pointers, others) = (defined(action, averages)?, defined(action, values)?);
    if pointers.is_empty() {
        return Ok(());
    }
    if let Some(devices) = several_devices(averages) {
        let one = |at: &Vec<usize>| foreach_ema(&chosen(averages, at), &chosen(values, at), decay);
        return devices.iter().try_for_each(one);
    }
    // SAFETY: all tensors are alive during the call, and the lists have the same length.
    let status = unsafe { ffi::tcht_foreach_ema(pointers.as_ptr(), others.as_ptr(), pointers.len(), decay) };
    ffi::check(status, || action.to_owned())
}

/// Scales the gradients in place so that their total 2-norm is at most `max_norm`, as
/// `torch.nn.utils.clip_grad_norm_` does: the factor is `max_norm / (norm + 1e-6)`, at most 1.
/// Returns the norm before scaling, a scalar tensor on the device of the first gradient.
///
/// # Errors
/// If a gradient is undefined.
pub fn clip_grad_norm<T: Borrow<Tensor>>(gradients: &[T], max_norm: f64) -> Result<Tensor> {
    let action = "clipping gradients";
    let pointers = defined(action, gradients)?;
    if pointers.is_empty() {
        return Tensor::f_zeros([], (Kind::Float, Device::Cpu))
            .map_err(|error| Error::from_tch(action, &error));
    }
    let mut norm = ptr::null_mut();
    // SAFETY: all tensors are alive during the call, and `norm` is local.
    let status =
        unsafe { ffi::tcht_clip_grad_norm(pointers.as_ptr(), pointers.len(), max_norm, &raw mut norm) };
    ffi::check(status, || action.to_owned())?;
    // SAFETY: on success the shim allocated a tensor handle, and we are its only owner.
    Ok(unsafe { Tensor::from_ptr(norm.cast()) })
}

/// Multiplies all gradients by `inverse_scale` in place, and sets `found_inf` to 1 if any of them
/// is not finite. A gradient scaler does this before each step of mixed-precision training. Both
/// are float32 tensors with one element.
///
/// # Errors
/// If a gradient is undefined, or the devices differ.
pub fn amp_unscale<T: Borrow<Tensor>>(
    gradients: &[T],
    found_inf: &Tensor,
    inverse_scale: &Tensor,
) -> Result<()> {
    let action = "unscaling gradients";
    let pointers = defined(action, gradients)?;
    if pointers.is_empty() {
        return Ok(());
    }
    // SAFETY: all tensors are alive during the call.
    let status = unsafe {
        ffi::tcht_amp_unscale(
            pointers.as_ptr(),
            pointers.len(),
            ffi::pointer(found_inf),
            ffi::pointer(inverse_scale),
        )
    };
    ffi::check(status, || action.to_owned())
}

/// The pointers of `grad_scale` and `found_inf`, null without a scale.
fn scale_pointers(scaled: Option<&ScaledStep>) -> (ffi::TensorPtr, ffi::TensorPtr) {
    scaled.map_or((ptr::null_mut(), ptr::null_mut()), |step| {
        (ffi::pointer(&step.grad_scale), ffi::pointer(&step.found_inf))
    })
}

/// The positions of the tensors on each device, in the order in which devices first appear; `None` if all
/// are on one.
fn several_devices<T: Borrow<Tensor>>(tensors: &[T]) -> Option<Vec<Vec<usize>>> {
    let device = |index: usize| tensors[index].borrow().device();
    if (1..tensors.len()).all(|index| device(index) == device(0)) {
        return None;
    }
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for index in 0..tensors.len() {
        match groups.iter_mut().find(|group| device(group[0]) == device(index)) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    Some(groups)
}

/// The tensors at these positions.
fn chosen<'a, T: Borrow<Tensor>>(tensors: &'a [T], positions: &[usize]) -> Vec<&'a Tensor> {
    positions.iter().map(|&index| tensors[index].borrow()).collect()
}

/// Fails unless a list is as long as the list of parameters, because C++ reads that many entries.
fn same_length(action: &str, parameters: usize, name: &str, length: usize) -> Result<()> {
    if parameters == length {
        return Ok(());
    }
    let message = format!("there are {parameters} tensors but {length} {name}");
    Err(Error::new(action, message))
}

/// The pointers of a list of tensors that must all be defined. A gradient is undefined before the
/// first backward pass.
pub(crate) fn defined<T: Borrow<Tensor>>(action: &str, tensors: &[T]) -> Result<Vec<ffi::TensorPtr>> {
    if let Some(index) = tensors.iter().position(|tensor| !tensor.borrow().defined()) {
        return Err(Error::new(action, format!("tensor {index} is undefined")));
    }
    Ok(ffi::pointers(tensors))
}
