//! Cameras and streams, which do not wait: only the newest frame of each is kept. A source that drops out is opened
//! again a few times before it is given up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use yolo_data::image::Image;
use yolo_plan::run::Video;

use super::frames::{Frames, Next};
use super::program::Ffmpeg;

/// A source without a frame for so long has dropped out.
const SILENCE: Duration = Duration::from_secs(10);
/// The pauses before a source that has dropped out is opened again.
const PAUSES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];

/// News of a source.
#[derive(Debug)]
pub(crate) enum News {
    /// There is a frame, which is the newest at this moment.
    Frame(Image),
    /// It has dropped out, and is opened again after a pause.
    Dropped(String),
    /// It is given up.
    Ended(String),
}

/// All cameras and streams of a rank.
pub(crate) struct Live {
    /// The number of a source that has news; for a frame, the frame is in its slot.
    news: Receiver<(usize, Option<News>)>,
    slots: Vec<Arc<Mutex<Option<Image>>>>,
    stop: Arc<AtomicBool>,
    watchers: Vec<JoinHandle<()>>,
}

impl Live {
    /// Opens all sources.
    pub(crate) fn open(ffmpeg: &Ffmpeg, videos: &[Video], stride: usize) -> Self {
        let (sender, news) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let mut live = Self { news, slots: Vec::new(), stop, watchers: Vec::new() };
        for (index, video) in videos.iter().enumerate() {
            let slot = Arc::new(Mutex::new(None));
            live.slots.push(Arc::clone(&slot));
            let watcher = Watcher {
                index,
                ffmpeg: ffmpeg.clone(),
                video: video.clone(),
                stride,
                slot,
                news: sender.clone(),
                stop: Arc::clone(&live.stop),
            };
            live.watchers.push(std::thread::spawn(move || watcher.watch()));
        }
        live
    }

    /// Waits a moment for the next news of any source. `None` if there are none.
    pub(crate) fn next(&mut self) -> Option<(usize, News)> {
        match self.news.recv_timeout(Duration::from_millis(50)) {
            Ok((index, Some(news))) => Some((index, news)),
            Ok((index, None)) => {
                let frame = self.slots[index].lock().unwrap_or_else(PoisonError::into_inner).take();
                frame.map(|frame| (index, News::Frame(frame)))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for watcher in self.watchers.drain(..) {
            let _ = watcher.join();
        }
    }
}

/// The thread of one source.
struct Watcher {
    index: usize,
    ffmpeg: Ffmpeg,
    video: Video,
    stride: usize,
    slot: Arc<Mutex<Option<Image>>>,
    news: Sender<(usize, Option<News>)>,
    stop: Arc<AtomicBool>,
}

impl Watcher {
    fn watch(&self) {
        let mut pauses = PAUSES.iter();
        // A source that never had a frame is not waited for: it is more likely to be a mistake.
        let mut had_frames = false;
        loop {
            let (frames, why) = self.once();
            if self.stop.load(Ordering::Relaxed) {
                return;
            }
            had_frames |= frames;
            if frames {
                pauses = PAUSES.iter();
            }
            let Some(pause) = pauses.next().filter(|_| had_frames) else {
                self.send(Some(News::Ended(why)));
                return;
            };
            self.send(Some(News::Dropped(why)));
            let until = std::time::Instant::now() + *pause;
            while std::time::Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Reads until the source drops out. Returns whether there were frames, and why there are no more.
    fn once(&self) -> (bool, String) {
        let mut frames = match Frames::open(&self.ffmpeg, &self.video, self.stride, None) {
            Ok(frames) => frames,
            Err(why) => return (false, why),
        };
        let mut any = false;
        let stop = || self.stop.load(Ordering::Relaxed);
        // `next` asks only while it waits, and for a camera of 30 frames per second it may never wait long enough.
        while !stop() {
            match frames.next(Some(SILENCE), &stop) {
                Next::Frame(frame) => {
                    any = true;
                    let earlier = self.slot.lock().unwrap_or_else(PoisonError::into_inner).replace(frame);
                    if earlier.is_none() {
                        self.send(None);
                    }
                }
                Next::Late => return (any, format!("no frame came for {} seconds", SILENCE.as_secs())),
                Next::Stopped => return (any, String::new()),
                Next::End(Ok(())) => return (any, "the stream has ended".to_owned()),
                Next::End(Err(why)) => return (any, why),
            }
        }
        (any, String::new())
    }

    fn send(&self, news: Option<News>) {
        // Nobody listens any more if the run has stopped.
        let _ = self.news.send((self.index, news));
    }
}
