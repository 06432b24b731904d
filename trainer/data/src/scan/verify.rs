//! Verifies that an image file is complete and reads its size. JPEG files are walked from marker to marker
//! without decoding. This finds empty and truncated files, other formats, and files without an end marker,
//! which Pillow rejects too. It does not find wrong bits in the compressed data; decoders, YOLOv5's
//! included, turn them into wrong pixels without an error. Other formats are fully decoded, because only
//! that finds a truncated file.

use std::path::Path;

use image::ImageFormat;
use image::metadata::Orientation;

use crate::image::decode::{decode_bytes, format_of};

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

/// The formats that YOLOv5 accepts by extension and this program cannot decode. The content of a DNG is a
/// TIFF whose first image is only a thumbnail, so the extension decides.
fn unsupported(path: &Path) -> Option<&'static str> {
    let extension = path.extension()?;
    if extension.eq_ignore_ascii_case("dng") {
        Some("DNG")
    } else if extension.eq_ignore_ascii_case("pfm") {
        Some("PFM")
    } else {
        None
    }
}

/// Walks a JPEG file (ITU-T T.81, annex B) to its end marker.
fn jpeg_size(bytes: &[u8]) -> Result<(u32, u32), &'static str> {
    const TRUNCATED: &str = "truncated: the file ends before the end-of-image marker";
    let mut size = None;
    let mut scanned = false;
    let mut orientation = Orientation::NoTransforms;
    // After the start-of-image marker, which `format_of` has checked.
    let mut at = 2;
    loop {
        // Between segments this finds the next marker. Inside a scan, FF is written as FF 00.
        at += bytes[at..].iter().position(|&byte| byte == 0xFF).ok_or(TRUNCATED)?;
        let marker = *bytes.get(at + 1).ok_or(TRUNCATED)?;
        match marker {
            // Fill bytes may precede a marker.
            0xFF => at += 1,
            // No segment follows a stuffed FF, a restart marker or TEM.
            0x00 | 0x01 | 0xD0..=0xD8 => at += 2,
            0xD9 => break,
            _ => {
                let length = bytes.get(at + 2..at + 4).ok_or(TRUNCATED)?;
                let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
                let body = bytes.get(at + 4..at + 2 + length).ok_or(TRUNCATED)?;
                match marker {
                    // Start of frame; C4, C8 and CC are other segments of that range.
                    0xC0..=0xCF if !matches!(marker, 0xC4 | 0xC8 | 0xCC) && size.is_none() => {
                        let body = body.get(..5).ok_or(TRUNCATED)?;
                        let height = u16::from_be_bytes([body[1], body[2]]);
                        let width = u16::from_be_bytes([body[3], body[4]]);
                        size = Some((u32::from(width), u32::from(height)));
                    }
                    0xE1 => {
                        if let Some(found) =
                            body.strip_prefix(b"Exif\0\0").and_then(Orientation::from_exif_chunk)
                        {
                            orientation = found;
                        }
                    }
                    0xDA => scanned = true,
                    _ => {}
                }
                at += 2 + length;
            }
        }
        if at >= bytes.len() {
            return Err(TRUNCATED);
        }
    }
    let (width, height) = size.ok_or("damaged: it has no frame header")?;
    if !scanned {
        return Err("damaged: it has no pixels");
    }
    Ok(match orientation {
        Orientation::Rotate90
        | Orientation::Rotate270
        | Orientation::Rotate90FlipH
        | Orientation::Rotate270FlipH => (height, width),
        _ => (width, height),
    })
}
