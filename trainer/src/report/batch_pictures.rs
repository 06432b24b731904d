//! Pictures of the first batches of training (`train_batch0.jpg`) and of a validation
//! (`val_batch0_labels.jpg`, `val_batch0_pred.jpg`): the images side by side with their boxes. They
//! show wrong labels and wrong augmentation at a glance.

use std::path::{Path, PathBuf};

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster};
use yolo_data::image::Image;
use yolo_data::image::encode::write_jpeg;
use yolo_data::loader::Batch;

use super::plot_style::colour;
use crate::detection::{self, ImageResult};
use crate::error::TrainError;

/// Number of batches with pictures (spec §10).
pub const PICTURED: usize = 3;
/// Maximum images per picture.
const IMAGES: usize = 16;
/// Maximum side of a picture in pixels; larger ones are subsampled.
const LONGEST: usize = 1920;
/// Detections below this confidence are not drawn, because validation keeps very many.
const CONFIDENT: f32 = 0.25;
/// Height of a line of text in pixels.
const TEXT: usize = 16;

/// A box to draw, in pixels of its image in the batch.
struct Marked {
    corners: [f32; 4],
    class: usize,
    text: String,
}

/// Writes the images of a training batch with their targets.
///
/// # Errors
/// When the file cannot be written.
pub fn draw_targets(batch: &Batch, names: &[String], path: &Path) -> Result<(), TrainError> {
    let mut sheet = Sheet::new(batch);
    for image in 0..sheet.images {
        targets(batch, image, names).iter().for_each(|marked| sheet.mark(image, marked));
    }
    sheet.write(path)
}

/// Draws the first batches of a validation twice: with the labels, and with the detections.
#[derive(Debug)]
pub struct ValPictures<'a> {
    folder: PathBuf,
    names: &'a [String],
    /// The batch being drawn: its number, the picture with labels, the picture with detections.
    open: Option<(usize, Sheet, Sheet)>,
}

impl<'a> ValPictures<'a> {
    /// Pictures in the run folder.
    pub fn new(folder: &Path, names: &'a [String]) -> Self {
        Self { folder: folder.to_owned(), names, open: None }
    }

    /// Adds the detections of one image. Images come in the order of batches.
    ///
    /// # Errors
    /// When a picture cannot be written.
    pub fn add(&mut self, result: &ImageResult<'_>) -> Result<(), TrainError> {
        if result.batch_number >= PICTURED || result.index >= IMAGES {
            return Ok(());
        }
        if self.open.as_ref().is_none_or(|(number, ..)| *number != result.batch_number) {
            self.write()?;
            self.open = Some((result.batch_number, Sheet::new(result.batch), Sheet::new(result.batch)));
        }
        let Some((_, labels, found)) = &mut self.open else { return Ok(()) };
        for marked in targets(result.batch, result.index, self.names) {
            labels.mark(result.index, &marked);
        }
        let item = &result.batch.items[result.index];
        for detection in result.detections.iter().filter(|found| found.confidence >= CONFIDENT) {
            let [left, top, right, bottom] = detection.corners;
            let x = |value: f32| value * item.ratio[1] + item.pad[0];
            let y = |value: f32| value * item.ratio[0] + item.pad[1];
            let text = format!("{} {:.1}", name(self.names, detection.class), detection.confidence);
            let corners = [x(left), y(top), x(right), y(bottom)];
            found.mark(result.index, &Marked { corners, class: detection.class, text });
        }
        Ok(())
    }

    /// Writes the pictures of the last batch.
    ///
    /// # Errors
    /// When a picture cannot be written.
    pub fn write(&mut self) -> Result<(), TrainError> {
        let Some((number, labels, found)) = self.open.take() else { return Ok(()) };
        labels.write(&self.folder.join(format!("val_batch{number}_labels.jpg")))?;
        found.write(&self.folder.join(format!("val_batch{number}_pred.jpg")))
    }
}

fn name(names: &[String], class: usize) -> &str {
    names.get(class).map_or("?", String::as_str)
}

fn targets(batch: &Batch, image: usize, names: &[String]) -> Vec<Marked> {
    let (width, height) = (batch.width as f32, batch.height as f32);
    let own = batch.targets.iter().filter(|target| target[0] as usize == image);
    own.map(|&[_, class, x, y, w, h]| Marked {
        corners: detection::corners([x * width, y * height, w * width, h * height]),
        class: class as usize,
        text: name(names, class as usize).to_owned(),
    })
    .collect()
}

/// The images of a batch in a square grid.
#[derive(Debug)]
struct Sheet {
    picture: Image,
    columns: usize,
    images: usize,
    /// Width and height of one image on the picture.
    cell: [usize; 2],
    /// Every `step`-th pixel of the batch is drawn.
    step: usize,
}

impl Sheet {
    fn new(batch: &Batch) -> Self {
        let images = batch.items.len().min(IMAGES);
        let columns = (images as f64).sqrt().ceil() as usize;
        let rows = images.div_ceil(columns.max(1));
        let step = (columns * batch.width).max(rows * batch.height).div_ceil(LONGEST).max(1);
        let cell = [batch.width.div_ceil(step), batch.height.div_ceil(step)];
        let mut picture = Image::filled(columns * cell[0], rows * cell[1], [255; 3]);
        let plane = batch.width * batch.height;
        for image in 0..images {
            let pixels = &batch.pixels[image * 3 * plane..][..3 * plane];
            let [left, top] = [image % columns * cell[0], image / columns * cell[1]];
            for y in 0..cell[1] {
                for x in 0..cell[0] {
                    let from = y * step * batch.width + x * step;
                    let to = ((top + y) * picture.width + left + x) * 3;
                    let rgb = [pixels[from], pixels[plane + from], pixels[2 * plane + from]];
                    picture.data[to..to + 3].copy_from_slice(&rgb);
                }
            }
        }
        Self { picture, columns, images, cell, step }
    }

    /// Draws a box on an image of the batch, with its text above it, or inside if there is no room.
    fn mark(&mut self, image: usize, marked: &Marked) {
        let ink = colour(marked.class);
        let ink = [ink.0, ink.1, ink.2];
        let [width, height] = self.cell;
        let scaled = |value: f32, side: usize| {
            ((value / self.step as f32).round() as i64).clamp(0, side as i64 - 1) as usize
        };
        let [left, top, right, bottom] = marked.corners;
        let (left, right) = (scaled(left, width), scaled(right, width));
        let (top, bottom) = (scaled(top, height), scaled(bottom, height));
        for line in 0..2 {
            for x in left..=right {
                self.put(image, x, top + line, ink);
                self.put(image, x, bottom.saturating_sub(line), ink);
            }
            for y in top..=bottom {
                self.put(image, left + line, y, ink);
                self.put(image, right.saturating_sub(line), y, ink);
            }
        }
        self.write_text(image, [left, top.checked_sub(TEXT).unwrap_or(top)], &marked.text, ink);
    }

    fn put(&mut self, image: usize, x: usize, y: usize, rgb: [u8; 3]) {
        let [width, height] = self.cell;
        if x >= width || y >= height {
            return;
        }
        let (x, y) = (image % self.columns * width + x, image / self.columns * height + y);
        let at = (y * self.picture.width + x) * 3;
        self.picture.data[at..at + 3].copy_from_slice(&rgb);
    }

    /// Writes white letters on the colour of the box.
    fn write_text(&mut self, image: usize, [left, top]: [usize; 2], text: &str, ground: [u8; 3]) {
        let mut left = left;
        for letter in text.chars() {
            // Characters that the font lacks become a question mark.
            let raster = |letter| get_raster(letter, FontWeight::Regular, RasterHeight::Size16);
            let Some(raster) = raster(letter).or_else(|| raster('?')) else { return };
            for (y, row) in raster.rows().enumerate() {
                for (x, &share) in row.iter().enumerate() {
                    let mixed = ground.map(|part| {
                        let (part, share) = (u16::from(part), u16::from(share));
                        ((part * (255 - share) + 255 * share) / 255) as u8
                    });
                    self.put(image, left + x, top + y, mixed);
                }
            }
            left += raster.width();
        }
    }

    fn write(&self, path: &Path) -> Result<(), TrainError> {
        Ok(write_jpeg(path, &self.picture)?)
    }
}

#[cfg(test)]
mod tests {
    use yolo_data::loader::Item;

    use super::*;

    fn batch(images: usize, side: usize) -> Batch {
        let item = Item { sample: 0, native: [1, 1], ratio: [1.0; 2], pad: [0.0; 2] };
        Batch {
            height: side,
            width: side,
            pixels: vec![0; images * 3 * side * side],
            targets: vec![[1.0, 0.0, 0.5, 0.5, 0.5, 0.5]],
            items: vec![item; images],
        }
    }

    #[test]
    fn images_form_a_grid_and_boxes_are_on_their_own_image() {
        let batch = batch(3, 64);
        let mut sheet = Sheet::new(&batch);
        assert_eq!((sheet.picture.width, sheet.picture.height), (128, 128));
        for image in 0..3 {
            targets(&batch, image, &["cat".to_owned()]).iter().for_each(|one| sheet.mark(image, one));
        }
        let ink = colour(0);
        // The second image has a box from 16 to 48; the first has none; the fourth cell is empty.
        assert_eq!(sheet.picture.pixel(64 + 16, 40), [ink.0, ink.1, ink.2]);
        assert_eq!(sheet.picture.pixel(16, 40), [0; 3]);
        assert_eq!(sheet.picture.pixel(100, 100), [255; 3]);
        // Letters are lighter than their background.
        let above = (64 + 16..64 + 40).flat_map(|x| (0..16).map(move |y| (x, y)));
        let lighter = |rgb: [u8; 3]| rgb != [ink.0, ink.1, ink.2] && rgb.iter().all(|&part| part > 160);
        assert!(above.map(|(x, y)| sheet.picture.pixel(x, y)).any(lighter));
    }

    #[test]
    fn large_batches_are_truncated_and_subsampled() {
        let sheet = Sheet::new(&batch(20, 640));
        assert_eq!((sheet.images, sheet.columns, sheet.step), (16, 4, 2));
        assert_eq!((sheet.picture.width, sheet.picture.height), (1280, 1280));
    }
}
