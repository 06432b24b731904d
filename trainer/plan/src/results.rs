//! `results.csv`: the columns that YOLOv5 and `yolo` write, one row per epoch (spec §10), and its reader. Files
//! of YOLOv5 may have more columns, and spaces around their names.

use std::io;
use std::path::Path;

use crate::error::PlanError;
use crate::event::VALIDATION_COLUMNS;

/// The name of the file in the run folder.
pub const RESULTS_FILE: &str = "results.csv";

/// The columns, in their order.
pub const COLUMNS: [&str; 14] = {
    let [precision, recall, map50, map50_95, bbox, objectness, class] = VALIDATION_COLUMNS;
    [
        "epoch",
        "train/box_loss",
        "train/obj_loss",
        "train/cls_loss",
        precision,
        recall,
        map50,
        map50_95,
        bbox,
        objectness,
        class,
        "x/lr0",
        "x/lr1",
        "x/lr2",
    ]
};

/// One row: the values of [`COLUMNS`].
pub type Row = [f64; COLUMNS.len()];

/// The fitness of an epoch: 0.1·mAP50 + 0.9·mAP50-95 (spec §6).
pub fn fitness(row: &Row) -> f64 {
    0.1 * row[6] + 0.9 * row[7]
}

/// The row of the best epoch, by fitness; the last one of equals, as `best.pt` is that one.
pub fn best(rows: &[Row]) -> Option<&Row> {
    rows.iter().max_by(|a, b| fitness(a).total_cmp(&fitness(b)))
}

/// Reads the rows of a file. A last row that a full disk or a kill has cut short is left out.
///
/// # Errors
/// When the file cannot be read, has other columns, or a row that is no row of numbers.
pub fn read(path: &Path) -> Result<Vec<Row>, PlanError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| PlanError::new(format!("cannot read the results {shown}: {error}")))?;
    let damaged = |why: String| {
        PlanError::new(format!("{shown} is damaged, or no results of a training run: {why}"))
            .with_hint("restore the file, or leave this run out")
    };
    let (width, lines) = parse(&text).map_err(damaged)?;
    let last = lines.len();
    let mut rows = Vec::with_capacity(last);
    for (index, (number, row)) in lines.into_iter().enumerate() {
        match row {
            Some(row) => rows.push(row),
            None if index + 1 == last => {}
            None => return Err(damaged(format!("line {number} is not a row of {width} numbers"))),
        }
    }
    Ok(rows)
}

/// Reads the rows of a file that are rows of numbers, and skips the others.
///
/// # Errors
/// When the file cannot be read, or has other columns.
pub fn read_whole_rows(path: &Path) -> io::Result<Vec<Row>> {
    let (_, lines) = parse(&std::fs::read_to_string(path)?).map_err(io::Error::other)?;
    Ok(lines.into_iter().filter_map(|(_, row)| row).collect())
}

/// A line of the file by its number, and its row if it is one.
type Line = (usize, Option<Row>);

/// The number of columns, and the lines after the header that are not empty; or why this is no such file.
fn parse(text: &str) -> Result<(usize, Vec<Line>), String> {
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (_, header) = lines.next().ok_or("it is empty")?;
    let names: Vec<&str> = header.split(',').map(str::trim).collect();
    let mut places = [0; COLUMNS.len()];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let found = names.iter().position(|name| *name == column);
        *place = found.ok_or_else(|| format!("it has no column {column}"))?;
    }
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let mut row = [0.0; COLUMNS.len()];
        for (value, place) in row.iter_mut().zip(places) {
            *value = cells.get(place)?.parse().ok()?;
        }
        (cells.len() == names.len()).then_some(row)
    };
    Ok((names.len(), lines.map(|(index, line)| (index + 1, row(line))).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Row>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(RESULTS_FILE);
        std::fs::write(&path, text).unwrap();
        read(&path).map_err(|error| error.to_string().replace(&path.display().to_string(), "results.csv"))
    }

    #[test]
    fn files_of_yolov5_with_more_columns_are_read() {
        let text = format!("   {},  extra\n 0{}, 7\n", COLUMNS.join(",   "), ", 0.5".repeat(13));
        assert_eq!(read_text(&text).unwrap().len(), 1);
    }

    #[test]
    fn the_last_row_may_be_cut_short_and_no_other() {
        let row = |epoch: u32| format!("{epoch}{}\n", ",0.5".repeat(13));
        let whole = format!("{}\n{}{}", COLUMNS.join(","), row(0), row(1));
        assert_eq!(read_text(&whole).unwrap().len(), 2);
        assert_eq!(read_text(&whole[..whole.len() - 9]).unwrap().len(), 1);
        let damaged = whole.replacen(",0.5,", ",oops,", 1);
        assert_eq!(
            read_text(&damaged).unwrap_err(),
            "results.csv is damaged, or no results of a training run: line 2 is not a row of 14 numbers"
        );
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        assert!(read_text("").unwrap_err().ends_with("it is empty"));
        assert!(read_text("epoch,loss\n1,2\n").unwrap_err().ends_with("it has no column train/box_loss"));
    }

    #[test]
    fn the_best_epoch_is_the_last_of_equals() {
        let row = |epoch: f64, map: f64| {
            let mut row = [0.0; COLUMNS.len()];
            (row[0], row[7]) = (epoch, map);
            row
        };
        let rows = [row(0.0, 0.1), row(1.0, 0.3), row(2.0, 0.3), row(3.0, 0.2)];
        assert_eq!(best(&rows).unwrap()[0], 2.0);
    }
}
