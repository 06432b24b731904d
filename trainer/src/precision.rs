//! Mixed precision on a rank: which operations run in 16 bits, and whether the results of a GPU in float16 can be
//! used at all. Weights, their average, optimizer and loss stay in float32.

use tch::{Device, Kind, Tensor, no_grad};
use yolo_plan::precision::Precision;

use crate::error::TrainError;
use crate::model::Model;

/// The side in pixels of the image with which float16 is tried.
const TRIED_SIDE: usize = 256;

/// The largest difference between probabilities in float16 and in float32 that YOLOv5 accepts (spec §6).
const TOLERANCE: f64 = 0.1;

/// Runs `body` in a precision on a device. Autocast belongs to the thread, so each thread that runs a part of a
/// model calls this.
///
/// # Errors
/// Those of `body`, or if libtorch has no autocast for the device.
pub(crate) fn in_precision<T>(
    precision: Precision,
    device: Device,
    body: impl FnOnce() -> Result<T, TrainError>,
) -> Result<T, TrainError> {
    match kind(precision) {
        None => body(),
        Some(kind) => tch_train::autocast(device, kind, body)?,
    }
}

/// The kind of operations in mixed precision; `None` in float32.
fn kind(precision: Precision) -> Option<Kind> {
    match precision {
        Precision::Fp32 => None,
        Precision::Fp16 => Some(Kind::Half),
        Precision::Bf16 => Some(Kind::BFloat16),
    }
}

/// Why training in float16 would fail on the device of `model`, if it would. Some GPUs compute NaN. As YOLOv5 does, this
/// compares the outputs of the model in both precisions, but on an image that needs no download. Waits for the device.
///
/// # Errors
/// When memory runs out.
pub fn why_not_fp16(model: &Model) -> Result<Option<String>, TrainError> {
    let side = TRIED_SIDE.next_multiple_of(model.largest_stride());
    let images = gradient(side as i64, model.device())?;
    let probabilities = |precision| {
        let (_, raw) = no_grad(|| in_precision(precision, model.device(), || model.forward_eval(&images)))?;
        raw.iter()
            .map(|level| Ok(level.f_to_kind(Kind::Float)?.f_sigmoid()?))
            .collect::<Result<Vec<_>, TrainError>>()
    };
    difference(&probabilities(Precision::Fp32)?, &probabilities(Precision::Fp16)?)
}

/// A picture with all brightnesses, and with edges: (1, 3, `side`, `side`) from 0 to 1. It takes no random numbers,
/// so that a run in mixed precision draws the same ones as another run.
fn gradient(side: i64, device: Device) -> Result<Tensor, TrainError> {
    let pixels = Tensor::f_arange(3 * side * side, (Kind::Float, device))?;
    Ok(pixels.f_remainder(251)?.f_div_scalar(250.0)?.f_view([1, 3, side, side])?)
}

/// What is wrong with probabilities in float16, compared with those in float32.
fn difference(single: &[Tensor], half: &[Tensor]) -> Result<Option<String>, TrainError> {
    let mut largest = 0.0_f64;
    for (single, half) in single.iter().zip(half) {
        if half.f_isfinite()?.f_all()?.f_int64_value(&[])? == 0 {
            return Ok(Some("it computes values that are not finite".to_owned()));
        }
        largest = largest.max(half.f_sub(single)?.f_abs()?.f_max()?.f_double_value(&[])?);
    }
    // A NaN in float32 says nothing about float16.
    Ok((largest > TOLERANCE).then(|| {
        format!("a probability differs by {largest:.2} from that in fp32, and at most {TOLERANCE} is usual")
    }))
}

#[cfg(test)]
mod tests {
    use yolo_plan::model::ModelSpec;

    use super::*;

    fn model() -> Model {
        tch::manual_seed(5);
        Model::new(&ModelSpec::load("yolov5n", 2, None).unwrap(), Device::Cpu).unwrap()
    }

    #[test]
    fn float16_is_tried_on_the_model_itself() {
        let model = model();
        let before = model.state().get("model.0.bn.running_mean").unwrap().copy();
        assert_eq!(why_not_fp16(&model).unwrap(), None);
        assert_eq!(model.state().get("model.0.bn.running_mean").unwrap(), &before, "a trial is no training");
        // The largest number of float16 is 65504.
        let mut weight = model.state().get("model.0.bn.weight").unwrap().detach();
        let _ = weight.fill_(1e7);
        assert!(why_not_fp16(&model).unwrap().unwrap().contains("not finite"));
    }

    #[test]
    fn outputs_in_float16_must_be_finite_and_close() {
        let found = |half: [f32; 2]| {
            let of = |values: &[f32]| [Tensor::from_slice(&[0.5f32]), Tensor::from_slice(values)];
            difference(&of(&[0.2, 0.9]), &of(&half)).unwrap()
        };
        assert_eq!(found([0.2, 0.9]), None);
        assert_eq!(found([0.29, 0.81]), None);
        let far = found([0.2, 0.75]).unwrap();
        assert_eq!(far, "a probability differs by 0.15 from that in fp32, and at most 0.1 is usual");
        for bad in [f32::NAN, f32::INFINITY] {
            assert_eq!(found([0.2, bad]).unwrap(), "it computes values that are not finite");
        }
    }
}
