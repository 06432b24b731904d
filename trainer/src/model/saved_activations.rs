//! The activations of a model that was saved as modules. Until version 4.0, YOLOv5 wrote into its code and not into the
//! YAML which activation its convolutions have: LeakyReLU, then Hardswish. Python finds it in the saved modules, and so
//! do we; without it the weights of these releases would give wrong results.

use serde_json::Value as Json;
use torch_checkpoint::Value;
use yolo_plan::model::JOINED_ACTIVATION;

/// Adds to `yaml` the activations that the modules in `root` have and the YAML does not name.
pub(super) fn add(yaml: &mut Json, root: &Value) {
    let Some(fields) = yaml.as_object_mut() else { return };
    let Some(model) = ["ema", "model"].into_iter().find_map(|key| root.get(key).filter(|m| is_object(m)))
    else {
        return;
    };
    for (class, key) in [("Conv", "activation"), ("BottleneckCSP", JOINED_ACTIVATION)] {
        if fields.get(key).is_none_or(Json::is_null)
            && let Some(found) = activation_of(class, model)
        {
            fields.insert(key.to_owned(), Json::String(found));
        }
    }
}

fn is_object(value: &Value) -> bool {
    matches!(value, Value::Object { .. })
}

/// The name of a class without its module.
fn class_of(value: &Value) -> Option<&str> {
    match value {
        Value::Object { class, .. } => class.rsplit('.').next(),
        _ => None,
    }
}

/// The expression for the activation of the first module of a class that has one, as a YAML file writes it. The depth is
/// bounded, because the reader of the file limits the nesting of values.
fn activation_of(class: &str, module: &Value) -> Option<String> {
    let children = module.get("_modules").and_then(Value::as_entries).unwrap_or_default();
    if class_of(module) == Some(class)
        && let Some((_, activation)) = children.iter().find(|(name, _)| name.as_str() == Some("act"))
        && let Some(expression) = expression(activation)
    {
        return Some(expression);
    }
    children.iter().find_map(|(_, child)| activation_of(class, child))
}

/// The expression of a module; `None` for one that does nothing, which some convolutions have.
fn expression(activation: &Value) -> Option<String> {
    let class = class_of(activation).filter(|class| *class != "Identity")?;
    let slope = activation.get("negative_slope").and_then(Value::as_f64);
    Some(slope.map_or_else(|| format!("nn.{class}()"), |slope| format!("nn.{class}({slope})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module<'a>(class: &str, children: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
        Value::Object {
            class: class.to_owned(),
            fields: vec![("_modules".to_owned(), Value::dict(children))],
        }
    }

    fn leaky(slope: f64) -> Value {
        let fields = vec![("negative_slope".to_owned(), Value::Float(slope))];
        Value::Object { class: "torch.nn.modules.activation.LeakyReLU".to_owned(), fields }
    }

    /// A model of version 3.0: one convolution without activation, one with Hardswish, and a `BottleneckCSP`.
    fn old_model() -> Value {
        let plain = |class: &str| module(&format!("torch.nn.modules.{class}"), []);
        module(
            "models.yolo.Model",
            [
                ("0", module("models.common.Conv", [("act", plain("linear.Identity"))])),
                ("1", module("models.common.Conv", [("act", plain("activation.Hardswish"))])),
                ("2", module("models.common.BottleneckCSP", [("act", leaky(0.1))])),
            ],
        )
    }

    #[test]
    fn activations_come_from_the_modules_of_an_old_model() {
        let mut yaml = serde_json::json!({"nc": 80});
        add(&mut yaml, &Value::dict([("ema", Value::None), ("model", old_model())]));
        let expected = serde_json::json!({"nc": 80, "activation": "nn.Hardswish()", "joined_activation": "nn.LeakyReLU(0.1)"});
        assert_eq!(yaml, expected);
    }

    #[test]
    fn what_the_yaml_names_stays() {
        let mut yaml = serde_json::json!({"activation": "nn.ReLU()", "joined_activation": "nn.SiLU()"});
        let before = yaml.clone();
        add(&mut yaml, &Value::dict([("model", old_model())]));
        assert_eq!(yaml, before);
    }

    #[test]
    fn a_state_dict_names_no_activation() {
        let mut yaml = serde_json::json!({"nc": 80});
        let before = yaml.clone();
        add(&mut yaml, &Value::dict([("model", Value::dict([("model.0.conv.weight", Value::None)]))]));
        assert_eq!(yaml, before);
    }
}
