//! Extensions of images that are not read, and what to do when a whole folder has nothing else.

use std::collections::BTreeMap;

use yolo_base::format;

use crate::facts::Host;
use crate::facts::view::data_set::DataSet;
use crate::finding::Finding;
use crate::shell_quote::quote;

/// Other extensions of JPEG files: Windows' browsers save `.jfif`.
const OF_JPEG: [&str; 5] = ["jfif", "jpe", "jif", "pjpeg", "pjp"];
/// Formats that have to be converted, of pictures, cameras and programs.
const TO_CONVERT: [&str; 18] = [
    "gif", "heic", "heif", "avif", "svg", "jp2", "jxl", "dng", "pfm", "ppm", "pgm", "cr2", "cr3", "nef",
    "arw", "psd", "tga", "exr",
];

fn extension(path: &str) -> Option<String> {
    path.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase())
}

/// Whether a file is an image by its extension that is not read.
pub(super) fn is_image(path: &str) -> bool {
    extension(path).is_some_and(|end| OF_JPEG.contains(&end.as_str()) || TO_CONVERT.contains(&end.as_str()))
}

/// The finding for a split without images, if its folders have images of these extensions.
pub(super) fn of_all(host: &Host, set: &DataSet, split: &str, finding: &Finding) -> Option<Finding> {
    let others = set.images(host, split).ok()?.others;
    let mut counts: BTreeMap<String, (usize, &String)> = BTreeMap::new();
    for path in others.iter().filter(|path| is_image(path)) {
        counts.entry(extension(path)?).or_insert((0, path)).0 += 1;
    }
    let (end, (number, first)) = counts.into_iter().max_by_key(|(_, (number, _))| *number)?;
    let folder = quote(first.rfind(['/', '\\']).map_or(".", |at| &first[..at]));
    let has = if number == 1 { "has" } else { "have" };
    let finding = finding
        .clone()
        .seen(first.clone())
        .because(format!("{} {has} the extension .{end}, which is not read", format::count(number, "file")));
    let is_windows = host.is_windows() == Ok(true);
    // Cameras write extensions in capital letters.
    let written = first.rsplit('.').next().unwrap_or(&end);
    Some(if OF_JPEG.contains(&end.as_str()) {
        let finding = finding.remedy(format!("rename them to .jpg: .{end} is another name of JPEG"));
        if is_windows {
            return Some(finding);
        }
        finding.command(format!(
            "find {folder} -name '*.{written}' -execdir sh -c 'mv -n \"$1\" \"${{1%.*}}.jpg\"' _ {{}} \\;"
        ))
    } else {
        let finding = finding.remedy("convert them to JPEG or PNG, with ImageMagick for instance");
        if is_windows {
            return Some(finding);
        }
        finding.command(format!("mogrify -format jpg {folder}/*.{written}"))
    })
}
