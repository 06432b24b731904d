//! Whether the run's data set has a valid YAML file, and its images are where the file says.

use super::root_squash;
use crate::checks::{Answer, Check};
use crate::facts::view::data_set::{
    DataSet, Described, drive_path, is_absolute, join, label_of, parent, sample,
};
use crate::facts::view::drive_fault::DriveFault;
use crate::facts::{Host, PathKind};
use crate::finding::Finding;
use crate::intent::Intent;
use crate::remedies::fit::is_without_rights;
use crate::shell_quote::quote;
use yolo_base::format;

pub(super) static CHECK: Check = Check {
    question: "Does the run's data set exist?",
    reports: &["disk.data-set", "disk.data-missing", "disk.data-yaml"],
    preflight: true,
    run,
};

fn run(host: &Host, intent: &Intent) -> Answer {
    let Some(name) = &intent.data else { return Ok(Vec::new()) };
    let described = match host.data_set(name) {
        // Another check reports a drive that does not answer.
        Err(why) if DriveFault::of(&why.0).is_some() => return Ok(Vec::new()),
        described => described?,
    };
    let set = match described {
        Described::Named => return Ok(Vec::new()),
        Described::Missing(tried) => {
            let title = format!("the data set {name} was not found");
            let finding = tried.iter().fold(Finding::new("disk.data-missing", title), |finding, path| {
                finding.seen(format!("{path} does not exist"))
            });
            if let Some(letter) = super::unmounted::drive_of_windows(host, name) {
                return Ok(vec![super::unmounted::mount_drive(finding, host, letter)]);
            }
            if let Some(advice) = tried.iter().find_map(|path| super::unmounted::advice(host, path)) {
                return Ok(vec![advice.add_to(finding)]);
            }
            return Ok(vec![windows_path(host, name).map_or(finding.clone(), |text| finding.remedy(text))]);
        }
        Described::Forbidden(yaml) => return Ok(vec![forbidden(host, &yaml)]),
        Described::Garbled(yaml, why) => {
            let title = format!("the data set {yaml} is not usable: {why}");
            let finding = Finding::new("disk.data-yaml", title);
            let inside = host.folder(&yaml).ok().flatten().unwrap_or_default();
            let file = inside.iter().find(|name| name.ends_with(".yaml") || name.ends_with(".yml"));
            return Ok(vec![match file {
                Some(file) => finding.remedy(format!("name the file in it: --data {yaml}/{file}")),
                None => finding,
            }]);
        }
        Described::Yaml(set) => set,
    };
    if let Some(finding) = super::yaml_encoding::finding(host, &set.yaml) {
        return Ok(vec![finding]);
    }
    let mistakes = mistakes(&set);
    if let Some(finding) = super::other_yaml::finding(&set).filter(|_| !mistakes.is_empty()) {
        return Ok(vec![finding]);
    }
    if !mistakes.is_empty() {
        let title = format!("the data set {} is not usable: {}", set.yaml, mistakes.join("; "));
        let finding = Finding::new("disk.data-yaml", title);
        let is_only_misnumbered = mistakes.len() == 1 && set.misnumbered().is_some();
        let has_no_val = mistakes.len() == 1 && set.entries("val").is_empty();
        return Ok(vec![if is_only_misnumbered {
            finding.remedy("number the classes from 0 without gaps")
        } else if has_no_val {
            super::validation_split::for_key(host, &set, finding)
        } else {
            finding
        }]);
    }
    let mut lost = Vec::new();
    for split in ["train", "val"] {
        for entry in set.entries(split).into_iter().filter(|entry| !entry.contains(['*', '?', '['])) {
            match set.place(host, &entry) {
                Ok(Some(_)) => {}
                Ok(None) => lost.push((split, entry)),
                Err(why) if DriveFault::of(&why.0).is_some() => return Ok(Vec::new()),
                Err(why) => return Err(why),
            }
        }
    }
    let dangling = super::dangling::finding(host, &set, &lost);
    let mut findings: Vec<Finding> = dangling.or_else(|| missing(host, &set, &lost)).into_iter().collect();
    if findings.is_empty() {
        findings.extend(["train", "val"].into_iter().find_map(|split| unusable(host, &set, split)));
    }
    if findings.is_empty() {
        findings.extend(["train", "val"].into_iter().filter_map(|split| empty(host, &set, split)));
    }
    if let (true, Some(nc)) = (findings.is_empty(), set.keys.get("nc").and_then(serde_json::Value::as_u64)) {
        let names = set.classes().unwrap_or_default();
        if nc != names as u64 {
            let title = format!(
                "{} has {}, but `nc` is {nc}; the names are used",
                set.yaml,
                format::count(names, "name")
            );
            let finding = Finding::new("disk.data-yaml", title).remedy("remove `nc`, or correct the names");
            findings.push(finding.status(crate::status::Status::Warning));
        }
    }
    if findings.is_empty() {
        findings.extend(same_images(host, &set));
        findings.extend(super::exported_names::finding(host, &set));
        let images = set.images(host, "train").map_or(String::new(), |images| match images.paths.len() {
            0 => String::new(),
            number => format!(" with {}", format::count(number, "training image")),
        });
        findings.push(Finding::ok("disk.data-set", format!("the data set {name} exists{images}")));
    }
    Ok(findings)
}

/// Training and validation on the same images, as demonstrations do on purpose.
fn same_images(host: &Host, set: &DataSet) -> Option<Finding> {
    let places = |split: &str| {
        let places = set.entries(split).into_iter().map(|entry| set.place(host, &entry).ok().flatten());
        places.collect::<Option<Vec<String>>>().filter(|places| !places.is_empty())
    };
    let train = places("train").filter(|train| places("val").as_ref() == Some(train))?;
    let title = format!("train and val of {} are the same images", set.yaml);
    let text = format!(
        "to know how good the model is on images that it has not seen, put some, such as every tenth, with their labels into a \
         folder of their own, and write it as `val` in {}",
        set.yaml
    );
    Some(
        Finding::new("disk.data-yaml", title)
            .status(crate::status::Status::Info)
            .seen(train.join(", "))
            .because("the metrics are measured on the images that the model was trained on, so they look better than they are")
            .remedy(text),
    )
}

/// A YAML file that this user may not read, because of its own permissions or those of a parent folder.
fn forbidden(host: &Host, yaml: &str) -> Finding {
    let title = format!("this user may not read the data set {yaml}");
    let finding = Finding::new("disk.data-yaml", title).because("its permissions exclude this user");
    if host.is_windows().unwrap_or(false) {
        return finding.remedy("give yourself permission to read it: Properties, Security");
    }
    if let Some(finding) = root_squash::explained(host, &finding, yaml) {
        return finding;
    }
    let path = quote(yaml);
    let Some(stat) = host.stat(yaml).ok().flatten() else {
        return finding
            .remedy("give yourself read and execute permission on the parent folder that denies it")
            .command(format!("namei -l {path}"));
    };
    let mode = stat.mode.as_deref().unwrap_or("of unknown permissions");
    let finding = finding.seen(format!(
        "permissions {mode}, owner {}",
        stat.uid.map_or("unknown".to_owned(), |uid| uid.to_string())
    ));
    let is_ours = stat.uid.is_some() && stat.uid == host.user().ok().and_then(|user| user.uid);
    if !is_ours && is_without_rights(host) {
        return finding
            .remedy(format!("ask {} for permission to read it, or for a copy", owner_of(stat.uid)));
    }
    let command = if is_ours { format!("chmod u+r {path}") } else { format!("sudo chmod a+r {path}") };
    finding.remedy("give this user permission to read it").command(command)
}

/// What is missing from a data set's YAML file.
fn mistakes(set: &DataSet) -> Vec<String> {
    let mut mistakes = Vec::new();
    for key in ["train", "val"] {
        if set.entries(key).is_empty() {
            mistakes.push(format!("`{key}` is missing"));
        }
    }
    match set.keys.get("names") {
        None | Some(serde_json::Value::Null) => mistakes.push("`names` is missing".to_owned()),
        Some(serde_json::Value::Object(names)) => mistakes.extend(set.misnumbered().map(|key| {
            let last = names.len().saturating_sub(1);
            format!("`names` has the key {key}, but classes are numbered 0 to {last}")
        })),
        Some(serde_json::Value::Array(_)) => {}
        Some(other) => mistakes.push(format!("`names` is {other}, not a list or a mapping")),
    }
    if set.classes() == Some(0) {
        mistakes.push("`names` is empty".to_owned());
    }
    mistakes
}

/// The paths in the YAML file that do not exist, as one finding because they have one cause.
fn missing(host: &Host, set: &DataSet, lost: &[(&str, String)]) -> Option<Finding> {
    let (_, first) = lost.first()?;
    let mut splits: Vec<&str> = lost.iter().map(|(split, _)| *split).collect();
    splits.dedup();
    let title = format!("the images of {} are not where {} says", splits.join(" and "), set.yaml);
    let finding = Finding::new("disk.data-missing", title);
    // What the file says, where it differs from the paths that were tried.
    let written = lost.iter().filter(|(_, entry)| !is_absolute(entry));
    let finding = written.fold(finding, |finding, (split, entry)| finding.seen(format!("{split}: {entry}")));
    let tried = lost.iter().flat_map(|(_, entry)| {
        let inside = entry.strip_prefix("../").map(|rest| set.candidates(rest)).unwrap_or_default();
        set.candidates(entry).into_iter().chain(inside)
    });
    let finding = tried.fold(finding, |finding, path| finding.seen(format!("{path} does not exist")));
    let root = set.keys.get("path").and_then(serde_json::Value::as_str).unwrap_or_default();
    let unmounted = lost.iter().flat_map(|(_, entry)| set.candidates(entry));
    if let Some(advice) = unmounted.into_iter().find_map(|path| super::unmounted::advice(host, &path)) {
        return Some(advice.add_to(finding));
    }
    let advice = windows_path(host, first).or_else(|| windows_path(host, root));
    let advice = advice.or_else(|| unexpanded(host, set, root)).or_else(|| unexpanded(host, set, first));
    let advice = advice.or_else(|| next_to_file(host, set, lost));
    let advice = advice.or_else(|| split_elsewhere(host, set, lost)).or_else(|| similar(host, set, lost));
    let keys = match splits[..] {
        [split] => format!("`path` or `{split}`"),
        _ => "`path`, or `train` and `val`,".to_owned(),
    };
    let text = advice.unwrap_or_else(|| {
        format!("correct {keys} in {}, or move the images to one of these places", set.yaml)
    });
    Some(finding.remedy(text))
}

/// What to write for a path with `~` or a variable, which only shells replace, or with a quote that was left over.
fn unexpanded(host: &Host, set: &DataSet, path: &str) -> Option<String> {
    if let Some(bare) = path.strip_suffix(['\'', '"', '\u{2019}', '\u{201d}']) {
        return Some(format!("remove the quote at the end of `{path}` in {}: write `{bare}`", set.yaml));
    }
    let rest = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|start| path.strip_prefix(start))?;
    let home = host.env(yolo_base::env::HOME).ok().flatten()?;
    let written = join(&home, rest);
    Some(format!("write {written} instead of `{path}` in {}: only shells know what it stands for", set.yaml))
}

/// What to write in the file if `path` leads elsewhere, but the images are next to the file.
fn next_to_file(host: &Host, set: &DataSet, lost: &[(&str, String)]) -> Option<String> {
    set.keys.get("path")?.as_str().filter(|path| !path.is_empty())?;
    let folder = parent(&set.yaml).filter(|_| is_absolute(&set.yaml))?;
    let exists = |(_, entry): &(&str, String)| host.exists(&join(&folder, entry)) == Ok(true);
    let are_there = lost.iter().all(|one| !is_absolute(&one.1) && exists(one));
    are_there.then(|| format!("write `path: {folder}` in {}: the images are there", set.yaml))
}

/// Extensions of archives, which hold images that nobody has unpacked yet.
const ARCHIVES: [&str; 7] = [".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".rar", ".7z"];

/// A split whose path exists and leads to no images: an archive, a folder of another user, or a list of files of
/// another machine.
fn unusable(host: &Host, set: &DataSet, split: &str) -> Option<Finding> {
    let places = set.entries(split).into_iter().filter(|entry| !entry.contains(['*', '?', '[']));
    let places: Vec<String> = places.filter_map(|entry| set.place(host, &entry).ok().flatten()).collect();
    places.iter().find_map(|place| {
        if ARCHIVES.iter().any(|end| place.to_ascii_lowercase().ends_with(end)) {
            let folder = parent(place).unwrap_or_default();
            let title = format!("the images of {split} are in an archive that was not unpacked: {place}");
            let finding = Finding::new("disk.data-missing", title)
                .because("yolo reads images from folders, not from archives")
                .remedy(format!(
                    "unpack it, and write the folder of the images as `{split}` in {}",
                    set.yaml
                ));
            let is_zip = place.to_ascii_lowercase().ends_with(".zip");
            let command = if is_zip {
                format!("unzip {} -d {}", quote(place), quote(&folder))
            } else {
                format!("tar -xf {} -C {}", quote(place), quote(&folder))
            };
            let is_packed_otherwise =
                [".rar", ".7z"].iter().any(|end| place.to_ascii_lowercase().ends_with(end));
            return Some(if is_packed_otherwise || host.is_windows() == Ok(true) {
                finding
            } else {
                finding.command(command)
            });
        }
        let stat = host.stat(place).ok().flatten();
        if stat.as_ref().is_some_and(|stat| stat.kind == PathKind::Folder && stat.readable == Some(false)) {
            return Some(closed_folder(host, split, place));
        }
        if place.ends_with(".txt") {
            return of_another_machine(host, set, split, place);
        }
        None
    })
}

/// A folder that this user may not list.
fn closed_folder(host: &Host, split: &str, place: &str) -> Finding {
    let stat = host.stat(place).ok().flatten();
    let mode = stat
        .as_ref()
        .and_then(|stat| stat.mode.clone())
        .unwrap_or_else(|| "of unknown permissions".to_owned());
    let owner = stat.and_then(|stat| stat.uid);
    let title = format!("this user may not read the images of {split} in {place}");
    let finding = Finding::new("disk.data-missing", title)
        .seen(format!(
            "permissions {mode}, owner {}",
            owner.map_or("unknown".to_owned(), |owner| owner.to_string())
        ))
        .because("the permissions of the folder exclude this user")
        .remedy(
            "give this user permission to read the folder, or copy the data set as a user who may read it",
        );
    if let Some(finding) = root_squash::explained(host, &finding, place) {
        return finding;
    }
    let path = quote(place);
    let is_ours = owner.is_some() && owner == host.user().ok().and_then(|user| user.uid);
    if !is_ours && is_without_rights(host) {
        return finding.remedy(format!(
            "ask {} for permission to read the folder, or for a copy of the data set",
            owner_of(owner)
        ));
    }
    finding.command(if is_ours {
        format!("chmod -R u+rX {path}")
    } else {
        format!("sudo chmod -R a+rX {path}")
    })
}

/// Who can open a file to this user, other than an administrator.
fn owner_of(uid: Option<u32>) -> String {
    match uid {
        Some(0) | None => "the administrator".to_owned(),
        Some(uid) => format!("its owner, user {uid},"),
    }
}

/// A list of images none of which exists here.
fn of_another_machine(host: &Host, set: &DataSet, split: &str, list: &str) -> Option<Finding> {
    let images = host.images_of(list).ok().flatten()?;
    let first = images.paths.first()?;
    if !sample(&images.paths).all(|path| host.exists(path) == Ok(false)) {
        return None;
    }
    let title = format!("none of the images of {split} that {list} names was found here");
    let finding = Finding::new("disk.data-missing", title).seen(format!("{first} does not exist"));
    let folder = parent(list)?;
    // CVAT writes `data/obj_train_data/a.jpg`, as Darknet wants it.
    let inside = first.strip_prefix(&format!("{}/data/", folder.trim_end_matches('/')));
    if inside.is_some_and(|rest| host.exists(&join(&folder, rest)) == Ok(true)) {
        let finding = finding
            .because("the lines of the list begin with `data/`, as Darknet wants them, and paths in a list start at its folder")
            .remedy("remove `data/` from the beginning of each line");
        return Some(if host.is_windows() == Ok(true) {
            finding
        } else {
            finding.command(format!("sed -i 's|^data/||' {}", quote(list)))
        });
    }
    let with_label = [Some(first.clone()), inside.map(|rest| join(&folder, rest))]
        .into_iter()
        .flatten()
        .find(|image| host.exists(&label_of(image)) == Ok(true));
    if let Some(image) = with_label {
        let finding = finding.seen(format!("{} exists", label_of(&image)));
        return Some(without_images(finding, &parent(&image).unwrap_or_default()));
    }
    Some(
        finding
            .because("the list has paths of another machine or of another place")
            .remedy(format!(
                "write the folder of the images as `{split}` in {} instead of the list, or correct the paths in the list; \
                 relative ones start at its folder",
                set.yaml
            )),
    )
}

/// The names that programs give to the folder of a split.
const SPLIT_NAMES: [(&str, &[&str]); 2] =
    [("train", &["train", "training"]), ("val", &["val", "valid", "validation", "test"])];

/// What to write in the file if images of the split are in a folder of a similar name, or if an export has images
/// for testing but none for validation.
fn split_elsewhere(host: &Host, set: &DataSet, lost: &[(&str, String)]) -> Option<String> {
    let [(split, entry)] = lost else { return None };
    let (_, names) = SPLIT_NAMES.iter().find(|(name, _)| name == split)?;
    let slash = if entry.contains('\\') { '\\' } else { '/' };
    let parts: Vec<&str> = entry.split(slash).collect();
    let at = parts.iter().rposition(|part| names.contains(part))?;
    let with = |name: &str| {
        let mut parts = parts.clone();
        parts[at] = name;
        parts.join(&slash.to_string())
    };
    let other = names.iter().filter(|name| **name != parts[at]).map(|name| (*name, with(name)));
    let (name, other) =
        other.into_iter().find(|(_, other)| set.place(host, other).is_ok_and(|place| place.is_some()))?;
    Some(if name == "test" {
        format!(
            "export the data set again with images for validation, or put some into that folder; to validate on the \
             test images, write `{split}: {other}` in {}",
            set.yaml
        )
    } else {
        format!("write `{split}: {other}` in {}: that folder exists", set.yaml)
    })
}

/// What to write in the file if a folder has nearly the name that it says, or if `images/train` is `train/images`.
fn similar(host: &Host, set: &DataSet, lost: &[(&str, String)]) -> Option<String> {
    let (split, entry) = lost.first().filter(|(_, entry)| !is_absolute(entry) && !entry.contains('\\'))?;
    let parts = || entry.split('/').filter(|part| !matches!(*part, "" | "."));
    let reversed = parts().rev().collect::<Vec<_>>().join("/");
    if parts().nth(1).is_some()
        && !parts().any(|part| part == "..")
        && set.place(host, &reversed).is_ok_and(|place| place.is_some())
    {
        return Some(format!("write `{split}: {reversed}` in {}: that folder exists", set.yaml));
    }
    // The first folder on the way that does not exist.
    let mut folder = set.roots.first()?.clone();
    for part in entry.split('/').filter(|part| !matches!(*part, "" | "." | "..")) {
        let names = host.folder(&folder).ok().flatten()?;
        if names.iter().any(|name| name == part) {
            folder = format!("{}/{part}", folder.trim_end_matches('/'));
            continue;
        }
        let name = names.iter().find(|name| is_nearly(name, part))?;
        return Some(format!(
            "{folder} has no folder {part}, but {name}: correct `{split}` in {}, or rename it",
            set.yaml
        ));
    }
    None
}

/// Whether two names differ in case only, or one has one or two letters more.
fn is_nearly(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let (short, long) = if one.len() < other.len() { (&one, &other) } else { (&other, &one) };
    one == other || short.len() > 2 && long.starts_with(short.as_str()) && long.len() - short.len() < 3
}

/// A split without images, on which training ends.
fn empty(host: &Host, set: &DataSet, split: &str) -> Option<Finding> {
    if !set.is_empty(host, split) {
        return None;
    }
    let places: Vec<String> =
        set.entries(split).iter().filter_map(|entry| set.place(host, entry).ok().flatten()).collect();
    let title = format!("there are no images of {split} in {}", format::list(&places));
    let text = format!("put images there, or correct `path` or `{split}` in {}", set.yaml);
    if let Some(advice) = places.iter().find_map(|place| super::unmounted::advice(host, place)) {
        return Some(advice.add_to(Finding::new("disk.data-missing", title)));
    }
    let finding = Finding::new("disk.data-missing", title)
        .because("training and validation each need at least one image in a supported format");
    if let Some(finding) = super::unread_formats::of_all(host, set, split, &finding) {
        return Some(finding);
    }
    if let Some(finding) = places.first().and_then(|place| only_labels(host, place, &finding)) {
        return Some(finding);
    }
    if split == "val" {
        return Some(super::validation_split::for_folder(host, set, finding.remedy(text)));
    }
    Some(finding.remedy(text))
}

/// An export of labels without their images.
fn only_labels(host: &Host, images: &str, finding: &Finding) -> Option<Finding> {
    let labels = label_of(&join(images, "x.jpg"));
    let folder = parent(&labels)?;
    let names = host.folder(&folder).ok().flatten()?;
    let label = names.iter().find(|name| name.ends_with(".txt") && *name != "classes.txt")?;
    Some(without_images(finding.clone().seen(format!("{folder}/{label} exists")), images))
}

/// What to do if the images were not exported with their labels.
fn without_images(finding: Finding, folder: &str) -> Finding {
    finding
        .because("the labels are there without their images: annotation programs export images only if they are told to")
        .remedy(format!(
            "export again with the images (CVAT: switch on Save images; Label Studio: YOLO with Images), or copy the original images \
             to {folder} under the names of the labels"
        ))
}

/// The name of a Windows path on this system.
fn windows_path(host: &Host, path: &str) -> Option<String> {
    let (drive, rest) = drive_path(path).filter(|_| host.os().is_ok_and(|os| os == "linux"))?;
    let rest = rest.replace('\\', "/");
    Some(match host.wsl() {
        Ok(Some(_)) => format!("in WSL write {path} as /mnt/{}{rest}", drive.to_ascii_lowercase()),
        _ => format!(
            "{path} is a Windows path, which does not exist on this machine: write where the files are \
             here"
        ),
    })
}
