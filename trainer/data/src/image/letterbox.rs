//! Letterbox: how an image is scaled and padded into a rectangle without changing its aspect
//! ratio (spec §7). The arithmetic is a value of its own, so that boxes and pixels follow the
//! same numbers and boxes can be mapped back.

use super::{Image, resize};

/// The grey of padding (spec §7).
pub const PADDING: u8 = 114;

/// The options of a letterbox (spec §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LetterboxOptions {
    /// Height and width to fill.
    pub target: [usize; 2],
    /// Pad only up to the next multiple of `stride` instead of up to `target`.
    pub auto: bool,
    /// Stretch to `target` without padding.
    pub scale_fill: bool,
    /// Allow enlarging; otherwise a small image is only padded.
    pub scale_up: bool,
    /// The multiple that `auto` pads to.
    pub stride: usize,
}

impl LetterboxOptions {
    /// Fills exactly `target` (height, width) and keeps the aspect ratio.
    pub fn exact(target: [usize; 2], scale_up: bool) -> Self {
        Self { target, auto: false, scale_fill: false, scale_up, stride: 32 }
    }
}

/// Where an image goes inside its letterbox.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Letterbox {
    /// Height and width of the scaled image, without padding.
    pub scaled: [usize; 2],
    /// Scale of height and width.
    pub ratio: [f64; 2],
    /// Half of the padding, left and top, before rounding to whole pixels.
    pub pad: [f64; 2],
    /// Padding in pixels: top, bottom, left, right.
    pub borders: [usize; 4],
}

impl Letterbox {
    /// The letterbox of an image of `height` by `width` pixels.
    pub fn new(height: usize, width: usize, options: &LetterboxOptions) -> Self {
        let [target_h, target_w] = options.target.map(|side| side as f64);
        let (h, w) = (height as f64, width as f64);
        let mut r = (target_h / h).min(target_w / w);
        if !options.scale_up {
            r = r.min(1.0);
        }
        let mut ratio = [r, r];
        let mut scaled = [(h * r).round_ties_even(), (w * r).round_ties_even()];
        let mut pad = [target_w - scaled[1], target_h - scaled[0]];
        if options.auto {
            pad = pad.map(|p| p.rem_euclid(options.stride as f64));
        } else if options.scale_fill {
            pad = [0.0, 0.0];
            scaled = [target_h, target_w];
            ratio = [target_h / h, target_w / w];
        }
        let pad = pad.map(|p| p / 2.0);
        // The tenth decides which side gets the odd pixel: right and bottom.
        let near = |p: f64| (p - 0.1).round_ties_even().max(0.0) as usize;
        let far = |p: f64| (p + 0.1).round_ties_even().max(0.0) as usize;
        Self {
            scaled: scaled.map(|side| (side as usize).max(1)),
            ratio,
            pad,
            borders: [near(pad[1]), far(pad[1]), near(pad[0]), far(pad[0])],
        }
    }

    /// Height and width of the letterboxed image.
    pub fn size(&self) -> [usize; 2] {
        let [top, bottom, left, right] = self.borders;
        [self.scaled[0] + top + bottom, self.scaled[1] + left + right]
    }

    /// Scales and pads `image`, of the size that this letterbox was made for, into `out`.
    pub fn apply(&self, image: &Image, out: &mut Image) {
        let [height, width] = self.size();
        out.width = width;
        out.height = height;
        out.data.clear();
        out.data.resize(height * width * 3, PADDING);
        let [scaled_h, scaled_w] = self.scaled;
        let resized;
        let source = if [image.height, image.width] == self.scaled {
            image
        } else {
            resized = resize::linear(image, scaled_w, scaled_h);
            &resized
        };
        let [top, _, left, _] = self.borders;
        for (y, row) in source.data.chunks_exact(scaled_w * 3).enumerate() {
            let start = ((top + y) * width + left) * 3;
            out.data[start..start + scaled_w * 3].copy_from_slice(row);
        }
        debug_assert_eq!(source.height, scaled_h);
    }
}
