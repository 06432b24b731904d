//! [`GradScaler`]: the loss scale of training in float16, as `torch.amp.GradScaler` adapts it. Small gradients
//! vanish in float16, so the loss is multiplied by a scale, and the optimizer step divides the gradients by it.
//! If one of them has overflowed, the step changes nothing and the scale is lowered; after many steps without,
//! it is raised. The scale, and whether a step was taken, stay on the device, so the host never waits.

#![expect(unsafe_code, reason = "calls the shim's functions for the loss scale")]

use std::borrow::Borrow;
use std::ptr;

use tch::{Device, Kind, Tensor};

use crate::error::{Error, Result};
use crate::ffi;
use crate::optimizer::{ScaledStep, defined};

/// How the scale changes. The default is that of `torch.amp.GradScaler`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalerSettings {
    /// The first scale.
    pub init_scale: f64,
    /// The scale is multiplied by this after `growth_interval` steps in a row without an overflow.
    pub growth_factor: f64,
    /// The scale is multiplied by this after an overflow.
    pub backoff_factor: f64,
    /// Steps without an overflow before the scale grows.
    pub growth_interval: i64,
}

impl Default for ScalerSettings {
    fn default() -> Self {
        Self { init_scale: 65536.0, growth_factor: 2.0, backoff_factor: 0.5, growth_interval: 2000 }
    }
}

/// What changes during training. A run that is resumed with it continues as if it had not stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScalerState {
    /// The loss is multiplied by this.
    pub scale: f64,
    /// Steps without an overflow since the scale last changed.
    pub growth_tracker: i64,
}

/// A loss scale that adapts to the gradients.
#[derive(Debug)]
pub struct GradScaler {
    /// A float32 scalar on the device.
    scale: Tensor,
    /// An int32 scalar on the device.
    tracker: Tensor,
    settings: ScalerSettings,
}

impl GradScaler {
    /// A scale for losses on `device`.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(device: Device, settings: ScalerSettings) -> Result<Self> {
        let tch = |error| Error::from_tch("allocating the loss scale", &error);
        Ok(Self {
            scale: Tensor::f_full([], settings.init_scale, (Kind::Float, device)).map_err(tch)?,
            tracker: Tensor::f_zeros([], (Kind::Int, device)).map_err(tch)?,
            settings,
        })
    }

    /// The loss times the scale, to call backward on.
    ///
    /// # Errors
    /// If the loss is on another device.
    pub fn scale(&self, loss: &Tensor) -> Result<Tensor> {
        loss.f_mul(&self.scale).map_err(|error| Error::from_tch("scaling the loss", &error))
    }

    /// What an optimizer step on gradients of the scaled loss needs, so that it takes them without the scale and
    /// clipped to the norm `max_norm`, as [`clip_grad_norm`](crate::clip_grad_norm) does. The gradients
    /// keep their values: the step itself divides them. Returns their norm without the scale as well, a
    /// scalar tensor. If a gradient is not finite, neither is the norm.
    ///
    /// # Errors
    /// If there is no gradient, or one is undefined.
    pub fn clip<T: Borrow<Tensor>>(&self, gradients: &[T], max_norm: f64) -> Result<(Tensor, ScaledStep)> {
        let action = "clipping scaled gradients";
        let pointers = defined(action, gradients)?;
        if pointers.is_empty() {
            return Err(Error::new(action, "there are no gradients".to_owned()));
        }
        let mut made = [ptr::null_mut(); 3];
        let [norm, grad_scale, found_inf] = &mut made;
        // SAFETY: all tensors are alive during the call, and the out pointers are local.
        let status = unsafe {
            ffi::tcht_clip_scaled(
                pointers.as_ptr(),
                pointers.len(),
                max_norm,
                ffi::pointer(&self.scale),
                norm,
                grad_scale,
                found_inf,
            )
        };
        ffi::check(status, || action.to_owned())?;
        // SAFETY: on success the shim allocated three tensor handles, and we are their only owner.
        let [norm, grad_scale, found_inf] = made.map(|raw| unsafe { Tensor::from_ptr(raw.cast()) });
        Ok((norm, ScaledStep { grad_scale, found_inf }))
    }

    /// Lowers or raises the scale after a step.
    ///
    /// # Errors
    /// If libtorch fails.
    pub fn update(&mut self, step: &ScaledStep) -> Result<()> {
        let ScalerSettings { growth_factor, backoff_factor, growth_interval, .. } = self.settings;
        // SAFETY: all tensors are alive during the call.
        let status = unsafe {
            ffi::tcht_amp_update_scale(
                ffi::pointer(&self.scale),
                ffi::pointer(&self.tracker),
                ffi::pointer(&step.found_inf),
                growth_factor,
                backoff_factor,
                growth_interval,
            )
        };
        ffi::check(status, || "updating the loss scale".to_owned())
    }

    /// How the scale changes.
    pub fn settings(&self) -> &ScalerSettings {
        &self.settings
    }

    /// The state, for a checkpoint. Waits for the device.
    ///
    /// # Errors
    /// If libtorch fails.
    pub fn state(&self) -> Result<ScalerState> {
        let tch = |error| Error::from_tch("reading the loss scale", &error);
        Ok(ScalerState {
            scale: self.scale.f_double_value(&[]).map_err(tch)?,
            growth_tracker: self.tracker.f_int64_value(&[]).map_err(tch)?,
        })
    }

    /// Continues from a state.
    ///
    /// # Errors
    /// If the scale is not a finite number above 0, or libtorch fails.
    pub fn restore(&mut self, state: ScalerState) -> Result<()> {
        let action = "restoring the loss scale";
        let ScalerState { scale, growth_tracker } = state;
        if !(scale.is_finite() && scale > 0.0) {
            return Err(Error::new(action, format!("the scale {scale} is not a finite number above 0")));
        }
        let tch = |error| Error::from_tch(action, &error);
        let _ = self.scale.f_fill_(scale).map_err(tch)?;
        let _ = self.tracker.f_fill_(growth_tracker).map_err(tch)?;
        Ok(())
    }
}
