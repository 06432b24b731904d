//! The list of classes that an annotation program wrote beside the labels. If it has the same names as the YAML file in
//! another order, the model learns to call a cat a dog, without any message.

use serde_json::Value;

use crate::facts::Host;
use crate::facts::view::data_set::{DataSet, label_of, parent};
use crate::finding::Finding;
use crate::status::Status;

/// One name a line: of labelImg, Label Studio and CVAT.
const LISTS: [&str; 2] = ["classes.txt", "obj.names"];
/// How far above the labels it may be.
const ABOVE: usize = 2;

/// The finding, if the names are in another order than those of the labels.
pub(super) fn finding(host: &Host, set: &DataSet) -> Option<Finding> {
    let image = set.images(host, "train").ok()?.paths.into_iter().next()?;
    let (file, exported) = exported(host, &label_of(&image))?;
    let names = names(set.keys.get("names")?)?;
    let at = differs(&names, &exported)?;
    let title = format!(
        "{} calls class {at} {}, but {file}, with which the labels were made, calls it {}",
        set.yaml, names[at], exported[at]
    );
    Some(
        Finding::new("disk.data-yaml", title)
            .status(Status::Warning)
            .because("both have the same names in another order: the model learns the classes under wrong names, without any message")
            .remedy(format!(
                "if the labels were exported together with {file}, write `names` in {} in its order: [{}]",
                set.yaml,
                exported.join(", ")
            )),
    )
}

/// The nearest list of names, and its lines.
fn exported(host: &Host, label: &str) -> Option<(String, Vec<String>)> {
    let mut folder = parent(label)?;
    for _ in 0..=ABOVE {
        for name in LISTS {
            let file = format!("{}/{name}", folder.trim_end_matches('/'));
            if let Ok(Some(text)) = host.text(&file) {
                let lines = text.trim_start_matches('\u{feff}').lines().map(|line| line.trim().to_owned());
                let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
                return Some((file, lines));
            }
        }
        folder = parent(&folder)?;
    }
    None
}

/// The names of the YAML file in the order of their numbers.
fn names(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(names) => names.iter().map(|name| Some(name.as_str()?.to_owned())).collect(),
        Value::Object(names) => {
            (0..names.len()).map(|at| Some(names.get(&at.to_string())?.as_str()?.to_owned())).collect()
        }
        _ => None,
    }
}

/// The first place at which two lists of the same names differ.
fn differs(one: &[String], other: &[String]) -> Option<usize> {
    let plain =
        |names: &[String]| names.iter().map(|name| name.trim().to_lowercase()).collect::<Vec<String>>();
    let (one, other) = (plain(one), plain(other));
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort();
        names
    };
    if sorted(&one) != sorted(&other) {
        return None;
    }
    one.iter().zip(&other).position(|(one, other)| one != other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_another_order_of_the_same_names_counts() {
        let differs = |one: &[&str], other: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
            differs(&owned(one), &owned(other))
        };
        assert_eq!(differs(&["cat", "dog"], &["dog", "cat"]), Some(0));
        assert_eq!(differs(&["cat", "dog", "owl"], &["Cat ", "owl", "dog"]), Some(1));
        assert_eq!(differs(&["cat", "dog"], &["cat", "dog"]), None);
        assert_eq!(differs(&["cat", "dog"], &["dog", "cat", "owl"]), None);
        assert_eq!(differs(&["cat"], &["animal"]), None);
    }

    proptest! {
        #[test]
        fn any_lists_are_compared(one in proptest::collection::vec("\\PC{0,3}", 0..4), other in proptest::collection::vec("\\PC{0,3}", 0..4)) {
            if let Some(at) = differs(&one, &other) {
                prop_assert!(at < one.len() && at < other.len());
            }
        }
    }
}
