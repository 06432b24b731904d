//! Turns a model yaml into a [`ModelSpec`]: rows are numbered through backbone and head, sources
//! become absolute, repeats are scaled by the depth multiple and channels by the width multiple
//! (spec §1). Each mistake in a yaml is reported with the file and the row.

use serde_json::{Map, Value, json};

use super::args::{MAX_CHANNELS, MAX_SIZE, Row, activation, whole};
use super::expression::evaluate;
use super::modules::{Built, build_module};
use super::scope::{Anchors, Scope, anchors_of};
use super::{Activation, Layer, ModelSpec, Module};
use crate::error::PlanError;
use crate::yaml::show;

/// More rows than this are a mistake (the longest YOLOv5 model has 43).
const MAX_ROWS: usize = 1000;

/// A yaml while it is read.
struct Yaml<'a> {
    /// The yaml in messages: `the model x.yaml`.
    source: &'a str,
    fields: Map<String, Value>,
}

/// Builds a model. `source` names the yaml in messages: `the model x.yaml`.
pub(crate) fn build(
    name: &str,
    source: &str,
    yaml: &Value,
    nc: usize,
    anchors: Option<f64>,
) -> Result<ModelSpec, PlanError> {
    let Value::Object(fields) = yaml else {
        return Err(PlanError::new(format!(
            "{source}: a model must be a mapping with backbone and head, not {}",
            show(yaml)
        )));
    };
    let mut yaml = Yaml { source, fields: fields.clone() };
    if nc == 0 || nc > 100_000 {
        return Err(yaml.error(format!("a model cannot have {nc} classes")));
    }
    yaml.fields.insert("nc".to_owned(), json!(nc));
    if let Some(anchors) = anchors {
        yaml.fields.insert("anchors".to_owned(), json!(anchors.round_ties_even() as i64));
    }
    let channels = yaml.input_channels()?;
    yaml.fields.insert("ch".to_owned(), json!(channels));

    let (scope, scope_anchors) = yaml.scope(nc)?;
    let (layers, detect_anchors) = yaml.layers(&scope, channels)?;
    let Some(Module::Detect { channels: sources, na, .. }) = layers.last().map(|layer| &layer.module) else {
        return Err(yaml.error("the last row is not Detect; only detection models can be trained"));
    };
    // The row of Detect may give its own anchors, which replace those of the yaml.
    let anchors = if detect_anchors == scope.anchors {
        scope_anchors
    } else {
        anchors_of(&detect_anchors).map_err(|reason| yaml.error(reason))?.0
    };
    let anchors_are_placeholders = anchors.is_none();
    let anchors = anchors.unwrap_or_else(|| placeholders(sources.len(), *na));
    if anchors.len() != sources.len() {
        return Err(yaml.error(format!(
            "there are anchors for {} detection levels, but Detect has {} sources",
            anchors.len(),
            sources.len()
        )));
    }
    let spec = ModelSpec {
        name: name.to_owned(),
        nc,
        channels,
        anchors,
        anchors_are_placeholders,
        layers,
        yaml: Value::Object(yaml.fields),
    };
    // Finds sources of different sizes, and maps that shrink to nothing, before a tensor exists.
    spec.strides().map_err(|error| PlanError::new(format!("{source}: {error}")))?;
    Ok(spec)
}

/// The key of the activation after the joined branches of a `BottleneckCSP`. It is ours: YOLOv5's YAML files cannot name
/// that activation, but it changed between the versions of YOLOv5, and old weights need theirs.
pub const JOINED_ACTIVATION: &str = "joined_activation";

/// Anchors to be replaced by AutoAnchor.
fn placeholders(levels: usize, na: usize) -> Vec<Vec<[f64; 2]>> {
    let level: Vec<[f64; 2]> = (0..na).map(|i| [2.0 * i as f64, 2.0 * i as f64 + 1.0]).collect();
    vec![level; levels]
}

impl Yaml<'_> {
    fn error(&self, reason: impl std::fmt::Display) -> PlanError {
        PlanError::new(format!("{}: {reason}", self.source))
    }

    fn input_channels(&self) -> Result<usize, PlanError> {
        match self.fields.get("ch") {
            None => Ok(3),
            Some(value) => whole(value)
                .filter(|ch| (1..=64).contains(ch))
                .ok_or_else(|| self.error(format!("ch is {}; it must be from 1 to 64", show(value)))),
        }
    }

    fn scope(&self, nc: usize) -> Result<(Scope, Anchors), PlanError> {
        let value = self.fields.get("anchors").ok_or_else(|| self.error("anchors is missing"))?;
        let (anchors, na) = anchors_of(value).map_err(|reason| self.error(reason))?;
        let divisor = match self.fields.get("channel_multiple") {
            None | Some(Value::Null) => 8,
            Some(value) => {
                whole(value).filter(|divisor| (1..=MAX_SIZE).contains(divisor)).ok_or_else(|| {
                    self.error(format!("channel_multiple is {}; it must be a whole number", show(value)))
                })?
            }
        };
        let scope = Scope {
            nc,
            depth: self.multiple("depth_multiple")?,
            width: self.multiple("width_multiple")?,
            divisor,
            anchors: value.clone(),
            na,
        };
        Ok((scope, anchors))
    }

    fn multiple(&self, key: &str) -> Result<f64, PlanError> {
        let value = self.fields.get(key).ok_or_else(|| self.error(format!("{key} is missing")))?;
        value.as_f64().filter(|multiple| *multiple > 0.0 && *multiple <= 100.0).ok_or_else(|| {
            self.error(format!("{key} is {}; it must be a number above 0 and up to 100", show(value)))
        })
    }

    /// The activation under `key`, by default SiLU.
    fn activation(&self, key: &str) -> Result<Activation, PlanError> {
        match self.fields.get(key) {
            None | Some(Value::Null) => Ok(Activation::Silu),
            Some(Value::String(text)) => activation(text).map_err(|reason| self.error(reason)),
            Some(other) => Err(self.error(format!("{key} is {}; it must be a name", show(other)))),
        }
    }

    fn rows(&self, key: &str) -> Result<&[Value], PlanError> {
        match self.fields.get(key) {
            Some(Value::Array(rows)) => Ok(rows),
            Some(other) => Err(self.error(format!("{key} is {}; it must be a list of rows", show(other)))),
            None => Err(self.error(format!("{key} is missing"))),
        }
    }

    /// The layers, and the anchors that the row of Detect names.
    fn layers(&self, scope: &Scope, image_channels: usize) -> Result<(Vec<Layer>, Value), PlanError> {
        let default_act = self.activation("activation")?;
        let joined_act = self.activation(JOINED_ACTIVATION)?;
        let (backbone, head) = (self.rows("backbone")?, self.rows("head")?);
        let count = backbone.len() + head.len();
        if count > MAX_ROWS {
            return Err(self.error(format!("it has {count} rows; a model may have up to {MAX_ROWS}")));
        }
        let mut reader = RowReader {
            source: self.source,
            scope,
            image_channels,
            default_act,
            joined_act,
            layers: Vec::new(),
        };
        let mut detect_anchors = Value::Null;
        for (index, row) in backbone.iter().chain(head).enumerate() {
            if matches!(reader.layers.last(), Some(Layer { module: Module::Detect { .. }, .. })) {
                return Err(self.error(format!("row {index} comes after Detect, which must be the last")));
            }
            let (layer, anchors) = reader.read(index, row)?;
            reader.layers.push(layer);
            detect_anchors = anchors;
        }
        Ok((reader.layers, detect_anchors))
    }
}

/// The sources of a row as the yaml writes them: one number or a list.
pub(crate) fn raw_sources(row: &Value) -> Option<Vec<i64>> {
    match row.get(0)? {
        Value::Array(list) if !list.is_empty() => list.iter().map(Value::as_i64).collect(),
        single => single.as_i64().map(|from| vec![from]),
    }
}

/// Reads one row after the other.
struct RowReader<'a> {
    source: &'a str,
    scope: &'a Scope,
    image_channels: usize,
    default_act: Activation,
    joined_act: Activation,
    /// The layers of the rows before.
    layers: Vec<Layer>,
}

impl RowReader<'_> {
    /// The layer of a row, and the second argument of the row: for Detect, its anchors.
    fn read(&self, index: usize, row: &Value) -> Result<(Layer, Value), PlanError> {
        let place = format!("{}, row {index}", self.source);
        let fail = |reason: String| PlanError::new(format!("{place}: {reason}"));
        let Some([_, number, Value::String(module), args]) = row.as_array().map(Vec::as_slice) else {
            return Err(fail(format!("{} is not [from, number, module, args]", show(row))));
        };
        let (from, channels) = self.sources(index, row).map_err(fail)?;
        let n = match number {
            Value::String(text) => whole(&self.evaluate(text).map_err(fail)?),
            value => whole(value),
        };
        let n = n
            .filter(|n| (1..=MAX_SIZE).contains(n))
            .ok_or_else(|| fail(format!("number is {}; it must be from 1 to {MAX_SIZE}", show(number))))?;
        let place = format!("{place} ({module})");
        let args = self.arguments(args).map_err(|reason| PlanError::new(format!("{place}: {reason}")))?;
        let second = args.get(1).cloned().unwrap_or(Value::Null);
        let row = Row { place: &place, args, default_act: self.default_act, joined_act: self.joined_act };
        let n = self.scope.scale_repeats(n);
        if n > MAX_SIZE {
            return Err(row.error(format!("{n} repeats are more than the limit of {MAX_SIZE}")));
        }
        let Built { module, copies, out_channels } = build_module(module, n, row, &channels, self.scope)?;
        if out_channels == 0 || out_channels > MAX_CHANNELS {
            return Err(PlanError::new(format!(
                "{place}: {out_channels} output channels are not between 1 and {MAX_CHANNELS}"
            )));
        }
        Ok((Layer { index, from, module, copies, out_channels }, second))
    }

    /// The absolute sources of a row, and the channels of each.
    fn sources(&self, index: usize, row: &Value) -> Result<(Vec<i64>, Vec<usize>), String> {
        let raw = raw_sources(row)
            .ok_or_else(|| format!("from is {}; it must be one or more layer numbers", show(&row[0])))?;
        let mut from = Vec::with_capacity(raw.len());
        let mut channels = Vec::with_capacity(raw.len());
        for &f in &raw {
            let absolute = if f < 0 { (index as i64).saturating_add(f) } else { f };
            let is_image = index == 0 && f == -1;
            channels.push(match usize::try_from(absolute).ok().and_then(|i| self.layers.get(i)) {
                Some(layer) => layer.out_channels,
                None if is_image => self.image_channels,
                None => return Err(format!("source {f} is not an earlier layer")),
            });
            from.push(absolute);
        }
        Ok((from, channels))
    }

    fn arguments(&self, args: &Value) -> Result<Vec<Value>, String> {
        let Value::Array(args) = args else {
            return Err(format!("the arguments are {}; they must be a list", show(args)));
        };
        let evaluated = args.iter().map(|value| match value {
            // An activation looks like a call and must not be evaluated.
            Value::String(text) if activation(text).is_ok() => Ok(value.clone()),
            Value::String(text) => self.evaluate(text),
            other => Ok(other.clone()),
        });
        evaluated.collect()
    }

    fn evaluate(&self, text: &str) -> Result<Value, String> {
        evaluate(text, &|name| match name {
            "nc" => Some(json!(self.scope.nc)),
            "anchors" => Some(self.scope.anchors.clone()),
            "na" => Some(json!(self.scope.na)),
            _ => None,
        })
    }
}
