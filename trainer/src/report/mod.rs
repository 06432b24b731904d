//! What a run leaves for people to read: `results.csv`, in the columns of the original, its settings
//! as yaml, plots as SVG files, which need no font on the machine and open in every browser, and
//! pictures of batches as JPEG.

mod canvas;
mod csv;
mod curves;
mod general;
mod labels;
mod matrix;
mod picture;
mod results;
mod settings;

pub use csv::ResultsFile;
pub use curves::plot_curves;
pub use general::general;
pub use labels::plot_labels;
pub use matrix::plot_confusion;
pub use picture::{PICTURED, ValPictures, draw_targets};
pub use results::plot_results;
pub use settings::write_settings;
