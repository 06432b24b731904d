//! Label files in a folder inside that of the images, as programs that download Open Images (OIDv4) write them.

use crate::facts::Host;
use crate::facts::view::data_set::{DataSet, label_of, parent};
use crate::finding::Finding;
use crate::shell_quote::quote;

/// What such folders are called, in small letters.
const NAMES: [&str; 5] = ["label", "labels", "annotation", "annotations", "txt"];

/// The finding, if the label file of an image is in such a folder. The image has none where it is looked for.
pub(super) fn finding(host: &Host, set: &DataSet, image: &str) -> Option<Finding> {
    let (folder, wanted) = (parent(image)?, label_of(image));
    let name = wanted.rsplit('/').next()?;
    let names = host.folder(&folder).ok().flatten()?;
    let inside = names.iter().filter(|name| NAMES.contains(&name.to_lowercase().as_str()));
    let (place, text) = inside.into_iter().find_map(|sub| {
        let place = format!("{folder}/{sub}");
        let has_file = host.folder(&place).ok().flatten()?.iter().any(|one| one == name);
        has_file.then(|| {
            (place.clone(), host.text(&format!("{place}/{name}")).ok().flatten().unwrap_or_default())
        })
    })?;
    let to = parent(&wanted)?;
    let title = format!("the labels of {} are in a folder inside that of the images", set.yaml);
    let finding = Finding::new("disk.labels-missing", title)
        .because("yolo looks for label files next to the images, or in a folder `labels` in place of `images`, but not in \
                  subfolders of the images")
        .seen(format!("{wanted} does not exist"))
        .seen(format!("{place}/{name} exists, but is not used"));
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned();
    let is_number = first.split_whitespace().next().is_none_or(|word| word.parse::<f64>().is_ok());
    if !is_number {
        return Some(finding.seen(first).remedy(format!(
            "convert these labels, which give the class by name and the box by its corners in pixels (as OIDv4 writes them): each \
             line must be the number of the class, then the center x, center y, width and height as fractions of the image; write \
             them to {to}"
        )));
    }
    let finding =
        finding.remedy(format!("move the label files to {to}, one .txt file per image with the same name"));
    let command = if host.is_windows() == Ok(true) {
        return Some(finding);
    } else {
        format!("mv -n {}/*.txt {}/", quote(&place), quote(&to))
    };
    Some(if to == folder {
        finding.command(command)
    } else {
        finding.command(format!("mkdir -p {}", quote(&to))).command(command)
    })
}
