//! The options of `yolo train --evolve`: how many generations, and from what the search starts or continues.

use std::path::PathBuf;

use clap::Args;
use yolo_plan::evolve::GENERATIONS;
use yolo_plan::number::positive;

/// The options of an evolution. The others are those of each generation.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search for hyperparameters")]
pub(crate) struct EvolveArgs {
    /// Search for better hyperparameters: train up to N generations, each with a mutation of the best so far [300 if no value is given]
    #[arg(long, value_parser = positive::<usize>, allow_negative_numbers = true, value_name = "N", num_args = 0..=1, default_missing_value = GENERATIONS)]
    pub(crate) evolve: Option<usize>,
    /// Folder with hyperparameter files that are trained first; without a value, YOLOv5's presets
    #[arg(long, visible_alias = "evolve_population", value_name = "FOLDER", num_args = 0..=1, default_missing_value = "data/hyps", requires = "evolve")]
    pub(crate) evolve_population: Option<PathBuf>,
    /// Continue the search whose table this is, of yolo or of YOLOv5
    #[arg(long, visible_alias = "resume_evolve", value_name = "EVOLVE.CSV", requires = "evolve")]
    pub(crate) resume_evolve: Option<PathBuf>,
}

/// The options, as clap names them.
pub(super) const OPTIONS: [&str; 3] = ["evolve", "evolve_population", "resume_evolve"];
