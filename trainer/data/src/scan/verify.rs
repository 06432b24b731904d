//! Verifies that an image file is complete and reads its size. JPEG files are walked from marker to marker
//! without decoding. It does not find wrong bits in the compressed data; decoders, YOLOv5's
//! included, turn them into wrong pixels without an error. Other formats are fully decoded, because only
//! that finds a truncated file.

use std::path::Path;

use image::ImageFormat;

use crate::image::decode::decode_bytes;
use crate::image::header::{format_of, jpeg_size, unsupported};

/// The shortest side that YOLOv5 accepts, in pixels (spec §7).
const MIN_SIDE: u32 = 10;

/// Why an image is ignored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ImageFault(String);

/// Verifies an image file and returns its width and height after the EXIF orientation.
///
/// # Errors
/// If the file cannot be read, is not an image of a supported format, is truncated, or has a side below
/// 10 pixels.
pub fn verify_image(path: &Path) -> Result<(u32, u32), ImageFault> {
    let bytes = std::fs::read(path).map_err(|error| ImageFault(format!("cannot be read: {error}")))?;
    if let Some(format) = unsupported(path) {
        return Err(ImageFault(format!("{format} images are not supported; convert it to PNG or JPEG")));
    }
    let (width, height) = match format_of(&bytes).map_err(ImageFault)? {
        ImageFormat::Jpeg => jpeg_size(&bytes).map_err(|reason| ImageFault(reason.to_owned()))?,
        _ => {
            let image = decode_bytes(&bytes).map_err(ImageFault)?;
            (image.width as u32, image.height as u32)
        }
    };
    if width < MIN_SIDE || height < MIN_SIDE {
        return Err(ImageFault(format!("{width}x{height} pixels; both sides must have at least {MIN_SIDE}")));
    }
    Ok((width, height))
}
