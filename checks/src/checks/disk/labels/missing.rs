//! Label files that do not exist where they are looked for: for all images, for some, or for those of validation.

use yolo_base::format;

use super::{elsewhere, folder, names, rewrite, sources};
use crate::facts::Host;
use crate::facts::view::data_set::{DataSet, label_of, parent, sample};
use crate::finding::Finding;
use crate::shell_quote::quote;
use crate::status::Status;

/// A data set is suspicious if more than this many images lack a label file for each one that has it.
pub(super) const FEW: usize = 4;
/// How many images without a label file are looked for elsewhere, where others have theirs.
const LOOKED: usize = 4;

/// Some of the sampled images, `images`, have no label file, and `found` have one.
pub(super) fn some(host: &Host, set: &DataSet, images: &[&String], found: usize) -> Option<Finding> {
    let first = images.first()?;
    let title = format!(
        "{} of {} sampled images of {} have no label file",
        images.len(),
        images.len() + found,
        set.yaml
    );
    let finding = Finding::new("disk.labels-missing", title)
        .status(Status::Warning)
        .seen(format!("{} does not exist", label_of(first)))
        .because("an image without a label file counts as an image without objects, so the model learns to find nothing in it");
    let there = images.iter().take(LOOKED).find_map(|image| elsewhere::explained(host, &finding, image));
    if let Some(finding) = there.or_else(|| names::shared(host, &finding, images)) {
        return Some(finding);
    }
    // Images without objects need no label file, but few data sets consist of them.
    (images.len() > found * FEW).then(|| {
        finding.remedy("if these images have objects, export their labels too: one .txt file per image, with the same name")
    })
}

/// Images for validation of which none has labels: all metrics stay 0, however well the model learns.
pub(super) fn of_validation(host: &Host, set: &DataSet) -> Option<Finding> {
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
    let finding = Finding::new("disk.labels-missing", title)
        .status(Status::Warning)
        .seen(format!("{first} does not exist"))
        .because("validation compares what the model finds with the labels: without them all metrics stay 0")
        .remedy(format!(
            "move the label files of the validation images to {folder}, one .txt file per image with the same name"
        ));
    let there = images.paths.first().and_then(|image| elsewhere::explained(host, &finding, image));
    Some(there.unwrap_or(finding))
}

/// None of the sampled images has labels: they are elsewhere. `missing` are the label files of `images`.
/// `others` are files beside the images.
pub(super) fn all(
    host: &Host,
    set: &DataSet,
    images: &[&String],
    missing: &[String],
    others: &[String],
) -> Finding {
    if let Some(finding) = images.first().and_then(|image| folder::finding(host, set, image)) {
        return finding;
    }
    let (first, looked) = (missing.first().map_or("", String::as_str), missing.len());
    let title =
        format!("no labels were found for {} of {}", format::count(looked, "sampled image"), set.yaml);
    let finding = Finding::new("disk.labels-missing", title).seen(format!("{first} does not exist"));
    let folder = parent(first).unwrap_or_default();
    let finding = finding.remedy(format!(
        "move the label files to {folder}, one .txt file per image with \
                                          the same name"
    ));
    if let Some(finding) = images.first().and_then(|image| elsewhere::explained(host, &finding, image)) {
        return finding;
    }
    let finding = of_other_names(host, finding, missing);
    match sources::in_another_format(others) {
        Some((file, name)) => finding.seen(file).remedy(format!(
            "export the annotations, which are in the format {name}, in YOLO format: one .txt file per image, such as {first}"
        )),
        None => finding,
    }
}

/// Label files or folders of labels whose names do not fit.
fn of_other_names(host: &Host, finding: Finding, missing: &[String]) -> Finding {
    let first = missing.first().map_or("", String::as_str);
    let folder = parent(first).unwrap_or_default();
    let explained = names::explain(host, &finding, missing);
    if let Some(explained) = explained.or_else(|| names::in_other_folders(host, &finding, first)) {
        return explained;
    }
    let Some(labels) = rewrite::labels_above(&folder) else { return finding };
    let above = labels.trim_end_matches("/labels").to_owned();
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
