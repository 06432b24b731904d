//! Whether the data set's labels are in YOLO format. A sample of the files is read; an export error
//! usually affects most of them.

use yolo_base::format;

use super::label_lines::{Seen, classes_of};
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
    let mut findings = seen.findings(host, &set);
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
    let mut seen = Seen::of(" of val");
    for image in sample(&images.paths) {
        let file = label_of(image);
        if let Ok(Some(bytes)) = host.file(&file) {
            seen.read(&file, &bytes, set.classes(), set.key_points());
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
