//! Converts Pascal VOC's folders and XML annotations to YOLOv5's layout (spec §7): the center moves one
//! pixel towards the corner, and objects marked difficult are skipped. An image whose annotation cannot
//! be read is skipped and reported with the other problems of the data set.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use yolo_base::format;

use super::known::VOC_CLASSES;
use crate::setup::error::SetupError;

/// (year, set) of the lists that form the data set.
const SETS: [(&str, &str); 5] =
    [("2012", "train"), ("2012", "val"), ("2007", "train"), ("2007", "val"), ("2007", "test")];

/// An image or objects that could not be converted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LeftOut {
    /// "train" or "val", for an image.
    pub(super) split: Option<String>,
    /// What it is and why.
    pub(super) why: String,
}

/// The first list of images that is missing from `root`, by its path in the archives.
pub(super) fn lacking(root: &Path) -> Option<String> {
    let list = |(year, set)| format!("VOCdevkit/VOC{year}/ImageSets/Main/{set}.txt");
    SETS.into_iter().map(list).find(|list| !root.join(list).is_file())
}

/// Converts `VOCdevkit` in `root` to `images` and `labels` in `target`. Returns what was left out.
pub(super) fn convert(root: &Path, target: &Path) -> Result<Vec<LeftOut>, SetupError> {
    let (mut left_out, mut others) = (Vec::new(), Others::new());
    for (year, set) in SETS {
        let voc = root.join(format!("VOCdevkit/VOC{year}"));
        let list = voc.join(format!("ImageSets/Main/{set}.txt"));
        let names = fs::read_to_string(&list).map_err(SetupError::file("read", &list))?;
        let place = |kind: &str| target.join(kind).join(format!("{set}{year}"));
        for folder in [place("images"), place("labels")] {
            fs::create_dir_all(&folder).map_err(SetupError::file("create", folder))?;
        }
        for name in names.split_whitespace() {
            let mut leave_out = |file: &str, why: String| {
                let split = Some(if set == "test" { "val" } else { "train" }.to_owned());
                left_out.push(LeftOut { split, why: format!("VOC{year}/{file}: image left out: {why}") });
            };
            if name.contains(['/', '\\']) {
                leave_out(&format!("ImageSets/Main/{set}.txt"), format!("its name {name:?} is a path"));
                continue;
            }
            let xml = format!("Annotations/{name}.xml");
            let read = fs::read(voc.join(&xml)).map_err(|error| format!("it cannot be read: {error}"));
            let text = read
                .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not valid UTF-8".to_owned()));
            let labels = match text.and_then(|text| labels(&text, &mut others)) {
                Ok(labels) => labels,
                Err(why) => {
                    leave_out(&xml, why);
                    continue;
                }
            };
            let image = voc.join(format!("JPEGImages/{name}.jpg"));
            let moved = place("images").join(format!("{name}.jpg"));
            if !image.exists() && !moved.exists() {
                leave_out(&format!("JPEGImages/{name}.jpg"), "it is not in the archive".to_owned());
                continue;
            }
            let label = place("labels").join(format!("{name}.txt"));
            fs::write(&label, labels).map_err(SetupError::file("write", label))?;
            // An interrupted run may have moved it already.
            if image.exists() {
                fs::rename(&image, &moved).map_err(SetupError::file("move", image))?;
            }
        }
    }
    if !others.is_empty() {
        let objects: usize = others.values().sum();
        let named: Vec<String> = others.iter().map(|(name, count)| format!("{name} {count}")).collect();
        let why = format!(
            "{} left out because their class is not one of VOC's {}: {}",
            format::count(objects, "object"),
            VOC_CLASSES.len(),
            named.join(", ")
        );
        left_out.insert(0, LeftOut { split: None, why });
    }
    Ok(left_out)
}

/// Number of objects by a class name that the data set does not have.
type Others = BTreeMap<String, usize>;

/// The lines of a label file, from one annotation. Objects of other classes are counted in `others`.
fn labels(xml: &str, others: &mut Others) -> Result<String, String> {
    let document = roxmltree::Document::parse(xml).map_err(|error| format!("it is not XML: {error}"))?;
    let root = document.root_element();
    let child = |node: roxmltree::Node<'_, '_>, name: &str| -> Result<String, String> {
        node.children()
            .find(|child| child.has_tag_name(name))
            .and_then(|child| child.text())
            .map(|text| text.trim().to_owned())
            .ok_or_else(|| format!("it has no <{name}> in <{}>", node.tag_name().name()))
    };
    let number = |node, name: &str| -> Result<f64, String> {
        let text = child(node, name)?;
        text.parse().map_err(|_| format!("its <{name}> is {text:?}, not a number"))
    };
    let size = root.children().find(|node| node.has_tag_name("size")).ok_or("it has no <size>")?;
    let (width, height) = (number(size, "width")?, number(size, "height")?);
    if width < 1.0 || height < 1.0 {
        return Err(format!("its image is {width}×{height} pixels"));
    }
    let mut text = String::new();
    for object in root.children().filter(|node| node.has_tag_name("object")) {
        let name = child(object, "name")?;
        let Some(class) = VOC_CLASSES.iter().position(|class| *class == name) else {
            *others.entry(name).or_default() += 1;
            continue;
        };
        if child(object, "difficult").is_ok_and(|difficult| difficult == "1") {
            continue;
        }
        let corners =
            object.children().find(|node| node.has_tag_name("bndbox")).ok_or("an object has no <bndbox>")?;
        let (left, right) = (number(corners, "xmin")?, number(corners, "xmax")?);
        let (top, bottom) = (number(corners, "ymin")?, number(corners, "ymax")?);
        if [left, right, top, bottom].iter().any(|number| !number.is_finite()) {
            return Err("a corner of its <bndbox> is not a finite number".to_owned());
        }
        let (x, y) = ((left + right) / 2.0 - 1.0, (top + bottom) / 2.0 - 1.0);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{class} {} {} {} {}",
            x / width,
            y / height,
            (right - left) / width,
            (bottom - top) / height
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(xml: &str) -> Result<String, String> {
        super::labels(xml, &mut Others::new())
    }

    fn annotation(name: &str, difficult: u8) -> String {
        format!(
            "<annotation><size><width>200</width><height>100</height></size><object><name>{name}</name>\
             <difficult>{difficult}</difficult><bndbox><xmin>11</xmin><ymin>21</ymin><xmax>51</xmax>\
             <ymax>61</ymax></bndbox></object></annotation>"
        )
    }

    #[test]
    fn boxes_become_centres_and_sizes_in_parts_of_the_image() {
        assert_eq!(labels(&annotation("dog", 0)).unwrap(), "11 0.15 0.4 0.2 0.4\n");
    }

    #[test]
    fn difficult_objects_and_other_classes_are_left_out() {
        assert_eq!(labels(&annotation("dog", 1)).unwrap(), "");
        assert_eq!(labels(&annotation("unicorn", 0)).unwrap(), "");
    }

    #[test]
    fn problems_of_an_annotation_are_reported() {
        assert!(labels("<annotation>").unwrap_err().contains("not XML"));
        assert_eq!(labels("<annotation/>").unwrap_err(), "it has no <size>");
        let broken = annotation("dog", 0).replace("<xmin>11</xmin>", "<xmin>eleven</xmin>");
        assert!(labels(&broken).unwrap_err().contains("eleven"));
    }

    #[test]
    fn a_development_kit_is_converted_to_images_and_labels() {
        let folder = tempfile::tempdir().unwrap();
        for (year, set) in SETS {
            let voc = folder.path().join(format!("VOCdevkit/VOC{year}"));
            for part in ["ImageSets/Main", "Annotations", "JPEGImages"] {
                fs::create_dir_all(voc.join(part)).unwrap();
            }
            let name = format!("{year}_{set}");
            fs::write(voc.join(format!("ImageSets/Main/{set}.txt")), format!("{name}\n")).unwrap();
            fs::write(voc.join(format!("Annotations/{name}.xml")), annotation("dog", 0)).unwrap();
            fs::write(voc.join(format!("JPEGImages/{name}.jpg")), "image").unwrap();
        }
        let target = folder.path().join("VOC");
        let damaged = folder.path().join("VOCdevkit/VOC2007/Annotations/2007_val.xml");
        fs::write(damaged, "<annotation>").unwrap();
        let unicorns = folder.path().join("VOCdevkit/VOC2012/Annotations/2012_val.xml");
        fs::write(unicorns, annotation("unicorn", 0)).unwrap();
        assert_eq!(lacking(folder.path()), None);
        let left_out = convert(folder.path(), &target).unwrap();
        assert!(left_out[0].why.contains("1 object left out") && left_out[0].why.contains("unicorn 1"));
        assert_eq!(left_out[1].split.as_deref(), Some("train"));
        assert!(
            left_out[1].why.starts_with("VOC2007/Annotations/2007_val.xml: image left out: it is not XML")
        );
        assert!(!target.join("images/val2007/2007_val.jpg").exists());
        assert_eq!(convert(folder.path(), &target).unwrap(), left_out, "after an interruption");
        assert!(target.join("images/test2007/2007_test.jpg").is_file());
        let label = fs::read_to_string(target.join("labels/train2012/2012_train.txt")).unwrap();
        assert!(label.starts_with("11 0.15 0.4"), "{label}");
    }
}
