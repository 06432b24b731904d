//! Resizes images like OpenCV's `resize`, to the same bytes: bilinear in 11-bit fixed point, and by area. YOLOv5's
//! weights were trained on such pixels, so being equal matters more than a better filter (spec §7).

mod area;
mod linear;

pub use area::{area, area_into};
pub use linear::{linear, linear_into, linear_window, source_of};
