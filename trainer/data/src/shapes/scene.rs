//! One image of the data set: a background and the objects on it, each coloured apart from what it covers,
//! with a gradient and grain. An object is only placed where enough of it, and of those below it, stays
//! visible: a label always means something that can be seen.

use super::Parameters;
use super::canvas::background;
use super::figure::Figure;
use super::rng::Rng;
use crate::image::Image;

/// Points on a side of a pixel that decide how much of it an object covers.
const SAMPLES: i64 = 4;

/// An object and its box in pixels; right and bottom lie one beyond.
pub(super) struct Object {
    class: usize,
    left: i64,
    top: i64,
    right: i64,
    bottom: i64,
    /// Pixels of the whole object, those beyond the border too.
    area: i64,
}

impl Object {
    /// The line of the label file: class, centre, width and height in parts of `side`, six decimals.
    pub(super) fn label(&self, side: i64) -> String {
        // Halves of a pixel keep the centre whole; millionths are rounded in integers.
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
    // Which object a pixel shows, from 1; 0 is the background.
    let mut owner = vec![0_usize; image.width * image.height];
    if rng.one_in(parameters.empty_every) {
        return Scene { image, objects };
    }
    let wanted = rng.between(1, i64::from(parameters.objects)) as usize;
    // Some places are refused, so there are more tries than objects.
    for _ in 0..wanted * 4 {
        if objects.len() == wanted {
            break;
        }
        let figure = random_figure(rng, parameters);
        let colours = random_colours(rng);
        let Some((object, coverage)) = place(&figure, side) else { continue };
        if !leaves_enough(&object, &coverage, &objects, &owner, parameters.visible_percent) {
            continue;
        }
        let Some(colours) = apart(rng, colours, &coverage, &image) else { continue };
        paint(rng, &mut image, &figure, &coverage, &colours);
        objects.push(object);
        for &(at, covered) in &coverage {
            if covered * 2 >= SAMPLES * SAMPLES {
                owner[at] = objects.len();
            }
        }
    }
    Scene { image, objects }
}

/// A figure anywhere in the image, its centre up to a quarter of its size from the border or beyond it.
fn random_figure(rng: &mut Rng, parameters: &Parameters) -> Figure {
    let (least, most) = parameters.diameter;
    // The smaller of two draws: small objects are the more frequent, as in photographs.
    let diameter = rng.between(least, most).min(rng.between(least, most));
    let radius = diameter * 16 / 2;
    let (low, high) = (radius / 4, parameters.side as i64 * 16 - radius / 4);
    let centre = [rng.between(low, high), rng.between(low, high)];
    Figure::new(rng.between(0, 4) as usize, centre, radius, rng.between(0, 255), rng.between(200, 256))
}

/// The colours of the two ends of a gradient.
fn random_colours(rng: &mut Rng) -> [[i64; 3]; 2] {
    let from = rng.colour(0, 255);
    [from, from.map(|value| (value + rng.between(-50, 50)).clamp(0, 255))]
}

/// Which pixels a figure covers, each by how many of its points.
type Coverage = Vec<(usize, i64)>;

/// Finds the pixels and the box of a figure; `None` when hardly anything of it lies in the image.
fn place(figure: &Figure, side: i64) -> Option<(Object, Coverage)> {
    let reach = figure.radius / 16 + 2;
    let middle = figure.centre.map(|value| value / 16);
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

/// How many points of a pixel a figure covers. Where the four in the corners agree, so do the rest: only a
/// tip thinner than a pixel could differ.
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

/// Whether enough of the new object lies in the image, and enough of every object below stays visible.
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

/// Turns the colours until they stand out from what they cover; `None` when they do not in a few tries.
fn apart(
    rng: &mut Rng,
    mut colours: [[i64; 3]; 2],
    coverage: &Coverage,
    image: &Image,
) -> Option<[[i64; 3]; 2]> {
    /// Least distance of the colours, summed over the channels.
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
            |colour: &[i64; 3]| -> i64 { colour.iter().zip(&mean).map(|(a, b)| (a - b).abs()).sum() };
        if colours.iter().all(|colour| distance(colour) >= DISTANCE) {
            return Some(colours);
        }
        colours = random_colours(rng);
    }
    None
}

/// Paints a figure with a gradient from top to bottom and grain; border pixels mix with what is below.
fn paint(rng: &mut Rng, image: &mut Image, figure: &Figure, coverage: &Coverage, colours: &[[i64; 3]; 2]) {
    let side = image.width as i64;
    let grain = rng.between(2, 12);
    let height = 2 * figure.radius;
    for &(at, covered) in coverage {
        let down = (at as i64 / side * 16 - figure.centre[1] + figure.radius).clamp(0, height);
        let pixel = &mut image.data[at * 3..at * 3 + 3];
        for ((shown, from), to) in pixel.iter_mut().zip(&colours[0]).zip(&colours[1]) {
            let value = (from + (to - from) * down / height + rng.between(-grain, grain)).clamp(0, 255);
            let below = i64::from(*shown);
            let whole = SAMPLES * SAMPLES;
            *shown = ((value * covered + below * (whole - covered)) / whole) as u8;
        }
    }
}
