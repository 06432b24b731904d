//! Data sets without images for validation: the YAML file names them by another key, or annotation programs have
//! exported one split only.

use crate::facts::Host;
use crate::facts::view::data_set::{DataSet, join};
use crate::finding::Finding;
use crate::shell_quote::quote;

/// What other programs call the key `val`.
const KEYS: [&str; 6] = ["validation", "valid", "Val", "VAL", "dev", "eval"];
/// One image of so many is moved to validation.
const EACH: usize = 10;

/// What to do about a YAML file without `val`.
pub(super) fn for_key(host: &Host, set: &DataSet, finding: Finding) -> Finding {
    let has = |key: &&&str| set.keys.get(**key).is_some_and(|value| value.is_string() || value.is_array());
    if let Some(key) = KEYS.iter().find(has) {
        return finding.remedy(format!("rename the key `{key}` to `val` in {}", set.yaml));
    }
    let of = |folder: &str| set.place(host, folder).is_ok_and(|place| place.is_some());
    let train = set.entries("train");
    // The folder next to that of training.
    let beside = train.first().and_then(|train| {
        let parts: Vec<&str> = train.split('/').collect();
        let at = parts.iter().rposition(|part| *part == "train")?;
        ["val", "valid", "validation"].into_iter().find_map(|name| {
            let mut parts = parts.clone();
            parts[at] = name;
            Some(parts.join("/")).filter(|path| of(path))
        })
    });
    if let Some(folder) = beside {
        return finding.remedy(format!("add the line `val: {folder}` to {}: that folder exists", set.yaml));
    }
    let text = format!(
        "put some of the images, such as every tenth, with their labels into a folder of their own, and name it as `val` in {}; to \
         try a training before that, write the images of training as `val` too",
        set.yaml
    );
    split(host, set, finding.remedy(text), true)
}

/// What to do about a folder for validation that is empty.
pub(super) fn for_folder(host: &Host, set: &DataSet, finding: Finding) -> Finding {
    split(host, set, finding, false)
}

/// The finding with commands that move every tenth image and its label from `images/train` to `images/val`, where a data
/// set is laid out so.
fn split(host: &Host, set: &DataSet, finding: Finding, has_no_key: bool) -> Finding {
    let place = set.entries("train").first().and_then(|train| set.place(host, train).ok().flatten());
    let root = place.as_ref().and_then(|place| place.strip_suffix("/images/train")).map(ToOwned::to_owned);
    let Some(root) = root.filter(|root| host.exists(&join(root, "labels/train")) == Ok(true)) else {
        return finding;
    };
    let to = set.entries("val").first().and_then(|val| set.place(host, val).ok().flatten());
    if host.is_windows() == Ok(true) || to.is_some_and(|to| to != format!("{root}/images/val")) {
        return finding;
    }
    let add = if has_no_key { format!(", and add `val: images/val` to {}", set.yaml) } else { String::new() };
    finding
        .remedy(format!("move every tenth image of train and its label to images/val and labels/val{add}"))
        .command(format!("cd {} && mkdir -p images/val labels/val", quote(&root)))
        .command(format!(
            "sh -c 'ls images/train | awk \"NR % {EACH} == 0\" | while read -r f; do mv -n \"images/train/$f\" images/val/; \
             mv -n \"labels/train/${{f%.*}}.txt\" labels/val/; done'"
        ))
}
