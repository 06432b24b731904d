//! The figures of the five classes, and whether a point is inside one. Lengths are in sixteenths of a pixel,
//! angles in 256ths of a turn, sines in 16384ths. All arithmetic is integer, so that every platform draws
//! the same pixels.

/// The fraction bits of a sine.
const SINE_BITS: u32 = 14;

/// A rotated and stretched figure.
pub(super) struct Figure {
    /// The class index.
    pub(super) class: usize,
    /// The center in sixteenths of a pixel.
    pub(super) center: [i64; 2],
    /// The radius of the circumscribed circle in sixteenths of a pixel.
    pub(super) radius: i64,
    /// Height divided by width, in 256ths, at most 256.
    stretch: i64,
    sine: i64,
    cosine: i64,
    corners: Vec<[i64; 2]>,
}

impl Figure {
    /// A figure rotated by `angle` 256ths of a turn.
    pub(super) fn new(class: usize, center: [i64; 2], radius: i64, angle: i64, stretch: i64) -> Self {
        let corner = |turn: i64, length: i64| {
            let (sine, cosine) = sine_cosine(turn);
            [(length * cosine) >> SINE_BITS, (length * sine) >> SINE_BITS]
        };
        let corners = match class {
            1 => (0..4).map(|k| corner(32 + 64 * k, radius)).collect(),
            2 => (0..3).map(|k| corner(64 + 256 * k / 3, radius)).collect(),
            3 => (0..10)
                .map(|k| corner(64 + 256 * k / 10, if k % 2 == 0 { radius } else { radius * 2 / 5 }))
                .collect(),
            _ => Vec::new(),
        };
        let (sine, cosine) = sine_cosine(angle);
        Self { class, center, radius, stretch, sine, cosine, corners }
    }

    /// Whether a point, in sixteenths of a pixel, is inside.
    pub(super) fn contains(&self, point: [i64; 2]) -> bool {
        let (dx, dy) = (point[0] - self.center[0], point[1] - self.center[1]);
        if dx * dx + dy * dy > self.radius * self.radius {
            return false;
        }
        let x = (dx * self.cosine + dy * self.sine) >> SINE_BITS;
        let y = ((dy * self.cosine - dx * self.sine) >> SINE_BITS) * 256 / self.stretch;
        let squared = x * x + y * y;
        let outer = self.radius * self.radius;
        match self.class {
            0 => squared <= outer,
            // The radius of the hole is 0.6 of the outer one.
            4 => squared <= outer && squared * 25 >= outer * 9,
            _ => self.inside_polygon(x, y),
        }
    }

    /// Counts the edges that a ray to the right crosses.
    fn inside_polygon(&self, x: i64, y: i64) -> bool {
        let mut inside = false;
        for (index, &[x1, y1]) in self.corners.iter().enumerate() {
            let [x2, y2] = self.corners[(index + 1) % self.corners.len()];
            if (y1 > y) != (y2 > y) {
                let left = (x - x1) * (y2 - y1);
                let right = (x2 - x1) * (y - y1);
                if (left < right) == (y2 > y1) {
                    inside = !inside;
                }
            }
        }
        inside
    }
}

/// The sine and cosine of `turn` 256ths of a turn, by rotating a vector step by step with 30 bits.
pub(super) fn sine_cosine(turn: i64) -> (i64, i64) {
    /// cos(2π/256) · 2³⁰ and sin(2π/256) · 2³⁰.
    const STEP: [i64; 2] = [1_073_418_433, 26_350_943];
    let (mut cosine, mut sine) = (1_i64 << 30, 0_i64);
    for _ in 0..turn.rem_euclid(256) {
        (cosine, sine) =
            ((cosine * STEP[0] - sine * STEP[1]) >> 30, (sine * STEP[0] + cosine * STEP[1]) >> 30);
    }
    (sine >> (30 - SINE_BITS), cosine >> (30 - SINE_BITS))
}
