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
    blend(share, &mut image.data, &other.data);
    labels.extend(other_labels);
}

/// Blends the bytes `other` into `bytes`, which keep `share` of themselves.
pub fn blend(share: f64, bytes: &mut [u8], other: &[u8]) {
    for (byte, &with) in bytes.iter_mut().zip(other) {
        *byte = (f64::from(*byte) * share + f64::from(with) * (1.0 - share)) as u8;
    }
}
