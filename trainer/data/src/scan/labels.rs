//! Parses label files with YOLOv5's rules (spec §7): five columns or polygons, no negative or NaN values, no
//! coordinates above 1. Duplicates are removed. All arithmetic is f32, as in YOLOv5, so that borderline
//! values are accepted or rejected alike.

use std::cmp::Ordering;

/// The content of a label file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Labels {
    /// Class, center x, center y, width, height. In the order of the file, or sorted if duplicates were
    /// removed.
    pub boxes: Vec<[f32; 5]>,
    /// Empty, or one polygon per box.
    pub segments: Vec<Vec<[f32; 2]>>,
    /// The number of repeated rows that were removed.
    pub duplicates: usize,
}

/// Why a label file is corrupt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct LabelError {
    /// The first invalid line, from 1.
    pub line: usize,
    /// Why it is invalid.
    pub reason: String,
}

/// The number and the fields of a line that is not blank.
type Line<'a> = (usize, Vec<&'a str>);

/// The lines of a file that are not blank, split at every line ending of Python's `splitlines`.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let ends = ['\r', '\x0b', '\x0c', '\x1c', '\x1d', '\x1e', '\u{85}', '\u{2028}', '\u{2029}'];
    text.split('\n')
        .enumerate()
        .flat_map(move |(index, line)| line.split(ends).map(move |part| (index + 1, part)))
        .map(|(number, line)| (number, line.split_whitespace().collect::<Vec<_>>()))
        .filter(|(_, fields)| !fields.is_empty())
}

/// Parses the text of a label file.
///
/// If any line has more than six fields, every line is a polygon: the class, then x and y of each corner.
/// Its box is the bounding box.
///
/// # Errors
/// If the file is corrupt; the error names the first invalid line.
pub fn parse_labels(text: &str) -> Result<Labels, LabelError> {
    let lines: Vec<Line<'_>> = lines(text).collect();
    let polygons = lines.iter().any(|(_, fields)| fields.len() > 6);
    let mut labels = Labels::default();
    for (line, fields) in &lines {
        let at = |reason: String| LabelError { line: *line, reason };
        let values = numbers(fields).map_err(at)?;
        if polygons {
            let (row, segment) = polygon(&values).map_err(at)?;
            check(&row, true).map_err(at)?;
            labels.boxes.push(row);
            labels.segments.push(segment);
        } else {
            let row: [f32; 5] = values.as_slice().try_into().map_err(|_| {
                at(format!(
                    "{} columns; a label has 5: class, center x, center y, width, height",
                    values.len()
                ))
            })?;
            check(&row, false).map_err(at)?;
            labels.boxes.push(row);
        }
    }
    remove_duplicates(&mut labels);
    Ok(labels)
}

/// The first line whose class satisfies `wanted`, with that class.
pub(super) fn line_with_class(text: &str, wanted: impl Fn(f32) -> bool) -> Option<(usize, f32)> {
    lines(text).find_map(|(line, fields)| {
        let class = fields[0].parse::<f64>().ok()? as f32;
        wanted(class).then_some((line, class))
    })
}

/// Parses all fields as f64 and rounds them to f32, as Python does.
fn numbers(fields: &[&str]) -> Result<Vec<f32>, String> {
    fields
        .iter()
        .map(|field| match field.parse::<f64>() {
            Ok(value) => Ok(value as f32),
            Err(_) => Err(format!("`{field}` is not a number")),
        })
        .collect()
}

/// Converts class and corners to the row of the bounding box and the corners.
fn polygon(values: &[f32]) -> Result<([f32; 5], Vec<[f32; 2]>), String> {
    let (corners, rest) = values[1..].as_chunks::<2>();
    if corners.is_empty() || !rest.is_empty() {
        return Err(format!(
            "{} columns; a polygon has a class, and an x and a y for each corner",
            values.len()
        ));
    }
    let extreme = |axis: usize, pick: fn(f32, f32) -> f32| {
        corners.iter().map(|corner| corner[axis]).fold(corners[0][axis], |a, b| {
            // `f32::min` ignores NaN, but `check` must see it.
            if a.is_nan() || b.is_nan() { f32::NAN } else { pick(a, b) }
        })
    };
    let (left, right) = (extreme(0, f32::min), extreme(0, f32::max));
    let (top, bottom) = (extreme(1, f32::min), extreme(1, f32::max));
    let row = [values[0], (left + right) / 2.0, (top + bottom) / 2.0, right - left, bottom - top];
    Ok((row, corners.to_vec()))
}

/// Checks the values of one row.
fn check(row: &[f32; 5], polygon: bool) -> Result<(), String> {
    const COLUMNS: [&str; 5] = ["class", "center x", "center y", "width", "height"];
    let of = if polygon { " of the polygon's box" } else { "" };
    for (column, &value) in COLUMNS.iter().zip(row) {
        if value.is_nan() {
            return Err(format!("{column}{of} is not a number (NaN)"));
        }
        if value < 0.0 {
            return Err(format!("{column}{of} is negative: {value}"));
        }
    }
    for (column, &value) in COLUMNS.iter().zip(row).skip(1) {
        if value > 1.0 {
            return Err(format!(
                "{column}{of} is {value}; it must be a fraction of the image size, at most 1"
            ));
        }
    }
    Ok(())
}

/// Removes repeated rows. If there are any, the rows are sorted, as by `numpy.unique`; the first of equal
/// rows keeps its polygon.
fn remove_duplicates(labels: &mut Labels) {
    let boxes = &labels.boxes;
    let mut order: Vec<usize> = (0..boxes.len()).collect();
    let compare = |a: &usize, b: &usize| {
        boxes[*a]
            .iter()
            .zip(&boxes[*b])
            .map(|(x, y)| x.partial_cmp(y).unwrap_or(Ordering::Equal))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    order.sort_by(compare);
    order.dedup_by(|a, b| compare(a, b).is_eq());
    labels.duplicates = boxes.len() - order.len();
    if labels.duplicates > 0 {
        labels.boxes = order.iter().map(|&index| boxes[index]).collect();
        if !labels.segments.is_empty() {
            labels.segments =
                order.iter().map(|&index| std::mem::take(&mut labels.segments[index])).collect();
        }
    }
}
