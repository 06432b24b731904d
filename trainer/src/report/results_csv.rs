//! `results.csv`: one row per epoch, with YOLOv5's columns and widths (spec §10), so that scripts
//! written for YOLOv5 can read it. A row is appended at the end of each epoch. A resumed run first
//! drops the rows of epochs that it repeats.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use yolo_base::percent_g::percent_g;
use yolo_plan::event::EpochSummary;
use yolo_plan::results::{COLUMNS, RESULTS_FILE};

use crate::error::TrainError;

/// The results file of a run folder.
#[derive(Debug)]
pub struct ResultsFile {
    path: PathBuf,
    /// Columns of the file after [`COLUMNS`].
    more_columns: usize,
}

impl ResultsFile {
    /// Opens `results.csv` in `run_dir` for a run that starts at `first_epoch`, and drops the rows of
    /// that epoch and later ones.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn open(run_dir: &Path, first_epoch: usize) -> Result<Self, TrainError> {
        let mut file = Self { path: run_dir.join(RESULTS_FILE), more_columns: 0 };
        let old =
            if first_epoch > 0 { fs::read_to_string(&file.path).unwrap_or_default() } else { String::new() };
        let mut text = header();
        // A file of YOLOv5 may have more columns after these, such as one per class. They stay, and are empty in new rows.
        if let Some(first) = old.lines().next().filter(|line| has_columns(line)) {
            file.more_columns = cells(first) - COLUMNS.len();
            text = format!("{first}\n");
        }
        for line in old.lines().skip(1) {
            let epoch = line.split(',').next().and_then(|cell| cell.trim().parse::<usize>().ok());
            // A row that a full disk has cut short may have lost digits of its epoch.
            let whole = cells(line) == COLUMNS.len() + file.more_columns;
            if whole && epoch.is_some_and(|epoch| epoch < first_epoch) {
                text.push_str(line);
                text.push('\n');
            }
        }
        // Replaced by one rename, so that a kill leaves the old rows.
        let new = file.path.with_extension("csv.new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, &file.path)).map_err(unwritable)?;
        Ok(file)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends the row of an epoch. As in YOLOv5, numbers that were not measured are 0.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&self, epoch: &EpochSummary) -> Result<(), TrainError> {
        let metrics = epoch.metrics.unwrap_or_default();
        let numbers = [
            epoch.epoch as f64,
            epoch.train_losses[0],
            epoch.train_losses[1],
            epoch.train_losses[2],
            metrics.precision,
            metrics.recall,
            metrics.map50,
            metrics.map50_95,
        ];
        let row = numbers.into_iter().chain(epoch.val_losses.unwrap_or_default()).chain(epoch.lr);
        let mut line = join(row.map(|value| percent_g(value, 5)));
        line.insert_str(line.len() - 1, &",".repeat(self.more_columns));
        let mut file = fs::OpenOptions::new().append(true).open(&self.path).map_err(unwritable)?;
        file.write_all(line.as_bytes()).map_err(unwritable)
    }
}

fn unwritable(error: std::io::Error) -> TrainError {
    let hint = match error.kind() {
        ErrorKind::NotFound => "the run folder was moved or deleted; start the run again",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some disk space, then resume the run with --resume"
        }
        _ => "make the run folder writable, then resume the run with --resume",
    };
    TrainError::new(format!("cannot write the results of this epoch: {error}")).with_hint(hint)
}

fn header() -> String {
    join(COLUMNS.iter().map(|column| (*column).to_owned()))
}

/// The number of cells of a line.
fn cells(line: &str) -> usize {
    line.split(',').count()
}

/// Whether a line begins with the names of [`COLUMNS`].
fn has_columns(line: &str) -> bool {
    cells(line) >= COLUMNS.len() && line.split(',').zip(COLUMNS).all(|(cell, name)| cell.trim() == name)
}

fn join(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|cell| format!("{cell:>20}")).collect();
    cells.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use yolo_plan::results::read_whole_rows;

    use super::*;

    fn epoch(epoch: usize) -> EpochSummary {
        EpochSummary {
            epoch,
            epochs: 3,
            train_losses: [0.1, 0.2, 0.3],
            metrics: None,
            val_losses: None,
            lr: [0.1, 0.0, 0.00001],
            seconds: 1.0,
            best: false,
        }
    }

    #[test]
    fn a_resumed_run_drops_rows_that_are_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let file = ResultsFile::open(folder.path(), 0).unwrap();
        file.append(&epoch(0)).unwrap();
        let whole = std::fs::read_to_string(file.path()).unwrap();
        // The row of epoch 12 without its last digit.
        std::fs::write(file.path(), format!("{whole}                   1")).unwrap();
        let resumed = ResultsFile::open(folder.path(), 12).unwrap();
        assert_eq!(std::fs::read_to_string(resumed.path()).unwrap(), whole);
    }

    #[test]
    fn columns_of_yolov5_after_ours_stay_and_are_empty_in_new_rows() {
        let folder = tempfile::tempdir().unwrap();
        let cells = |cells: &[&str]| join(cells.iter().map(|cell| (*cell).to_owned()));
        let names = cells(&[&COLUMNS[..], &["metrics/red_mAP", "metrics/blue_mAP"]].concat());
        let row = |number: &str| cells(&[&[number][..], &["0.5"; 15]].concat());
        let old = [names.as_str(), &row("0"), &row("1")].concat();
        std::fs::write(folder.path().join("results.csv"), &old).unwrap();
        let resumed = ResultsFile::open(folder.path(), 1).unwrap();
        resumed.append(&epoch(1)).unwrap();
        let text = std::fs::read_to_string(resumed.path()).unwrap();
        assert!(text.starts_with(&[names.as_str(), &row("0")].concat()), "{text}");
        assert!(text.ends_with(",,\n") && text.lines().all(|line| super::cells(line) == 16), "{text}");
        let rows = read_whole_rows(resumed.path()).unwrap();
        assert_eq!(rows.iter().map(|row| (row[0], row.len())).collect::<Vec<_>>(), [(0.0, 14), (1.0, 14)]);
    }

    #[test]
    fn a_resumed_run_drops_the_rows_it_repeats() {
        let folder = tempfile::tempdir().unwrap();
        let file = ResultsFile::open(folder.path(), 0).unwrap();
        for index in 0..3 {
            file.append(&epoch(index)).unwrap();
        }
        let resumed = ResultsFile::open(folder.path(), 2).unwrap();
        resumed.append(&epoch(2)).unwrap();
        let rows = read_whole_rows(resumed.path()).unwrap();
        assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), [0.0, 1.0, 2.0]);
        let text = std::fs::read_to_string(file.path()).unwrap();
        let line = text.lines().nth(1).unwrap();
        assert!(line.starts_with("                   0,                 0.1,"), "{line}");
        assert!(line.ends_with("               1e-05"), "{line}");
    }
}
