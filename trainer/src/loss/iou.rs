//! Complete IoU (CIoU) of matched boxes: the overlap, minus a penalty for the distance of the
//! centers, minus one for the difference of the aspect ratios (spec §4). It is differentiable with
//! respect to the predicted box; the weight of the aspect penalty is treated as a constant, as in
//! the paper: Zheng et al., "Distance-IoU Loss", 2020, arXiv:1911.08287.

use std::f64::consts::PI;

use tch::{TchError, Tensor};

/// Keeps divisions by an area or a diagonal of zero finite (spec §4).
const EPSILON: f64 = 1e-7;

/// Complete IoU of each predicted box with its target. All arguments are (n, 2), centers or sizes, in
/// the same unit. Returns (n) values in (-1, 1].
///
/// # Errors
/// When memory runs out.
pub fn complete_iou(
    center: &Tensor,
    size: &Tensor,
    target_center: &Tensor,
    target_size: &Tensor,
) -> Result<Tensor, TchError> {
    let corners = |center: &Tensor, size: &Tensor| -> Result<(Tensor, Tensor), TchError> {
        let half = size.f_div_scalar(2.0)?;
        Ok((center.f_sub(&half)?, center.f_add(&half)?))
    };
    let (low, high) = corners(center, size)?;
    let (target_low, target_high) = corners(target_center, target_size)?;

    let overlap = high.f_minimum(&target_high)?.f_sub(&low.f_maximum(&target_low)?)?.f_clamp_min(0)?;
    let intersection = product_of_sides(&overlap)?;
    let union = product_of_sides(size)?
        .f_add(&product_of_sides(target_size)?)?
        .f_sub(&intersection)?
        .f_add_scalar(EPSILON)?;
    let iou = intersection.f_div(&union)?;

    let enclosing = high.f_maximum(&target_high)?.f_sub(&low.f_minimum(&target_low)?)?;
    let diagonal = squared_length(&enclosing)?.f_add_scalar(EPSILON)?;
    let distance = squared_length(&target_center.f_sub(center)?)?;

    let aspect = angle(target_size)?.f_sub(&angle(size)?)?.f_square()?.f_mul_scalar(4.0 / (PI * PI))?;
    let alpha = {
        let (aspect, iou) = (aspect.f_detach()?, iou.f_detach()?);
        // Rounding can lift the IoU of equal boxes above 1; the bound keeps 0/0 out of the loss.
        let missed = iou.f_neg()?.f_add_scalar(1.0)?.f_clamp_min(0.0)?;
        aspect.f_div(&missed.f_add(&aspect)?.f_add_scalar(EPSILON)?)?
    };
    let penalty = distance.f_div(&diagonal)?.f_add(&aspect.f_mul(&alpha)?)?;
    iou.f_sub(&penalty)
}

/// Column 0 times column 1.
fn product_of_sides(pairs: &Tensor) -> Result<Tensor, TchError> {
    pairs.f_select(1, 0)?.f_mul(&pairs.f_select(1, 1)?)
}

/// Column 0 squared plus column 1 squared.
fn squared_length(pairs: &Tensor) -> Result<Tensor, TchError> {
    let squares = pairs.f_square()?;
    squares.f_select(1, 0)?.f_add(&squares.f_select(1, 1)?)
}

/// The angle whose tangent is width over height.
fn angle(size: &Tensor) -> Result<Tensor, TchError> {
    size.f_select(1, 0)?.f_div(&size.f_select(1, 1)?)?.f_atan()
}
