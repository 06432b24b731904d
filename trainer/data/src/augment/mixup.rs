//! Mixup: blends two augmented images and joins their labels (spec §7).

use super::label::Label;
use crate::image::Image;
use crate::random::Random;

/// Draws the share of the first image, from Beta(32, 32).
pub fn draw_share(random: &mut Random) -> f64 {
    random.beta(32)
}

/// Blends `other` into `image` of the same size, which keeps `share` of itself. Results are truncated,
/// not rounded. The labels are those of both.
pub fn mixup(
    share: f64,
    image: &mut Image,
    labels: &mut Vec<Label>,
    other: &Image,
    other_labels: Vec<Label>,
) {
    debug_assert_eq!(image.data.len(), other.data.len());
    for (pixel, &with) in image.data.iter_mut().zip(&other.data) {
        *pixel = (f64::from(*pixel) * share + f64::from(with) * (1.0 - share)) as u8;
    }
    labels.extend(other_labels);
}
