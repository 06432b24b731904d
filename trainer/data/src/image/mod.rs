//! Images as plain bytes, and what is done to them: decoding, resizing, letterboxing, warping and
//! colour. Pixels are RGB, 8 bits a channel, interleaved row by row, everywhere in this program.

pub mod decode;
pub mod encode;
pub mod finish;
pub mod hsv;
pub mod letterbox;
pub mod resize;
pub mod warp;

/// An RGB image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Image {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// `height · width · 3` bytes: rows from the top, pixels from the left, channels R, G, B.
    pub data: Vec<u8>,
}

impl Image {
    /// An image of one colour.
    pub fn filled(width: usize, height: usize, rgb: [u8; 3]) -> Self {
        Self { width, height, data: rgb.repeat(width * height) }
    }

    /// The bytes of row `y`.
    #[inline]
    pub fn row(&self, y: usize) -> &[u8] {
        &self.data[y * self.width * 3..(y + 1) * self.width * 3]
    }

    /// The colour of one pixel.
    #[inline]
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        [self.data[at], self.data[at + 1], self.data[at + 2]]
    }
}
