//! `yolo train --evolve`: from what the search starts, which generations are trained, what their ends mean, and the
//! plot. The rules of the search are [`yolo_plan::evolve`]. Nothing is printed here; [`crate::commands`] trains the
//! generations and shows them.

mod data;
mod folders;
mod options;
mod plot;
mod series;
mod start;

pub(crate) use data::{DATA, KnownData};
pub(crate) use folders::{folder_of, keep_failed, remove_leftovers};
pub(crate) use options::{OPTIONS, changed};
pub(crate) use plot::plot;
pub(crate) use series::{End, Failure, Search, TrainingEnd, Trainings, evolve};
pub(crate) use start::{TABLE, continued, newest, population, table_in};
