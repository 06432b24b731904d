//! One rank of a training run, as a library: the model and its loss, the optimizer, the training
//! loop, validation, checkpoints and reports. The program `yolo-trainer` is a thin shell around
//! [`rank::run`].

pub mod autoanchor;
pub mod checkpoint;
pub mod error;
pub mod loss;
pub mod model;
pub mod optim;
mod probe;
pub mod rank;
pub mod report;
pub mod reporter;
pub mod tensor_io;
pub mod train;
pub mod val;
