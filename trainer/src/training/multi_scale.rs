//! `--multi-scale`: each batch is trained at a size of its own, from half to one and a half times the image size
//! (spec §6). The size depends on seed, epoch and batch only, so all ranks and a resumed run have the same.

use tch::Tensor;
use yolo_data::random::{Purpose, Random};

use crate::error::TrainError;

/// The least step between two sizes in pixels, whatever the model's stride is.
const LEAST_STEP: usize = 32;

/// The longer side in pixels of batch `index` of `epoch` in a run with this seed and image size: a multiple of
/// `stride` and of 32.
pub(crate) fn side((seed, epoch, index): (u64, usize, usize), image_size: usize, stride: usize) -> usize {
    let step = stride.max(LEAST_STEP);
    let (low, high) = bounds(image_size, step);
    let mut random = Random::keyed(seed, epoch as u64, Purpose::BatchSize, index as u64);
    (low + random.below(high - low)) / step * step
}

/// The largest side that [`side`] returns.
pub(crate) fn largest_side(image_size: usize, stride: usize) -> usize {
    let step = stride.max(LEAST_STEP);
    let (_, high) = bounds(image_size, step);
    (high - 1) / step * step
}

/// Between which sides in pixels one is drawn, before it is rounded down; the second is not drawn.
fn bounds(image_size: usize, step: usize) -> (usize, usize) {
    (image_size / 2, image_size * 3 / 2 + step)
}

/// Resizes images (N, 3, H, W) bilinearly so that their longer side is `side`. Both sides become multiples of
/// `stride`.
///
/// # Errors
/// When libtorch cannot allocate the result.
pub(crate) fn resized(images: Tensor, side: usize, stride: usize) -> Result<Tensor, TrainError> {
    let (_, _, height, width) = images.size4()?;
    let step = stride.max(LEAST_STEP);
    let factor = side as f64 / height.max(width) as f64;
    let scaled = |length: i64| ((length as f64 * factor / step as f64).ceil() as usize * step) as i64;
    let (new_height, new_width) = (scaled(height), scaled(width));
    if (new_height, new_width) == (height, width) {
        return Ok(images);
    }
    Ok(images.f_upsample_bilinear2d([new_height, new_width], false, None, None)?)
}

#[cfg(test)]
mod tests {
    use tch::{Device, Kind};

    use super::*;

    fn images(height: i64, width: i64) -> Tensor {
        Tensor::arange(2 * 3 * height * width, (Kind::Float, Device::Cpu)).view([2, 3, height, width])
    }

    #[test]
    fn both_sides_become_multiples_of_the_stride() {
        let size = |height, width, side, stride| {
            resized(images(height, width), side, stride).unwrap().size()[2..].to_vec()
        };
        assert_eq!(size(64, 64, 96, 32), [96, 96]);
        assert_eq!(size(64, 128, 192, 32), [96, 192]);
        // 96 · 160 / 128 is 120, which is rounded up.
        assert_eq!(size(96, 128, 160, 32), [128, 160]);
        assert_eq!(size(128, 128, 128, 64), [128, 128]);
    }

    #[test]
    fn a_batch_that_has_its_size_is_not_changed() {
        let before = images(64, 64);
        let after = resized(before.shallow_clone(), 64, 32).unwrap();
        assert_eq!(after.data_ptr(), before.data_ptr());
    }

    #[test]
    fn sizes_cover_the_range_and_depend_on_their_key_only() {
        let sizes =
            |seed: u64| -> Vec<usize> { (0..2000).map(|index| side((seed, 3, index), 640, 32)).collect() };
        let drawn = sizes(7);
        assert!(drawn == sizes(7) && drawn != sizes(8));
        assert!(drawn.iter().all(|side| side % 32 == 0));
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&320), Some(&960)));
        assert_eq!((largest_side(640, 32), largest_side(100, 64)), (960, 192));
    }
}
