//! Reads `results.csv` of a training run.

use std::path::Path;

/// The numbers of one epoch: losses (3), precision, recall, mAP50, mAP50-95.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Box, objectness and class loss of the training.
    pub losses: [f64; 3],
    /// Mean average precision at IoU 0.5.
    pub map50: f64,
    /// Mean average precision at IoU 0.5 to 0.95.
    pub map50_95: f64,
}

/// The rows of a `results.csv`, one per epoch. Rows that are incomplete or not numbers are left out, as
/// is the header.
pub fn rows(text: &str) -> Vec<Row> {
    text.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<Row> {
    let fields: Vec<f64> =
        line.split(',').map(|field| field.trim().parse()).collect::<Result<_, _>>().ok()?;
    let &[_, box_loss, objectness, class, _, _, map50, map50_95, ..] = fields.as_slice() else {
        return None;
    };
    Some(Row { losses: [box_loss, objectness, class], map50, map50_95 })
}

/// The rows in a run folder; none if the file does not exist yet.
pub fn of_run(folder: &Path) -> Vec<Row> {
    rows(&std::fs::read_to_string(folder.join("results.csv")).unwrap_or_default())
}

/// The highest mAP50 and the highest mAP50-95 of all epochs.
pub fn best(rows: &[Row]) -> (f64, f64) {
    let highest = |value: fn(&Row) -> f64| rows.iter().map(value).fold(0.0, f64::max);
    (highest(|row| row.map50), highest(|row| row.map50_95))
}

/// The largest relative difference between the losses of two runs' last epochs; infinite if their
/// number of epochs differs.
pub fn difference(one: &[Row], other: &[Row]) -> f64 {
    let (Some(a), Some(b)) = (one.last(), other.last()) else { return f64::INFINITY };
    if one.len() != other.len() {
        return f64::INFINITY;
    }
    let relative = |(a, b): (&f64, &f64)| (a - b).abs() / a.abs().max(b.abs()).max(f64::MIN_POSITIVE);
    a.losses.iter().zip(&b.losses).map(relative).fold(0.0, f64::max)
}

/// A difference of losses as text, with the largest that is allowed.
pub fn compared(difference: f64, allowed: f64) -> String {
    match difference {
        0.0 => "the losses are identical".to_owned(),
        _ => format!("the losses differ by {difference:.2e}, allowed {allowed:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
               epoch,      train/box_loss,      train/obj_loss,      train/cls_loss,   metrics/precision,      metrics/recall,     metrics/mAP_0.5,metrics/mAP_0.5:0.95,        val/box_loss,        val/obj_loss,        val/cls_loss,               x/lr0,               x/lr1,               x/lr2
                   0,             0.10,             0.20,            0.05,             0.1,             0.2,             0.5,             0.3,  0,0,0, 0.1,0.1,0.1
                   1,             0.08,             0.10,            0.04,             0.1,             0.2,             0.4,             0.35,  0,0,0, 0.1,0.1,0.1
                   2,             0.07";

    #[test]
    fn complete_rows_are_read() {
        let rows = rows(TEXT);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1].losses, [0.08, 0.10, 0.04]);
        assert_eq!(best(&rows), (0.5, 0.35));
        assert_eq!(best(&[]), (0.0, 0.0));
    }

    #[test]
    fn runs_differ_by_their_last_losses_or_their_length() {
        let rows = rows(TEXT);
        assert_eq!(difference(&rows, &rows), 0.0);
        let mut other = rows.clone();
        other[1].losses[1] = 0.125;
        assert!((difference(&rows, &other) - 0.2).abs() < 1e-12);
        assert_eq!(difference(&rows, &rows[..1]), f64::INFINITY);
        assert_eq!(difference(&[], &[]), f64::INFINITY);
    }
}
