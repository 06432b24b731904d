//! Test-time augmentation (spec §2): the model runs on the image at three scales, one of them
//! mirrored, and all outputs enter suppression together.

use tch::Tensor;

use crate::error::TrainError;
use crate::model::Model;

/// Scale of the input, and whether it is mirrored left to right.
const VIEWS: [(f64, bool); 3] = [(1.0, false), (0.83, true), (0.67, false)];
/// The value of padding, the mean of ImageNet (spec §2).
const PADDING: f64 = 0.447;

/// Decoded outputs (B, N, 5 + nc) of all views, in pixels of the full-size input.
///
/// # Errors
/// When the image size is not a multiple of the stride, or memory runs out.
pub fn forward_augmented(model: &Model, input: &Tensor) -> Result<Tensor, TrainError> {
    let width = input.size()[3];
    let stride = model.largest_stride() as i64;
    let levels = model.strides().len() as u32;
    let mut parts = Vec::with_capacity(VIEWS.len());
    for (index, (scale, mirrored)) in VIEWS.into_iter().enumerate() {
        let view = if mirrored { input.f_flip([3])? } else { input.shallow_clone() };
        let view = scaled(&view, scale, stride)?;
        let (decoded, _) = model.forward_eval(&view)?;
        let boxes = decoded.f_narrow(2, 0, 4)?.f_div_scalar(scale)?;
        let boxes = if mirrored { unmirrored(&boxes, width)? } else { boxes };
        let columns = decoded.size()[2];
        let decoded = Tensor::f_cat(&[boxes, decoded.f_narrow(2, 4, columns - 4)?], 2)?;
        // The full scale drops its coarsest level and the smallest scale its finest one: another
        // view covers those object sizes better.
        let rows = decoded.size()[1];
        let grid: i64 = (0..levels).map(|level| 4_i64.pow(level)).sum();
        parts.push(if index == 0 {
            decoded.f_narrow(1, 0, rows - rows / grid)?
        } else if index == VIEWS.len() - 1 {
            let dropped = rows / grid * 4_i64.pow(levels - 1);
            decoded.f_narrow(1, dropped, rows - dropped)?
        } else {
            decoded
        });
    }
    Ok(Tensor::f_cat(&parts, 1)?)
}

/// Resizes, then pads at the right and the bottom to a multiple of the stride.
fn scaled(image: &Tensor, scale: f64, stride: i64) -> Result<Tensor, TrainError> {
    if scale == 1.0 {
        return Ok(image.shallow_clone());
    }
    let &[_, _, height, width] = image.size().as_slice() else {
        return Err(TrainError::new("images must have the shape (batch, channels, height, width)"));
    };
    let size = |side: i64| (side as f64 * scale) as i64;
    let padded = |side: i64| (side as f64 * scale / stride as f64).ceil() as i64 * stride;
    let (h, w) = (size(height), size(width));
    let resized = image.f_upsample_bilinear2d([h, w], false, None, None)?;
    Ok(resized.f_pad([0, padded(width) - w, 0, padded(height) - h], "constant", PADDING)?)
}

/// Undoes the mirroring of boxes given by their centers.
fn unmirrored(boxes: &Tensor, width: i64) -> Result<Tensor, TrainError> {
    let x = boxes.f_narrow(2, 0, 1)?.f_neg()?.f_add_scalar(width)?;
    Ok(Tensor::f_cat(&[x, boxes.f_narrow(2, 1, 3)?], 2)?)
}
