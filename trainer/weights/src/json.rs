//! Conversion between values and JSON, for the model configuration in a checkpoint (YOLOv5's `yaml`)
//! and the metadata of safetensors.

use crate::value::Value;

/// The value as JSON, or `None` if it contains a tensor, bytes, an object or a number that JSON cannot
/// express. Numeric keys become text.
pub(crate) fn json(value: &Value) -> Option<serde_json::Value> {
    Some(match value {
        Value::None => serde_json::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Int(number) => (*number).into(),
        Value::Float(number) => serde_json::Number::from_f64(*number)?.into(),
        Value::Str(text) => text.as_str().into(),
        Value::List(items) | Value::Tuple(items) => {
            items.iter().map(json).collect::<Option<Vec<_>>>()?.into()
        }
        Value::Dict(entries) => {
            let mut object = serde_json::Map::new();
            for (key, value) in entries {
                let key = match key {
                    Value::Str(text) => text.clone(),
                    Value::Int(number) => number.to_string(),
                    _ => return None,
                };
                object.insert(key, json(value)?);
            }
            object.into()
        }
        Value::Bytes(_) | Value::Tensor(_) | Value::Object { .. } => return None,
    })
}

impl Value {
    /// The value as JSON; `None` if it contains a tensor, bytes, an object or a number that JSON cannot express.
    /// Numeric keys become text.
    pub fn to_json(&self) -> Option<serde_json::Value> {
        json(self)
    }
}

/// JSON as a value. Keys stay text, even if they look like numbers.
pub(crate) fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::None,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Str(text.clone()),
        serde_json::Value::Array(items) => Value::List(items.iter().map(value).collect()),
        serde_json::Value::Object(object) => {
            Value::dict(object.iter().map(|(key, item)| (key.clone(), value(item))))
        }
    }
}

impl From<&serde_json::Value> for Value {
    fn from(json: &serde_json::Value) -> Self {
        value(json)
    }
}
