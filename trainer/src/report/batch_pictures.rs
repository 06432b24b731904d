//! Pictures of the first batches of training (`train_batch0.jpg`) and of a validation
//! (`val_batch0_labels.jpg`, `val_batch0_pred.jpg`): the images side by side with their boxes. They
//! show wrong labels and wrong augmentation at a glance.

use std::path::{Path, PathBuf};

use yolo_data::image::Image;
use yolo_data::image::encode::{jpeg, write_jpeg};
use yolo_data::loader::Batch;

use super::draw_boxes::{Area, BoxStyle, LabeledBox, draw_boxes};
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

/// Writes the images of a training batch with their targets.
///
/// # Errors
/// When the file cannot be written.
pub fn draw_targets(batch: &Batch, names: &[String], path: &Path) -> Result<(), TrainError> {
    let mut sheet = Sheet::new(batch);
    for image in 0..sheet.images {
        targets(batch, image, names).iter().for_each(|labeled| sheet.mark(image, labeled));
    }
    sheet.write(path)
}

/// A picture that is not written yet: its path, and the bytes of the file.
pub type Picture = (PathBuf, Vec<u8>);

/// Draws the first batches of a validation twice: with the labels, and with the detections.
#[derive(Debug)]
pub struct ValPictures<'a> {
    folder: PathBuf,
    names: &'a [String],
    /// The batch being drawn: its number, the picture with labels, the picture with detections.
    open: Option<(usize, Sheet, Sheet)>,
    drawn: Vec<Picture>,
}

impl<'a> ValPictures<'a> {
    /// Pictures for the run folder.
    pub fn new(folder: &Path, names: &'a [String]) -> Self {
        Self { folder: folder.to_owned(), names, open: None, drawn: Vec::new() }
    }

    /// Adds the detections of one image. Images come in the order of batches.
    ///
    /// # Errors
    /// When a picture cannot be encoded.
    pub fn add(&mut self, result: &ImageResult<'_>) -> Result<(), TrainError> {
        if result.batch_number >= PICTURED || result.index >= IMAGES {
            return Ok(());
        }
        if self.open.as_ref().is_none_or(|(number, ..)| *number != result.batch_number) {
            self.close()?;
            self.open = Some((result.batch_number, Sheet::new(result.batch), Sheet::new(result.batch)));
        }
        let Some((_, labels, found)) = &mut self.open else { return Ok(()) };
        for labeled in targets(result.batch, result.index, self.names) {
            labels.mark(result.index, &labeled);
        }
        let item = &result.batch.items[result.index];
        for detection in result.detections.iter().filter(|found| found.confidence >= CONFIDENT) {
            let [left, top, right, bottom] = detection.corners;
            let x = |value: f32| value * item.ratio[1] + item.pad[0];
            let y = |value: f32| value * item.ratio[0] + item.pad[1];
            let text = format!("{} {:.1}", name(self.names, detection.class), detection.confidence);
            let corners = [x(left), y(top), x(right), y(bottom)];
            found.mark(result.index, &LabeledBox { corners, class: detection.class, text });
        }
        Ok(())
    }

    /// All pictures.
    ///
    /// # Errors
    /// When a picture cannot be encoded.
    pub fn finish(mut self) -> Result<Vec<Picture>, TrainError> {
        self.close()?;
        Ok(self.drawn)
    }

    /// Ends the pictures of the last batch.
    fn close(&mut self) -> Result<(), TrainError> {
        let Some((number, labels, found)) = self.open.take() else { return Ok(()) };
        for (sheet, kind) in [(labels, "labels"), (found, "pred")] {
            let path = self.folder.join(format!("val_batch{number}_{kind}.jpg"));
            let bytes = jpeg(&path, &sheet.picture)?;
            self.drawn.push((path, bytes));
        }
        Ok(())
    }
}

fn name(names: &[String], class: usize) -> &str {
    names.get(class).map_or("?", String::as_str)
}

fn targets(batch: &Batch, image: usize, names: &[String]) -> Vec<LabeledBox> {
    let (width, height) = (batch.width as f32, batch.height as f32);
    let own = batch.targets.iter().filter(|target| target[0] as usize == image);
    own.map(|&[_, class, x, y, w, h]| LabeledBox {
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

    /// Draws a box on an image of the batch.
    fn mark(&mut self, image: usize, labeled: &LabeledBox) {
        let [width, height] = self.cell;
        let (left, top) = (image % self.columns * width, image / self.columns * height);
        let scaled = LabeledBox {
            corners: labeled.corners.map(|value| value / self.step as f32),
            text: labeled.text.clone(),
            ..*labeled
        };
        draw_boxes(&mut self.picture, Area { left, top, width, height }, &[scaled], BoxStyle::FINE);
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
        let ink = crate::report::plot_style::color(0);
        // The second image has a box from 16 to 48; the first has none; the fourth cell is empty.
        assert_eq!(sheet.picture.pixel(64 + 16, 40), [ink.0, ink.1, ink.2]);
        assert_eq!(sheet.picture.pixel(16, 40), [0; 3]);
        assert_eq!(sheet.picture.pixel(100, 100), [255; 3]);
    }

    #[test]
    fn large_batches_are_truncated_and_subsampled() {
        let sheet = Sheet::new(&batch(20, 640));
        assert_eq!((sheet.images, sheet.columns, sheet.step), (16, 4, 2));
        assert_eq!((sheet.picture.width, sheet.picture.height), (1280, 1280));
    }
}
