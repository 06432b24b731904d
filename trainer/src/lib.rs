//! One rank of a run, as a library: model and loss, optimizer, training loop, validation,
//! checkpoints and reports. The program `yolo-trainer` only calls [`rank::run`].

pub mod autoanchor;
pub mod checkpoint;
pub mod detection;
pub mod error;
pub mod learner;
pub mod loss;
pub mod metrics;
pub mod model;
pub mod precision;
mod publish;
pub mod rank;
pub mod report;
mod synchronize;
pub mod tasks;
pub mod tensor_io;
mod training;
