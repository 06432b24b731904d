//! Augmentation of a training image in YOLOv5's order (spec §7): mosaic, copy-paste, perspective,
//! mixup, colors, flips. Each file is one step, on pixels and labels together. Random draws are
//! separate from their application, so that tests can apply known draws.

pub mod copy_paste;
pub mod label;
pub mod layout;
pub mod mixup;
pub mod mosaic;
pub mod perspective;
pub mod picture;
pub mod quad;
pub mod transform;

use yolo_plan::hyp::HyperParameters;

use crate::image::finish::Finish;
use crate::image::hsv::HsvTables;
use crate::random::Random;

/// How strongly to augment training images. The fields are the hyperparameters of spec §5.
#[derive(Debug, Clone, PartialEq)]
pub struct Augment {
    /// Gains of hue, saturation and value.
    pub hsv: [f64; 3],
    /// Largest rotation in degrees.
    pub degrees: f64,
    /// Largest translation as a fraction of the image.
    pub translate: f64,
    /// Largest change of the scale from 1.
    pub scale: f64,
    /// Largest shear in degrees.
    pub shear: f64,
    /// Largest perspective.
    pub perspective: f64,
    /// Probability of a vertical flip.
    pub flipud: f64,
    /// Probability of a horizontal flip.
    pub fliplr: f64,
    /// Probability of a mosaic of four images.
    pub mosaic: f64,
    /// Probability of mixing a mosaic with another one.
    pub mixup: f64,
    /// Share of the objects with an outline that are copied to their mirrored position.
    pub copy_paste: f64,
}

impl From<&HyperParameters> for Augment {
    fn from(hyp: &HyperParameters) -> Self {
        Self {
            hsv: [hyp.hsv_h, hyp.hsv_s, hyp.hsv_v],
            degrees: hyp.degrees,
            translate: hyp.translate,
            scale: hyp.scale,
            shear: hyp.shear,
            perspective: hyp.perspective,
            flipud: hyp.flipud,
            fliplr: hyp.fliplr,
            mosaic: hyp.mosaic,
            mixup: hyp.mixup,
            copy_paste: hyp.copy_paste,
        }
    }
}

impl Augment {
    /// Draws colors and flips. Color gains are `U(-1, 1) · gain + 1` (spec §7).
    pub fn draw_finish(&self, random: &mut Random) -> Finish {
        let hsv = self.hsv.iter().any(|&gain| gain != 0.0).then(|| {
            let gains = self.hsv.map(|gain| random.uniform(-1.0, 1.0) * gain + 1.0);
            HsvTables::new(gains)
        });
        Finish { hsv, up_down: random.chance(self.flipud), left_right: random.chance(self.fliplr) }
    }
}
