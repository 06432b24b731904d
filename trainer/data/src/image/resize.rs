//! Resizes images like OpenCV's `resize`: bilinear in 11-bit fixed point, and by area. YOLOv5's weights
//! were trained on such pixels, so being equal matters more than a better filter (spec §7). Shrinking is
//! bit-exact; enlarging may differ by one in a few bytes per thousand.

use super::Image;

/// The fraction bits of an interpolation weight.
const WEIGHT_BITS: u32 = 11;
/// The weight 1.
const ONE: i32 = 1 << WEIGHT_BITS;

/// The two source coordinates of an output coordinate, and their weights.
#[derive(Debug, Clone, Copy)]
struct Tap {
    first: usize,
    second: usize,
    weights: [i32; 2],
}

/// The taps of a bilinear filter from `from` to `to` pixels, with aligned pixel centers.
fn taps(from: usize, to: usize) -> Vec<Tap> {
    let scale = from as f64 / to as f64;
    (0..to)
        .map(|i| {
            let position = ((i as f64 + 0.5) * scale - 0.5) as f32;
            let (mut first, mut fraction) = (position.floor(), position - position.floor());
            if first < 0.0 {
                (first, fraction) = (0.0, 0.0);
            }
            let mut first = first as usize;
            if first + 1 >= from {
                (first, fraction) = (from - 1, 0.0);
            }
            let weight = |f: f32| (f * ONE as f32).round_ties_even() as i32;
            Tap {
                first,
                second: (first + 1).min(from - 1),
                weights: [weight(1.0 - fraction), weight(fraction)],
            }
        })
        .collect()
}

/// Resizes bilinearly, like OpenCV's INTER_LINEAR for 8-bit pixels.
pub fn linear(image: &Image, width: usize, height: usize) -> Image {
    let mut out = Image::default();
    linear_into(image, width, height, &mut out);
    out
}

/// [`linear`] into `out`, whose memory is used again.
pub fn linear_into(image: &Image, width: usize, height: usize, out: &mut Image) {
    if (image.width, image.height) == (width, height) {
        out.clone_from(image);
        return;
    }
    (out.width, out.height) = (width, height);
    // Every byte is overwritten, so the old bytes need not be cleared.
    out.data.resize(width * height * 3, 0);
    let columns = taps(image.width, width);
    let rows = taps(image.height, height);
    // The two source rows of an output row, already filtered along x. The next output rows reuse them
    // where possible.
    let mut filtered = [vec![0_i32; width * 3], vec![0_i32; width * 3]];
    let mut held = [usize::MAX; 2];
    for (out, tap) in out.data.chunks_exact_mut(width * 3).zip(&rows) {
        if held[1] == tap.first && tap.first != tap.second {
            filtered.swap(0, 1);
            held.swap(0, 1);
        }
        for (slot, wanted) in [tap.first, tap.second].into_iter().enumerate() {
            if held[slot] != wanted {
                filter_row(image.row(wanted), &columns, &mut filtered[slot]);
                held[slot] = wanted;
            }
        }
        let [upper, lower] = &filtered;
        let [a, b] = tap.weights;
        for ((out, &u), &l) in out.iter_mut().zip(upper).zip(lower) {
            // OpenCV's order of shifts, for the same rounding.
            let sum = ((a * (u >> 4)) >> 16) + ((b * (l >> 4)) >> 16);
            *out = ((sum + 2) >> 2) as u8;
        }
    }
}

/// Filters one row along x; the result has [`WEIGHT_BITS`] fraction bits.
fn filter_row(source: &[u8], columns: &[Tap], out: &mut [i32]) {
    let (pixels, _) = source.as_chunks::<3>();
    let (out, _) = out.as_chunks_mut::<3>();
    for (out, tap) in out.iter_mut().zip(columns) {
        let (p, q) = (pixels[tap.first], pixels[tap.second]);
        let [a, b] = tap.weights;
        for channel in 0..3 {
            out[channel] = i32::from(p[channel]) * a + i32::from(q[channel]) * b;
        }
    }
}

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
pub fn area(image: &Image, width: usize, height: usize) -> Image {
    let mut out = Image::default();
    area_into(image, width, height, &mut out);
    out
}

/// [`area`] into `out`, whose memory is used again.
pub fn area_into(image: &Image, width: usize, height: usize, out: &mut Image) {
    if (image.width, image.height) == (width, height) {
        out.clone_from(image);
        return;
    }
    (out.width, out.height) = (width, height);
    out.data.clear();
    if image.width == 2 * width && image.height == 2 * height {
        out.data.resize(width * height * 3, 0);
        halve(image, out);
        return;
    }
    let columns = covers(image.width, width);
    let rows = covers(image.height, height);
    let mut along_x = vec![0_f32; width * 3];
    let mut sums = vec![0_f32; width * 3];
    let mut held = usize::MAX;
    for cover in &rows {
        sums.fill(0.0);
        for (offset, &share) in cover.shares.iter().enumerate() {
            let y = cover.first + offset;
            // Two output rows share the source row at their boundary.
            if held != y {
                cover_row(image.row(y), &columns, &mut along_x);
                held = y;
            }
            for (sum, &value) in sums.iter_mut().zip(&along_x) {
                *sum += share * value;
            }
        }
        out.data.extend(sums.iter().map(|sum| sum.round_ties_even() as u8));
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
fn halve(image: &Image, out: &mut Image) {
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
