//! What every task of a rank is handed, and how a task ends.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tch_distributed::ProcessGroup;

use super::reporter::Reporter;
use crate::error::TrainError;

/// How a task ended when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Everything was done.
    Finished,
    /// The task was asked to stop, and stopped with its state saved.
    Interrupted,
}

/// What every task needs: which rank this is, its device, its peers and its reporter.
#[derive(Debug)]
pub struct Context {
    /// Number of this rank among all ranks.
    pub rank: usize,
    /// Number of ranks.
    pub world: usize,
    /// Where tensors live.
    pub device: tch::Device,
    /// The ranks that work together; `None` for a single rank.
    pub group: Option<Rc<ProcessGroup>>,
    /// Where events go.
    pub reporter: Rc<Reporter>,
    /// Set by SIGINT and SIGTERM.
    pub(super) stop: Arc<AtomicBool>,
}

impl Context {
    /// Whether this is rank 0, which validates, writes files and reports.
    pub fn is_main(&self) -> bool {
        self.rank == 0
    }

    /// Whether this process was asked to stop, or its supervisor is gone.
    pub fn asked_to_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.reporter.orphaned()
    }

    /// Whether any rank was asked to stop. Every rank gets the same answer.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn any_asked_to_stop(&self) -> Result<bool, TrainError> {
        let Some(group) = &self.group else { return Ok(self.asked_to_stop()) };
        let flag = tch::Tensor::from_slice(&[f32::from(u8::from(self.asked_to_stop()))]);
        group.all_reduce(&flag)?;
        Ok(flag.f_double_value(&[0])? > 0.0)
    }

    /// Rank 0's `value` on every rank. `value` must be small enough to be exact as an f32.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn broadcast(&self, value: u8) -> Result<u8, TrainError> {
        let Some(group) = &self.group else { return Ok(value) };
        let shared = tch::Tensor::from_slice(&[f32::from(value)]);
        group.broadcast(&[&shared], 0)?;
        Ok(shared.f_double_value(&[0])? as u8)
    }
}
