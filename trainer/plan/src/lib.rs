//! Plans a run before a tensor exists: turns the user's options and the machine's resources into a
//! [`RunPlan`], which the command writes into the run folder and every rank reads.
//!
//! Planning validates the options and reads the files that they name (data set, hyperparameters,
//! model). It touches no device, starts no process and links no libtorch.

pub mod auto_batch;
pub mod backend;
pub mod batch;
pub mod bench_report;
pub mod bench_tables;
pub mod bench_workers;
pub mod dataset;
pub mod device;
pub mod error;
pub mod event;
pub mod evolve;
pub mod hyp;
pub mod launcher;
pub mod model;
pub mod number;
pub mod options;
pub mod precision;
pub mod report;
pub mod results;
pub mod run;
pub mod schedule;
pub mod yaml;

pub use error::PlanError;
pub use run::RunPlan;
