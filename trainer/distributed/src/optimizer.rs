//! Optimizer steps over all parameters in one call, gradient clipping, and
//! operations on lists of tensors. State (momentum buffers, moments, step
//! counts) belongs to the caller, who can save and restore it; tch's own
//! optimizers cannot be saved.

#![expect(unsafe_code, reason = "calls the shim's optimizer functions")]

use std::borrow::Borrow;
use std::ptr;

use tch::{Device, Kind, Tensor};

use crate::error::{Error, ErrorKind, Result};
use crate::ffi;

/// Stochastic gradient descent, as `torch.optim.SGD` does it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// Learning rate.
    pub lr: f64,
    /// Weight of the last direction; 0 needs no buffers.
    pub momentum: f64,
    /// How much of the gradient is left out of the buffer.
    pub dampening: f64,
    /// Multiple of the parameter added to its gradient.
    pub weight_decay: f64,
    /// Look one step ahead along the buffer.
    pub nesterov: bool,
}

/// Adam and AdamW, as `torch.optim.Adam` and `AdamW` do them, without amsgrad.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Added to the gradient (Adam), or shrinks the parameter (AdamW).
    pub weight_decay: f64,
}

/// Adam's state: for each parameter two moments of its shape, which start as
/// zeros, and the number of steps, a float32 scalar.
#[derive(Debug)]
pub struct AdamState {
    /// Running mean of the gradient.
    pub first_moments: Vec<Tensor>,
    /// Running mean of its square.
    pub second_moments: Vec<Tensor>,
    /// Steps taken, each of shape () and kind float32.
    pub steps: Vec<Tensor>,
}

impl AdamState {
    /// The state before the first step.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn new<T: Borrow<Tensor>>(parameters: &[T]) -> Result<Self> {
        let tch = |error| Error::from_tch("making Adam's state", &error);
        let zeros = || {
            parameters
                .iter()
                .map(|parameter| parameter.borrow().f_zeros_like())
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(tch)
        };
        let step = |parameter: &T| {
            let device = parameter.borrow().device();
            // The fused kernel wants the count beside the parameter.
            let device = if device.is_cuda() { device } else { Device::Cpu };
            Tensor::f_zeros([], (Kind::Float, device))
        };
        let steps = parameters.iter().map(step).collect::<std::result::Result<Vec<_>, _>>().map_err(tch)?;
        Ok(Self { first_moments: zeros()?, second_moments: zeros()?, steps })
    }
}

/// One step of SGD, in place on parameters and buffers. `buffers` are left alone,
/// and may be empty, when the momentum is 0. With `first_step` they hold nothing yet and start as
/// the gradients; zeros do the same when the dampening is 0.
///
/// # Errors
/// When the lists do not match, or a gradient is undefined.
pub fn fused_sgd<P: Borrow<Tensor>, G: Borrow<Tensor>, B: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    buffers: &[B],
    sgd: &Sgd,
    first_step: bool,
) -> Result<()> {
    let action = "SGD step";
    same_length(action, parameters.len(), "gradients", gradients.len())?;
    // The kernel refuses buffers that it would not use.
    let without_buffers = sgd.momentum == 0.0;
    if !without_buffers {
        same_length(action, parameters.len(), "momentum buffers", buffers.len())?;
    }
    if parameters.is_empty() {
        return Ok(());
    }
    let options = ffi::SgdOptions {
        lr: sgd.lr,
        momentum: sgd.momentum,
        dampening: sgd.dampening,
        weight_decay: sgd.weight_decay,
        nesterov: sgd.nesterov.into(),
        first_step: first_step.into(),
    };
    let (parameters, gradients) = (ffi::pointers(parameters), defined(action, gradients)?);
    let buffers = ffi::pointers(buffers);
    let buffers = if without_buffers { ptr::null() } else { buffers.as_ptr() };
    // SAFETY: all tensors are alive during the call and the lists have one
    // length, but for `buffers`, which is null when there are none.
    let status = unsafe {
        ffi::tchd_fused_sgd(
            parameters.as_ptr(),
            gradients.as_ptr(),
            buffers,
            parameters.len(),
            &raw const options,
        )
    };
    ffi::check(status, || action.to_owned())
}

/// One step of Adam: the weight decay is added to the gradient.
///
/// # Errors
/// When the lists do not match, or a gradient is undefined.
pub fn fused_adam<P: Borrow<Tensor>, G: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    state: &AdamState,
    adam: &Adam,
) -> Result<()> {
    adam_step(parameters, gradients, state, adam, false)
}

/// One step of AdamW: the weight decay shrinks the parameters themselves.
///
/// # Errors
/// When the lists do not match, or a gradient is undefined.
pub fn fused_adamw<P: Borrow<Tensor>, G: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    state: &AdamState,
    adam: &Adam,
) -> Result<()> {
    adam_step(parameters, gradients, state, adam, true)
}

/// Both Adams.
fn adam_step<P: Borrow<Tensor>, G: Borrow<Tensor>>(
    parameters: &[P],
    gradients: &[G],
    state: &AdamState,
    adam: &Adam,
    decoupled: bool,
) -> Result<()> {
    let action = if decoupled { "AdamW step" } else { "Adam step" };
    same_length(action, parameters.len(), "gradients", gradients.len())?;
    same_length(action, parameters.len(), "first moments", state.first_moments.len())?;
    same_length(action, parameters.len(), "second moments", state.second_moments.len())?;
    same_length(action, parameters.len(), "step counts", state.steps.len())?;
    if parameters.is_empty() {
        return Ok(());
    }
    let options = ffi::AdamOptions {
        lr: adam.lr,
        beta1: adam.beta1,
        beta2: adam.beta2,
        eps: adam.eps,
        weight_decay: adam.weight_decay,
        decoupled: decoupled.into(),
    };
    let (parameters, gradients) = (ffi::pointers(parameters), defined(action, gradients)?);
    let (first, second) = (ffi::pointers(&state.first_moments), ffi::pointers(&state.second_moments));
    let steps = ffi::pointers(&state.steps);
    // SAFETY: all tensors are alive during the call and the lists have one length.
    let status = unsafe {
        ffi::tchd_fused_adam(
            parameters.as_ptr(),
            gradients.as_ptr(),
            first.as_ptr(),
            second.as_ptr(),
            steps.as_ptr(),
            parameters.len(),
            &raw const options,
        )
    };
    ffi::check(status, || action.to_owned())
}

/// Sets all tensors to zero, in place.
///
/// # Errors
/// When a tensor is undefined.
pub fn foreach_zero<T: Borrow<Tensor>>(tensors: &[T]) -> Result<()> {
    let pointers = defined("setting tensors to zero", tensors)?;
    if pointers.is_empty() {
        return Ok(());
    }
    // SAFETY: all tensors are alive during the call.
    let status = unsafe { ffi::tchd_foreach_zero(pointers.as_ptr(), pointers.len()) };
    ffi::check(status, || "setting tensors to zero".to_owned())
}

/// Multiplies all tensors by a number, in place.
///
/// # Errors
/// When a tensor is undefined.
pub fn foreach_mul<T: Borrow<Tensor>>(tensors: &[T], factor: f64) -> Result<()> {
    let pointers = defined("scaling tensors", tensors)?;
    if pointers.is_empty() {
        return Ok(());
    }
    // SAFETY: all tensors are alive during the call.
    let status = unsafe { ffi::tchd_foreach_mul(pointers.as_ptr(), pointers.len(), factor) };
    ffi::check(status, || "scaling tensors".to_owned())
}

/// Exponential moving average, in place on `averages`:
/// `average * decay + value * (1 - decay)`.
///
/// # Errors
/// When the lists or their shapes do not match.
pub fn foreach_average<A: Borrow<Tensor>, V: Borrow<Tensor>>(
    averages: &[A],
    values: &[V],
    decay: f64,
) -> Result<()> {
    let action = "moving averages";
    same_length(action, averages.len(), "values", values.len())?;
    let (averages, values) = (defined(action, averages)?, defined(action, values)?);
    if averages.is_empty() {
        return Ok(());
    }
    // SAFETY: all tensors are alive during the call and the lists have one length.
    let status =
        unsafe { ffi::tchd_foreach_average(averages.as_ptr(), values.as_ptr(), averages.len(), decay) };
    ffi::check(status, || action.to_owned())
}

/// Scales the gradients, in place, so that the 2-norm of all of them together
/// is at most `max_norm`, and returns the norm before: a scalar tensor on the
/// gradients' device. It is `torch.nn.utils.clip_grad_norm_`: the factor is
/// `max_norm / (norm + 1e-6)`, at most 1.
///
/// # Errors
/// When a gradient is undefined.
pub fn clip_grad_norm<T: Borrow<Tensor>>(gradients: &[T], max_norm: f64) -> Result<Tensor> {
    let action = "clipping gradients";
    let pointers = defined(action, gradients)?;
    if pointers.is_empty() {
        return Tensor::f_zeros([], (Kind::Float, Device::Cpu))
            .map_err(|error| Error::from_tch(action, &error));
    }
    let mut norm = ptr::null_mut();
    // SAFETY: all tensors are alive during the call; `norm` is local.
    let status =
        unsafe { ffi::tchd_clip_grad_norm(pointers.as_ptr(), pointers.len(), max_norm, &raw mut norm) };
    ffi::check(status, || action.to_owned())?;
    // SAFETY: on success the shim made a new tensor that is ours.
    Ok(unsafe { Tensor::from_ptr(norm.cast()) })
}

/// What a gradient scaler does before a step of mixed precision training:
/// multiplies all gradients by `inverse_scale`, in place, and sets `found_inf`
/// to 1 if one of them is not finite. Both are float32 tensors of one element.
///
/// # Errors
/// When a gradient is undefined or the devices differ.
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
        ffi::tchd_amp_unscale(
            pointers.as_ptr(),
            pointers.len(),
            ffi::pointer(found_inf),
            ffi::pointer(inverse_scale),
        )
    };
    ffi::check(status, || action.to_owned())
}

/// Fails unless a list is as long as that of the parameters: C++ reads as far.
fn same_length(action: &str, parameters: usize, name: &str, length: usize) -> Result<()> {
    if parameters == length {
        return Ok(());
    }
    let message = format!("{parameters} tensors, but {length} {name}");
    Err(Error::new(ErrorKind::Other, action, message))
}

/// The pointers of tensors that must all exist. A gradient does not before the
/// first backward.
fn defined<T: Borrow<Tensor>>(action: &str, tensors: &[T]) -> Result<Vec<ffi::TensorPtr>> {
    if let Some(index) = tensors.iter().position(|tensor| !tensor.borrow().defined()) {
        return Err(Error::new(ErrorKind::Other, action, format!("tensor {index} is undefined")));
    }
    Ok(ffi::pointers(tensors))
}
