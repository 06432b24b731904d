//! What a run leaves for people to read: `results.csv`, with YOLOv5's columns; the settings as yaml; plots as SVG,
//! and as PNG or JPEG under the names of YOLOv5; pictures of batches as JPEG; event files for TensorBoard; and the
//! facts that `yolo` makes `report.html` of.

mod batch_pictures;
mod confusion_plot;
mod curves_plot;
mod draw_boxes;
mod hyp_and_opt_yaml;
mod labels_plot;
mod letters;
mod plot_style;
mod raster;
mod results_csv;
mod results_plot;
mod run_facts;
mod study_plot;
mod tensorboard;
mod worst_images;

pub use batch_pictures::{PICTURED, Picture, ValPictures, draw_targets};
pub use confusion_plot::plot_confusion;
pub use curves_plot::plot_curves;
pub use draw_boxes::{Area, BoxStyle, LabeledBox, draw_boxes, text_pixels};
pub use hyp_and_opt_yaml::write_hyp_and_opt;
pub use labels_plot::plot_labels;
pub use letters::unwritable_letters;
pub use results_csv::ResultsFile;
pub use results_plot::plot_results;
pub use run_facts::{facts_of_split, facts_of_validation, unwritable_report};
pub use study_plot::{StudyLine, StudyPoint, plot_study};
pub use tensorboard::EventFile;
pub use worst_images::{WorstImages, worst_of_all};
