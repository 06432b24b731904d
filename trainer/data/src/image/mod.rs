//! Images as plain bytes: decoding, resizing, letterboxing, warping and color. Everywhere in this crate,
//! pixels are interleaved RGB with 8 bits per channel.

pub mod bilinear;
pub mod decode;
pub mod encode;
pub mod filtered;
pub mod finish;
pub(crate) mod header;
pub mod hsv;
mod hsv_factors;
mod hsv_rows;
pub mod letterbox;
pub mod resize;
mod simd;
mod sound_scans;
pub mod tiles;
pub mod warp;
mod window;

pub use window::{Part, Window};

/// An RGB image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// `height · width · 3` bytes: rows from top to bottom, pixels from left to right, channels R, G, B.
    pub data: Vec<u8>,
}

/// An RGB image whose bytes belong to someone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageView<'a> {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// As in [`Image`].
    pub data: &'a [u8],
}

impl<'a> ImageView<'a> {
    /// The bytes of row `y`.
    #[inline]
    pub fn row(&self, y: usize) -> &'a [u8] {
        &self.data[y * self.width * 3..(y + 1) * self.width * 3]
    }

    /// Copies the image into `out`, whose memory is used again.
    pub fn copy_into(&self, out: &mut Image) {
        (out.width, out.height) = (self.width, self.height);
        out.data.clear();
        out.data.extend_from_slice(self.data);
    }

    /// The color of one pixel.
    #[inline]
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        [self.data[at], self.data[at + 1], self.data[at + 2]]
    }
}

impl<'a> From<&'a Image> for ImageView<'a> {
    fn from(image: &'a Image) -> Self {
        Self { width: image.width, height: image.height, data: &image.data }
    }
}

impl Image {
    /// The whole image.
    pub fn view(&self) -> ImageView<'_> {
        self.into()
    }

    /// An image of one color.
    pub fn filled(width: usize, height: usize, rgb: [u8; 3]) -> Self {
        Self { width, height, data: rgb.repeat(width * height) }
    }

    /// The bytes of row `y`.
    #[inline]
    pub fn row(&self, y: usize) -> &[u8] {
        self.view().row(y)
    }

    /// The color of one pixel.
    #[inline]
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        self.view().pixel(x, y)
    }
}
