//! Writes images for people to look at.

use std::path::Path;

use libjpeg_turbo_rs::{PixelFormat, Subsampling, compress};

use super::Image;
use crate::error::DataError;

/// The JPEG quality: small files without visible blocks.
const QUALITY: u8 = 85;

/// An image as JPEG. `path` is the file that it is for, which errors name.
///
/// # Errors
/// If a side is 0 or above the 65535 pixels of the format.
pub fn jpeg(path: &Path, image: &Image) -> Result<Vec<u8>, DataError> {
    compress(&image.data, image.width, image.height, PixelFormat::Rgb, QUALITY, Subsampling::S444)
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
}
