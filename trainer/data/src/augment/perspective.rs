//! Takes an image and its labels through a transform together (spec §7).

use super::label::{Label, transform_labels};
use super::transform::{Draws, Transform};
use crate::image::Image;
use crate::image::warp::warp;

/// Transforms `image` and its `labels` by `draws`, to height and width `output`. `spare` is a
/// buffer; it ends up with the former pixels.
pub fn perspective(
    draws: &Draws,
    output: [usize; 2],
    image: &mut Image,
    spare: &mut Image,
    labels: &mut Vec<Label>,
) {
    let input = [image.height, image.width];
    let transform = Transform::new(draws, input, output);
    let [height, width] = output;
    if input != output || !transform.is_identity() {
        warp(image, &transform.matrix, width, height, spare);
        std::mem::swap(image, spare);
    }
    transform_labels(labels, &transform, width, height);
}
