//! Decodes image files to the pixels of `cv2.imread`: EXIF orientation applied, gray expanded to three
//! channels, transparency dropped, 16 bits truncated to 8. The content determines the format, so a PNG named
//! `.jpg` works. libjpeg-turbo-rs decodes JPEG, because its pixels are those of libjpeg-turbo, which OpenCV
//! uses; the `image` crate decodes the rest.

use std::fs::File;
use std::io::{Cursor, Read as _};
use std::path::Path;

use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader};
use libjpeg_turbo_rs::{DecodeWarning, Decoder, JpegError, PixelFormat};

use super::header::{self, format_of, reason};
use super::sound_scans::sound_end;
use super::{Image, Window};
use crate::error::DataError;

/// Reads and decodes an image file to RGB.
///
/// # Errors
/// If the file cannot be read, has no supported format, or is damaged.
pub fn decode(path: &Path) -> Result<Image, DataError> {
    let mut image = Image::default();
    decode_into(path, None, &mut Vec::new(), &mut image)?;
    Ok(image)
}

/// The largest file that is read without having been verified. A picture of 100 megapixels has 800 MB at most.
const LARGEST_FILE: u64 = 2_000_000_000;

/// [`decode`] of a file that nobody has verified: only a whole and undamaged one, and not more than `most` pixels, which
/// the header tells before memory is taken for them.
///
/// # Errors
/// As [`decode`], and if the file is truncated, its data is damaged, or its image is larger.
pub fn decode_untrusted(path: &Path, most: u64) -> Result<Image, DataError> {
    let refused = |reason: String| DataError::decode(path, reason);
    if let Some(format) = header::unsupported(path) {
        return Err(refused(format!("{format} images are not supported; convert it to PNG or JPEG")));
    }
    // Looked at before it is opened: opening a pipe would wait for a writer.
    let metadata = std::fs::metadata(path).map_err(DataError::io("read", path))?;
    if !metadata.is_file() {
        return Err(refused(
            if metadata.is_dir() { "it is a folder" } else { "it is not a file" }.to_owned(),
        ));
    }
    if metadata.len() > LARGEST_FILE {
        let (size, limit) =
            (yolo_base::format::bytes(metadata.len()), yolo_base::format::bytes(LARGEST_FILE));
        return Err(refused(format!("the file has {size}, above the limit of {limit}")));
    }
    let bytes = std::fs::read(path).map_err(DataError::io("read", path))?;
    let (width, height) = header::size(&bytes).map_err(refused)?;
    let pixels = u64::from(width) * u64::from(height);
    if pixels > most {
        return Err(refused(format!(
            "{width}x{height} pixels are above the limit of {} megapixels",
            most / 1_000_000
        )));
    }
    if pixels == 0 {
        return Err(refused("it has no pixels".to_owned()));
    }
    let mut image = Image::default();
    let decoded = decode_bytes_into(&bytes, None, Damaged::Refused, &mut image).map_err(refused)?;
    match decoded.damage {
        Some(damage) => Err(refused(format!("damaged: {damage}"))),
        None => Ok(image),
    }
}

/// What a decoded image is of the one in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// The width and height of the whole image.
    pub whole: [usize; 2],
    /// The column and the row of the whole image with which the decoded part begins.
    pub first: [usize; 2],
    /// Why pixels are wrong, if they are.
    pub damage: Option<&'static str>,
}

/// [`decode`] into `image`, whose memory is used again where the format allows, as that of `file` is. If only
/// a `window` is needed, pixels outside can be missing or have other colors.
///
/// # Errors
/// As [`decode`].
pub fn decode_into(
    path: &Path,
    window: Option<&Window>,
    file: &mut Vec<u8>,
    image: &mut Image,
) -> Result<Decoded, DataError> {
    file.clear();
    File::open(path).and_then(|mut from| from.read_to_end(file)).map_err(DataError::io("read", path))?;
    decode_bytes_into(file, window, Damaged::InPart, image).map_err(|reason| DataError::decode(path, reason))
}

/// Decodes the content of an image file to RGB; the error is only the reason.
///
/// # Errors
/// If the content has no supported format or is damaged.
pub fn decode_bytes(bytes: &[u8]) -> Result<Image, String> {
    let mut image = Image::default();
    decode_bytes_into(bytes, None, Damaged::InPart, &mut image)?;
    Ok(image)
}

/// What becomes of an image whose data is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damaged {
    /// What can be decoded of it is. A large file may be decoded twenty times to find out how much that is.
    InPart,
    Refused,
}

/// [`decode_bytes`] of a `window` into `image`.
fn decode_bytes_into(
    bytes: &[u8],
    window: Option<&Window>,
    damaged: Damaged,
    image: &mut Image,
) -> Result<Decoded, String> {
    match format_of(bytes)? {
        ImageFormat::Jpeg => decode_jpeg(bytes, window, damaged, image),
        format => {
            *image = decode_other(bytes, format)?;
            Ok(Decoded { whole: [image.width, image.height], first: [0; 2], damage: None })
        }
    }
}

/// Decodes JPEG. Damaged entropy-coded data is decoded as far as possible, as by OpenCV; the scan has already
/// rejected truncated files.
fn decode_jpeg(
    bytes: &[u8],
    window: Option<&Window>,
    damaged: Damaged,
    image: &mut Image,
) -> Result<Decoded, String> {
    // More than any segment of a file is long.
    const ENDS: usize = 1 << 15;
    let decoded = match decode_whole_jpeg(bytes, window, image) {
        // The file ends between two scans. libjpeg then reads the marker of the end, over and over.
        Err(JpegError::UnexpectedEof) => {
            let padded = [bytes, &[0xFF, 0xD9].repeat(ENDS)].concat();
            let decoded = decode_whole_jpeg(&padded, window, image);
            decoded.map(|decoded| Decoded { damage: Some(ENDS_EARLY), ..decoded })
        }
        Err(error @ JpegError::CorruptData(_)) if damaged == Damaged::InPart => {
            decode_beginning(bytes, window, image).unwrap_or(Err(error))
        }
        decoded => decoded,
    };
    decoded.map_err(|error| error.to_string())
}

/// Decodes what comes before damaged data, if there is anything.
fn decode_beginning(
    bytes: &[u8],
    window: Option<&Window>,
    image: &mut Image,
) -> Option<Result<Decoded, JpegError>> {
    const END_OF_IMAGE: [u8; 2] = [0xFF, 0xD9];
    let mut decode_until = |end: usize| {
        let decoded = decode_whole_jpeg(&[&bytes[..end], &END_OF_IMAGE].concat(), window, image)?;
        Ok(Decoded { damage: Some(DAMAGED), ..decoded })
    };
    let end = sound_end(bytes, |end| decode_until(end).is_ok())?;
    Some(decode_until(end))
}

fn decode_whole_jpeg(bytes: &[u8], window: Option<&Window>, image: &mut Image) -> Result<Decoded, JpegError> {
    let mut decoder = Decoder::new(bytes)?;
    let components = decoder.header().components.iter();
    let sizes: Vec<[u8; 2]> =
        components.map(|one| [one.horizontal_sampling, one.vertical_sampling]).collect();
    let has_black = sizes.len() == 4;
    if has_black && !is_readable_with_black(&sizes) {
        return Err(JpegError::Unsupported(
            "its four colors have sizes that only damage explains".to_owned(),
        ));
    }
    decoder.set_output_format(if has_black { PixelFormat::Cmyk } else { PixelFormat::Rgb });
    decoder.set_lenient(true);
    let orientation =
        decoder.exif_data().and_then(Orientation::from_exif_chunk).unwrap_or(Orientation::NoTransforms);
    let whole = [decoder.output_width(), decoder.output_height()];
    if whole.contains(&0) {
        return Err(JpegError::CorruptData("its header has a width or a height of 0".to_owned()));
    }
    let window = window.filter(|_| orientation == Orientation::NoTransforms && !has_black);
    let first = window.map_or([0; 2], |window| crop(&mut decoder, window, whole));
    // Every byte is overwritten, so the old bytes need not be cleared.
    image.data.resize(decoder.output_buffer_size()?, 0);
    let decoded = decoder.decode_image_into(&mut image.data)?;
    let (width, height) = (decoded.width, decoded.height);
    let damage = damage(&decoded.warnings);
    image.data.truncate(decoded.bytes_written);
    if has_black {
        image.data = rgb_of_cmyk(&image.data);
    }
    (image.width, image.height) = (width, height);
    if image.data.len() != width * height * 3 {
        let (found, expected) = (image.data.len(), width * height * 3);
        return Err(JpegError::CorruptData(format!("{found} bytes of pixels instead of {expected}")));
    }
    if orientation == Orientation::NoTransforms {
        return Ok(Decoded { whole, first, damage });
    }
    let pixels = std::mem::take(&mut image.data);
    let buffer = image::RgbImage::from_raw(width as u32, height as u32, pixels)
        .ok_or_else(|| JpegError::CorruptData("its size is wrong".to_owned()))?;
    let mut picture = DynamicImage::ImageRgb8(buffer);
    picture.apply_orientation(orientation);
    *image = from_dynamic(picture);
    Ok(Decoded { whole: [image.width, image.height], first: [0; 2], damage })
}

/// Whether the decoder can read four colors of these sizes (width and height): it takes for granted that the first and the last have the size of
/// the image and that the others are equal, and panics otherwise (libjpeg-turbo-rs 0.9.0).
fn is_readable_with_black(sizes: &[[u8; 2]]) -> bool {
    let &[first, second, third, last] = sizes else { return false };
    let is_part = |side: usize| second[side] > 0 && first[side].is_multiple_of(second[side]);
    first == last && second == third && is_part(0) && is_part(1)
}

/// The damage of a file that is cut off.
const ENDS_EARLY: &str = "its data ends early, so a part of it is gray";

/// That of a file with changed bytes.
const DAMAGED: &str = "its compressed data is damaged, so pixels of it are wrong";

/// What the decoder's warnings mean for the pixels. Bytes between two markers change none.
fn damage(warnings: &[DecodeWarning]) -> Option<&'static str> {
    let ends_early = |warning: &DecodeWarning| matches!(warning, DecodeWarning::TruncatedData { .. });
    let is_harmless = |warning: &DecodeWarning| matches!(warning, DecodeWarning::ExtraneousData { .. });
    if warnings.iter().any(ends_early) {
        return Some(ENDS_EARLY);
    }
    (!warnings.iter().all(is_harmless)).then_some(DAMAGED)
}

/// Lets `decoder` give only a window of an image of this width and height, and some pixels around it. Returns the first
/// column and the first row.
///
/// Columns that are left out are neither upsampled nor converted to RGB, rows are not transformed either. The decoder
/// always reads all of the file.
fn crop(decoder: &mut Decoder<'_>, window: &Window, [width, height]: [usize; 2]) -> [usize; 2] {
    // At the edge of a crop, chroma is upsampled as at the edge of an image. A block more on each side keeps that
    // out of the columns, whatever the sampling is; 32 pixels are the widest block. For rows, the decoder does that.
    const BLOCK: usize = 32;
    let Window { columns, rows } = window;
    let left = (columns.start / BLOCK).saturating_sub(1) * BLOCK;
    let right = (columns.end.next_multiple_of(BLOCK) + BLOCK).min(width);
    let first = if left >= right || right - left == width {
        0
    } else {
        decoder.set_crop(left, right - left);
        left
    };
    // With rows left out, the decoder makes an image of its own and copies it. Measured on images of 640×480 and
    // 1920×1080, that costs what a quarter of the rows does.
    if rows.is_empty() || rows.len() * 4 > height * 3 {
        return [first, 0];
    }
    decoder.set_crop_y(rows.start, rows.len());
    [first, rows.start]
}

/// The colors that OpenCV makes of the four inks. Files contain them inverted, as Adobe writes them: 255 is no
/// ink.
fn rgb_of_cmyk(inks: &[u8]) -> Vec<u8> {
    let color = |ink: u8, black: u8| {
        let (ink, black) = (i32::from(ink), i32::from(black));
        (black - (((255 - ink) * black) >> 8)) as u8
    };
    let (pixels, _) = inks.as_chunks::<4>();
    pixels.iter().flat_map(|&[c, m, y, k]| [color(c, k), color(m, k), color(y, k)]).collect()
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

#[cfg(test)]
mod tests {
    use super::super::encode::by_extension;
    use super::*;

    #[test]
    fn untrusted_files_are_refused_before_their_pixels_are_decoded() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let image = Image::filled(50, 40, [9; 3]);
        for name in ["a.jpg", "a.png", "a.bmp"] {
            let bytes = by_extension(Path::new(name), &image).unwrap();
            let path = write(name, &bytes);
            let read = decode_untrusted(&path, 2_000).unwrap();
            assert_eq!((read.width, read.height), (50, 40));
            let error = decode_untrusted(&path, 1_999).unwrap_err().to_string();
            assert!(error.contains("50x40 pixels are"), "{error}");
            let cut = write(&format!("cut-{name}"), &bytes[..bytes.len() / 2]);
            assert!(decode_untrusted(&cut, 2_000).is_err(), "{name}");
        }
        for (name, bytes, reason) in [
            ("empty.jpg", &b""[..], "the file is empty"),
            ("text.png", b"not a picture", "not an image"),
            ("raw.dng", b"II*\0", "DNG images are not supported"),
        ] {
            let error = decode_untrusted(&write(name, bytes), 2_000).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        let huge = std::fs::File::create(folder.path().join("huge.png")).unwrap();
        huge.set_len(3_000_000_000).unwrap();
        let error = decode_untrusted(&folder.path().join("huge.png"), 2_000).unwrap_err().to_string();
        assert!(error.contains("the file has 3.0 GB, above the limit of 2.0 GB"), "{error}");
        let error = decode_untrusted(folder.path(), 2_000).unwrap_err().to_string();
        assert!(error.contains("it is a folder"), "{error}");
        // Damage inside the pixels, after the headers of the file.
        let noise: Vec<u8> = (0..50 * 40 * 3_u32).map(|at| (at * at * 7 / 3) as u8).collect();
        let noise = Image { width: 50, height: 40, data: noise };
        let mut bytes = by_extension(Path::new("a.jpg"), &noise).unwrap();
        let end = bytes.len() - 2;
        bytes[end - 300..end].fill(0xaa);
        let error = decode_untrusted(&write("damaged.jpg", &bytes), 2_000).unwrap_err().to_string();
        assert!(error.contains("damaged: its "), "{error}");
    }
}
