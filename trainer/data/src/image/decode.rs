//! Decodes image files to the pixels of `cv2.imread`: EXIF orientation applied, gray expanded to three
//! channels, transparency dropped, 16 bits truncated to 8. The content determines the format, so a PNG named
//! `.jpg` works. zune-jpeg decodes JPEG because it is fast; the `image` crate decodes the rest.

use std::io::Cursor;
use std::path::Path;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::Image;
use crate::error::DataError;

/// The formats that can be decoded. Verification rejects the others of YOLOv5's list (dng, pfm).
pub(crate) const FORMATS: [ImageFormat; 5] =
    [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Bmp, ImageFormat::Tiff, ImageFormat::WebP];

/// Reads and decodes an image file to RGB.
///
/// # Errors
/// If the file cannot be read, has no supported format, or is damaged.
pub fn decode(path: &Path) -> Result<Image, DataError> {
    let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
    decode_bytes(&bytes).map_err(|reason| DataError::decode(path, reason))
}

/// Decodes the content of an image file to RGB; the error is only the reason.
///
/// # Errors
/// If the content has no supported format or is damaged.
pub fn decode_bytes(bytes: &[u8]) -> Result<Image, String> {
    match format_of(bytes)? {
        ImageFormat::Jpeg => decode_jpeg(bytes),
        format => decode_other(bytes, format),
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

/// Decodes JPEG with zune-jpeg. Damaged entropy-coded data is decoded as far as possible, as by libjpeg;
/// the scan has already rejected truncated files.
fn decode_jpeg(bytes: &[u8]) -> Result<Image, String> {
    let options = DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(1 << 16)
        .set_max_height(1 << 16)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let data = decoder.decode().map_err(|error| error.to_string())?;
    let (width, height) = decoder.dimensions().ok_or("it has no size")?;
    let orientation = decoder
        .exif()
        .and_then(|exif| Orientation::from_exif_chunk(exif))
        .unwrap_or(Orientation::NoTransforms);
    let image = Image { width, height, data };
    if image.data.len() != width * height * 3 {
        return Err(format!("{} bytes of pixels instead of {}", image.data.len(), width * height * 3));
    }
    if orientation == Orientation::NoTransforms {
        return Ok(image);
    }
    let buffer =
        image::RgbImage::from_raw(width as u32, height as u32, image.data).ok_or("its size is wrong")?;
    let mut picture = DynamicImage::ImageRgb8(buffer);
    picture.apply_orientation(orientation);
    Ok(from_dynamic(picture))
}

/// Decodes PNG, BMP, TIFF and WebP with the `image` crate.
fn decode_other(bytes: &[u8], format: ImageFormat) -> Result<Image, String> {
    let mut decoder = ImageReader::with_format(Cursor::new(bytes), format)
        .into_decoder()
        .map_err(|error| reason(&error))?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = DynamicImage::from_decoder(decoder).map_err(|error| reason(&error))?;
    picture.apply_orientation(orientation);
    Ok(from_dynamic(picture))
}

/// Why the `image` crate could not decode a file.
fn reason(error: &ImageError) -> String {
    match error {
        ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "truncated: the file ends inside the image data".to_owned()
        }
        error => error.to_string(),
    }
}

/// Converts any pixel format to 8-bit RGB. 16-bit values keep their upper byte, as in OpenCV; the
/// `image` crate would round them.
fn from_dynamic(picture: DynamicImage) -> Image {
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let data = match picture {
        DynamicImage::ImageRgb8(buffer) => buffer.into_raw(),
        wide @ (DynamicImage::ImageLuma16(_)
        | DynamicImage::ImageLumaA16(_)
        | DynamicImage::ImageRgb16(_)
        | DynamicImage::ImageRgba16(_)) => {
            wide.into_rgb16().into_raw().into_iter().map(|value| (value >> 8) as u8).collect()
        }
        other => other.into_rgb8().into_raw(),
    };
    Image { width, height, data }
}
