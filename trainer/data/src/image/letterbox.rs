//! Letterboxing: scales and pads an image to a rectangle without changing its aspect ratio (spec §7).
//! [`Letterbox`] holds the numbers, so that pixels and boxes use the same ones and boxes can be mapped back.

use super::{Image, ImageView, resize};

/// The gray level of padding (spec §7).
pub const PADDING: u8 = 114;

/// The options of a letterbox (spec §7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LetterboxOptions {
    /// The height and width to fill.
    pub target: [usize; 2],
    /// Pad only up to the next multiple of `stride` instead of up to `target`.
    pub auto: bool,
    /// Stretch to `target` without padding.
    pub scale_fill: bool,
    /// Allow enlarging; otherwise small images are only padded.
    pub scale_up: bool,
    /// The multiple that `auto` pads to.
    pub stride: usize,
}

impl LetterboxOptions {
    /// Options to fill `target` (height, width) and keep the aspect ratio.
    pub fn exact(target: [usize; 2], scale_up: bool) -> Self {
        Self { target, auto: false, scale_fill: false, scale_up, stride: 32 }
    }
}

/// The scale and position of an image in its letterbox.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Letterbox {
    /// The height and width of the scaled image without padding.
    pub scaled: [usize; 2],
    /// The scale of height and width.
    pub ratio: [f64; 2],
    /// Half of the horizontal and of the vertical padding, before rounding to whole pixels.
    pub pad: [f64; 2],
    /// The padding in pixels: top, bottom, left, right.
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
        // A line of pixels stays one.
        let mut scaled = [h, w].map(|side| (side * r).round_ties_even().max(1.0));
        let mut pad = [target_w - scaled[1], target_h - scaled[0]];
        if options.auto {
            pad = pad.map(|p| p.rem_euclid(options.stride as f64));
        } else if options.scale_fill {
            pad = [0.0, 0.0];
            scaled = [target_h, target_w];
            ratio = [target_h / h, target_w / w];
        }
        let pad = pad.map(|p| p / 2.0);
        // The 0.1 gives an odd pixel to the right and the bottom.
        let near = |p: f64| (p - 0.1).round_ties_even().max(0.0) as usize;
        let far = |p: f64| (p + 0.1).round_ties_even().max(0.0) as usize;
        Self {
            scaled: scaled.map(|side| side as usize),
            ratio,
            pad,
            borders: [near(pad[1]), far(pad[1]), near(pad[0]), far(pad[0])],
        }
    }

    /// The height and width of the letterboxed image.
    pub fn size(&self) -> [usize; 2] {
        let [top, bottom, left, right] = self.borders;
        [self.scaled[0] + top + bottom, self.scaled[1] + left + right]
    }

    /// Scales and pads `image` into `out`. The image must have the size passed to [`Letterbox::new`].
    pub fn apply<'a>(&self, image: impl Into<ImageView<'a>>, out: &mut Image) {
        let image = image.into();
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
            resized.view()
        };
        let [top, _, left, _] = self.borders;
        for (y, row) in source.data.chunks_exact(scaled_w * 3).enumerate() {
            let start = ((top + y) * width + left) * 3;
            out.data[start..start + scaled_w * 3].copy_from_slice(row);
        }
        debug_assert_eq!(source.height, scaled_h);
    }
}
