//! How far the outputs of what was written are from those of the network. Boxes and probabilities are compared apart,
//! each with the largest value among them: an error in a probability would not be seen beside boxes of 640 pixels.

use std::fmt;

use tch::{Kind, Tensor};

use crate::error::TrainError;

/// The largest difference in single precision, relative to the largest value.
const TOLERANCE: f64 = 1e-4;
/// The same where both compute in half precision, whose numbers are 2⁻¹¹ apart, in another order.
const TOLERANCE_HALF: f64 = 2e-2;

/// The largest difference of boxes or probabilities, relative to the largest of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Difference(f64);

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0.0 {
            return f.write_str("with the outputs of the network");
        }
        write!(f, "with outputs within {:.0e} of the network's", self.0)
    }
}

/// Compares outputs (B, N, nc + 5) with those of the network, both computed in half precision if `half`.
///
/// # Errors
/// When they differ by more than rounding.
pub(super) fn compare(expected: &Tensor, written: &Tensor, half: bool) -> Result<Difference, TrainError> {
    if expected.size() != written.size() {
        let (expected, written) = (expected.size(), written.size());
        return Err(TrainError::new(format!(
            "what was written has outputs of the shape {written:?}, and the network {expected:?}"
        )));
    }
    let outputs = expected.size()[2];
    let mut largest = 0.0_f64;
    for (first, count) in [(0, 4), (4, outputs - 4)] {
        let part = |tensor: &Tensor| tensor.f_narrow(2, first, count)?.f_to_kind(Kind::Double);
        let (expected, written) = (part(expected)?, part(written)?);
        let apart = expected.f_sub(&written)?.f_abs()?.f_max()?.f_double_value(&[])?;
        let scale = expected.f_abs()?.f_max()?.f_double_value(&[])?;
        // A NaN is no maximum for `f64::max`.
        largest = if apart.is_nan() { f64::NAN } else { largest.max(apart / scale.max(f64::MIN_POSITIVE)) };
    }
    let tolerance = if half { TOLERANCE_HALF } else { TOLERANCE };
    if largest <= tolerance {
        return Ok(Difference(largest));
    }
    Err(TrainError::new(format!(
        "what was written computes something else than the network: its outputs differ by {largest:.1e} of their \
         maximum, and at most {tolerance:.0e} is rounding"
    ))
    .with_hint("this is a defect of yolo; nothing was written, please report it with the model's yaml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(box_side: f32, probability: f32) -> Tensor {
        Tensor::from_slice(&[640.0, 320.0, box_side, 64.0, 0.5, probability]).reshape([1, 1, 6])
    }

    #[test]
    fn rounding_is_allowed_and_an_error_is_not() {
        let expected = outputs(64.0, 0.25);
        let of = |other: &Tensor, half| compare(&expected, other, half);
        assert_eq!(of(&expected, false).unwrap().to_string(), "with the outputs of the network");
        let near = of(&outputs(64.01, 0.25), false).unwrap().to_string();
        assert_eq!(near, "with outputs within 2e-5 of the network's");
        assert!(of(&outputs(64.2, 0.25), false).unwrap_err().to_string().contains("something else"));
        // 0.01 is nothing beside 640 pixels, but much of a probability.
        assert!(of(&outputs(64.0, 0.26), false).is_err());
        assert!(of(&outputs(64.0, 0.251), true).is_ok());
        assert!(of(&outputs(64.0, f32::NAN), true).is_err());
        assert!(of(&outputs(64.0, 0.25).reshape([1, 1, 6]).repeat([1, 2, 1]), true).is_err());
    }
}
