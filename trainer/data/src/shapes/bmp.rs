//! Images as 24-bit BMP files: no compression, hence the same bytes everywhere, and nothing to decode when
//! they are loaded. PNG would need a compressor of our own to promise that, or be no smaller.

use crate::image::Image;

/// Size of the two headers.
const HEADER: usize = 14 + 40;

/// The content of a BMP file (BITMAPINFOHEADER, rows from the bottom, blue first, rows of whole 4 bytes).
pub(super) fn encode(image: &Image) -> Vec<u8> {
    let padding = (4 - image.width * 3 % 4) % 4;
    let pixels = (image.width * 3 + padding) * image.height;
    let mut file = Vec::with_capacity(HEADER + pixels);
    let numbers = |file: &mut Vec<u8>, values: [usize; 6]| {
        values.iter().for_each(|&value| file.extend_from_slice(&(value as u32).to_le_bytes()));
    };
    file.extend_from_slice(b"BM");
    numbers(&mut file, [HEADER + pixels, 0, HEADER, 40, image.width, image.height]);
    // One plane, 24 bits a pixel.
    file.extend_from_slice(&[1, 0, 24, 0]);
    // No compression; 2835 pixels a metre are 72 dpi; no palette.
    numbers(&mut file, [0, pixels, 2835, 2835, 0, 0]);
    for y in (0..image.height).rev() {
        image.row(y).chunks_exact(3).for_each(|rgb| file.extend_from_slice(&[rgb[2], rgb[1], rgb[0]]));
        file.extend(std::iter::repeat_n(0, padding));
    }
    file
}
