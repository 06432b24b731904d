//! Writes images for people to look at.

use std::io::Cursor;
use std::path::Path;

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder as _, ImageFormat};
use libjpeg_turbo_rs::{PixelFormat, Subsampling, compress};

use super::Image;
use crate::error::DataError;

/// The JPEG quality: small files without visible blocks.
const QUALITY: u8 = 85;
/// The JPEG quality with which OpenCV writes.
const FINE: u8 = 95;

/// An image as JPEG. `path` is the file that it is for, which errors name.
///
/// # Errors
/// If a side is 0 or above the 65535 pixels of the format.
pub fn jpeg(path: &Path, image: &Image) -> Result<Vec<u8>, DataError> {
    compress(&image.data, image.width, image.height, PixelFormat::Rgb, QUALITY, Subsampling::S444)
        .map_err(|error| DataError::io("write", path)(std::io::Error::other(error)))
}

/// An image in the format of the extension of `path`: BMP, PNG, TIFF and WebP lose nothing; anything else is JPEG in
/// the quality of OpenCV, 95.
///
/// # Errors
/// If the format does not allow the size.
pub fn by_extension(path: &Path, image: &Image) -> Result<Vec<u8>, DataError> {
    let failed = |error: image::ImageError| DataError::io("write", path)(std::io::Error::other(error));
    let (width, height) = (image.width as u32, image.height as u32);
    let mut bytes = Cursor::new(Vec::new());
    match ImageFormat::from_path(path) {
        // The standard compression takes several times as long for files that are little smaller.
        Ok(ImageFormat::Png) => {
            PngEncoder::new_with_quality(&mut bytes, CompressionType::Fast, FilterType::Adaptive)
                .write_image(&image.data, width, height, ExtendedColorType::Rgb8)
                .map_err(failed)?;
        }
        Ok(format @ (ImageFormat::Bmp | ImageFormat::Tiff | ImageFormat::WebP)) => {
            image::write_buffer_with_format(
                &mut bytes,
                &image.data,
                width,
                height,
                ExtendedColorType::Rgb8,
                format,
            )
            .map_err(failed)?;
        }
        _ => {
            let (data, format) = (&image.data, PixelFormat::Rgb);
            return compress(data, image.width, image.height, format, FINE, Subsampling::S420)
                .map_err(|error| DataError::io("write", path)(std::io::Error::other(error)));
        }
    }
    Ok(bytes.into_inner())
}

/// A part of an image as JPEG in the quality of OpenCV, with colors of full resolution.
///
/// # Errors
/// As [`jpeg`].
pub fn crop_jpeg(path: &Path, image: &Image) -> Result<Vec<u8>, DataError> {
    compress(&image.data, image.width, image.height, PixelFormat::Rgb, FINE, Subsampling::S444)
        .map_err(|error| DataError::io("write", path)(std::io::Error::other(error)))
}

/// Writes an image as JPEG; an existing file is overwritten.
///
/// # Errors
/// If the file cannot be written, or a side is 0 or above the 65535 pixels of the format.
pub fn write_jpeg(path: &Path, image: &Image) -> Result<(), DataError> {
    std::fs::write(path, jpeg(path, image)?).map_err(DataError::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_image_can_be_decoded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jpg");
        let image = Image::filled(20, 12, [200, 30, 60]);
        write_jpeg(&path, &image).unwrap();
        let read = crate::image::decode::decode(&path).unwrap();
        assert_eq!((read.width, read.height), (20, 12));
        for (got, want) in read.pixel(10, 6).into_iter().zip([200_i16, 30, 60]) {
            assert!((i16::from(got) - want).abs() < 6, "{:?}", read.pixel(10, 6));
        }
        assert!(write_jpeg(&folder.path().join("none/a.jpg"), &image).is_err());
        assert!(write_jpeg(&path, &Image::filled(0, 0, [0; 3])).is_err());
    }
    #[test]
    fn the_extension_decides_the_format() {
        let image = Image::filled(20, 12, [200, 30, 60]);
        for (name, first) in [
            ("a.png", &b"\x89PNG"[..]),
            ("a.BMP", b"BM"),
            ("a.tif", b"II"),
            ("a.webp", b"RIFF"),
            ("a.jpg", b"\xff\xd8"),
        ] {
            let bytes = by_extension(Path::new(name), &image).unwrap();
            assert!(bytes.starts_with(first), "{name}");
            let read = crate::image::decode::decode_bytes(&bytes).unwrap();
            assert!(read == image || name == "a.jpg", "{name}");
        }
        assert!(by_extension(Path::new("a.jpg"), &Image::filled(70_000, 1, [0; 3])).is_err());
    }
}
