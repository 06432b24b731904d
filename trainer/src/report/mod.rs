//! What a run leaves for people to read: `results.csv`, in the columns of the original, and plots
//! as SVG files, which need no font on the machine and open in every browser.

mod canvas;
mod csv;
mod curves;
mod general;
mod matrix;
mod results;

pub use csv::ResultsFile;
pub use curves::plot_curves;
pub use general::general;
pub use matrix::plot_confusion;
pub use results::plot_results;
