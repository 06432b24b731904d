//! The pictures and frames of one rank through the network: consecutive ones of the same shape share a batch, up to `--batch`.
//! What is found in a picture does not depend on the others of its batch, apart from the rounding of floats.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rayon::ThreadPool;
use tch::Tensor;
use yolo_data::image::Image;
use yolo_data::loader::Batch;
use yolo_plan::event::{Event, FoundObject, Predicted};
use yolo_plan::model::MIN_STRIDE;
use yolo_plan::run::PredictTask;

use super::ahead::{Ahead, start_threads};
use super::csv::{Done, Rows, rows_of};
use super::features;
use super::preview::{Pacer, preview};
use super::read::{Ready, read};
use super::video::{Encoder, Ffmpeg, Pace};
use super::write::{Drawn, Outputs, Writable};
use crate::detection::{Detection, NmsSettings, Suppressor, find_objects, forward, input_tensor};
use crate::error::TrainError;
use crate::model::Model;
use crate::rank::context::Context;

/// A picture whose files were written by a thread, and the frame with its boxes that is to become part of a video.
type Written = (Predicted, Option<Image>);

/// A video that is read.
pub(super) struct Film {
    /// `None` if frames are shown as long as they were apart when they came.
    pub(super) pace: Option<Pace>,
    /// The video with boxes, since its first frame.
    pub(super) encoder: Option<Encoder>,
}

/// The search of one rank.
pub(super) struct Search<'a> {
    pub(super) context: &'a Context,
    pub(super) task: &'a PredictTask,
    models: &'a [Model],
    /// The largest stride of the models.
    pub(super) stride: usize,
    pub(super) outputs: Arc<Outputs>,
    nms: NmsSettings,
    suppressor: Suppressor,
    /// The height and width that pictures are fitted into, multiples of the model's stride.
    pub(super) target: [usize; 2],
    pub(super) threads: Arc<ThreadPool>,
    writing: Ahead<Result<Written, TrainError>>,
    /// What goes into the network next.
    batch: Vec<Ready>,
    /// The videos that are being read, by their number.
    pub(super) films: BTreeMap<usize, Film>,
    pub(super) ffmpeg: Option<Ffmpeg>,
    rows: Vec<Rows>,
    /// Whether a picture or frame was searched.
    any: bool,
    /// When a frame was shown.
    pacer: Pacer,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        context: &'a Context,
        task: &'a PredictTask,
        models: &'a [Model],
        outputs: Arc<Outputs>,
    ) -> Result<Self, TrainError> {
        let stride = models.iter().map(Model::largest_stride).max().unwrap_or(MIN_STRIDE);
        let target = task.image_size.map(|side| side.next_multiple_of(stride));
        if target != task.image_size && context.is_main() {
            context.reporter.warning(format!(
                "--imgsz {} is not a multiple of the model's largest stride {stride}: using {}",
                shown(task.image_size),
                shown(target)
            ));
        }
        let threads = start_threads(task.workers)?;
        Ok(Self {
            context,
            task,
            models,
            stride,
            outputs,
            nms: NmsSettings {
                conf_thres: task.conf_thres as f32,
                iou_thres: task.iou_thres,
                multi_label: false,
                agnostic: task.agnostic_nms,
                classes: task.classes.clone(),
                max_det: task.max_det,
            },
            suppressor: Suppressor::default(),
            target,
            writing: Ahead::new(&threads),
            threads,
            batch: Vec::new(),
            films: BTreeMap::new(),
            ffmpeg: None,
            rows: Vec::new(),
            any: false,
            pacer: Pacer::default(),
        })
    }

    /// Does all pictures and videos of this rank, or stops when the user interrupts; what was begun is finished.
    pub(super) fn run(mut self) -> Result<Done, TrainError> {
        let complete = self.pictures()? && self.videos()?;
        Ok(Done { complete, any: self.any, rows: self.rows })
    }

    /// Does all pictures of this rank. Returns whether none is left.
    fn pictures(&mut self) -> Result<bool, TrainError> {
        let own = of_rank(self.task.pictures.len(), self.task.batch, self.context.rank, self.context.world);
        let mut coming = own.into_iter();
        let mut reading = Ahead::new(&self.threads);
        let mut complete = true;
        loop {
            while reading.len() < self.task.batch + self.task.workers
                && let Some(number) = coming.next()
            {
                let picture = self.task.pictures[number].clone();
                let (target, stride) = (self.target, self.stride);
                reading.give(move || match picture.unavailable {
                    Some(why) => Err((number, why)),
                    None => read(number, &picture, target, stride),
                });
            }
            match reading.next()? {
                None => break,
                Some(Err((number, reason))) => self.skip(number, reason, 0),
                Some(Ok(ready)) => self.take(ready)?,
            }
            if self.context.asked_to_stop() {
                complete = reading.len() == 0 && self.batch.is_empty() && coming.len() == 0;
                break;
            }
        }
        if !complete {
            self.batch.clear();
        }
        self.finish_all()?;
        Ok(complete)
    }

    /// Has a picture searched together with others of its shape.
    pub(super) fn take(&mut self, ready: Ready) -> Result<(), TrainError> {
        if self.batch.first().is_some_and(|first| first.input != ready.input) {
            self.search_batch()?;
        }
        self.batch.push(ready);
        if self.batch.len() == self.task.batch { self.search_batch() } else { Ok(()) }
    }

    /// Searches what was taken, and waits until all files are written.
    pub(super) fn finish_all(&mut self) -> Result<(), TrainError> {
        self.search_batch()?;
        while let Some(written) = self.writing.next()? {
            self.report(written?)?;
        }
        Ok(())
    }

    pub(super) fn search_batch(&mut self) -> Result<(), TrainError> {
        let batch = std::mem::take(&mut self.batch);
        self.search(batch)
    }

    /// Runs the network on a batch, and has its results written.
    fn search(&mut self, pictures: Vec<Ready>) -> Result<(), TrainError> {
        let Some(first) = pictures.first() else { return Ok(()) };
        let [height, width] = first.input;
        let mut batch = Batch { height, width, pixels: Vec::new(), targets: Vec::new(), items: Vec::new() };
        for picture in &pictures {
            batch.pixels.extend_from_slice(&picture.planes);
            batch.items.push(picture.item.clone());
        }
        let began = Instant::now();
        let input = input_tensor(self.models, &batch, self.task.half)?;
        let rows = forward(self.models, &input, self.task.augment)?.rows(self.nms.conf_thres)?;
        let milliseconds = began.elapsed().as_secs_f64() * 1000.0 / pictures.len() as f64;
        if self.task.visualize {
            self.write_features(&input, &pictures)?;
        }
        let classes = self.models.first().map_or(0, |model| model.spec().nc);
        for (index, ready) in pictures.into_iter().enumerate() {
            let of_image = rows.of_image(index);
            let mut found =
                find_objects(&mut self.suppressor, of_image, classes, &ready.item, &[], &self.nms);
            // As in YOLOv5, boxes are in whole pixels before they are written or drawn.
            for object in &mut found {
                object.corners = object.corners.map(f32::round_ties_even);
            }
            self.write(ready, found, milliseconds);
        }
        // So many pictures wait for their files at most, because each may be large.
        while self.writing.len() > 2 * self.task.workers
            && let Some(written) = self.writing.next()?
        {
            self.report(written?)?;
        }
        while let Some(written) = self.writing.try_next()? {
            self.report(written?)?;
        }
        Ok(())
    }

    /// Writes what each layer makes of the pictures of a batch.
    fn write_features(&self, input: &Tensor, pictures: &[Ready]) -> Result<(), TrainError> {
        let names: Vec<String> = pictures
            .iter()
            .map(|ready| {
                let stem = self.source(ready.number).1;
                ready.frame.map_or(stem.to_owned(), |frame| format!("{stem}_{}", frame.number))
            })
            .collect();
        self.models.iter().try_for_each(|model| features::write(model, input, self.outputs.folder(), &names))
    }

    /// Has the files of a picture written.
    fn write(&mut self, ready: Ready, found: Vec<Detection>, milliseconds: f64) {
        // Of a video, as many frames are shown as people can follow.
        let view = self.task.view_img.filter(|_| ready.frame.is_none() || self.pacer.is_due());
        let (path, stem) = self.source(ready.number);
        let object = |found: &Detection| FoundObject {
            class: found.class,
            name: self.outputs.name(found.class).to_owned(),
            confidence: found.confidence,
            corners: found.corners.map(|side| side as u32),
        };
        let frame = ready.frame.map(|frame| frame.number);
        let predicted = Predicted {
            picture: ready.number,
            pictures: self.task.pictures.len() + self.task.videos.len(),
            path: path.to_owned(),
            frame,
            frames: ready.frame.and_then(|frame| frame.all),
            size: [ready.image.height, ready.image.width],
            input: ready.input,
            found: found.iter().map(object).collect(),
            milliseconds,
            saved: frame.and_then(|_| self.outputs.video(stem)),
            preview: None,
        };

        let (path, stem): (PathBuf, String) = (path.to_owned(), stem.to_owned());
        let size = ready.item.native;
        let image =
            if self.outputs.need_pixels() || view.is_some() { ready.image } else { Default::default() };
        let outputs = Arc::clone(&self.outputs);
        self.writing.give(move || {
            let Drawn { saved, image } =
                outputs.write(Writable { path, stem, frame, image, found }, size, view.is_some())?;
            let preview = match (view, &image) {
                (Some(view), Some(image)) => Some(preview(image, view)?),
                _ => None,
            };
            let saved = saved.or(predicted.saved);
            Ok((Predicted { saved, preview, ..predicted }, image.filter(|_| frame.is_some())))
        });
    }

    fn report(&mut self, (predicted, frame): Written) -> Result<(), TrainError> {
        if let (Some(frame), Some(path)) = (frame, &predicted.saved) {
            self.add_to_video(predicted.picture, path, frame)?;
        }
        self.any = true;
        if self.task.save_csv {
            let rows = rows_of(&predicted, self.source(predicted.picture).1);
            self.rows.push(rows);
        }
        self.context.reporter.send(&Event::Predicted(predicted));
        Ok(())
    }

    /// A picture or video by its number: how it is called for people, and the name of its results.
    pub(super) fn source(&self, number: usize) -> (&Path, &str) {
        match self.task.pictures.get(number) {
            Some(picture) => (picture.shown(), &picture.stem),
            None => {
                let video = &self.task.videos[number - self.task.pictures.len()];
                (&video.shown, &video.stem)
            }
        }
    }

    /// Says why a picture, or a part of a video, could not be read. `frames` of the video were searched.
    pub(super) fn skip(&self, number: usize, reason: String, frames: usize) {
        let path = self.source(number).0.to_owned();
        self.context.reporter.send(&Event::Skipped { picture: number, path, reason, frames });
    }
}

/// The pictures of a rank: every `world`th batch.
fn of_rank(pictures: usize, batch: usize, rank: usize, world: usize) -> Vec<usize> {
    (0..pictures).filter(|number| number / batch.max(1) % world.max(1) == rank).collect()
}

fn shown([height, width]: [usize; 2]) -> String {
    if height == width { height.to_string() } else { format!("{height} {width}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_share_the_pictures_in_whole_batches() {
        let of = |rank| of_rank(7, 2, rank, 2);
        assert_eq!((of(0), of(1)), (vec![0, 1, 4, 5], vec![2, 3, 6]));
        assert_eq!(of_rank(1, 8, 1, 2), Vec::<usize>::new());
    }
}
