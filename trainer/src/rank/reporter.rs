//! How a rank reports: events as JSON lines on the descriptor that the supervisor handed over. Without a
//! supervisor, rank 0 writes plain lines to stderr and the other ranks are silent.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use yolo_base::env::YOLO_EVENTS_FD;
use yolo_plan::event::{Event, Progress, Stage};

use super::environment::descriptor;

/// Where events go.
#[derive(Debug)]
enum Sink {
    Supervisor(File),
    Stderr,
    Nowhere,
}

impl Sink {
    /// Whether the supervisor has closed its end, which it does only by ending.
    fn is_closed(&self) -> bool {
        #[cfg(unix)]
        if let Self::Supervisor(file) = self {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            let mut pipe = [PollFd::new(file, PollFlags::empty())];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            return poll(&mut pipe, Some(&now)).is_ok() && pipe[0].revents().contains(PollFlags::ERR);
        }
        false
    }
}

/// The sink, shared by the threads of this rank. Invariant: a line is written under one lock, so
/// lines never mix.
#[derive(Debug)]
struct SharedSink {
    sink: Mutex<Sink>,
    /// Set when nobody reads the events any more.
    broken: AtomicBool,
    /// Whether the rank has said hello, which is always its first event.
    greeted: AtomicBool,
    progress: Mutex<Option<Progress>>,
}

/// The connection of this rank to its supervisor, for any thread.
#[derive(Debug, Clone)]
pub(super) struct Connection(Arc<SharedSink>);

impl Connection {
    /// Whether there is a supervisor.
    pub(super) fn has_supervisor(&self) -> bool {
        matches!(&*lock(&self.0.sink), Sink::Supervisor(_))
    }

    /// Whether the supervisor is gone.
    pub(super) fn is_broken(&self) -> bool {
        self.0.broken.load(Ordering::Relaxed) || lock(&self.0.sink).is_closed()
    }

    /// Sends a heartbeat with the progress of the main thread.
    pub(super) fn send_heartbeat(&self) {
        if self.0.greeted.load(Ordering::Relaxed) {
            let progress = *lock(&self.0.progress);
            self.0.send(&Event::Alive { progress });
        }
    }
}

/// Sends the events of one rank.
#[derive(Debug)]
pub struct Reporter {
    shared: Arc<SharedSink>,
    doing: RefCell<String>,
    /// When the present stage of a step began.
    stage_began: Cell<Instant>,
}

impl Reporter {
    /// The reporter of rank `rank`, on the descriptor in `YOLO_EVENTS_FD` if there is one.
    pub fn from_environment(rank: usize) -> Self {
        let sink = match descriptor(YOLO_EVENTS_FD) {
            Some(file) => Sink::Supervisor(file),
            None if rank == 0 => Sink::Stderr,
            None => Sink::Nowhere,
        };
        let shared = SharedSink {
            sink: Mutex::new(sink),
            broken: AtomicBool::new(false),
            greeted: AtomicBool::new(false),
            progress: Mutex::new(None),
        };
        Self {
            shared: Arc::new(shared),
            doing: RefCell::new("starting".to_owned()),
            stage_began: Cell::new(Instant::now()),
        }
    }

    /// The connection to the supervisor.
    pub(super) fn connection(&self) -> Connection {
        Connection(Arc::clone(&self.shared))
    }

    /// Sends one event.
    pub fn send(&self, event: &Event) {
        self.shared.send(event);
    }

    /// Reports what the rank is doing now, as a phrase that completes "rank 1 was …".
    pub fn phase(&self, doing: &str) {
        if *self.doing.borrow() != doing {
            doing.clone_into(&mut self.doing.borrow_mut());
            self.send(&Event::Phase { doing: doing.to_owned(), steps: false });
        }
    }

    /// Reports a phase whose progress is counted in steps: `epoch`, from 0, has this many batches, of
    /// which `first` is the next.
    pub fn begin_steps(&self, doing: &str, epoch: usize, first: usize, batches: usize) {
        doing.clone_into(&mut self.doing.borrow_mut());
        let mut progress = lock(&self.shared.progress);
        let (steps, images, seconds) =
            progress.map_or((0, 0, [0.0; 3]), |before| (before.steps, before.images, before.seconds));
        let stage = Stage::Loading;
        *progress = Some(Progress { epoch, batch: first, batches, steps, images, stage, seconds });
        drop(progress);
        self.stage_began.set(Instant::now());
        self.send(&Event::Phase { doing: doing.to_owned(), steps: true });
    }

    /// The main thread begins another stage of the present step.
    pub fn stage(&self, stage: Stage) {
        let took = self.stage_began.replace(Instant::now()).elapsed().as_secs_f64();
        if let Some(progress) = &mut *lock(&self.shared.progress) {
            progress.seconds[progress.stage as usize] += took;
            progress.stage = stage;
        }
    }

    /// A step is done, with this many images of this rank; the next one begins.
    pub fn step_done(&self, images: usize) {
        self.stage(Stage::Loading);
        if let Some(progress) = &mut *lock(&self.shared.progress) {
            progress.steps += 1;
            progress.batch += 1;
            progress.images += images as u64;
        }
    }

    /// How far the main thread is, once it has trained.
    pub fn progress(&self) -> Option<Progress> {
        *lock(&self.shared.progress)
    }

    /// Reports something that the user should read.
    pub fn warning(&self, message: impl Into<String>) {
        self.send(&Event::Warning { message: message.into() });
    }

    /// Reports something worth a line.
    pub fn note(&self, message: impl Into<String>) {
        self.send(&Event::Note { message: message.into() });
    }

    /// The phase that was reported last.
    pub fn doing(&self) -> String {
        self.doing.borrow().clone()
    }
}

/// A lock whose data is valid also after a panic in another thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedSink {
    fn send(&self, event: &Event) {
        let mut sink = lock(&self.sink);
        let written = match &mut *sink {
            Sink::Supervisor(file) => serde_json::to_string(event)
                .map_err(std::io::Error::from)
                .and_then(|line| file.write_all(format!("{line}\n").as_bytes())),
            Sink::Stderr => match plain(event) {
                Some(line) => writeln!(std::io::stderr(), "{line}"),
                None => Ok(()),
            },
            Sink::Nowhere => Ok(()),
        };
        if matches!(event, Event::Hello { .. }) {
            self.greeted.store(true, Ordering::Relaxed);
        }
        if written.is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }
}

/// The line for a person, where there is no supervisor.
fn plain(event: &Event) -> Option<String> {
    match event {
        Event::Warning { message } => Some(format!("warning: {message}")),
        Event::Note { message } => Some(message.clone()),
        Event::Phase { doing, .. } => Some(format!("{doing} …")),
        Event::Epoch(epoch) => Some(format!(
            "epoch {}/{} box {:.5} obj {:.5} cls {:.5} mAP50 {}",
            epoch.epoch + 1,
            epoch.epochs,
            epoch.train_losses[0],
            epoch.train_losses[1],
            epoch.train_losses[2],
            epoch.metrics.map_or("-".to_owned(), |metrics| format!("{:.3}", metrics.map50)),
        )),
        Event::Failed { message, hint, .. } => {
            let hint = hint.as_ref().map_or(String::new(), |hint| format!("\nhint: {hint}"));
            Some(format!("error: {message}{hint}"))
        }
        Event::Finished { files, .. } => Some(
            files
                .iter()
                .map(|file| format!("{}: {}", file.what, file.path.display()))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        _ => None,
    }
}
