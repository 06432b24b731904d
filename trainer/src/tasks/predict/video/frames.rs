//! The frames of a video in their order, decoded by ffmpeg ahead of the one that asks for them.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use yolo_base::env::DISPLAY;
use yolo_data::image::Image;
use yolo_plan::run::{Video, VideoKind};

use super::ppm::next_frame;
use super::probe::{Facts, reason};
use super::program::{Ffmpeg, Process};

/// Frames that wait to be taken.
const AHEAD: usize = 2;
/// How often a request to stop is looked for.
const TICK: Duration = Duration::from_millis(50);
/// How long ffmpeg may take to end after its last frame.
const END: Duration = Duration::from_secs(10);

/// Pictures of the screen per second. Only the newest is used.
const SCREEN_PACE: &str = "30";

/// What comes next from a video.
#[derive(Debug)]
pub(crate) enum Next {
    Frame(Image),
    /// The end, with the reason if it is not the right one.
    End(Result<(), String>),
    /// No frame came in time.
    Late,
    /// The run is to stop.
    Stopped,
}

/// A video that is being decoded.
pub(crate) struct Frames {
    process: Option<Process>,
    frames: Option<Receiver<Image>>,
    reader: Option<JoinHandle<Read>>,
    source: PathBuf,
    /// What the file says about itself; `None` for cameras and streams, of which nothing is expected.
    facts: Option<Facts>,
}

/// What the thread that reads frames has seen.
struct Read {
    /// Frames, those that were left out included.
    frames: usize,
    error: Option<String>,
}

impl Frames {
    /// Starts to decode, and keeps the last of each `stride` frames. With `facts`, frames that are missing are an error.
    ///
    /// # Errors
    /// The reason why ffmpeg cannot be started.
    pub(crate) fn open(
        ffmpeg: &Ffmpeg,
        video: &Video,
        stride: usize,
        facts: Option<Facts>,
    ) -> Result<Self, String> {
        let mut arguments: Vec<std::ffi::OsString> =
            ["-nostdin", "-v", "level+warning"].map(Into::into).to_vec();
        let source = match video.kind {
            VideoKind::Screen => PathBuf::from(std::env::var_os(DISPLAY).unwrap_or_default()),
            VideoKind::File | VideoKind::Camera | VideoKind::Stream => video.source.clone(),
        };
        match video.kind {
            VideoKind::File => {}
            VideoKind::Screen => {
                arguments.extend(["-f", "x11grab", "-framerate", SCREEN_PACE].map(Into::into));
                if let Some([left, top, width, height]) = video.area {
                    let (size, [left, top]) =
                        (format!("{width}x{height}"), [left, top].map(|side| side.to_string()));
                    let part = ["-video_size", &size, "-grab_x", &left, "-grab_y", &top];
                    arguments.extend(part.map(Into::into));
                }
            }
            VideoKind::Camera => arguments.extend(["-f", "v4l2"].map(Into::into)),
            VideoKind::Stream if source.to_string_lossy().starts_with("rtsp") => {
                arguments.extend(["-rtsp_transport", "tcp"].map(Into::into));
            }
            VideoKind::Stream => {}
        }
        arguments.extend(["-i".into(), source.clone().into()]);
        arguments.extend(["-map", "0:v:0"].map(Into::into));
        arguments.extend(ffmpeg.every_frame.map(Into::into));
        arguments.extend(["-f", "image2pipe", "-c:v", "ppm", "-pix_fmt", "rgb24", "pipe:1"].map(Into::into));
        let mut process = Process::start("ffmpeg", arguments, Stdio::null(), Stdio::piped())
            .map_err(|error| format!("ffmpeg cannot be started: {error}"))?;
        let stdout = process.stdout().ok_or("ffmpeg has no output")?;
        let (sender, frames) = sync_channel(AHEAD);
        let reader =
            std::thread::spawn(move || read(BufReader::with_capacity(1 << 20, stdout), stride, &sender));
        Ok(Self { process: Some(process), frames: Some(frames), reader: Some(reader), source, facts })
    }

    /// Waits for the next frame, until `stop` says so or `limit` is over.
    pub(crate) fn next(&mut self, limit: Option<Duration>, stop: &dyn Fn() -> bool) -> Next {
        let Some(frames) = &self.frames else { return Next::End(Ok(())) };
        let began = Instant::now();
        loop {
            match frames.recv_timeout(TICK) {
                Ok(frame) => return Next::Frame(frame),
                Err(RecvTimeoutError::Disconnected) => return Next::End(self.end()),
                Err(RecvTimeoutError::Timeout) if stop() => return Next::Stopped,
                Err(RecvTimeoutError::Timeout) if limit.is_some_and(|limit| began.elapsed() > limit) => {
                    return Next::Late;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Why the frames have ended. ffmpeg ends successfully even where a part of a file is damaged; then it has said
    /// so.
    fn end(&mut self) -> Result<(), String> {
        self.frames = None;
        let read = self.reader.take().and_then(|reader| reader.join().ok());
        let Some(Read { frames, error }) = read else {
            return Err("the thread that reads frames has ended".to_owned());
        };
        let Some(process) = self.process.take() else { return Ok(()) };
        let (status, said) =
            process.wait(END).map_err(|error| format!("ffmpeg cannot be waited for: {error}"))?;
        let last = said.last_error();
        if frames == 0 || error.is_some() || !status.is_some_and(|status| status.success()) {
            let why = match (last.is_empty(), error) {
                (true, Some(error)) => error,
                (true, None) if frames == 0 => "there is no frame in it".to_owned(),
                _ => reason(&last, &self.source),
            };
            return Err(match frames {
                0 => why,
                _ => format!("what follows frame {frames} cannot be read: {why}"),
            });
        }
        let Some(Facts { frames: expected, lasts, .. }) = self.facts else { return Ok(()) };
        let missing = expected.map_or(0, |expected| expected.saturating_sub(frames));
        // The last frame may be shorter.
        let is_short = missing > 0 || lasts.is_some_and(|all| frames + 1 < all);
        let gap = || said.gap().filter(|_| is_short);
        // Nobody misses what a recording could not have.
        let is_unexplained = is_short && !last.is_empty() && !said.begins_between_key_frames();
        let damage = said.damage().or_else(gap).or_else(|| is_unexplained.then_some(last));
        damage.map_or(Ok(()), |why| Err(damaged(frames, missing, &reason(&why, &self.source))))
    }
}

/// The message for a video of which `frames` were read, and `missing` were not. ffmpeg shows a frame of which only a part is
/// damaged, so it may be that none is missing.
fn damaged(frames: usize, missing: usize, why: &str) -> String {
    match missing {
        0 => format!("it is damaged, so that frames may be missing or wrong; {frames} could be read: {why}"),
        _ => format!("{missing} of {} frames could not be read: {why}", frames + missing),
    }
}

impl Drop for Frames {
    fn drop(&mut self) {
        // The thread ends when nobody takes its frames, or when ffmpeg is gone.
        self.frames = None;
        self.process = None;
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn read(mut stream: impl std::io::Read, stride: usize, frames: &SyncSender<Image>) -> Read {
    let mut count = 0;
    loop {
        match next_frame(&mut stream) {
            Ok(None) => return Read { frames: count, error: None },
            Err(error) => return Read { frames: count, error: Some(error.to_string()) },
            Ok(Some(frame)) => {
                count += 1;
                if count % stride.max(1) == 0 && frames.send(frame).is_err() {
                    return Read { frames: count, error: None };
                }
            }
        }
    }
}
