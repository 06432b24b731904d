//! The annotations from which labels were made, beside labels that are missing or empty: what the program that exports
//! them leaves out, and how to export them so that the boxes arrive.

use serde_json::Value;

use super::notation;
use crate::facts::Host;
use crate::facts::view::data_set::{DataSet, parent};
use crate::finding::Finding;

/// How many of the empty label files are compared with their annotations.
const LOOKED: usize = 2;
/// Where X-AnyLabeling and LabelMe keep annotations, beside the images or the labels.
const FOLDERS: [&str; 5] = ["json", "jsons", "annotations", "Annotations", "labels_json"];
/// The folder of the "YOLO 1.1" export of CVAT. Darknet has the files obj.data and obj.names as well.
const OF_CVAT: [&str; 1] = ["obj_train_data"];
/// The folders of its splits.
const SPLITS_OF_CVAT: [&str; 4] =
    ["/obj_train_data/", "/obj_valid_data/", "/obj_Validation_data/", "/obj_val_data/"];

/// An annotation file next to the images, and the name of its format.
pub(super) fn in_another_format(others: &[String]) -> Option<(String, &'static str)> {
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

/// The finding for empty label files with what the annotations beside them say. `pairs` are images and their label files;
/// `others` are files beside the images.
pub(super) fn explained(
    host: &Host,
    set: &DataSet,
    finding: Finding,
    pairs: &[(&String, &String)],
    others: &[String],
) -> Finding {
    for (image, label) in pairs.iter().take(LOOKED) {
        if let Some((file, shapes)) = shapes(host, image, label)
            && let Some(finding) = of_shapes(set, finding.clone(), &file, &shapes)
        {
            return finding;
        }
    }
    if let Some(finding) = pairs.first().and_then(|(image, label)| of_cvat(host, &finding, image, label)) {
        return finding;
    }
    match in_another_format(others) {
        Some((file, name)) => finding.seen(file).remedy(format!(
            "the annotations are there in the format {name}: export them again in YOLO format, with the classes of {}, and look at \
             one of the files before you train",
            set.yaml
        )),
        None => finding,
    }
}

/// What is drawn on an image: labels and kinds, from the JSON file of X-AnyLabeling or LabelMe.
fn shapes(host: &Host, image: &str, label: &str) -> Option<(String, Vec<(String, String)>)> {
    let name = label.rsplit('/').next()?.strip_suffix(".txt")?;
    let (images, labels) = (parent(image)?, parent(label)?);
    let beside = [images.clone(), labels.clone()];
    let above = |folder: &str| parent(folder).as_deref().and_then(parent);
    let in_folders =
        [Some(images.clone()), Some(labels.clone()), parent(&images), parent(&labels), above(&images)];
    let in_folders = in_folders.into_iter().flatten().flat_map(|above| {
        FOLDERS.iter().map(move |folder| format!("{}/{folder}", above.trim_end_matches('/')))
    });
    for folder in beside.into_iter().chain(in_folders) {
        let file = format!("{folder}/{name}.json");
        let Ok(Some(text)) = host.text(&file) else { continue };
        let value: Value = serde_json::from_str(&text).ok()?;
        let text =
            |shape: &Value, key: &str| shape.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let shapes: Vec<(String, String)> = value
            .get("shapes")?
            .as_array()?
            .iter()
            .map(|shape| (text(shape, "label"), text(shape, "shape_type")))
            .collect();
        return (!shapes.is_empty()).then_some((file, shapes));
    }
    None
}

/// Why none of these shapes became a line of the label file.
fn of_shapes(set: &DataSet, finding: Finding, file: &str, shapes: &[(String, String)]) -> Option<Finding> {
    let names = notation::names(set.keys.get("names"));
    let (label, kind) = shapes.first()?;
    let finding = finding.seen(format!("{file} has {label:?}, drawn as {kind}"));
    if !names.is_empty() && !shapes.iter().any(|(label, _)| names.contains(label)) {
        let near = names.iter().find(|name| name.trim().eq_ignore_ascii_case(label.trim()));
        let text = match near {
            Some(name) => format!(
                "the annotations spell the class {label:?} and the list of classes {name:?}; spaces and capital letters count: \
                 correct one of them"
            ),
            None => format!(
                "the annotations have the class {label:?}, which is not in the list of classes: add it there and to `names` in {}",
                set.yaml
            ),
        };
        return Some(
            finding
                .because(
                    "the program that exports leaves out boxes whose class is not in its list (classes.txt)",
                )
                .remedy(format!("{text}, then export the labels again")),
        );
    }
    if shapes.iter().all(|(_, kind)| kind != "rectangle") {
        return Some(
            finding
                .because("the annotations are not drawn as rectangles, and an export of boxes leaves out all other shapes")
                .remedy(format!(
                    "export the labels again for the shape that was drawn ({kind}): as segmentation for polygons, from which yolo \
                     makes boxes; or convert the shapes to rectangles in the program, and export boxes"
                )),
        );
    }
    Some(
        finding
            .because("the annotations have boxes, so the program that exported looked for them in another folder")
            .remedy("export the labels again, with the folder of the annotations (JSON) as the source, and look at one of the files"),
    )
}

/// CVAT's export "YOLO 1.1", which has only boxes that are not rotated.
fn of_cvat(host: &Host, finding: &Finding, image: &str, label: &str) -> Option<Finding> {
    let mut folder = parent(image)?;
    let is_named = [image, label].iter().any(|path| SPLITS_OF_CVAT.iter().any(|split| path.contains(split)));
    let mark = (0..3).find_map(|_| {
        let names = host.folder(&folder).ok().flatten().unwrap_or_default();
        let found = OF_CVAT.iter().find(|name| names.iter().any(|one| one == *name));
        let mark = found.map(|name| format!("{folder}/{name}"));
        folder = parent(&folder)?;
        mark
    });
    let finding = match mark {
        Some(mark) => finding.clone().seen(mark),
        None if is_named => finding.clone(),
        None => return None,
    };
    Some(
        finding
            .because("CVAT's export \"YOLO 1.1\" has only plain boxes: polygons, masks, ellipses, points and rotated boxes are left out")
            .remedy(
                "in CVAT, export the task as \"Ultralytics YOLO Segmentation\" (yolo makes boxes of its polygons; masks have to be \
                 converted to polygons first) or \"Ultralytics YOLO Detection\" after you have drawn boxes, and look at one of the \
                 files",
            ),
    )
}
