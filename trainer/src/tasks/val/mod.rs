//! Validation (spec §9): a model runs over a split, and its detections are compared with the
//! labels. [`validate`](validate()) is one pass, which training uses after each epoch; [`run`](run()) is
//! `yolo val`. Several ranks share the batches of a split; all have the result of one rank that runs
//! over all of them.

mod coco_eval;
mod coco_json;
mod message;
mod options;
mod pictures;
mod post_processing;
mod run;
mod tally;
mod validate;

pub use options::ValidateOptions;
pub(crate) use pictures::{gather_worst, write_pictures};
pub use run::run;
pub use tally::{ImageDetections, Validation};
pub use validate::{Observer, Split, Stage, validate};
