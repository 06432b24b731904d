//! The videos, cameras and streams of one rank. Videos come one after another; then all cameras and streams at once,
//! each with its newest frame. What is read is also written, with boxes, as a video of the same pace.

use std::path::Path;

use yolo_data::image::Image;
use yolo_plan::run::{Video, VideoKind};

use super::ahead::Ahead;
use super::read::{FrameOf, prepare};
use super::search::{Film, Search};
use super::video::{Encoder, Facts, Ffmpeg, Frames, Live, News, Next, page_at, probe};
use crate::error::TrainError;

impl Search<'_> {
    /// Does the videos of this rank, then its cameras and streams. Returns whether none is left.
    pub(super) fn videos(&mut self) -> Result<bool, TrainError> {
        let (rank, world) = (self.context.rank, self.context.world.max(1));
        let first = self.task.pictures.len();
        let videos = self.task.videos.iter().enumerate().filter(|(index, _)| index % world == rank);
        let own: Vec<(usize, Video)> = videos.map(|(index, video)| (first + index, video.clone())).collect();
        if own.is_empty() {
            return Ok(true);
        }
        let ffmpeg = Ffmpeg::find()?;
        self.ffmpeg = Some(ffmpeg.clone());
        let mut live = Vec::new();
        for (number, video) in own {
            // A web server may serve a video without the name of one.
            let is_web = video.source.to_string_lossy().starts_with("http");
            let facts = match video.kind {
                VideoKind::File => Some(probe(&video.source)),
                VideoKind::Stream if is_web => Some(probe(&video.source)),
                VideoKind::Stream | VideoKind::Camera | VideoKind::Screen => None,
            };
            match facts {
                Some(Err(why)) if video.kind == VideoKind::Stream => {
                    let page = page_at(&video.source);
                    self.skip_video(number, page.unwrap_or(&why), 0);
                }
                Some(Err(why)) => self.skip_video(number, &why, 0),
                Some(Ok(facts)) if facts.ends || video.kind == VideoKind::File => {
                    if !self.film(&ffmpeg, number, &video, facts)? {
                        return Ok(false);
                    }
                }
                _ => live.push((number, video)),
            }
        }
        if live.is_empty() { Ok(true) } else { self.live(&ffmpeg, live) }
    }

    /// Does one video. Returns whether it was done to its end.
    fn film(
        &mut self,
        ffmpeg: &Ffmpeg,
        number: usize,
        video: &Video,
        facts: Facts,
    ) -> Result<bool, TrainError> {
        let stride = self.task.vid_stride;
        let mut frames = match Frames::open(ffmpeg, video, stride, Some(facts)) {
            Ok(frames) => frames,
            Err(why) => {
                self.skip_video(number, &why, 0);
                return Ok(true);
            }
        };
        self.films.insert(number, Film { pace: Some(facts.pace.strided(stride)), encoder: None });
        let mut reading = Ahead::new(&self.threads);
        let (mut count, mut ended) = (0, None);
        let context = self.context;
        loop {
            while ended.is_none() && reading.len() < self.task.batch + self.task.workers {
                match frames.next(None, &|| context.asked_to_stop()) {
                    Next::Frame(image) => {
                        count += 1;
                        let frame = FrameOf { number: count, all: facts.frames.map(|all| all / stride) };
                        let (target, stride) = (self.target, self.stride);
                        reading.give(move || prepare(number, Some(frame), image, target, stride));
                    }
                    Next::End(end) => ended = Some(end),
                    Next::Late | Next::Stopped => break,
                }
            }
            if context.asked_to_stop() {
                break;
            }
            match reading.next()? {
                Some(ready) => self.take(ready)?,
                None => break,
            }
        }
        self.finish_all()?;
        self.finish_video(number)?;
        if let Some(Err(why)) = &ended {
            // Those that still wait are not searched if the run was interrupted.
            self.skip_video(number, why, count - reading.len());
        }
        Ok(ended.is_some() && reading.len() == 0)
    }

    /// Follows cameras and streams until they are gone or the run is to stop.
    fn live(&mut self, ffmpeg: &Ffmpeg, own: Vec<(usize, Video)>) -> Result<bool, TrainError> {
        let (numbers, videos): (Vec<usize>, Vec<Video>) = own.into_iter().unzip();
        numbers.iter().for_each(|number| {
            self.films.insert(*number, Film { pace: None, encoder: None });
        });
        let mut live = Live::open(ffmpeg, &videos, self.task.vid_stride);
        let mut counts = vec![0; numbers.len()];
        let mut open = numbers.len();
        while open > 0 && !self.context.asked_to_stop() {
            let Some((index, news)) = live.next() else { continue };
            let number = numbers[index];
            match news {
                News::Frame(image) => {
                    counts[index] += 1;
                    let frame = FrameOf { number: counts[index], all: None };
                    let ready = prepare(number, Some(frame), image, self.target, self.stride);
                    self.take(ready)?;
                    // Nobody waits for other frames to fill a batch.
                    self.search_batch()?;
                }
                News::Dropped(why) => self
                    .context
                    .reporter
                    .warning(format!("{}: {why}; opening it again", self.source(number).0.display())),
                News::Ended(why) => {
                    open -= 1;
                    self.skip_video(number, &why, counts[index]);
                }
            }
        }
        drop(live);
        self.finish_all()?;
        for number in numbers {
            self.finish_video(number)?;
        }
        Ok(open == 0)
    }

    /// Adds a frame with its boxes to the video of its source.
    pub(super) fn add_to_video(
        &mut self,
        number: usize,
        path: &Path,
        frame: Image,
    ) -> Result<(), TrainError> {
        let (Some(film), Some(ffmpeg)) = (self.films.get_mut(&number), &self.ffmpeg) else { return Ok(()) };
        let encoder = match &mut film.encoder {
            Some(encoder) => encoder,
            none => none.insert(Encoder::start(ffmpeg, path, [frame.height, frame.width], film.pace)?),
        };
        encoder.add(frame)
    }

    fn finish_video(&mut self, number: usize) -> Result<(), TrainError> {
        match self.films.remove(&number).and_then(|film| film.encoder) {
            Some(encoder) => encoder.finish().map(|_| ()),
            None => Ok(()),
        }
    }

    fn skip_video(&self, number: usize, why: &str, frames: usize) {
        self.skip(number, format!("{}: {why}", self.source(number).0.display()), frames);
    }
}
