//! Draws one image of the data set: a background and objects. Each object has a gradient and grain, in colors
//! that differ from what it covers. It is placed only where enough of it, and of every object below it,
//! remains visible, so that every label is of a visible object.

use super::canvas::background;
use super::figure::Figure;
use super::parameters::Parameters;
use super::rng::Rng;
use crate::image::Image;

/// Sample points per side of a pixel that measure how much of it an object covers.
const SAMPLES: i64 = 4;

/// An object and its box in pixels; right and bottom are exclusive.
pub(super) struct Object {
    class: usize,
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
    /// Pixels of the whole object, including those outside the image.
    area: i64,
}

impl Object {
    /// The line of the label file: class, center, width and height as fractions of `side`, six decimals.
    pub(super) fn label(&self, side: i64) -> String {
        // In half pixels the center is an integer; millionths are rounded in integers.
        let part = |halves: i64| {
            let millionths = (halves * 1_000_000 + side) / (2 * side);
            format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000)
        };
        format!(
            "{} {} {} {} {}",
            self.class,
            part(self.left + self.right),
            part(self.top + self.bottom),
            part(2 * (self.right - self.left)),
            part(2 * (self.bottom - self.top))
        )
    }
}

/// An image and its objects.
pub(super) struct Scene {
    pub(super) image: Image,
    pub(super) objects: Vec<Object>,
}

/// Draws one scene.
pub(super) fn draw(rng: &mut Rng, parameters: &Parameters) -> Scene {
    let side = parameters.side as i64;
    let mut image = background(rng, parameters.side);
    let mut objects: Vec<Object> = Vec::new();
    // The object that each pixel shows, from 1; 0 is the background.
    let mut owner = vec![0_usize; image.width * image.height];
    if rng.one_in(parameters.empty_every) {
        return Scene { image, objects };
    }
    let wanted = rng.between(1, i64::from(parameters.objects)) as usize;
    // Some positions are rejected, so there are more tries than objects.
    for _ in 0..wanted * 4 {
        if objects.len() == wanted {
            break;
        }
        let figure = random_figure(rng, parameters);
        let colors = random_colors(rng);
        let Some((object, coverage)) = place(&figure, side) else { continue };
        if !leaves_enough(&object, &coverage, &objects, &owner, parameters.visible_percent) {
            continue;
        }
        let Some(colors) = contrasting(rng, colors, &coverage, &image) else { continue };
        paint(rng, &mut image, &figure, &coverage, &colors);
        objects.push(object);
        for &(at, covered) in &coverage {
            if covered * 2 >= SAMPLES * SAMPLES {
                owner[at] = objects.len();
            }
        }
    }
    Scene { image, objects }
}

/// A figure at a random position. Its center is inside the image, at least a quarter of its radius from the
/// border.
fn random_figure(rng: &mut Rng, parameters: &Parameters) -> Figure {
    let (least, most) = parameters.diameter;
    // The smaller of two draws, because small objects are more frequent in photographs.
    let diameter = rng.between(least, most).min(rng.between(least, most));
    let radius = diameter * 16 / 2;
    let (low, high) = (radius / 4, parameters.side as i64 * 16 - radius / 4);
    let center = [rng.between(low, high), rng.between(low, high)];
    Figure::new(rng.between(0, 4) as usize, center, radius, rng.between(0, 255), rng.between(200, 256))
}

/// The two end colors of a gradient.
fn random_colors(rng: &mut Rng) -> [[i64; 3]; 2] {
    let from = rng.color(0, 255);
    [from, from.map(|value| (value + rng.between(-50, 50)).clamp(0, 255))]
}

/// The pixels that a figure covers, each with the number of covered sample points.
type Coverage = Vec<(usize, i64)>;

/// Finds the pixels and the box of a figure; `None` if too little of it is inside the image.
fn place(figure: &Figure, side: i64) -> Option<(Object, Coverage)> {
    let reach = figure.radius / 16 + 2;
    let middle = figure.center.map(|value| value / 16);
    let mut object = Object { class: figure.class, left: side, top: side, right: 0, bottom: 0, area: 0 };
    let mut coverage = Vec::new();
    for y in middle[1] - reach..=middle[1] + reach {
        for x in middle[0] - reach..=middle[0] + reach {
            let covered = covered_points(figure, x, y);
            if covered == 0 {
                continue;
            }
            let solid = covered * 2 >= SAMPLES * SAMPLES;
            object.area += i64::from(solid);
            if !(0..side).contains(&x) || !(0..side).contains(&y) {
                continue;
            }
            coverage.push(((y * side + x) as usize, covered));
            if solid {
                object.left = object.left.min(x);
                object.top = object.top.min(y);
                object.right = object.right.max(x + 1);
                object.bottom = object.bottom.max(y + 1);
            }
        }
    }
    (object.right - object.left >= 8 && object.bottom - object.top >= 8).then_some((object, coverage))
}

/// The number of sample points of a pixel that a figure covers. If the four corner points agree, so do the
/// others, except at a tip thinner than a pixel.
fn covered_points(figure: &Figure, x: i64, y: i64) -> i64 {
    let step = 16 / SAMPLES;
    let inside = |column: i64, row: i64| {
        let point = [x * 16 + column * step + step / 2, y * 16 + row * step + step / 2];
        i64::from(figure.contains(point))
    };
    let end = SAMPLES - 1;
    match inside(0, 0) + inside(end, 0) + inside(0, end) + inside(end, end) {
        0 => 0,
        4 => SAMPLES * SAMPLES,
        _ => (0..SAMPLES * SAMPLES).map(|point| inside(point % SAMPLES, point / SAMPLES)).sum(),
    }
}

/// Whether enough of the new object is inside the image, and enough of every object below remains visible.
fn leaves_enough(
    object: &Object,
    coverage: &Coverage,
    objects: &[Object],
    owner: &[usize],
    percent: i64,
) -> bool {
    let solid: Vec<usize> =
        coverage.iter().filter(|(_, covered)| covered * 2 >= SAMPLES * SAMPLES).map(|&(at, _)| at).collect();
    if (solid.len() as i64) * 100 < object.area * percent {
        return false;
    }
    let mut visible = vec![0_i64; objects.len() + 1];
    owner.iter().for_each(|&index| visible[index] += 1);
    solid.iter().for_each(|&at| visible[owner[at]] -= 1);
    objects.iter().zip(&visible[1..]).all(|(below, &left)| left * 100 >= below.area * percent)
}

/// Changes the colors until they contrast with what they cover; `None` if a few tries do not succeed.
fn contrasting(
    rng: &mut Rng,
    mut colors: [[i64; 3]; 2],
    coverage: &Coverage,
    image: &Image,
) -> Option<[[i64; 3]; 2]> {
    /// The least distance between colors, summed over the channels.
    const DISTANCE: i64 = 150;
    let mut mean = [0_i64; 3];
    for &(at, _) in coverage {
        for (channel, sum) in mean.iter_mut().enumerate() {
            *sum += i64::from(image.data[at * 3 + channel]);
        }
    }
    let mean = mean.map(|sum| sum / coverage.len().max(1) as i64);
    for _ in 0..20 {
        let distance =
            |color: &[i64; 3]| -> i64 { color.iter().zip(&mean).map(|(a, b)| (a - b).abs()).sum() };
        if colors.iter().all(|color| distance(color) >= DISTANCE) {
            return Some(colors);
        }
        colors = random_colors(rng);
    }
    None
}

/// Paints a figure with a vertical gradient and grain; edge pixels are blended with what is below.
fn paint(rng: &mut Rng, image: &mut Image, figure: &Figure, coverage: &Coverage, colors: &[[i64; 3]; 2]) {
    let side = image.width as i64;
    let grain = rng.between(2, 12);
    let height = 2 * figure.radius;
    for &(at, covered) in coverage {
        let down = (at as i64 / side * 16 - figure.center[1] + figure.radius).clamp(0, height);
        let pixel = &mut image.data[at * 3..at * 3 + 3];
        for ((shown, from), to) in pixel.iter_mut().zip(&colors[0]).zip(&colors[1]) {
            let value = (from + (to - from) * down / height + rng.between(-grain, grain)).clamp(0, 255);
            let below = i64::from(*shown);
            let whole = SAMPLES * SAMPLES;
            *shown = ((value * covered + below * (whole - covered)) / whole) as u8;
        }
    }
}
