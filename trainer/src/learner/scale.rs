//! The loss scale of float16 in checkpoints. It is saved as `state_dict` of `torch.amp.GradScaler` lays it out. YOLOv5
//! does not save it: a resumed run begins with the first scale again, and skips steps until it fits.

use tch_train::ScalerState;
use torch_checkpoint::Value;

use super::Learner;
use crate::error::TrainError;

impl Learner {
    /// The loss scale as a dictionary for a checkpoint, or `None` without one. Waits for the device.
    ///
    /// # Errors
    /// When libtorch fails.
    pub fn scaler_state(&self) -> Result<Value, TrainError> {
        let Some(scaler) = &self.scaler else { return Ok(Value::None) };
        let (ScalerState { scale, growth_tracker }, settings) = (scaler.state()?, scaler.settings());
        Ok(Value::dict([
            ("scale", Value::Float(scale)),
            ("growth_factor", Value::Float(settings.growth_factor)),
            ("backoff_factor", Value::Float(settings.backoff_factor)),
            ("growth_interval", Value::Int(settings.growth_interval)),
            ("_growth_tracker", Value::Int(growth_tracker)),
        ]))
    }

    /// Continues with the loss scale of a checkpoint, if this run has one.
    ///
    /// # Errors
    /// When the scale is not a finite number above 0.
    pub fn restore_scaler(&mut self, saved: ScalerState) -> Result<(), TrainError> {
        self.scaler.as_mut().map_or(Ok(()), |scaler| Ok(scaler.restore(saved)?))
    }

    /// The loss scale, 1 without one. Waits for the device.
    pub(super) fn scale(&self) -> Result<f64, TrainError> {
        self.scaler.as_ref().map_or(Ok(1.0), |scaler| Ok(scaler.state()?.scale))
    }
}

/// The loss scale in a checkpoint: what [`Learner::scaler_state`] has written.
pub(crate) fn scaler_of(saved: &Value) -> Option<ScalerState> {
    Some(ScalerState {
        scale: saved.get("scale")?.as_f64()?,
        growth_tracker: saved.get("_growth_tracker")?.as_i64()?,
    })
}
