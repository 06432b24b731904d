//! Encodes images as 24-bit BMP. Without compression, the bytes are the same everywhere and loading is fast.
//! The bytes of a PNG would depend on the version of the compressor.

use crate::image::Image;

/// The size of both headers.
const HEADER: usize = 14 + 40;

/// The content of a BMP file: BITMAPINFOHEADER, bottom-up rows of BGR pixels, each padded to 4 bytes.
pub(super) fn encode(image: &Image) -> Vec<u8> {
    let padding = (4 - image.width * 3 % 4) % 4;
    let pixels = (image.width * 3 + padding) * image.height;
    let mut file = Vec::with_capacity(HEADER + pixels);
    let numbers = |file: &mut Vec<u8>, values: [usize; 6]| {
        values.iter().for_each(|&value| file.extend_from_slice(&(value as u32).to_le_bytes()));
    };
    file.extend_from_slice(b"BM");
    numbers(&mut file, [HEADER + pixels, 0, HEADER, 40, image.width, image.height]);
    // One plane, 24 bits per pixel.
    file.extend_from_slice(&[1, 0, 24, 0]);
    // No compression; 2835 pixels per meter (72 dpi); no palette.
    numbers(&mut file, [0, pixels, 2835, 2835, 0, 0]);
    for y in (0..image.height).rev() {
        image.row(y).chunks_exact(3).for_each(|rgb| file.extend_from_slice(&[rgb[2], rgb[1], rgb[0]]));
        file.extend(std::iter::repeat_n(0, padding));
    }
    file
}
