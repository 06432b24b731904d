//! Finds the named tensors in the value of a file. A checkpoint of YOLOv5 is a dict with whole pickled
//! modules, others have state dicts in their place, and some files are a bare state dict.

use indexmap::IndexMap;

use crate::WeightsFile;
use crate::error::Problem;
use crate::json::json;
use crate::module;
use crate::value::{TensorData, Value};

/// Finds the model in the value of a file.
pub(crate) fn weights(root: Value) -> Result<WeightsFile, Problem> {
    let model = model(&root)?;
    let tensors = match model {
        Value::Object { .. } => module::tensors(model)?,
        _ => state_dict(model),
    };
    if tensors.is_empty() {
        return Err(Problem::NoModel("the model has no tensors".to_owned()));
    }
    // YOLOv5 stores these as attributes of the model; other checkpoints store them next to it.
    let attribute =
        |key| [&root, model].into_iter().find_map(|owner| owner.get(key)).filter(|v| **v != Value::None);
    let names = attribute("names").map(names).transpose()?;
    let yaml = attribute("yaml").and_then(json);
    let stride = attribute("stride").map(stride).transpose()?;
    Ok(WeightsFile { tensors, names, yaml, stride, root })
}

/// The module or state dict to use: `ema` before `model`, as in YOLOv5.
fn model(root: &Value) -> Result<&Value, Problem> {
    if matches!(root, Value::Object { .. }) || is_state_dict(root) {
        return Ok(root);
    }
    let Some(entries) = root.as_entries() else {
        return Err(Problem::NoModel("it is not a dict".to_owned()));
    };
    for key in ["ema", "model", "state_dict"] {
        match root.get(key) {
            Some(model @ Value::Object { .. }) => return Ok(model),
            Some(model) if is_state_dict(model) => return Ok(model),
            _ => {}
        }
    }
    let keys: Vec<String> = entries
        .iter()
        .filter_map(|(key, _)| key.as_str())
        .take(8)
        .map(|key| key.escape_debug().to_string())
        .collect();
    Err(Problem::NoModel(match keys.is_empty() {
        true => "it is a dict without text keys".to_owned(),
        false => format!("its keys are {}", keys.join(", ")),
    }))
}

fn is_state_dict(value: &Value) -> bool {
    value.as_entries().is_some_and(|entries| {
        !entries.is_empty() && entries.iter().all(|(k, v)| k.as_str().is_some() && v.as_tensor().is_some())
    })
}

fn state_dict(model: &Value) -> IndexMap<String, TensorData> {
    let entries = model.as_entries().unwrap_or_default();
    // All names in a model saved from DistributedDataParallel have this prefix.
    let wrapped = entries.iter().all(|(key, _)| key.as_str().is_some_and(|key| key.starts_with("module.")));
    entries
        .iter()
        .filter_map(|(key, value)| {
            let key = key.as_str()?;
            let key = if wrapped { key.strip_prefix("module.")? } else { key };
            Some((key.to_owned(), value.as_tensor()?.clone()))
        })
        .collect()
}

/// A list of names, or a dict from class to name.
fn names(value: &Value) -> Result<Vec<String>, Problem> {
    let wrong = |reason: &str| Problem::Content { part: "names", reason: reason.to_owned() };
    let text = |value: &Value| match value {
        Value::Str(text) => Ok(text.clone()),
        Value::Int(number) => Ok(number.to_string()),
        _ => Err(wrong("contain something other than text")),
    };
    if let Some(items) = value.as_slice() {
        return items.iter().map(text).collect();
    }
    let entries = value.as_entries().ok_or_else(|| wrong("are neither a list nor a dict"))?;
    let mut names = vec![None; entries.len()];
    for (key, value) in entries {
        let class = match key {
            Value::Int(class) => usize::try_from(*class).ok(),
            Value::Str(class) => class.parse().ok(),
            _ => None,
        };
        let place = class.and_then(|class| names.get_mut(class));
        *place.ok_or_else(|| wrong("are not numbered from 0 without gaps"))? = Some(text(value)?);
    }
    names.into_iter().collect::<Option<_>>().ok_or_else(|| wrong("are not numbered from 0 without gaps"))
}

fn stride(value: &Value) -> Result<Vec<f64>, Problem> {
    let wrong = || Problem::Content { part: "stride", reason: "is not a list of numbers".to_owned() };
    match value {
        Value::Tensor(tensor) => Ok(tensor.to_f64()),
        Value::List(items) | Value::Tuple(items) => {
            items.iter().map(|v| v.as_f64().ok_or_else(wrong)).collect()
        }
        _ => value.as_f64().map(|stride| vec![stride]).ok_or_else(wrong),
    }
}
