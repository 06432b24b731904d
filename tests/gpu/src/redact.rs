//! Removes names, addresses and secrets from a report, as the doctor removes them from a recording.

use std::path::Path;

use serde_json::Value;
use yolo_base::env::HOME;
use yolo_checks::{Host, Intent, KnownPaths};

/// Folders that a report shows by a name, because their paths say who the user is.
pub fn places(work: &Path) -> Vec<(String, &'static str)> {
    let home = std::env::var(HOME).unwrap_or_default();
    let user = Path::new(&home).file_name().map(|name| name.to_string_lossy().into_owned());
    let mut places = vec![(work.to_string_lossy().into_owned(), "WORK")];
    places.extend((home.len() > 1).then_some((home, "~")));
    places.extend(user.map(|user| (format!("/{user}/"), "/USER/")));
    places
}

/// The report without anything that identifies this machine or its user, and with other names for `hidden`.
pub fn redacted(report: &Value, hidden: &[(String, &str)]) -> Value {
    let mut report = report.clone();
    replace(&mut report, hidden);
    let host = Host::of_this_machine(&KnownPaths::default());
    let (_, mut texts) =
        host.record_and(&Intent::default(), env!("CARGO_PKG_VERSION"), std::slice::from_ref(&report));
    texts.pop().unwrap_or(Value::Null)
}

/// Replaces texts in all strings.
fn replace(value: &mut Value, hidden: &[(String, &str)]) {
    match value {
        Value::String(text) => {
            for (secret, name) in hidden {
                *text = text.replace(secret.as_str(), name);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| replace(value, hidden)),
        Value::Object(fields) => fields.values_mut().for_each(|value| replace(value, hidden)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn folders_have_names_without_the_user() {
        let hidden = [("/home/zaphod/tmp/kit-1".to_owned(), "WORK"), ("/home/zaphod".to_owned(), "~")];
        let report = json!({ "lines": ["see /home/zaphod/tmp/kit-1/runs and /home/zaphod/x"], "value": 1 });
        let expected = json!({ "lines": ["see WORK/runs and ~/x"], "value": 1 });
        assert_eq!(redacted(&report, &hidden), expected);
    }

    #[test]
    fn secrets_and_addresses_are_removed_and_figures_kept() {
        let report = json!({
            "what": "cannot reach https://user:password@198.51.100.7/x with HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345",
            "value": 0.904, "libtorch": "2.11.0+cu130",
        });
        let redacted = redacted(&report, &[]);
        let text = redacted.to_string();
        assert!(!text.contains("password") && !text.contains("hf_abc"), "{text}");
        assert_eq!(redacted["value"], 0.904);
        assert_eq!(redacted["libtorch"], "2.11.0+cu130");
    }
}
