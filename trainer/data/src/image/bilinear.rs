//! Bilinear sampling in fixed point, as in OpenCV 4.11 and later, which no longer rounds sample positions to
//! 1/32 pixel. Positions are 64-bit fixed point and weights are integers; a sample is within one gray level of
//! the exact one. All warps share this arithmetic, so they give the same bytes.

/// The fraction bits of a sample position.
pub const POSITION_BITS: u32 = 32;
/// The bits of the weight along x. With 12 bits along y, a sum stays below 2³².
pub const X_BITS: u32 = 11;
/// The bits of the weight along y.
pub const Y_BITS: u32 = 12;
/// Positions are clamped to this many pixels so that fixed point does not overflow. In any image, positions
/// this far out are border.
const FAR: f64 = (1_u64 << 29) as f64;

/// Converts a position in pixels to fixed point.
pub fn fixed(position: f64) -> i64 {
    // NaN is outside too.
    let position = if position.is_nan() { -FAR } else { position.clamp(-FAR, FAR) };
    (position * (1_u64 << POSITION_BITS) as f64).round() as i64
}

/// The pixel to the left of or at a position.
#[inline]
pub fn pixel_of(position: i64) -> i32 {
    (position >> POSITION_BITS) as i32
}

/// The weight of the right neighbor at x, of 2¹¹.
#[inline]
pub fn weight_right(x: i64) -> u32 {
    (x >> (POSITION_BITS - X_BITS)) as u32 & ((1 << X_BITS) - 1)
}

/// The weight of the lower neighbor at y, of 2¹².
#[inline]
pub fn weight_lower(y: i64) -> u32 {
    (y >> (POSITION_BITS - Y_BITS)) as u32 & ((1 << Y_BITS) - 1)
}

/// One channel of a sample from its upper left, upper right, lower left and lower right neighbors.
#[inline(always)]
pub fn mix([a, b, c, d]: [u32; 4], right: u32, lower: u32) -> u8 {
    let (left, upper) = ((1 << X_BITS) - right, (1 << Y_BITS) - lower);
    let sum = (a * left + b * right) * upper + (c * left + d * right) * lower;
    // Half a unit is added for rounding; 255 · 2²³ + 2²² still fits.
    ((sum + (1 << (X_BITS + Y_BITS - 1))) >> (X_BITS + Y_BITS)) as u8
}

/// The sample at a position with these four neighbors, in the order of [`mix`].
#[inline]
pub fn mix_pixels(four: [[u8; 3]; 4], x: i64, y: i64) -> [u8; 3] {
    let (right, lower) = (weight_right(x), weight_lower(y));
    std::array::from_fn(|c| mix(four.map(|pixel| u32::from(pixel[c])), right, lower))
}
