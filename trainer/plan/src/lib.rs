//! A training run, decided and validated before a tensor exists.
//!
//! This crate turns what a user typed, and what the machine has, into a [`RunPlan`]: the one
//! description that the command writes into the run folder and every rank reads. It reads the
//! files that options name (data set, hyper-parameters, model), and does nothing else: it
//! touches no device, starts no process and links no libtorch.

pub mod backend;
pub mod batch;
pub mod dataset;
pub mod device;
pub mod error;
pub mod event;
pub mod hyp;
pub mod model;
pub mod number;
pub mod options;
pub mod run;
pub mod schedule;
mod yaml;

pub use error::PlanError;
pub use run::RunPlan;
