//! The class names of a data YAML.

use serde_json::{Map, Value};
use yolo_base::format;

use crate::error::PlanError;
use crate::yaml::show;

/// Reads the class names from a list, or from a table whose keys are class numbers.
pub(super) fn names(fields: &Map<String, Value>, source: &str) -> Result<Vec<String>, PlanError> {
    let fail = |reason: String| PlanError::new(format!("{source}: {reason}"));
    let hint = "write the class names as a list, or as 0: name, 1: name, …";
    let named = |value: &Value, class: usize| match value {
        Value::String(name) => Ok(name.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        other => Err(fail(format!("the name of class {class} is {}; it must be text", show(other)))),
    };
    let names = match fields.get("names") {
        None | Some(Value::Null) => return Err(fail("names is missing".to_owned()).with_hint(hint)),
        Some(Value::Array(list)) => list
            .iter()
            .enumerate()
            .map(|(class, value)| named(value, class))
            .collect::<Result<Vec<_>, _>>()?,
        Some(Value::Object(table)) => {
            let mut names = vec![None; table.len()];
            for (key, value) in table {
                let class = key.parse::<usize>().map_err(|_| {
                    fail(format!("names has the key {key:?}, which is not a class number")).with_hint(hint)
                })?;
                let slot = names.get_mut(class).ok_or_else(|| {
                    fail(format!(
                        "names has class {class} but only {}; classes must be numbered from 0 without gaps",
                        format::count(table.len(), "name")
                    ))
                })?;
                if slot.replace(named(value, class)?).is_some() {
                    return Err(fail(format!("names has class {class} twice")));
                }
            }
            // Invariant: no class is missing, because all keys are different and below their number.
            names.into_iter().flatten().collect()
        }
        Some(other) => {
            return Err(
                fail(format!("names is {}; it must be a list or a mapping", show(other))).with_hint(hint)
            );
        }
    };
    if names.is_empty() {
        return Err(fail("names is empty".to_owned()).with_hint(hint));
    }
    Ok(names)
}
