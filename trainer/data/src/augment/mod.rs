//! Augmentation of one training image in YOLOv5's order (spec §7): mosaic, copy-paste,
//! perspective, mixup, colours, flips. Each step is a file of its own and works on pixels and
//! labels together; random draws are made apart from their application, so that tests can apply
//! known draws.

pub mod boxes;
pub mod copy_paste;
pub mod geometry;
pub mod mixup;
pub mod mosaic;

use yolo_plan::hyp::HyperParameters;

use crate::image::flip::Finish;
use crate::image::hsv::HsvTables;
use crate::random::Random;

/// How strongly training images are augmented; the keys of the same name of spec §5.
#[derive(Debug, Clone, PartialEq)]
pub struct Augment {
    /// Gains of hue, saturation and value.
    pub hsv: [f64; 3],
    /// Rotation in degrees, either way.
    pub degrees: f64,
    /// Translation as a fraction of the image, either way.
    pub translate: f64,
    /// Scale, as a change from one.
    pub scale: f64,
    /// Shear in degrees, either way.
    pub shear: f64,
    /// Perspective, either way.
    pub perspective: f64,
    /// Probability of mirroring top and bottom.
    pub flipud: f64,
    /// Probability of mirroring left and right.
    pub fliplr: f64,
    /// Probability of a mosaic of four images.
    pub mosaic: f64,
    /// Probability of mixing a mosaic with another one.
    pub mixup: f64,
    /// Share of the objects with a polygon that are copied to their mirrored place.
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
    /// Draws colours and flips (spec §7: gains are `U(-1, 1) · gain + 1`).
    pub fn draw_finish(&self, random: &mut Random) -> Finish {
        let hsv = self.hsv.iter().any(|&gain| gain != 0.0).then(|| {
            let gains = self.hsv.map(|gain| random.uniform(-1.0, 1.0) * gain + 1.0);
            HsvTables::new(gains)
        });
        Finish { hsv, up_down: random.chance(self.flipud), left_right: random.chance(self.fliplr) }
    }
}
