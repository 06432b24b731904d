//! From a batch to the objects in its images: input tensor, forward pass, suppression, and boxes
//! scaled back to the image files.

use tch::{Device, Kind, Tensor, no_grad};
use yolo_data::loader::{Batch, Item};

use super::augmented::forward_augmented;
use super::boxes::{Corners, Detection, to_native};
use super::nms::Suppressor;
use super::nms_settings::NmsSettings;
use super::rows::Rows;
use crate::error::TrainError;
use crate::model::{Model, images_tensor};

/// The outputs of a model for one batch.
#[derive(Debug)]
pub struct Outputs {
    /// Boxes in pixels of the batch with probabilities: (B, N, 5 + nc), on the device of the model.
    pub decoded: Tensor,
    /// The raw heads, from which a loss is computed; `None` with test-time augmentation, which runs
    /// the model several times, and of several models.
    pub heads: Option<Vec<Tensor>>,
}

impl Outputs {
    /// The outputs in host memory, from which suppression above a confidence of `conf_thres` finds the same
    /// objects as from all. Waits for the device.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn rows(&self, conf_thres: f32) -> Result<Rows, TrainError> {
        // On the CPU there is nothing to copy, and suppression passes over the other rows faster.
        if self.decoded.device() == Device::Cpu {
            Rows::all(&self.decoded)
        } else {
            no_grad(|| Rows::above(&self.decoded, conf_thres))
        }
    }
}

/// The images of a batch as the input of the models, which are on one device, in half precision if `half`.
///
/// # Errors
/// When memory runs out.
pub fn input_tensor(models: &[Model], batch: &Batch, half: bool) -> Result<Tensor, TrainError> {
    let input = images_tensor(batch, models.first().map_or(Device::Cpu, Model::device))?;
    if half { Ok(input.f_to_kind(Kind::Half)?) } else { Ok(input) }
}

/// Runs the models without gradients, with test-time augmentation if `augment`. The boxes of an ensemble of several
/// enter suppression together (spec §9).
///
/// # Errors
/// When the image size is not a multiple of the stride, or memory runs out.
pub fn forward(models: &[Model], input: &Tensor, augment: bool) -> Result<Outputs, TrainError> {
    no_grad(|| {
        if let ([model], false) = (models, augment) {
            let (decoded, heads) = model.forward_eval(input)?;
            return Ok(Outputs { decoded, heads: Some(heads) });
        }
        let decoded = |model| match augment {
            true => forward_augmented(model, input),
            false => Ok(model.forward_eval(input)?.0),
        };
        let all: Vec<Tensor> = models.iter().map(decoded).collect::<Result<_, _>>()?;
        Ok(Outputs { decoded: Tensor::f_cat(&all, 1)?, heads: None })
    })
}

/// The objects in one image, in pixels of its file, most confident first. `rows` are the decoded
/// outputs of the image, `item` describes how the image was placed in the batch. `known` boxes, in
/// pixels of the batch, take part in suppression with confidence 1.
pub fn find_objects(
    suppressor: &mut Suppressor,
    rows: &[f32],
    classes: usize,
    item: &Item,
    known: &[(usize, Corners)],
    nms: &NmsSettings,
) -> Vec<Detection> {
    let mut found = suppressor.suppress(rows, classes, known, nms);
    for detection in &mut found {
        detection.corners = to_native(detection.corners, item.gain(), item.pad, item.native);
    }
    found
}
