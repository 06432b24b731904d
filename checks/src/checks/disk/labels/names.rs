//! Why label files that exist do not belong to the images: programs for annotating put something before or after the
//! name of an image, and folders have other names than `images` and `labels`.

use crate::facts::Host;
use crate::facts::view::data_set::{label_of, parent};
use crate::finding::Finding;
use crate::shell_quote::quote;

/// Text files that are no labels.
const OTHERS: [&str; 6] = ["classes.txt", "notes.txt", "labels.txt", "train.txt", "val.txt", "README.txt"];
/// What annotation programs and data sets call the folder of images.
const LIKE_IMAGES: [&str; 8] = ["images", "jpegimages", "imgs", "img", "image", "pictures", "pics", "photos"];

/// How long what Label Studio puts before names is, without its hyphen: hexadecimal digits.
const PREFIX: usize = 8;

/// How the name of a label file differs from that of its image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Difference {
    /// `a1b2c3d4-bird.txt` for `bird.jpg`.
    Prefix,
    /// `bird.txt` for `a1b2c3d4-bird.jpg`.
    PrefixOfImage,
    /// `bird.jpg.txt` for `bird.jpg`.
    Extension,
    /// `bird_jpg.rf.0a1b2c.txt` for `bird.jpg`.
    Roboflow,
    /// `Bird.txt` for `bird.jpg`.
    Case,
    /// `bird.txt` for `bird_7f3a.jpg`.
    Number,
    /// `oiseau%20bleu.txt` for `oiseau bleu.jpg`.
    Percent,
    /// `bird.txt` for `bird.webp.jpg`.
    FirstDot,
    /// `bird_1.txt` for `bird_0001.jpg`, or `bird_1.txt` for `bird#1.jpg`.
    Letters,
}

/// The finding with what to do, if the folder has label files of other names. `missing` are those that were looked for.
pub(super) fn explain(host: &Host, finding: &Finding, missing: &[String]) -> Option<Finding> {
    let folder = parent(missing.first()?)?;
    let names = host.folder(&folder).ok().flatten()?;
    let stems: Vec<&str> = names
        .iter()
        .filter(|name| !OTHERS.contains(&name.as_str()))
        .filter_map(|name| name.strip_suffix(".txt"))
        .collect();
    let other = stems.first()?;
    let stem_of = |path: &String| Some(path.rsplit('/').next()?.strip_suffix(".txt")?.to_owned());
    let wanted: Vec<String> =
        missing.iter().filter(|path| parent(path).as_ref() == Some(&folder)).filter_map(stem_of).collect();
    let pairs: Vec<(&String, &str, Difference)> = wanted
        .iter()
        .filter_map(|image| stems.iter().find_map(|label| Some((image, *label, difference(image, label)?))))
        .collect();
    let finding = finding.clone();
    let Some((image, label, kind)) = pairs.first().filter(|_| pairs.len() * 2 >= wanted.len()) else {
        let first = wanted.first()?;
        return Some(
            finding
                .seen(format!("{folder} has {other}.txt, but not {first}.txt"))
                .because("a label file belongs to the image of the same name, and the files there have other names")
                .remedy(format!("rename the label files in {folder} as their images are named, or export both together")),
        );
    };
    let finding = finding.seen(format!("{folder} has {label}.txt instead of {image}.txt"));
    let at = quote(&folder);
    let finding = finding.because("a label file belongs to the image of the same name");
    Some(match kind {
        Difference::Prefix => {
            let prefix = format!("{}-", "[0-9a-f]".repeat(PREFIX));
            finding
                .remedy(
                    "remove what the annotation program (Label Studio) has put before the names, here an eight-digit hexadecimal \
                     prefix and a hyphen; or export with images (\"YOLO with Images\"), whose names fit",
                )
                .command(format!("find {at} -name '{prefix}*.txt' -execdir sh -c 'mv -n \"$1\" \"${{1#./{prefix}}}\"' _ {{}} \\;"))
        }
        Difference::PrefixOfImage => finding.remedy(
            "the images have the prefix of the annotation program (Label Studio) and the label files do not: export both together \
             (\"YOLO with Images\"), or remove what is before the names of the images",
        ),
        Difference::Extension => {
            let end = label.strip_prefix(image.as_str()).unwrap_or_default();
            finding
                .remedy(format!("remove {end} from the names of the label files: `{image}.txt` and not `{label}.txt`"))
                .command(format!("find {at} -name '*{end}.txt' -execdir sh -c 'mv -n \"$1\" \"${{1%{end}.txt}}.txt\"' _ {{}} \\;"))
        }
        Difference::Roboflow => finding.remedy(
            "use the images of the same export of Roboflow: it renames images and labels together, and its labels do not fit the \
             original images",
        ),
        Difference::Number => of_equal_names(finding),
        Difference::Percent => finding.remedy(
            "the program that wrote the labels has replaced letters and spaces by percent signs and numbers: rename the label files \
             as their images are named, or export both together",
        ),
        Difference::FirstDot => finding.remedy(
            "the program that wrote the labels took the first dot for the end of the name: rename the label files as their images \
             are named up to the last dot, or remove the other dots from the names of the images and export again",
        ),
        Difference::Case => finding.remedy(
            "Linux tells capital letters from small ones: rename the label files so that each is written as its image",
        ),
        Difference::Letters => finding.remedy(
            "the program that wrote the labels has changed the names (zeros, spaces or signs): rename the label files as their \
             images are named, or export both together",
        ),
    })
}

fn difference(image: &str, label: &str) -> Option<Difference> {
    let prefix = |long: &str, short: &str| {
        let before = long.strip_suffix(short).and_then(|rest| rest.strip_suffix('-'));
        before.is_some_and(|word| {
            word.len() == PREFIX && word.chars().all(|letter| matches!(letter, '0'..='9' | 'a'..='f'))
        })
    };
    let rest = label.strip_prefix(image);
    let of_roboflow = |rest: &str| rest.starts_with('_') && rest.contains(".rf.");
    let is_extension = |rest: &str| {
        let end = rest.strip_prefix('.').unwrap_or_default().to_ascii_lowercase();
        ["jpg", "jpeg", "png", "bmp", "webp", "tif", "tiff"].contains(&end.as_str())
    };
    if prefix(label, image) {
        Some(Difference::Prefix)
    } else if prefix(image, label) {
        Some(Difference::PrefixOfImage)
    } else if rest.is_some_and(of_roboflow) {
        Some(Difference::Roboflow)
    } else if rest.is_some_and(is_extension) {
        Some(Difference::Extension)
    } else if label.to_lowercase() == image.to_lowercase() {
        Some(Difference::Case)
    } else if numbered(image) == Some(label) {
        Some(Difference::Number)
    } else if image.split_once('.').is_some_and(|(before, _)| before == label) {
        Some(Difference::FirstDot)
    } else if label.contains('%') && plain(&without_percent(label)) == plain(image) {
        Some(Difference::Percent)
    } else if plain(image) == plain(label) {
        Some(Difference::Letters)
    } else {
        None
    }
}

/// The name before the four hexadecimal digits that Label Studio puts after a name that is taken.
fn numbered(image: &str) -> Option<&str> {
    let (name, digits) = image.rsplit_once('_')?;
    let is_digit = |letter: char| matches!(letter, '0'..='9' | 'a'..='f');
    (digits.len() == 4 && digits.chars().all(is_digit) && !name.is_empty()).then_some(name)
}

/// A name with what percent signs stand for; unreadable bytes become signs.
fn without_percent(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let code = rest.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let taken = if let Some(byte) = code {
            bytes.push(byte);
            3
        } else {
            bytes.push(b'%');
            1
        };
        rest = &rest[at + taken..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What to do about several images of which one label file is left.
fn of_equal_names(finding: Finding) -> Finding {
    finding
        .because(
            "annotation programs such as Label Studio name label files by the name of the original image: of several images with \
             the same name, from different folders or uploads, only the labels of one are left in the export",
        )
        .remedy("rename the original images so that all names differ, import them again, and export images and labels together")
}

/// The finding for images that have no label file of their own because several were called the same.
pub(super) fn shared(host: &Host, finding: &Finding, images: &[&String]) -> Option<Finding> {
    let of_equals = |image: &&&String| {
        let label = label_of(image);
        let (folder, name) = (parent(&label)?, label.rsplit('/').next()?.strip_suffix(".txt")?.to_owned());
        let other = format!("{folder}/{}.txt", numbered(&name)?);
        (host.exists(&other) == Ok(true)).then_some(other)
    };
    let found: Vec<String> = images.iter().filter_map(|image| of_equals(&image)).collect();
    let other = found.first().filter(|_| found.len() * 2 >= images.len())?;
    Some(of_equal_names(finding.clone().seen(format!("{other} exists instead"))))
}

/// A name without what programs change: zeros before numbers, and signs.
fn plain(name: &str) -> String {
    let mut plain = String::new();
    let mut last = '_';
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let letter = if letter.is_alphanumeric() { letter.to_ascii_lowercase() } else { '_' };
        let is_padding = letter == '0'
            && !last.is_ascii_digit()
            && letters.get(at + 1).is_some_and(|next| next.is_ascii_digit());
        if !is_padding {
            plain.push(letter);
            last = letter;
        }
    }
    plain
}

/// The finding for images in a folder that is not called `images`, next to one of labels.
pub(super) fn in_other_folders(host: &Host, finding: &Finding, first: &str) -> Option<Finding> {
    let folder = parent(first)?;
    let parts: Vec<&str> = folder.split('/').collect();
    let at = parts.iter().rposition(|part| LIKE_IMAGES.contains(&part.to_lowercase().as_str()))?;
    let name = parts[at];
    if name == "images" {
        return None;
    }
    let above = parts[..at].join("/");
    let names = host.folder(&above).ok().flatten()?;
    let is = |wanted: &str| names.iter().any(|one| one == wanted);
    let labels = names
        .iter()
        .find(|one| *one == "labels")
        .or_else(|| names.iter().find(|one| one.to_lowercase() == "labels"))?;
    let above = if above.is_empty() { "/".to_owned() } else { above };
    let path = |name: &str| quote(&format!("{}/{name}", above.trim_end_matches('/')));
    let finding = finding
        .clone()
        .seen(format!("the images are in {name}, and {above} has {labels}"))
        .because("the labels of `…/images/a.jpg` are in `…/labels/a.txt`; next to images in any other folder, they are \
            looked for in that folder itself");
    // `mv` would put the folder into one that exists.
    let finding = if is("images") {
        finding.remedy(format!(
            "move the images of `{name}` into the folder `images` that exists beside it, and their labels into `labels`; write \
             `images` instead of `{name}` in the YAML file"
        ))
    } else {
        finding
            .remedy(format!("rename the folders to `images` and `labels`, and write `images` instead of `{name}` in the YAML file"))
            .command(format!("mv {} {}", path(name), path("images")))
    };
    Some(if labels == "labels" {
        finding
    } else {
        finding.command(format!("mv {} {}", path(labels), path("labels")))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_differences_are_told_apart() {
        for (image, label, kind) in [
            ("bird", "a1b2c3d4-bird", Difference::Prefix),
            ("a1b2c3d4-bird", "bird", Difference::PrefixOfImage),
            ("bird", "bird.jpg", Difference::Extension),
            ("bird", "bird_jpg.rf.0a1b2c3d", Difference::Roboflow),
            ("IMG_1", "img_1", Difference::Case),
            ("frame_0001", "frame_1", Difference::Letters),
            ("a#1 b", "a_1_b", Difference::Letters),
            ("0000_7f3a", "0000", Difference::Number),
            ("Capture d\u{e9}cran", "Capture_d%C3%A9cran", Difference::Percent),
            ("bird.webp", "bird", Difference::FirstDot),
        ] {
            assert_eq!(difference(image, label), Some(kind), "{image} {label}");
        }
        assert_eq!(difference("bird", "cat"), None);
        // A word of eight letters is no number of Label Studio.
        assert_eq!(difference("01", "building-01"), None);
        assert_eq!(difference("frame_10", "frame_1"), None);
    }

    proptest! {
        #[test]
        fn any_names_are_compared(image in "\\PC{0,12}", label in "\\PC{0,20}") {
            let _ = difference(&image, &label);
        }
    }
}
