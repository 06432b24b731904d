//! The report of a run, and the comparison of runs: reads what a run leaves in its folder (`report.json`, `results.csv`, `opt.yaml` and
//! `hyp.yaml`) and makes one HTML page of it. The page works offline: style and charts are inside of it, it has no
//! script, and it asks no server for anything. Links no libtorch, and prints nothing.

mod chart;
mod compare;
mod comparison_page;
mod html;
mod page;
mod run_files;
mod sections;
mod settings;

pub use compare::{ComparedClass, ComparedRun, Comparison, Differing, EpochMetrics, compare};
pub use comparison_page::comparison_page;
pub use page::page;
pub use run_files::RunFiles;
pub use settings::Setting;
