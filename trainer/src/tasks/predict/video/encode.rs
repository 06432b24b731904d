//! Writes a video through ffmpeg. The file appears under its name when it is complete; a run that stops early
//! completes what it has, so that the part plays.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use fs_err as fs;
use yolo_data::image::Image;

use super::program::{Ffmpeg, Process};
use crate::error::TrainError;

/// Frames that wait for the encoder.
const AHEAD: usize = 4;
/// How long ffmpeg may take to complete a file after its last frame.
const END: Duration = Duration::from_secs(300);

/// Frames per second, as a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    frames: u64,
    seconds: u64,
}

impl Default for Pace {
    /// That of most cameras.
    fn default() -> Self {
        Self { frames: 30, seconds: 1 }
    }
}

impl Pace {
    /// Parses `30000/1001`; `None` if that is no frame rate.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (frames, seconds) = text.split_once('/')?;
        let (frames, seconds) = (frames.parse().ok()?, seconds.parse().ok()?);
        (frames > 0 && seconds > 0 && frames / seconds <= 1000).then_some(Self { frames, seconds })
    }

    /// The whole frames of so many seconds.
    pub(crate) fn frames_in(self, seconds: f64) -> usize {
        (seconds * self.frames as f64 / self.seconds as f64) as usize
    }

    /// That of every `stride`th frame.
    pub(crate) fn strided(self, stride: usize) -> Self {
        Self { seconds: self.seconds.saturating_mul(stride as u64), ..self }
    }
}

/// A video that is being written.
pub(crate) struct Encoder {
    process: Option<Process>,
    frames: Option<SyncSender<Image>>,
    writer: Option<JoinHandle<io::Result<()>>>,
    part: PathBuf,
    path: PathBuf,
    size: [usize; 2],
}

impl Encoder {
    /// Starts a video with frames of this height and width. Without a pace, frames are shown as long as they were
    /// apart when they came.
    ///
    /// # Errors
    /// When ffmpeg cannot be started.
    pub(crate) fn start(
        ffmpeg: &Ffmpeg,
        path: &Path,
        size: [usize; 2],
        pace: Option<Pace>,
    ) -> Result<Self, TrainError> {
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let mut arguments: Vec<OsString> = ["-nostdin", "-v", "error", "-y"].map(Into::into).to_vec();
        if pace.is_none() {
            // ffmpeg rounds the times of frames to this rate, 25 unless it is named, and drops those that become equal. H.264
            // derives from it what a player must be able to decode, so it is not higher than cameras need.
            arguments.extend(["-use_wallclock_as_timestamps", "1", "-framerate", "120"].map(Into::into));
        }
        arguments.extend(["-f", "rawvideo", "-pix_fmt", "rgb24", "-s"].map(Into::into));
        arguments.push(format!("{}x{}", size[1], size[0]).into());
        if let Some(Pace { frames, seconds }) = pace {
            arguments.extend(["-r".into(), format!("{frames}/{seconds}").into()]);
        }
        arguments.extend(["-i", "pipe:0", "-an"].map(Into::into));
        if pace.is_none() {
            arguments.extend(ffmpeg.own_times.map(Into::into));
        }
        // The color format has half as many pixels of color in both directions.
        arguments.extend(["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-c:v"].map(Into::into));
        arguments.extend(ffmpeg.encoder.iter().map(Into::into));
        arguments.extend(["-f".into(), "mp4".into(), part.clone()]);
        let started = Process::start("ffmpeg", arguments, Stdio::piped(), Stdio::null());
        let mut process =
            started.map_err(|error| unwritable(path, &format!("ffmpeg cannot be started: {error}")))?;
        let mut stdin = process.stdin().ok_or_else(|| unwritable(path, "ffmpeg takes no frames"))?;
        let (sender, frames) = sync_channel::<Image>(AHEAD);
        let writer =
            std::thread::spawn(move || frames.iter().try_for_each(|frame| stdin.write_all(&frame.data)));
        let (process, frames, writer) = (Some(process), Some(sender), Some(writer));
        Ok(Self { process, frames, writer, part: part.into(), path: path.to_owned(), size })
    }

    /// Adds a frame.
    ///
    /// # Errors
    /// When its size is another, or ffmpeg has ended: the disk may be full.
    pub(crate) fn add(&mut self, frame: Image) -> Result<(), TrainError> {
        if [frame.height, frame.width] != self.size {
            return Err(unwritable(&self.path, "the size of its frames changes"));
        }
        match self.frames.as_ref().map(|frames| frames.send(frame)) {
            Some(Ok(())) => Ok(()),
            _ => self.end(),
        }
    }

    /// Completes the video.
    ///
    /// # Errors
    /// When it cannot be written; nothing is left of it then.
    pub(crate) fn finish(mut self) -> Result<PathBuf, TrainError> {
        self.end()?;
        fs::rename(&self.part, &self.path).map_err(|error| unwritable(&self.path, &error.to_string()))?;
        Ok(self.path.clone())
    }

    /// Ends ffmpeg, and says why it failed if it did.
    fn end(&mut self) -> Result<(), TrainError> {
        self.frames = None;
        let written = self.writer.take().map(JoinHandle::join);
        let Some(process) = self.process.take() else { return Ok(()) };
        let ended = process.wait(END);
        let (status, said) = ended.map_err(|error| unwritable(&self.path, &error.to_string()))?;
        let said = said.last();
        let full = said.contains("No space left on device");
        match written {
            Some(Ok(Ok(()))) if status.is_some_and(|status| status.success()) && !full => Ok(()),
            _ if full => Err(unwritable(&self.path, "No space left on device")),
            _ if !said.is_empty() => Err(unwritable(&self.path, &format!("ffmpeg says: {said}"))),
            _ => Err(unwritable(&self.path, "ffmpeg has ended without a reason")),
        }
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        self.process = None;
        self.frames = None;
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
        // After `finish`, there is none.
        let _ = fs::remove_file(&self.part);
    }
}

fn unwritable(path: &Path, why: &str) -> TrainError {
    TrainError::new(format!("cannot save the results: {}: {why}", path.display()))
        .with_hint("free some space, name another folder with --project, or omit videos with --nosave")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_fraction() {
        let pace = Pace::parse("30000/1001").unwrap();
        assert_eq!(pace.strided(2), Pace { frames: 30000, seconds: 2002 });
        for none in ["0/0", "30", "1/0", "90000/1", "a/b", ""] {
            assert_eq!(Pace::parse(none), None, "{none}");
        }
    }
}
