//! How an augmented image is made of loaded ones: which, where on the canvas, and through which transform. A
//! layout needs the sizes of images but not their pixels, so it is drawn before anything is loaded, and only what
//! it shows has to be.

use super::Augment;
use super::copy_paste::{self, Polygon};
use super::label::{Label, transform_labels};
use super::mosaic::{draw_center, labels_of, paint, places};
use super::transform::{Draws, Transform, apply};
use crate::image::letterbox::{Letterbox, LetterboxOptions};
use crate::image::tiles::{Place, Tile, View};
use crate::image::warp::{Matrix, invert};
use crate::image::{Image, Part, Window};
use crate::image_weights::EpochImages;
use crate::random::Random;
use crate::scan::Sample;

/// An image on the canvas.
#[derive(Debug, Clone, Copy)]
pub struct LayoutTile {
    /// The index of the image.
    pub image: usize,
    /// The width and height to which it is resized.
    pub size: [usize; 2],
    /// Its place.
    pub place: Place,
}

/// The images behind an augmented image, and their labels after the transform.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The images.
    pub tiles: Vec<LayoutTile>,
    /// The outlines of copied objects on the canvas.
    copies: Vec<Polygon>,
    /// The side of a mosaic's canvas in pixels; 0 if there is no mosaic.
    side: usize,
    /// Maps the canvas to the output.
    matrix: Matrix,
    /// The height and width of the output.
    output: [usize; 2],
    /// The labels in pixels of the output.
    pub labels: Vec<Label>,
}

impl Layout {
    /// Draws a mosaic of the image at `position` and three others of the epoch, for an output of `size` pixels.
    /// `size_of` gives the width and height of an image.
    pub fn mosaic(
        (position, images): (usize, &EpochImages),
        samples: &[Sample],
        size_of: impl Fn(usize) -> [usize; 2],
        size: usize,
        augment: &Augment,
        random: &mut Random,
    ) -> Self {
        let (center, mut indices) = draw_images((position, images), size, random);
        random.shuffle(&mut indices);
        let sizes = indices.map(size_of);
        let places = places(sizes, center, size);
        let mut labels = Vec::new();
        for ((&index, &size_of), place) in indices.iter().zip(&sizes).zip(&places) {
            labels.extend(labels_of(&samples[index], size_of, place, size));
        }
        let side = 2 * size;
        let copies = copy_paste::choose(augment.copy_paste, side, &mut labels, random);
        let transform = Transform::new(&Draws::random(augment, random), [side; 2], [size; 2]);
        transform_labels(&mut labels, &transform, size, size);
        let tile = |i| LayoutTile { image: indices[i], size: sizes[i], place: places[i] };
        let tiles = (0..indices.len()).map(tile).collect();
        Self { tiles, copies, side, matrix: transform.matrix, output: [size; 2], labels }
    }

    /// Draws the transform of image `index`, which is `width` by `height` pixels, to an output of height and
    /// width `output`.
    pub fn single(
        index: usize,
        sample: &Sample,
        [width, height]: [usize; 2],
        output: [usize; 2],
        augment: &Augment,
        random: &mut Random,
    ) -> Self {
        let letterbox = Letterbox::new(height, width, &LetterboxOptions::exact(output, true));
        let extent = [width as f64 * letterbox.ratio[1], height as f64 * letterbox.ratio[0]];
        let mut labels: Vec<Label> = Label::of_sample(sample, extent, letterbox.pad).collect();
        let transform = Transform::new(&Draws::random(augment, random), letterbox.size(), output);
        transform_labels(&mut labels, &transform, output[1], output[0]);
        let [top, _, left, _] = letterbox.borders.map(|pixels| pixels as i32);
        let [height, width] = letterbox.scaled;
        let area = [left, top, left + width as i32, top + height as i32];
        let place = Place { origin: [left, top], area };
        let tiles = vec![LayoutTile { image: index, size: [width, height], place }];
        Self { tiles, copies: Vec::new(), side: 0, matrix: transform.matrix, output, labels }
    }

    /// The part of `tile` that the output may show, in pixels of the image; `None` if it shows nothing of it.
    pub fn shown(&self, tile: &LayoutTile) -> Option<Window> {
        let Place { origin, area } = tile.place;
        let [left, top, right, bottom] = match invert(&self.matrix) {
            // A copied object is taken from the canvas, which can be anywhere.
            _ if !self.copies.is_empty() || self.matrix[2] != [0.0, 0.0, 1.0] => area,
            None => return None,
            Some(inverse) => {
                let [height, width] = self.output.map(|side| side as f32);
                let corners = [[0.0, 0.0], [width, 0.0], [0.0, height], [width, height]];
                let corners = corners.map(|corner| apply(&inverse, corner));
                // One pixel for the right and lower neighbors, one for rounding. NaN shows everything.
                let low =
                    |axis: usize| corners.iter().map(|c| c[axis]).fold(f32::MAX, f32::min).floor() - 2.0;
                let high =
                    |axis: usize| corners.iter().map(|c| c[axis]).fold(f32::MIN, f32::max).ceil() + 3.0;
                let [l, t, r, b] = [low(0), low(1), high(0), high(1)].map(|edge| edge as i32);
                [area[0].max(l), area[1].max(t), area[2].min(r), area[3].min(b)]
            }
        };
        let is_shown = left < right && top < bottom;
        is_shown.then(|| Window {
            columns: (left - origin[0]) as usize..(right - origin[0]) as usize,
            rows: (top - origin[1]) as usize..(bottom - origin[1]) as usize,
        })
    }

    /// The output's view of `images`, which are those of [`Self::tiles`] or parts of them. Copied objects need the
    /// pixels of a `canvas`, which is a buffer.
    pub fn view<'a>(&self, images: impl Iterator<Item = Part<'a>>, canvas: &'a mut Image) -> View<'a> {
        let tile = |(Part { image, first }, tile): (Part<'a>, &LayoutTile)| {
            let Place { origin: [x, y], area: [left, top, right, bottom] } = tile.place;
            let [x, y] = [x + first[0] as i32, y + first[1] as i32];
            // Nothing outside the loaded pixels is shown.
            let (width, height) = (image.width as i32, image.height as i32);
            let area = [left.max(x), top.max(y), right.min(x + width), bottom.min(y + height)];
            Tile { image, place: Place { origin: [x, y], area } }
        };
        let tiles: Vec<Tile<'a>> = images.zip(&self.tiles).map(tile).collect();
        if self.copies.is_empty() {
            return View::new(tiles, &self.matrix);
        }
        paint(&tiles, self.side, canvas);
        copy_paste::paste(canvas, &self.copies);
        View::new(vec![Tile::whole(canvas.view())], &self.matrix)
    }
}

/// Draws the center of a mosaic of `size`, and the images around the one at `position` of an epoch.
pub fn draw_images(
    (position, images): (usize, &EpochImages),
    size: usize,
    random: &mut Random,
) -> ([usize; 2], [usize; 4]) {
    let center = draw_center(size, random);
    let mut indices = [images.at(position), 0, 0, 0];
    for other in &mut indices[1..] {
        *other = images.any(random);
    }
    (center, indices)
}
