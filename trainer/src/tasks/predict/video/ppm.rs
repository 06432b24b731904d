//! Frames as ffmpeg writes them to a pipe: PPM pictures one after another. Each has its size in front, so frames need
//! no other description.

use std::io::{self, Read};

use yolo_data::image::Image;

/// Frames with more pixels are refused: one takes gigabytes.
const MOST_PIXELS: usize = 100_000_000;
/// The longest number of a header.
const DIGITS: usize = 9;

/// The next frame; `None` at the end.
///
/// # Errors
/// When the stream ends inside a frame, is no PPM, or the frame is too large.
pub(super) fn next_frame(stream: &mut impl Read) -> io::Result<Option<Image>> {
    let mut magic = [0; 1];
    if stream.read(&mut magic)? == 0 {
        return Ok(None);
    }
    let mut rest = [0; 2];
    stream.read_exact(&mut rest)?;
    if [magic[0], rest[0], rest[1]] != *b"P6\n" {
        return Err(io::Error::other("ffmpeg wrote no PPM picture"));
    }
    let (width, height, most) = (number(stream)?, number(stream)?, number(stream)?);
    if most != 255 {
        return Err(io::Error::other(format!("ffmpeg wrote pixels up to {most}, not up to 255")));
    }
    let pixels = width.saturating_mul(height);
    if pixels == 0 || pixels > MOST_PIXELS {
        return Err(io::Error::other(format!(
            "its frames of {width}x{height} pixels are above the limit of {} megapixels",
            MOST_PIXELS / 1_000_000
        )));
    }
    let mut data = vec![0; 3 * pixels];
    stream.read_exact(&mut data)?;
    Ok(Some(Image { width, height, data }))
}

/// A decimal number and the one space or line end after it.
fn number(stream: &mut impl Read) -> io::Result<usize> {
    let mut value = 0;
    for digit in 0..=DIGITS {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        match byte[0] {
            b' ' | b'\n' if digit > 0 => return Ok(value),
            byte @ b'0'..=b'9' => value = value * 10 + usize::from(byte - b'0'),
            _ => break,
        }
    }
    Err(io::Error::other("ffmpeg wrote a PPM picture without a size"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(mut bytes: &[u8]) -> io::Result<Vec<Image>> {
        std::iter::from_fn(|| next_frame(&mut bytes).transpose()).collect()
    }

    #[test]
    fn frames_come_one_after_another() {
        let frames = all(b"P6\n2 1\n255\nabcdefP6\n1 1\n255\nxyz").unwrap();
        assert_eq!(
            frames.iter().map(|frame| (frame.width, frame.height)).collect::<Vec<_>>(),
            [(2, 1), (1, 1)]
        );
        assert_eq!((&*frames[0].data, &*frames[1].data), (&b"abcdef"[..], &b"xyz"[..]));
    }

    #[test]
    fn other_streams_are_errors() {
        for (bytes, reason) in [
            (&b"P5\n1 1\n255\nx"[..], "no PPM"),
            (b"P6\n1 1\n255\nxy", "failed to fill"),
            (b"P6\n1 1\n65535\nxyzxyz", "up to 65535"),
            (b"P6\n0 1\n255\n", "above the limit"),
            (b"P6\n20000 20000\n255\n", "20000x20000 pixels are above the limit of 100 megapixels"),
            (b"P6\n99999999999 1\n255\n", "without a size"),
            (b"P6\n 1\n255\n", "without a size"),
        ] {
            let error = all(bytes).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_stream_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64), cut in 0_usize..20) {
            let _ = all(&bytes);
            let _ = all(&[&b"P6\n12 3\n255\n"[..cut.min(12)], &bytes].concat());
        }
    }
}
