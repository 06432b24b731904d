//! The tables of `yolo bench`: decides which of the planned runs are made, one after the other, and what
//! their ends mean. It prints nothing; [`crate::commands`] starts the runs and shows them.

mod memory;
mod out_of_memory;
mod plot;
#[cfg(test)]
pub(crate) mod sample_tables;
mod series;

pub(crate) use memory::available;
pub(crate) use out_of_memory::outcome_of_error;
pub(crate) use plot::plot;
pub(crate) use series::{RowEnd, Runs, measure};
