//! How a rank reports: events as JSON lines on the descriptor that the supervisor handed over, and
//! a heartbeat every few seconds from a separate thread. Without a supervisor, rank 0 writes plain
//! lines to stderr and the other ranks are silent.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use yolo_base::env::YOLO_EVENTS_FD;
use yolo_plan::event::{Event, sign_interval};

use super::environment::descriptor;

/// Where events go.
#[derive(Debug)]
enum Sink {
    Supervisor(File),
    Stderr,
    Nowhere,
}

/// The sink, shared by the threads of this rank. Invariant: a line is written under one lock, so
/// lines never mix.
#[derive(Debug)]
struct SharedSink {
    sink: Mutex<Sink>,
    /// Set when nobody reads the events any more.
    broken: AtomicBool,
}

/// Sends the events of one rank.
#[derive(Debug)]
pub struct Reporter {
    shared: Arc<SharedSink>,
    doing: RefCell<String>,
}

impl Reporter {
    /// The reporter of rank `rank`, on the descriptor in `YOLO_EVENTS_FD` if there is one.
    pub fn from_environment(rank: usize) -> Self {
        let sink = match descriptor(YOLO_EVENTS_FD) {
            Some(file) => Sink::Supervisor(file),
            None if rank == 0 => Sink::Stderr,
            None => Sink::Nowhere,
        };
        let shared = Arc::new(SharedSink { sink: Mutex::new(sink), broken: AtomicBool::new(false) });
        Self { shared, doing: RefCell::new("starting".to_owned()) }
    }

    /// Sends [`Event::Alive`] at regular intervals until this process ends or nobody reads the
    /// events. Does nothing without a supervisor.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start_heartbeat(&self) -> std::io::Result<()> {
        if !matches!(&*self.shared.sink.lock().unwrap_or_else(PoisonError::into_inner), Sink::Supervisor(_)) {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let interval = sign_interval();
        std::thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
            while !shared.broken.load(Ordering::Relaxed) {
                shared.send(&Event::Alive);
                std::thread::sleep(interval);
            }
        })?;
        Ok(())
    }

    /// Sends one event. If nobody reads it, [`Self::orphaned`] is true from then on.
    pub fn send(&self, event: &Event) {
        self.shared.send(event);
    }

    /// Reports what the rank is doing now, as a phrase that completes "rank 1 was …".
    pub fn phase(&self, doing: &str) {
        if *self.doing.borrow() != doing {
            doing.clone_into(&mut self.doing.borrow_mut());
            self.send(&Event::Phase { doing: doing.to_owned() });
        }
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

    /// Whether the supervisor is gone. A run without its supervisor must end.
    pub fn orphaned(&self) -> bool {
        self.shared.broken.load(Ordering::Relaxed)
    }
}

impl SharedSink {
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

/// The line for a person, where there is no supervisor.
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
