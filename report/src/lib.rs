//! The report of a run: reads what a run leaves in its folder (`report.json`, `results.csv`, `opt.yaml` and
//! `hyp.yaml`) and makes one HTML page of it. The page works offline: style and charts are inside of it, it has no
//! script, and it asks no server for anything. Links no libtorch, and prints nothing.

mod chart;
mod html;
mod page;
mod run_files;
mod sections;
mod settings;

pub use page::page;
pub use run_files::RunFiles;
pub use settings::Setting;
