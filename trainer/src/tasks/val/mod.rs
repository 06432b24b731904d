//! Validation (spec §9): a model runs over a split, and its detections are compared with the
//! labels. [`validate`](validate()) is one pass, which training uses after each epoch; [`run`](run()) is
//! `yolo val`.

mod coco_json;
mod run;
mod tally;
mod validate;

pub use run::run;
pub use tally::Validation;
pub use validate::{Observer, Split, Stage, ValidateOptions, validate};
