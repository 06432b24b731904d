//! Label files that exist, but in a folder where nobody looks: beside images that are in a folder `images`, loose in
//! `labels`, or in a folder of another name below it.

use super::rewrite;
use crate::facts::Host;
use crate::facts::view::data_set::{label_of, parent};
use crate::finding::Finding;
use crate::shell_quote::quote;

/// The finding with where the label file of an image is, and how to move it and those beside it.
pub(super) fn explained(host: &Host, finding: &Finding, image: &str) -> Option<Finding> {
    let (wanted, images) = (label_of(image), parent(image)?);
    let (to, name) = (parent(&wanted)?, wanted.rsplit('/').next()?.to_owned());
    let is_there = |folder: &str| is_label(host, &format!("{folder}/{name}"));
    let found = |place: &str| finding.clone().seen(format!("{place}/{name} exists, but is not used"));
    let is_windows = host.is_windows() == Ok(true);
    if images != to && is_there(&images) {
        let finding = found(&images).because(format!(
            "the path of the images has a folder named `images`, so their labels are looked for in {to}, and not beside them"
        ));
        let finding = finding
            .remedy(format!("move the label files to {to}, one .txt file per image with the same name"));
        return Some(if is_windows { finding } else { sorted(finding, &images, &images, &to) });
    }
    let labels = rewrite::labels_above(&to)?;
    let split = to.strip_prefix(&labels)?.trim_start_matches('/').to_owned();
    if !split.is_empty() && is_there(&labels) {
        let finding = found(&labels).because(format!(
            "the images are in a folder {split} below `images`, so their labels are looked for in the folder of the same name below \
             `labels`"
        ));
        let finding = finding.remedy(format!(
            "move the label files of these images to {to}; those of the images of other folders go to the folder of their name"
        ));
        return Some(if is_windows { finding } else { sorted(finding, &images, &labels, &to) });
    }
    // `labels/train2017` for `images/train`.
    let others = host.folder(&labels).ok().flatten().unwrap_or_default();
    // A folder of that name with images of its own has its own labels: names may repeat.
    let above = labels.trim_end_matches("/labels");
    let is_free = |other: &&String| {
        !other.contains('.')
            && **other != split
            && host.exists(&format!("{above}/images/{other}")) == Ok(false)
    };
    let other = others.iter().filter(is_free);
    let place = other.map(|other| format!("{labels}/{other}")).find(|place| is_there(place))?;
    let finding = found(&place).because(format!(
        "the folders below `labels` have to be named as those below `images`, so the labels are looked for in {to}"
    ));
    let finding = finding.remedy(format!("move the label files to {to}"));
    Some(if is_windows { finding } else { sorted(finding, &images, &place, &to) })
}

/// Whether a file exists that has a label, or nothing: a text that describes an image begins with a word.
fn is_label(host: &Host, path: &str) -> bool {
    let Ok(Some(text)) = host.text(path) else { return false };
    text.split_whitespace().next().is_none_or(|word| word.parse::<f64>().is_ok())
}

/// The text files of these images only.
fn sorted(finding: Finding, images: &str, from: &str, to: &str) -> Finding {
    finding.command(format!("mkdir -p {}", quote(to))).command(format!(
        "find {} -maxdepth 1 -name '*.*' ! -name '*.txt' -exec sh -c 'from=$1; to=$2; shift 2; for image; do name=\"${{image##*/}}\"; \
         label=\"$from/${{name%.*}}.txt\"; [ -e \"$label\" ] && mv -n \"$label\" \"$to/\"; done' sh {} {} {{}} +",
        quote(images),
        quote(from),
        quote(to)
    ))
}
