//! `--imgsz`: checked, and rounded up to a size that the model supports (spec §6).

use crate::error::PlanError;
use crate::schedule::round_image_size;

/// The largest side of an image in pixels.
const MAX_IMAGE_SIZE: usize = 1 << 14;

/// Checks the option itself.
///
/// # Errors
/// When it is not a size of an image.
pub(super) fn check(size: usize) -> Result<usize, PlanError> {
    if size == 0 || size > MAX_IMAGE_SIZE {
        return Err(PlanError::usage(format!(
            "--imgsz {size} is not a number of pixels from 1 to {MAX_IMAGE_SIZE}"
        ))
        .with_hint("give the length of the longer side, for example --imgsz 640"));
    }
    Ok(size)
}

/// The size to use: a multiple of `stride`, and at least `floor`.
pub(super) fn rounded(size: usize, stride: usize, floor: usize, warnings: &mut Vec<String>) -> usize {
    let rounded = round_image_size(size, stride, floor);
    if rounded != size {
        let why = if size < floor && rounded == floor {
            format!("is below the smallest size {floor}")
        } else {
            format!("is not a multiple of the model's largest stride {stride}")
        };
        warnings.push(format!("--imgsz {size} {why}: using {rounded}"));
    }
    rounded
}
