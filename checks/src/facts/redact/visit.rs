//! Every text of a recording.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::facts::answer::decode;

/// Calls `seen` with every text of a value, including the names of fields.
pub(super) fn visit(value: &Value, seen: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => seen(text),
        Value::Array(items) => items.iter().for_each(|item| visit(item, seen)),
        Value::Object(map) => {
            if let Some(Value::String(encoded)) = map.get("base64") {
                seen(&decode(&STANDARD.decode(encoded).unwrap_or_default()));
            }
            for (name, item) in map {
                seen(name);
                visit(item, seen);
            }
        }
        _ => {}
    }
}
