//! How a rank speaks: events as JSON lines on the descriptor that the supervisor handed over. A
//! rank that was started without a supervisor (by torchrun, say) writes rank 0's events as plain
//! lines to stderr instead. When the supervisor is gone, the rank is told to end. To a supervisor
//! the rank also gives a sign of life every few seconds, from a thread of its own.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use yolo_plan::event::{EVENTS_FD, Event, sign_interval};

/// Where events go.
#[derive(Debug)]
enum Sink {
    Supervisor(File),
    Stderr,
    Nowhere,
}

/// The way of events, shared by the threads of this rank: a line is written whole.
#[derive(Debug)]
struct Line {
    sink: Mutex<Sink>,
    /// Set when nobody reads any more.
    broken: AtomicBool,
}

/// The voice of one rank.
#[derive(Debug)]
pub struct Reporter {
    line: Arc<Line>,
    doing: RefCell<String>,
}

impl Reporter {
    /// The reporter of rank `rank`, on the descriptor named by `YOLO_EVENTS_FD` if there is one.
    pub fn from_environment(rank: usize) -> Self {
        let sink = match inherited(EVENTS_FD) {
            Some(file) => Sink::Supervisor(file),
            None if rank == 0 => Sink::Stderr,
            None => Sink::Nowhere,
        };
        let line = Arc::new(Line { sink: Mutex::new(sink), broken: AtomicBool::new(false) });
        Self { line, doing: RefCell::new("starting".to_owned()) }
    }

    /// Gives signs of life from now on, until this process ends or nobody reads them. Without a
    /// supervisor it gives none.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn give_signs_of_life(&self) -> std::io::Result<()> {
        if !matches!(&*self.line.sink.lock().unwrap_or_else(PoisonError::into_inner), Sink::Supervisor(_)) {
            return Ok(());
        }
        let line = Arc::clone(&self.line);
        let interval = sign_interval();
        std::thread::Builder::new().name("signs of life".to_owned()).spawn(move || {
            while !line.broken.load(Ordering::Relaxed) {
                line.send(&Event::Alive);
                std::thread::sleep(interval);
            }
        })?;
        Ok(())
    }

    /// Sends one event. A supervisor that does not read any more is remembered, see [`Self::orphaned`].
    pub fn send(&self, event: &Event) {
        self.line.send(event);
    }

    /// Says what the rank does now, in words that complete "rank 1 was …".
    pub fn phase(&self, doing: &str) {
        if *self.doing.borrow() != doing {
            doing.clone_into(&mut self.doing.borrow_mut());
            self.send(&Event::Phase { doing: doing.to_owned() });
        }
    }

    /// Says something once that the user should read.
    pub fn warning(&self, message: impl Into<String>) {
        self.send(&Event::Warning { message: message.into() });
    }

    /// Says something worth a line.
    pub fn note(&self, message: impl Into<String>) {
        self.send(&Event::Note { message: message.into() });
    }

    /// What the rank was last said to do.
    pub fn doing(&self) -> String {
        self.doing.borrow().clone()
    }

    /// Whether the supervisor is gone: a run that nobody watches must end.
    pub fn orphaned(&self) -> bool {
        self.line.broken.load(Ordering::Relaxed)
    }
}

impl Line {
    fn send(&self, event: &Event) {
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
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
        if written.is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
    }
}

/// The line that a person reads where there is no supervisor.
fn plain(event: &Event) -> Option<String> {
    match event {
        Event::Warning { message } => Some(format!("warning: {message}")),
        Event::Note { message } => Some(message.clone()),
        Event::Phase { doing } => Some(format!("{doing} …")),
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

/// Takes over an open descriptor whose number stands in the environment variable `name`.
#[cfg(unix)]
#[expect(unsafe_code, reason = "takes over a descriptor that the supervisor opened for this process")]
pub(crate) fn inherited(name: &str) -> Option<File> {
    use std::os::fd::{FromRawFd as _, OwnedFd};

    let number: i32 = std::env::var(name).ok()?.parse().ok()?;
    // SAFETY: fcntl only asks whether the number is an open descriptor.
    if number < 3 || unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
        return None;
    }
    // SAFETY: the descriptor is open, was opened by the supervisor for this process alone, and is
    // taken once: rank.rs reads each of the two variables a single time.
    Some(File::from(unsafe { OwnedFd::from_raw_fd(number) }))
}

/// Descriptors are not handed over by number on this system.
#[cfg(not(unix))]
pub(crate) fn inherited(_name: &str) -> Option<File> {
    None
}
