//! What turns gradients into better weights (spec §6): [`Optimizer`] steps the parameters in three
//! groups with libtorch's fused SGD, Adam or AdamW, and [`Average`] follows the weights with the
//! exponential moving average that is validated and saved. Both can be saved and continued without
//! a bit of difference.

mod average;
mod groups;
mod state_dict;
mod step;
#[cfg(test)]
mod tests;

pub use average::Average;
pub use step::Optimizer;
