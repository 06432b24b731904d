//! What an image file says about itself before its pixels: whether its format can be decoded, and its width and
//! height. JPEG files are walked from marker to marker, which finds truncated files and those without an end
//! marker, which Pillow rejects too.

use std::io::Cursor;
use std::path::Path;

use image::metadata::Orientation;
use image::{ImageError, ImageFormat, ImageReader};

/// The formats that can be decoded. Verification rejects the others of YOLOv5's list (dng, pfm).
pub(crate) const FORMATS: [ImageFormat; 5] =
    [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Tiff, ImageFormat::WebP];

/// Width and height of an image as its file has them, in which they can be exchanged by the EXIF orientation.
///
/// # Errors
/// If the content has no supported format, or ends too early.
pub(crate) fn size(bytes: &[u8]) -> Result<(u32, u32), String> {
    match format_of(bytes)? {
        ImageFormat::Jpeg => jpeg_size(bytes).map_err(str::to_owned),
        format => ImageReader::with_format(Cursor::new(bytes), format)
            .into_dimensions()
            .map_err(|error| reason(&error)),
    }
}

/// The format of a file by its first bytes.
pub(crate) fn format_of(bytes: &[u8]) -> Result<ImageFormat, String> {
    if bytes.is_empty() {
        return Err("the file is empty".to_owned());
    }
    let format = image::guess_format(bytes).map_err(|_| "not an image".to_owned())?;
    if FORMATS.contains(&format) {
        Ok(format)
    } else {
        Err(format!("unsupported image format {}", format!("{format:?}").to_uppercase()))
    }
}

/// Why the `image` crate could not decode a file.
pub(super) fn reason(error: &ImageError) -> String {
    match error {
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "truncated: the file ends inside the image data".to_owned()
        }
        error => error.to_string(),
    }
}

/// The formats that YOLOv5 accepts by extension and this program cannot decode. The content of a DNG is a
/// TIFF whose first image is only a thumbnail, so the extension decides.
pub(crate) fn unsupported(path: &Path) -> Option<&'static str> {
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
pub(crate) fn jpeg_size(bytes: &[u8]) -> Result<(u32, u32), &'static str> {
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
