//! The detector. [`Model`] holds the modules and runs images through them; [`State`] holds its
//! tensors under the names that YOLOv5 gives them. The other files are the modules, by family.

mod ahead;
mod block;
mod build;
mod conv;
mod csp;
mod detect;
mod detector;
mod ghost;
mod input;
mod layer;
mod network;
mod packed;
mod pool;
mod replica;
mod reshape;
mod saved_activations;
mod state;
mod summary;
mod transfer;
mod transformer;

pub(crate) use self::ahead::{Ahead, MOST_AHEAD, copied_ahead, copied_in_turn};
pub(crate) use self::build::NORM_EPS;
pub(crate) use self::conv::square;
pub(crate) use self::csp::{hidden as csp_hidden, inner as csp_inner};
pub use self::detector::Model;
pub(crate) use self::detector::NORM_MOMENTUM;
pub use self::input::images_tensor;
pub use self::replica::Replica;
pub use self::state::{Entry, Role, State};
pub use self::summary::Summary;
pub use self::transfer::{Reshaped, Transfer};
