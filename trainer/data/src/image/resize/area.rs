//! Shrinks like OpenCV's INTER_AREA: each output pixel is the mean of what it covers. Where both sides shrink by whole
//! factors, that is a sum of integers, otherwise a sum in single precision, in OpenCV's order of additions. Validation
//! shrinks this way.

use crate::image::simd::with_avx2;
use crate::image::{Image, ImageView};

/// The source pixels, from `first`, that an output pixel covers along one axis, and their shares.
struct Cover {
    first: usize,
    shares: Vec<f32>,
}

/// The covers of an area filter from `from` to `to` pixels.
fn covers(from: usize, to: usize) -> Vec<Cover> {
    // Thinner slivers of a pixel are rounding errors and are skipped, as in OpenCV.
    const SLIVER: f64 = 1e-3;
    let scale = from as f64 / to as f64;
    (0..to)
        .map(|i| {
            let start = i as f64 * scale;
            let end = (start + scale).min(from as f64);
            let cell = scale.min(from as f64 - start);
            let (whole_start, whole_end) = (start.ceil(), end.floor().min(from as f64 - 1.0));
            let whole_start = whole_start.min(whole_end);
            let mut first = whole_start as usize;
            let mut shares = Vec::new();
            if whole_start - start > SLIVER {
                first -= 1;
                shares.push(((whole_start - start) / cell) as f32);
            }
            shares.extend(std::iter::repeat_n((1.0 / cell) as f32, (whole_end - whole_start) as usize));
            if end - whole_end > SLIVER {
                shares.push(((end - whole_end).min(1.0).min(cell) / cell) as f32);
            }
            Cover { first, shares }
        })
        .collect()
}

/// Resizes by area, like OpenCV's INTER_AREA: each output pixel is the mean of what it covers. Neither side
/// may grow.
pub fn area<'a>(image: impl Into<ImageView<'a>>, width: usize, height: usize) -> Image {
    let mut out = Image::default();
    area_into(image, width, height, &mut out);
    out
}

/// [`area`] into `out`, whose memory is used again.
pub fn area_into<'a>(image: impl Into<ImageView<'a>>, width: usize, height: usize, out: &mut Image) {
    let image = image.into();
    if (image.width, image.height) == (width, height) {
        image.copy_into(out);
        return;
    }
    (out.width, out.height) = (width, height);
    // Every byte is overwritten, so the old bytes need not be cleared.
    out.data.resize(width * height * 3, 0);
    if image.width == 2 * width && image.height == 2 * height {
        halve(image, out);
        return;
    }
    if image.width.is_multiple_of(width) && image.height.is_multiple_of(height) {
        shrink_by_whole_factors(image, out);
        return;
    }
    let columns = covers(image.width, width);
    let rows = covers(image.height, height);
    let mut along_x = vec![0_f32; width * 3];
    let mut sums = vec![0_f32; width * 3];
    let mut held = usize::MAX;
    for (cover, out) in rows.iter().zip(out.data.chunks_exact_mut(width * 3)) {
        sums.fill(0.0);
        for (offset, &share) in cover.shares.iter().enumerate() {
            let y = cover.first + offset;
            // Two output rows share the source row at their boundary.
            if held != y {
                cover_row(image.row(y), &columns, &mut along_x);
                held = y;
            }
            add_line(share, &along_x, &mut sums);
        }
        round_line(&sums, out);
    }
}

with_avx2! {
    /// Adds a share of a line to `sums`.
    fn add_line / add_line_plain(share: f32, line: &[f32], sums: &mut [f32]) {
        for (sum, &value) in sums.iter_mut().zip(line) {
            *sum += share * value;
        }
    }
}

with_avx2! {
    /// Rounds `sums`, a half to the even neighbor.
    fn round_line / round_line_plain(sums: &[f32], out: &mut [u8]) {
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = sum.round_ties_even() as u8;
        }
    }
}

/// Averages one row along x.
fn cover_row(source: &[u8], columns: &[Cover], out: &mut [f32]) {
    let (pixels, _) = source.as_chunks::<3>();
    let (out, _) = out.as_chunks_mut::<3>();
    for (out, cover) in out.iter_mut().zip(columns) {
        let mut sum = [0_f32; 3];
        for (pixel, &share) in pixels[cover.first..].iter().zip(&cover.shares) {
            for channel in 0..3 {
                sum[channel] += share * f32::from(pixel[channel]);
            }
        }
        *out = sum;
    }
}

/// The common case of [`area`] where both sides are halved, in integers.
fn halve(image: ImageView<'_>, out: &mut Image) {
    for (y, out) in out.data.chunks_exact_mut(out.width * 3).enumerate() {
        let (upper, _) = image.row(2 * y).as_chunks::<6>();
        let (lower, _) = image.row(2 * y + 1).as_chunks::<6>();
        let (out, _) = out.as_chunks_mut::<3>();
        for ((out, u), l) in out.iter_mut().zip(upper).zip(lower) {
            for channel in 0..3 {
                let four = [u[channel], u[channel + 3], l[channel], l[channel + 3]];
                out[channel] = ((four.into_iter().map(u16::from).sum::<u16>() + 2) >> 2) as u8;
            }
        }
    }
}

/// The case of [`area`] where both sides become a whole fraction: the sum of a block's bytes, divided at the end.
fn shrink_by_whole_factors(image: ImageView<'_>, out: &mut Image) {
    let [across, down] = [image.width / out.width, image.height / out.height];
    let scale = 1.0 / (across * down) as f32;
    let mut along_y = vec![0_u32; image.width * 3];
    let mut sums = vec![0_f32; out.width * 3];
    for (y, out) in out.data.chunks_exact_mut(out.width * 3).enumerate() {
        along_y.fill(0);
        for line in 0..down {
            add_bytes(image.row(y * down + line), &mut along_y);
        }
        let (pixels, _) = along_y.as_chunks::<3>();
        for (sum, block) in sums.as_chunks_mut::<3>().0.iter_mut().zip(pixels.chunks_exact(across)) {
            *sum = std::array::from_fn(|channel| {
                block.iter().map(|pixel| pixel[channel]).sum::<u32>() as f32 * scale
            });
        }
        round_line(&sums, out);
    }
}

with_avx2! {
    /// Adds a line of bytes to `sums`.
    fn add_bytes / add_bytes_plain(line: &[u8], sums: &mut [u32]) {
        for (sum, &byte) in sums.iter_mut().zip(line) {
            *sum += u32::from(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};

    #[test]
    fn lines_are_the_same_with_and_without_avx2() {
        let mut random = Random::keyed(0, 0, Purpose::Augment, 0);
        for count in 0..400 {
            let bytes: Vec<u8> = (0..count).map(|_| random.below(256) as u8).collect();
            // Halves, and numbers with all bits of single precision.
            let number = |byte: &u8| f32::from(*byte) * if count % 2 == 0 { 0.5 } else { 0.783_21 };
            let line: Vec<f32> = bytes.iter().map(number).collect();
            let (mut sums, mut plain) = (line.clone(), line.clone());
            add_line(0.317_3, &line, &mut sums);
            add_line_plain(0.317_3, &line, &mut plain);
            assert_eq!(sums, plain);
            let (mut rounded, mut plain) = (vec![0; count], vec![1; count]);
            round_line(&line, &mut rounded);
            round_line_plain(&line, &mut plain);
            assert_eq!(rounded, plain);
            let (mut sums, mut plain) = (vec![7; count], vec![7; count]);
            add_bytes(&bytes, &mut sums);
            add_bytes_plain(&bytes, &mut plain);
            assert_eq!(sums, plain);
        }
    }
}
