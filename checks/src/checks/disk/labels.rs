//! Whether the data set's labels are in YOLO format. A sample of the files is read; an export error
//! usually affects most of them.

use std::collections::BTreeSet;

use yolo_base::format;

use super::label_encoding::{self, Encoding};
use super::{label_folder, label_names, unreadable};
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::facts::view::data_set::{DataSet, Described, label_of, parent, sample};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::shell_quote::quote;
use crate::status::Status;

pub(super) static CHECK: Check = Check {
    question: "Are the data set's labels valid?",
    reports: &[
        "disk.labels",
        "disk.labels-missing",
        "disk.labels-empty",
        "disk.labels-class",
        "disk.labels-columns",
        "disk.labels-range",
        "disk.labels-flat",
        "disk.labels-twice",
    ],
    preflight: false,
    run,
};

/// A data set is suspicious if more than this many images lack a label file for each one that has it.
const FEW: usize = 4;
/// The number of classes in labelImg's file predefined_classes.txt.
const PREDEFINED: usize = 15;
/// How far a box may extend outside the image before it counts as an error, not as rounding.
const ROUNDING: f64 = 1e-3;

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(word) = &intent.data else { return Ok(Vec::new()) };
    let Described::Yaml(set) = host.data_set(word)? else { return Ok(Vec::new()) };
    let Ok(images) = set.images(host, "train") else { return Ok(Vec::new()) };
    // The check of the data set reports a list of images that do not exist.
    if sample(&images.paths).all(|image| host.exists(image) == Ok(false)) {
        return Ok(Vec::new());
    }
    let (mut seen, mut refused) = (Seen::default(), Vec::new());
    for image in sample(&images.paths) {
        let file = label_of(image);
        match host.file(&file) {
            Ok(Some(bytes)) => seen.read(&file, &bytes, set.classes(), set.key_points()),
            Ok(None) => seen.missing.push(file),
            Err(why) if unreadable::is_refused(host, &file, Some(&why)) => refused.push(file),
            Err(_) => {}
        }
    }
    let sampled = sample(&images.paths).count();
    if let Some(finding) =
        unreadable::finding(host, "disk.labels-missing", &refused, sampled, ("sampled label file", ""))
    {
        let status = if seen.files == 0 { finding.status } else { Status::Warning };
        return Ok(vec![finding.status(status)]);
    }
    if seen.files == 0 && seen.missing.is_empty() {
        return Ok(Vec::new());
    }
    if seen.files == 0 {
        let image = sample(&images.paths).find(|image| label_of(image) == seen.missing[0]);
        if let Some(finding) = image.and_then(|image| label_folder::finding(host, &set, image)) {
            return Ok(vec![finding]);
        }
        let finding = no_labels(host, &set, &seen.missing);
        return Ok(vec![in_another_format(&images.others).map_or(finding.clone(), |(file, name)| {
            finding.seen(file).remedy(format!(
                "export the annotations, which are in the format {name}, in YOLO format: one .txt file per image, such as {}",
                seen.missing[0]
            ))
        })]);
    }
    if seen.lines == 0 {
        let title = format!(
            "{} of {} {} empty: there is nothing to learn",
            format::count(seen.files, "sampled label file"),
            set.yaml,
            if seen.files == 1 { "is" } else { "are" }
        );
        return Ok(vec![Finding::new("disk.labels-empty", title).seen(seen.first)]);
    }
    // Images without objects need no label file, but few data sets consist of them.
    if seen.missing.len() > seen.files * FEW {
        let looked = seen.files + seen.missing.len();
        let title =
            format!("{} of {looked} sampled images of {} have no label file", seen.missing.len(), set.yaml);
        let finding = Finding::new("disk.labels-missing", title)
            .status(Status::Warning)
            .seen(format!("{} does not exist", seen.missing[0]))
            .because(
                "an image without a label file counts as an image without objects, so the model learns to find nothing in it",
            )
            .remedy("if these images have objects, export their labels too: one .txt file per image, with the same name");
        return Ok(vec![finding]);
    }
    // Whether class 0 occurs decides what is wrong, and it may only occur in the other split.
    if !seen.class.is_empty() {
        let others = set.images(host, "val").map_or(Vec::new(), |images| images.paths);
        for image in sample(&others) {
            seen.classes
                .extend(host.text(&label_of(image)).ok().flatten().iter().flat_map(|text| classes_of(text)));
        }
    }
    let mut findings = seen.findings(&set);
    if findings.is_empty()
        && let Some(finding) = validation_without_labels(host, &set)
    {
        return Ok(vec![finding]);
    }
    // What is wrong with those for training is usually wrong with these too.
    if findings.is_empty() {
        findings = validation(host, &set, &images.paths);
    }
    Ok(if findings.is_empty() {
        let verb = if seen.files == 1 { "is" } else { "are" };
        vec![Finding::ok("disk.labels", format!("{} {verb} valid", format::count(seen.files, "label file")))]
    } else {
        findings
    })
}

/// An annotation file next to the images, and the name of its format.
fn in_another_format(others: &[String]) -> Option<(String, &'static str)> {
    let of = |end: &str, name: &'static str| {
        let file = others.iter().find(|file| file.to_ascii_lowercase().ends_with(end))?;
        Some((file.clone(), name))
    };
    of(".xml", "Pascal VOC (XML)").or_else(|| {
        let (file, _) = of(".json", "")?;
        let is_coco = file.to_ascii_lowercase().contains("coco")
            || others.iter().filter(|one| one.ends_with(".json")).count() == 1;
        Some((file, if is_coco { "COCO (JSON)" } else { "JSON, such as that of LabelMe" }))
    })
}

/// What is wrong with the labels for validation, where those for training are valid.
fn validation(host: &Host, set: &DataSet, train: &[String]) -> Vec<Finding> {
    let Ok(images) = set.images(host, "val") else { return Vec::new() };
    if images.paths == train {
        return Vec::new();
    }
    let mut seen = Seen { of: " of val", ..Seen::default() };
    for image in sample(&images.paths) {
        let file = label_of(image);
        if let Ok(Some(bytes)) = host.file(&file) {
            seen.read(&file, &bytes, set.classes(), set.key_points());
        }
    }
    if seen.lines > 0 {
        return seen.findings(set);
    }
    // One empty file may be an image without objects.
    if seen.files < 2 {
        return Vec::new();
    }
    let title =
        format!("{} of val of {} are empty", format::count(seen.files, "sampled label file"), set.yaml);
    vec![
        Finding::new("disk.labels-empty", title)
            .seen(seen.first)
            .because("validation compares what the model finds with the labels: if they contain no objects, all metrics stay 0"),
    ]
}

/// Images for validation of which none has labels: all metrics stay 0, however well the model learns.
fn validation_without_labels(host: &Host, set: &DataSet) -> Option<Finding> {
    let images = set.images(host, "val").ok()?;
    let files: Vec<String> = sample(&images.paths).map(|image| label_of(image)).collect();
    let first = files.first()?;
    if !files.iter().all(|file| host.text(file) == Ok(None)) {
        return None;
    }
    let title = format!(
        "no labels were found for {} of val of {}",
        format::count(files.len(), "sampled image"),
        set.yaml
    );
    let folder = parent(first).unwrap_or_default();
    Some(
        Finding::new("disk.labels-missing", title)
            .status(Status::Warning)
            .seen(format!("{first} does not exist"))
            .because("validation compares what the model finds with the labels: without them all metrics stay 0")
            .remedy(format!("move the label files of the validation images to {folder}, one .txt file per image with the same name")),
    )
}

/// None of the sampled images has labels: they are elsewhere.
fn no_labels(host: &Host, set: &DataSet, missing: &[String]) -> Finding {
    let (first, looked) = (missing.first().map_or("", String::as_str), missing.len());
    let title =
        format!("no labels were found for {} of {}", format::count(looked, "sampled image"), set.yaml);
    let finding = Finding::new("disk.labels-missing", title).seen(format!("{first} does not exist"));
    let folder = parent(first).unwrap_or_default();
    let finding = finding.remedy(format!(
        "move the label files to {folder}, one .txt file per image with \
                                          the same name"
    ));
    let explained = label_names::explain(host, &finding, missing);
    if let Some(explained) = explained.or_else(|| label_names::in_other_folders(host, &finding, first)) {
        return explained;
    }
    let Some(above) = folder.rfind("/labels").map(|at| folder[..at].to_owned()) else { return finding };
    let names = host.folder(&above).ok().flatten().unwrap_or_default();
    let like = |name: &&String| {
        let name = name.to_ascii_lowercase();
        name != "labels" && (name.contains("label") || name.contains("annot"))
    };
    let Some(name) = names.iter().find(like) else { return finding };
    let other = format!("{above}/{name}");
    let finding = finding.seen(format!("{other} exists, but is not used"));
    // Only text files can be labels: XML and JSON must be exported again.
    let is_text =
        |names: Option<Vec<String>>| names.is_some_and(|names| names.iter().any(|one| one.ends_with(".txt")));
    let sub = folder.rsplit('/').next().unwrap_or_default();
    if [other.clone(), format!("{other}/{sub}")]
        .iter()
        .any(|place| is_text(host.folder(place).ok().flatten()))
    {
        let text = format!(
            "the labels folder must be named `labels` and be next to `images`: rename \
                            {name}"
        );
        finding.remedy(text).command(format!("mv {} {}", quote(&other), quote(&format!("{above}/labels"))))
    } else {
        finding.remedy(format!(
            "export the labels in YOLO format (text files) to {above}/labels; {name} has none"
        ))
    }
}

/// What was found in the label files, with an example of each error.
#[derive(Default)]
struct Seen {
    /// The split, if it is not that for training, as the end of a title.
    of: &'static str,
    /// The first label file that exists.
    first: String,
    files: usize,
    lines: usize,
    missing: Vec<String>,
    classes: BTreeSet<usize>,
    class: Vec<String>,
    columns: Vec<String>,
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
    fn read(&mut self, file: &str, bytes: &[u8], classes: Option<usize>, points: Option<(usize, usize)>) {
        if self.files == 0 {
            file.clone_into(&mut self.first);
        }
        self.files += 1;
        if let Some(encoding) = label_encoding::of(bytes) {
            self.lines += 1;
            self.encoded.push((file.to_owned(), encoding));
            return;
        }
        let text = String::from_utf8_lossy(bytes);
        // YOLOv5 reads all lines as polygons if one is longer than a box with a confidence.
        let has_polygon = text.lines().any(|line| line.split_whitespace().nth(6).is_some());
        let mut lines = BTreeSet::new();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            self.lines += 1;
            let place = format!("{file}, line {}: {}", number + 1, line.trim());
            let words: Vec<&str> = line.split_whitespace().collect();
            let numbers: Option<Vec<f64>> = words.iter().map(|word| word.parse().ok()).collect();
            if numbers.as_ref().is_some_and(|numbers| has_key_points(numbers, points)) {
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
                self.columns.push(place);
                continue;
            };
            if has_polygon && is_box {
                self.mixed.push(place.clone());
            }
            let (class, points) = (numbers[0], &numbers[1..]);
            if class < 0.0 || class.fract() != 0.0 || classes.is_some_and(|classes| class >= classes as f64) {
                self.class.push(place.clone());
            }
            self.classes.insert(class.max(0.0) as usize);
            if points.iter().any(|&point| !(-ROUNDING..=1.0 + ROUNDING).contains(&point)) {
                self.range.push(place);
            } else if is_box && (points[2] <= 0.0 || points[3] <= 0.0) {
                self.flat.push(place);
            } else if !lines.insert(words) {
                self.twice.push(place);
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

    fn findings(&self, set: &DataSet) -> Vec<Finding> {
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
        findings.extend(label_encoding::finding(&self.encoded, self.files, &set.yaml));
        findings.extend(self.boxes_among_polygons());
        if let (Some(names), Some(finding)) =
            (classes, findings.iter_mut().find(|finding| finding.id == "disk.labels-class"))
            && let Some(text) = self.remedy(names, set)
        {
            *finding = finding.clone().remedy(text);
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
        let folder = parent(&self.first).unwrap_or_default();
        let labels = folder.rfind("/labels").map_or(folder.clone(), |at| format!("{}/labels", &folder[..at]));
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
        if !labels.starts_with('/') {
            return finding.remedy(text);
        }
        let five = "s/^[[:space:]]*(([^[:space:]]+[[:space:]]+){4}[^[:space:]]+).*/\\1/";
        let copy = format!("{labels}-with-key-points");
        finding
            .remedy(format!(
                "{text}: this changes all label files in {labels}; the copy {copy} keeps the old ones"
            ))
            .command(format!("cp -rnT {} {}", quote(&labels), quote(&copy)))
            .command(format!("find {} -name '*.txt' -exec sed -i -E '{five}' {{}} +", quote(&labels)))
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
    fn remedy(&self, names: usize, set: &DataSet) -> Option<String> {
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
                 label files, for instance with `perl -pi.before -e 's/^(\\d+)/$1 >= {PREDEFINED} ? $1 - {PREDEFINED} : $1/e' \
                 *.txt` in their folder, which keeps copies"
            ));
        }
        // A single stray number, such as a COCO id, does not mean that many names are missing.
        (highest >= names && highest < names + 10)
            .then(|| format!("{}, or export the labels again", missing(highest + 1)))
    }
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
fn classes_of(text: &str) -> impl Iterator<Item = usize> {
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
