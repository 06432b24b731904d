//! What every task of a rank is handed, and how a task ends.

use std::rc::Rc;
use std::sync::Arc;

use tch_distributed::ProcessGroup;
use yolo_data::loader::ImageMemory;

use super::life::Life;
use super::reporter::Reporter;
use super::stop::Stop;
use crate::error::TrainError;

/// How a task ended when nothing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Everything was done.
    Finished,
    /// The task was asked to stop, and stopped with its state saved.
    Interrupted,
}

/// The devices of a rank: usually one, and several with `--parallel dp` and `model`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Devices {
    /// At least one.
    pub all: Vec<tch::Device>,
    /// How users know them: `cuda:1`, by its number on the machine, also if this rank sees only that one.
    pub names: Vec<String>,
    /// Memory in bytes that can be used on each; empty if it is not known.
    pub memory: Vec<u64>,
}

impl Devices {
    /// Their names between commas.
    pub fn name(&self) -> String {
        self.names.join(",")
    }

    /// The main one.
    pub fn first(&self) -> tch::Device {
        self.all.first().copied().unwrap_or(tch::Device::Cpu)
    }
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
    /// All devices of this rank, of which that is the first.
    pub devices: Devices,
    /// Threads of the CPU that are this rank's share of the machine.
    pub threads: usize,
    /// The ranks that work together; `None` for a single rank.
    pub group: Option<Rc<ProcessGroup>>,
    /// The memory for decoded images.
    pub images: ImageMemory,
    /// Where events go.
    pub reporter: Rc<Reporter>,
    /// Knows whether this rank should stop.
    pub(super) life: Arc<Life>,
    /// What SIGINT and SIGTERM do.
    pub(super) stop: Stop,
}

impl Context {
    /// Whether this is rank 0, which writes files and reports.
    pub fn is_main(&self) -> bool {
        self.rank == 0
    }

    /// Until a task calls this, a request to stop ends the process at once. From then on, the task asks
    /// whether to stop, and stops where all ranks can and nothing is lost.
    pub fn hold_stop_requests(&self) {
        self.stop.hold();
    }

    /// Warns once if batches are copied to the GPU from memory that is not page-locked.
    pub(crate) fn warn_of_slow_copies(&self) {
        if let Some(reason) = tch_train::take_page_locked_notice() {
            self.reporter.warning(format!(
                "{reason}; the run continues with copies to the GPU from ordinary memory, which are slower"
            ));
        }
    }

    /// Whether this process was asked to stop, or its supervisor is gone.
    pub fn asked_to_stop(&self) -> bool {
        self.life.should_stop()
    }

    /// Whether any rank was asked to stop. Every rank gets the same answer.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn any_asked_to_stop(&self) -> Result<bool, TrainError> {
        let Some(group) = &self.group else { return Ok(self.asked_to_stop()) };
        let flag = tch::Tensor::f_from_slice(&[f32::from(u8::from(self.asked_to_stop()))])?;
        group.all_reduce(&flag)?;
        Ok(flag.f_double_value(&[0])? > 0.0)
    }

    /// Waits until all ranks have called this.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn barrier(&self) -> Result<(), TrainError> {
        self.group.as_ref().map_or(Ok(()), |group| Ok(group.barrier(None)?))
    }

    /// The byte strings of all ranks, in rank order.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn gather(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, TrainError> {
        match &self.group {
            Some(group) => Ok(group.all_gather_bytes(&bytes)?),
            None => Ok(vec![bytes]),
        }
    }

    /// Rank 0's `value` on every rank.
    ///
    /// # Errors
    /// When a peer is lost.
    pub fn broadcast(&self, value: u8) -> Result<u8, TrainError> {
        let Some(group) = &self.group else { return Ok(value) };
        let shared = tch::Tensor::f_from_slice(&[f32::from(value)])?;
        group.broadcast(&[&shared], 0)?;
        Ok(shared.f_double_value(&[0])? as u8)
    }
}
