//! The report of a run: what `report.json` contains. Its schema is `report.schema.json`, and its page
//! is `report.md`.

mod figures;
mod files;
mod markdown;
mod merge;
mod text;
mod types;

pub use files::{read, write};
pub use markdown::{about, page};
pub use merge::merge;
pub use types::{Check, Figure, LIMIT, Outcome, Report, StageReport, VERSION};
