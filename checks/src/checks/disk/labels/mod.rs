//! Whether the data set's labels are in YOLO format. A sample of the files is read; an export error
//! usually affects most of them.

use yolo_base::format;

mod corners;
mod elsewhere;
mod encoding;
mod folder;
mod lines;
mod missing;
mod names;
mod notation;
mod rewrite;
mod sources;

use super::unreadable;
use crate::checks::{Answer, Check};
use crate::facts::Host;
use crate::facts::view::data_set::{DataSet, Described, label_of, sample};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::status::Status;
use lines::{Seen, classes_of};

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

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(word) = &intent.data else { return Ok(Vec::new()) };
    let Described::Yaml(set) = host.data_set(word)? else { return Ok(Vec::new()) };
    let Ok(images) = set.images(host, "train") else { return Ok(Vec::new()) };
    // The check of the data set reports a list of images that do not exist.
    if sample(&images.paths).all(|image| host.exists(image) == Ok(false)) {
        return Ok(Vec::new());
    }
    let (mut seen, mut refused) = (Seen::new(&set, ""), Vec::new());
    let mut without: Vec<&String> = Vec::new();
    for image in sample(&images.paths) {
        let file = label_of(image);
        match host.file(&file) {
            Ok(Some(bytes)) => seen.read(&file, &bytes),
            Ok(None) => {
                seen.missing.push(file);
                without.push(image);
            }
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
        return Ok(vec![missing::all(host, &set, &without, &seen.missing, &images.others)]);
    }
    if let Some(finding) = empty(&set, &seen) {
        let pairs: Vec<(&String, &String)> = sample(&images.paths)
            .filter_map(|image| {
                let label = label_of(image);
                Some((image, seen.empty.iter().find(|one| **one == label)?))
            })
            .collect();
        return Ok(vec![sources::explained(host, &set, finding, &pairs, &images.others)]);
    }
    if let Some(finding) = missing::some(host, &set, &without, seen.files) {
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
    let mut findings = seen.findings(host, &set);
    if findings.is_empty()
        && let Some(finding) = missing::of_validation(host, &set)
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

/// Label files without lines, if all or nearly all are.
fn empty(set: &DataSet, seen: &Seen) -> Option<Finding> {
    let with_lines = seen.files - seen.empty.len();
    if seen.lines > 0 && seen.empty.len() <= with_lines * missing::FEW {
        return None;
    }
    let first = seen.empty.first()?;
    if seen.lines == 0 {
        let verb = if seen.files == 1 { "is" } else { "are" };
        let title = format!(
            "{} of {} {verb} empty: there is nothing to learn",
            format::count(seen.files, "sampled label file"),
            set.yaml
        );
        return Some(Finding::new("disk.labels-empty", title).seen(first.clone()));
    }
    let title = format!(
        "{} of {} of {} are empty",
        seen.empty.len(),
        format::count(seen.files, "sampled label file"),
        set.yaml
    );
    Some(
        Finding::new("disk.labels-empty", title)
            .status(Status::Warning)
            .seen(first.clone())
            .because("an image with an empty label file counts as an image without objects, so the model learns to find nothing in it")
            .remedy("if these images have objects, export their labels again, and look at one of the files before you train"),
    )
}

/// What is wrong with the labels for validation, where those for training are valid.
fn validation(host: &Host, set: &DataSet, train: &[String]) -> Vec<Finding> {
    let Ok(images) = set.images(host, "val") else { return Vec::new() };
    if images.paths == train {
        return Vec::new();
    }
    let mut seen = Seen::new(set, " of val");
    for image in sample(&images.paths) {
        let file = label_of(image);
        if let Ok(Some(bytes)) = host.file(&file) {
            seen.read(&file, &bytes);
        }
    }
    if seen.lines > 0 {
        return seen.findings(host, set);
    }
    // One empty file may be an image without objects.
    if seen.files < 2 {
        return Vec::new();
    }
    let title =
        format!("{} of val of {} are empty", format::count(seen.files, "sampled label file"), set.yaml);
    vec![
        Finding::new("disk.labels-empty", title)
            .seen(seen.first.clone())
            .because("validation compares what the model finds with the labels: if they contain no objects, all metrics stay 0"),
    ]
}
