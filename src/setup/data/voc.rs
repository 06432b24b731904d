//! Pascal VOC's folders and XML turned into images and labels as YOLOv5 takes them (spec §7): the
//! centre one pixel nearer to the corner, objects marked difficult left out.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::known::VOC_CLASSES;
use crate::setup::SetupError;

/// (year, set) of the lists that make up the data set.
const SETS: [(&str, &str); 5] =
    [("2012", "train"), ("2012", "val"), ("2007", "train"), ("2007", "val"), ("2007", "test")];

/// Turns `VOCdevkit` below `root` into `images` and `labels` below `target`.
pub(super) fn convert(root: &Path, target: &Path) -> Result<(), SetupError> {
    for (year, set) in SETS {
        let voc = root.join(format!("VOCdevkit/VOC{year}"));
        let list = voc.join(format!("ImageSets/Main/{set}.txt"));
        let names = fs::read_to_string(&list).map_err(SetupError::file("read", &list))?;
        let place = |kind: &str| target.join(kind).join(format!("{set}{year}"));
        for folder in [place("images"), place("labels")] {
            fs::create_dir_all(&folder).map_err(SetupError::file("create", folder))?;
        }
        for name in names.split_whitespace() {
            if name.contains(['/', '\\']) {
                let why = std::io::Error::other(format!("it names the image {name:?}, which is a path"));
                return Err(SetupError::File { action: "use", path: list, source: why });
            }
            let xml = voc.join(format!("Annotations/{name}.xml"));
            let text = fs::read_to_string(&xml).map_err(SetupError::file("read", &xml))?;
            let labels = labels(&text).map_err(|why| {
                let source = std::io::Error::other(why);
                SetupError::File { action: "use", path: xml.clone(), source }
            })?;
            let label = place("labels").join(format!("{name}.txt"));
            fs::write(&label, labels).map_err(SetupError::file("write", label))?;
            let image = voc.join(format!("JPEGImages/{name}.jpg"));
            let moved = place("images").join(format!("{name}.jpg"));
            // An interrupted run has moved some already.
            if image.exists() || !moved.exists() {
                fs::rename(&image, &moved).map_err(SetupError::file("move", image))?;
            }
        }
    }
    Ok(())
}

/// The lines of a label file, from one annotation.
fn labels(xml: &str) -> Result<String, String> {
    let document = roxmltree::Document::parse(xml).map_err(|error| format!("it is no XML: {error}"))?;
    let root = document.root_element();
    let child = |node: roxmltree::Node<'_, '_>, name: &str| -> Result<String, String> {
        node.children()
            .find(|child| child.has_tag_name(name))
            .and_then(|child| child.text())
            .map(|text| text.trim().to_owned())
            .ok_or_else(|| format!("it lacks <{name}> in <{}>", node.tag_name().name()))
    };
    let number = |node, name: &str| -> Result<f64, String> {
        let text = child(node, name)?;
        text.parse().map_err(|_| format!("its <{name}> is {text:?}, not a number"))
    };
    let size = root.children().find(|node| node.has_tag_name("size")).ok_or("it lacks <size>")?;
    let (width, height) = (number(size, "width")?, number(size, "height")?);
    if width < 1.0 || height < 1.0 {
        return Err(format!("its image is {width}×{height} pixels"));
    }
    let mut text = String::new();
    for object in root.children().filter(|node| node.has_tag_name("object")) {
        let name = child(object, "name")?;
        let Some(class) = VOC_CLASSES.iter().position(|class| *class == name) else { continue };
        if child(object, "difficult").is_ok_and(|difficult| difficult == "1") {
            continue;
        }
        let corners =
            object.children().find(|node| node.has_tag_name("bndbox")).ok_or("an object lacks <bndbox>")?;
        let (left, right) = (number(corners, "xmin")?, number(corners, "xmax")?);
        let (top, bottom) = (number(corners, "ymin")?, number(corners, "ymax")?);
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
    fn what_is_wrong_with_an_annotation_is_said() {
        assert!(labels("<annotation>").unwrap_err().contains("no XML"));
        assert_eq!(labels("<annotation/>").unwrap_err(), "it lacks <size>");
        let broken = annotation("dog", 0).replace("<xmin>11</xmin>", "<xmin>eleven</xmin>");
        assert!(labels(&broken).unwrap_err().contains("eleven"));
    }

    #[test]
    fn a_development_kit_becomes_images_and_labels() {
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
        convert(folder.path(), &target).unwrap();
        assert!(target.join("images/test2007/2007_test.jpg").is_file());
        let label = fs::read_to_string(target.join("labels/train2012/2012_train.txt")).unwrap();
        assert!(label.starts_with("11 0.15 0.4"), "{label}");
    }
}
