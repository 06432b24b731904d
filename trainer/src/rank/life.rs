//! Connects the state machine of a rank's life, [`yolo_protocol::RankLife`], to signals, a clock and the
//! supervisor. A thread of its own sends the heartbeats, and ends this process if the supervisor is gone and
//! the main thread does not react.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use yolo_plan::event::sign_interval;
use yolo_protocol::{RankAction, RankInput, RankLife};

use super::reporter::Connection;

/// The life of this rank apart from its work.
#[derive(Debug)]
pub(super) struct Life {
    machine: Mutex<RankLife>,
    started: Instant,
    /// Set by SIGINT and SIGTERM.
    signalled: Arc<AtomicBool>,
    connection: Connection,
}

impl Life {
    /// Starts to watch for signals, and for the end of the supervisor.
    ///
    /// # Errors
    /// When the signals cannot be handled.
    pub(super) fn watch_signals(connection: Connection) -> std::io::Result<Arc<Self>> {
        let signalled = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&signalled))?;
        }
        let machine = Mutex::new(RankLife::new(sign_interval()));
        Ok(Arc::new(Self { machine, started: Instant::now(), signalled, connection }))
    }

    /// Starts the heartbeat. Does nothing without a supervisor.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub(super) fn start(self: &Arc<Self>) -> std::io::Result<()> {
        if self.connection.has_supervisor() {
            let life = Arc::clone(self);
            std::thread::Builder::new().name("heartbeat".to_owned()).spawn(move || life.beat())?;
        }
        Ok(())
    }

    /// Whether this process should save and end: it was asked to, or its supervisor is gone.
    pub(super) fn should_stop(&self) -> bool {
        self.with_machine(|machine, _| machine.should_stop())
    }

    fn beat(&self) {
        loop {
            let action = self.with_machine(|machine, life| machine.tick(life.started.elapsed()));
            match action {
                Some(RankAction::Heartbeat) => self.connection.send_heartbeat(),
                // Destructors of libtorch could wait for the main thread.
                Some(RankAction::Exit(status)) => signal_hook::low_level::exit(status.into()),
                None => {}
            }
            let wait = self.with_machine(|machine, life| machine.wake_in(life.started.elapsed()));
            std::thread::sleep(wait);
        }
    }

    /// Tells the machine what has happened since, and asks it.
    fn with_machine<T>(&self, ask: impl FnOnce(&mut RankLife, &Self) -> T) -> T {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.started.elapsed();
        if self.signalled.load(Ordering::Relaxed) {
            machine.note(now, RankInput::AskedToStop);
        }
        if self.connection.is_broken() {
            machine.note(now, RankInput::SupervisorGone);
        }
        ask(&mut machine, self)
    }
}
