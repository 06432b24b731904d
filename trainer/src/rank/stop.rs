//! How SIGINT and SIGTERM stop a rank. The supervisor sends SIGTERM to all ranks of a run.
//!
//! The rule, with which no rank waits for another that has left: a rank with nothing to save ends at once,
//! whatever it is doing or waiting for. Once a task holds the request ([`Stop::hold`]), the signal only sets
//! the flag that `life.rs` keeps: ranks compare their flags after each step, save, and leave together. A rank
//! that loses another one after it was asked to stop was left by one that had nothing to save, and leaves too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use yolo_base::exit;

use crate::error::TrainError;

/// What a request to stop does.
#[derive(Debug)]
pub(super) struct Stop {
    at_once: Arc<AtomicBool>,
}

impl Stop {
    /// From now on, both signals end this process at once.
    pub(super) fn watch() -> Result<Self, TrainError> {
        let at_once = Arc::new(AtomicBool::new(true));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let status = exit::INTERRUPTED.into();
            signal_hook::flag::register_conditional_shutdown(signal, status, Arc::clone(&at_once))
                .map_err(|error| TrainError::new(format!("cannot handle signals: {error}")))?;
        }
        Ok(Self { at_once })
    }

    /// From now on, the signals only set the flag of `life.rs`.
    pub(super) fn hold(&self) {
        self.at_once.store(false, Ordering::SeqCst);
    }
}
