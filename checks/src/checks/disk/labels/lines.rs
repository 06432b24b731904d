//! What the lines of label files say, and what is wrong with them: classes that the data set does not have, numbers of
//! columns, boxes outside the image, key points, and polygons between boxes.

use std::collections::BTreeSet;

use yolo_base::format;

use super::corners::Boxes;
use super::encoding::{self, Encoding};
use super::notation::{self, Notation};
use super::rewrite::{self, Line};
use crate::facts::Host;
use crate::facts::view::data_set::DataSet;
use crate::finding::Finding;

/// The number of classes in labelImg's file predefined_classes.txt.
const PREDEFINED: usize = 15;
/// What takes this number from the classes of the label files in a folder, and leaves classes.txt alone.
const LESS_IN_PERL: &str = r"`perl -pi.before -e 's/^(\d+)/$1 >= 15 ? $1 - 15 : $1/e' *.txt`";
/// The same. Windows has no perl.
const LESS_IN_POWERSHELL: &str = "`foreach ($f in Get-ChildItem *.txt -Exclude classes.txt) { Copy-Item $f \"$f.before\"; (Get-Content $f) | \
                                  ForEach-Object { $w = -split $_; if ($w -and [int]$w[0] -ge 15) { $w[0] = [int]$w[0] - 15 }; \
                                  $w -join ' ' } | Set-Content $f }` in PowerShell";
/// How far a box may extend outside the image before it counts as an error, not as rounding.
const ROUNDING: f64 = 1e-3;

/// What was found in the label files, with an example of each error.
#[derive(Default)]
pub(super) struct Seen {
    /// The split, if it is not that for training, as the end of a title.
    of: &'static str,
    /// The names of the classes of the data set, and how many there are.
    names: Vec<String>,
    known: Option<usize>,
    /// How many numbers the YAML file says follow a box.
    points: Option<(usize, usize)>,
    /// The first label file that exists.
    pub(super) first: String,
    pub(super) files: usize,
    pub(super) lines: usize,
    /// Files that exist and have no lines.
    pub(super) empty: Vec<String>,
    pub(super) missing: Vec<String>,
    pub(super) classes: BTreeSet<usize>,
    pub(super) class: Vec<String>,
    columns: Vec<String>,
    /// How each of `columns` is written.
    notations: Vec<Notation>,
    /// The boxes whose numbers are valid.
    boxes: Boxes,
    /// How many of `columns` are a box with a sixth number from 0 to 1.
    with_confidence: usize,
    /// Boxes with key points after them.
    key_points: Vec<String>,
    /// The numbers of columns of these lines, of those that may have key points, and of all others.
    widths_of_key_points: BTreeSet<usize>,
    widths_in_doubt: BTreeSet<usize>,
    other_widths: BTreeSet<usize>,
    range: Vec<String>,
    flat: Vec<String>,
    twice: Vec<String>,
    /// Files that are not read, and why.
    encoded: Vec<(String, Encoding)>,
    /// The lines with a box in files that also have a polygon.
    mixed: Vec<String>,
}

impl Seen {
    /// Nothing yet, of a split that is named at the end of titles.
    pub(super) fn new(set: &DataSet, of: &'static str) -> Self {
        Self {
            of,
            names: notation::names(set.keys.get("names")),
            known: set.classes(),
            points: set.key_points(),
            ..Self::default()
        }
    }

    pub(super) fn read(&mut self, file: &str, bytes: &[u8]) {
        if self.files == 0 {
            file.clone_into(&mut self.first);
        }
        self.files += 1;
        if let Some(encoding) = encoding::of(bytes) {
            self.lines += 1;
            self.encoded.push((file.to_owned(), encoding));
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        if text.trim().is_empty() {
            self.empty.push(file.to_owned());
        }
        // YOLOv5 reads all lines as polygons if one is longer than a box with a confidence.
        let has_polygon = text.lines().any(|line| line.split_whitespace().nth(6).is_some());
        let mut lines = BTreeSet::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            self.lines += 1;
            let place = format!("{file}, line {}: {}", number + 1, line.trim());
            let words: Vec<&str> = line.split_whitespace().collect();
            let numbers: Option<Vec<f64>> = words.iter().map(|word| word.parse().ok()).collect();
            if numbers.as_ref().is_some_and(|numbers| has_key_points(numbers, self.points)) {
                self.key_points.push(place);
                self.widths_of_key_points.insert(words.len());
                continue;
            }
            if numbers.as_ref().is_some_and(|numbers| has_visibilities(numbers)) {
                self.widths_in_doubt.insert(words.len());
            } else {
                self.other_widths.insert(words.len());
            }
            // Five columns are a box; a class and at least three points are a polygon.
            let is_box = words.len() == 5;
            let is_polygon = words.len() >= 7 && words.len() % 2 == 1;
            let is_between = |number: &f64| (0.0..=1.0).contains(number);
            let has_confidence = |numbers: &Vec<f64>| words.len() == 6 && numbers[1..].iter().all(is_between);
            self.with_confidence += usize::from(numbers.as_ref().is_some_and(has_confidence));
            let Some(numbers) = numbers.filter(|_| is_box || is_polygon) else {
                self.notations.push(notation::of(line, &self.names));
                self.columns.push(place);
                continue;
            };
            if has_polygon && is_box {
                self.mixed.push(place.clone());
            }
            let (class, points) = (numbers[0], &numbers[1..]);
            if class < 0.0
                || class.fract() != 0.0
                || self.known.is_some_and(|classes| class >= classes as f64)
            {
                self.class.push(place.clone());
            }
            self.classes.insert(class.max(0.0) as usize);
            if points.iter().any(|&point| !(-ROUNDING..=1.0 + ROUNDING).contains(&point)) {
                self.range.push(place);
            } else if is_box && (points[2] <= 0.0 || points[3] <= 0.0) {
                self.flat.push(place);
            } else {
                if is_box {
                    self.boxes.add([points[0], points[1], points[2], points[3]], &place);
                }
                if !lines.insert(words) {
                    self.twice.push(place);
                }
            }
        }
    }

    /// A finding about lines of the sampled files, if there are any.
    fn finding(
        &self,
        id: &'static str,
        places: &[String],
        one: &str,
        many: &str,
        what: &str,
    ) -> Option<Finding> {
        let first = places.first()?;
        let files = format!("{}{}", format::count(self.files, "sampled label file"), self.of);
        let verb = if places.len() == 1 { one } else { many };
        let title = format!("{} in {files} {verb} {what}", format::count(places.len(), "line"));
        Some(Finding::new(id, title).seen(first.clone()))
    }

    pub(super) fn findings(&self, host: &Host, set: &DataSet) -> Vec<Finding> {
        let classes = set.classes();
        let mut findings = Vec::new();
        let last = classes.unwrap_or(0).saturating_sub(1);
        let columns = "not in YOLO format (a class and four numbers)".to_owned();
        let points = "key points after the box, which are for pose estimation";
        if let Some(finding) = self.finding("disk.labels-columns", &self.key_points, "has", "have", points) {
            return vec![self.without_key_points(finding)];
        }
        let mut add = |id: &'static str, places: &[String], one: &str, many: &str, what: String| {
            findings.extend(self.finding(id, places, one, many, &what));
        };
        add("disk.labels-columns", &self.columns, "is", "are", columns);
        add("disk.labels-class", &self.class, "has", "have", format!("a class outside 0 to {last}"));
        add("disk.labels-range", &self.range, "has", "have", "a box outside 0 to 1".to_owned());
        add("disk.labels-flat", &self.flat, "has", "have", "a box with zero width or height".to_owned());
        add("disk.labels-twice", &self.twice, "repeats", "repeat", "an earlier line".to_owned());
        findings.extend(self.boxes.finding(&self.first, self.of).filter(|_| self.mixed.is_empty()));
        findings.extend(encoding::finding(&self.encoded, self.files, &set.yaml));
        findings.extend(self.boxes_among_polygons());
        if let (Some(names), Some(finding)) =
            (classes, findings.iter_mut().find(|finding| finding.id == "disk.labels-class"))
            && let Some(text) = self.remedy(names, set, host.is_windows().unwrap_or(false))
        {
            *finding = finding.clone().remedy(text);
        }
        let notation =
            self.notations.first().filter(|first| self.notations.iter().all(|one| is_alike(one, first)));
        if let (Some(notation), Some(finding)) =
            (notation, findings.iter_mut().find(|finding| finding.id == "disk.labels-columns"))
        {
            *finding = notation::explained(finding.clone(), &self.first, notation);
        }
        let is_prediction = self.with_confidence > 0 && self.with_confidence == self.columns.len();
        if let (true, Some(finding)) =
            (is_prediction, findings.iter_mut().find(|finding| finding.id == "disk.labels-columns"))
        {
            *finding = finding.clone().remedy(
                "remove the sixth number of each line: it looks like the confidence that predictions have with \
                 --save-conf, and a label has five numbers",
            );
        }
        findings
    }

    /// How to keep the boxes of labels with key points.
    fn without_key_points(&self, finding: Finding) -> Finding {
        let finding = finding
            .because("yolo trains boxes: it would read the numbers after a box as corners of a polygon, or refuse them");
        // A polygon would be cut to a wrong box. In lines of the same length, no point may be marked as visible.
        let has_other_lines = self.other_widths.iter().any(|width| *width != 5)
            || !self.widths_in_doubt.is_subset(&self.widths_of_key_points);
        if has_other_lines {
            return finding.remedy(
                "in lines with key points, keep only the first five numbers (class and box); leave all other lines alone: there \
                 are also polygons or lines of another kind, which have to be exported as boxes (`kpt_shape` and `flip_idx` \
                 in the YAML file are not needed)",
            );
        }
        let text = "keep the first five numbers of each line, a class and a box (`kpt_shape` and `flip_idx` in the YAML file are not \
                    needed)";
        rewrite::all(
            finding,
            &self.first,
            text,
            "with-key-points",
            Line::Sed("s/^[[:space:]]*(([^[:space:]]+[[:space:]]+){4}[^[:space:]]+).*/\\1/"),
        )
    }

    fn boxes_among_polygons(&self) -> Option<Finding> {
        let first = self.mixed.first()?;
        let verb = if self.mixed.len() == 1 { "is a box" } else { "are boxes" };
        let title = format!(
            "{} {verb} in a file that also has polygons, and will be read as {}",
            format::count(self.mixed.len(), "line"),
            if self.mixed.len() == 1 { "a polygon" } else { "polygons" }
        );
        Some(
            Finding::new("disk.labels-columns", title)
                .seen(first.clone())
                .because(
                    "if a label file has one polygon, YOLOv5 and yolo read all its lines as polygons: the center and the size of \
                     a box become two corners, which makes a wrong box without a message",
                )
                .remedy(
                    "export the data set for detection, with boxes only (in Roboflow, an object detection project), or write \
                     each of these boxes as a polygon of its four corners",
                ),
        )
    }

    /// What to do about classes without a name.
    fn remedy(&self, names: usize, set: &DataSet, is_windows: bool) -> Option<String> {
        let highest = *self.classes.last()?;
        let nc =
            set.keys.get("nc").and_then(serde_json::Value::as_u64).and_then(|nc| usize::try_from(nc).ok());
        let missing = |all: usize| match all - names {
            1 => format!("add the name of class {names} to `names` in {}", set.yaml),
            _ => format!("add the names of classes {names} to {} to `names` in {}", all - 1, set.yaml),
        };
        // If `nc` and the labels agree, the names are wrong.
        if let Some(nc) = nc.filter(|&nc| nc > names && highest < nc) {
            return Some(format!("{}, because `nc` is {nc}", missing(nc)));
        }
        // Exports that number classes from 1 use every class except 0, and one too many.
        if !self.classes.contains(&0) && highest == names {
            return Some(
                "the labels seem to number classes from 1: if no label file has class 0, subtract 1 from \
                 the first column"
                    .to_owned(),
            );
        }
        let lowest = *self.classes.first()?;
        if lowest >= PREDEFINED && highest < PREDEFINED + names {
            return Some(format!(
                "the labels seem to be those of labelImg, which numbers classes of your own from {PREDEFINED}, after its predefined \
                 ones: if its classes.txt begins with dog, person and cat, subtract {PREDEFINED} from the first column of all \
                 label files, for instance with {} in their folder, which keeps copies",
                if is_windows { LESS_IN_POWERSHELL } else { LESS_IN_PERL }
            ));
        }
        // A single stray number, such as a COCO id, does not mean that many names are missing.
        (highest >= names && highest < names + 10)
            .then(|| format!("{}, or export the labels again", missing(highest + 1)))
    }
}

/// Whether two lines have the same mistake.
fn is_alike(one: &Notation, other: &Notation) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Whether a line is a box with key points after it: as many as the YAML file says, or points of three numbers each, the
/// third of which says whether the point is visible (0, 1 or 2). A polygon can have as many numbers.
fn has_key_points(numbers: &[f64], points: Option<(usize, usize)>) -> bool {
    let Some(rest) = numbers.get(5..).filter(|rest| !rest.is_empty()) else { return false };
    match points {
        Some((count, 3)) => rest.len() == count * 3 && has_visibilities(numbers),
        Some((count, size)) => rest.len() == count * size && surrounds(&numbers[1..5], rest, size),
        // 2 is no coordinate, so that this is no polygon.
        None => {
            rest.len() >= 9
                && has_visibilities(numbers)
                && rest.iter().skip(2).step_by(3).any(|one| *one == 2.0)
        }
    }
}

/// Whether every third number after a box can say whether a point is visible.
fn has_visibilities(numbers: &[f64]) -> bool {
    let rest = numbers.get(5..).unwrap_or_default();
    let mut visible = rest.iter().skip(2).step_by(3);
    rest.len() >= 3 && rest.len().is_multiple_of(3) && visible.all(|one| [0.0, 1.0, 2.0].contains(one))
}

/// Whether a box has all points after it inside. Points at 0, 0 are those that nobody marked.
fn surrounds(center_and_size: &[f64], points: &[f64], size: usize) -> bool {
    let &[x, y, width, height] = center_and_size else { return false };
    let is_inside = |center: f64, extent: f64, at: f64| (at - center).abs() <= extent / 2.0 + ROUNDING;
    let in_image = |center: f64, extent: f64| {
        extent > 0.0 && center - extent / 2.0 >= -ROUNDING && center + extent / 2.0 <= 1.0 + ROUNDING
    };
    in_image(x, width)
        && in_image(y, height)
        && points.chunks(size).all(|point| match *point {
            [0.0, 0.0, ..] => true,
            [left, top, ..] => is_inside(x, width, left) && is_inside(y, height, top),
            _ => false,
        })
}

/// The classes used in a label file.
pub(super) fn classes_of(text: &str) -> impl Iterator<Item = usize> {
    text.lines().filter_map(|line| line.split_whitespace().next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_of_points(line: &str, points: Option<(usize, usize)>) -> bool {
        let numbers: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        has_key_points(&numbers, points)
    }

    #[test]
    fn a_polygon_of_the_same_length_has_no_key_points() {
        let polygon = "0 0.1 0.1 0.4 0.1 0.5 0.3 0.3 0.5 0.1 0.4";
        assert!(!is_of_points(polygon, Some((2, 3))));
        assert!(!is_of_points(polygon, Some((3, 2))));
        assert!(is_of_points("0 0.5 0.5 0.2 0.2 0.4 0.4 2 0.6 0.6 1", Some((2, 3))));
        // Nobody marked a point.
        assert!(is_of_points("0 0.5 0.5 0.2 0.2 0 0 0 0 0 0", Some((2, 3))));
        assert!(is_of_points("0 0.5 0.5 0.2 0.2 0.4 0.4 0.6 0.6 0 0", Some((3, 2))));
        assert!(!is_of_points("0 0.5 0.5 0.2 0.2 0.4 0.4 0.6 0.6", Some((3, 2))));
        assert!(!is_of_points("0 0.5 0.5 0.2 0.2 0.4 0.4 1 0.6 0.6 1", None));
    }
}
