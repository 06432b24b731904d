//! From a model's yaml to a [`ModelSpec`]: rows numbered through backbone and head, sources made
//! absolute, repeats scaled by the depth multiple and channels by the width multiple (spec §1).
//! Whatever a yaml can get wrong ends here, with the file and the row.

use serde_json::{Map, Value, json};

use super::args::{MAX_CHANNELS, MAX_SIZE, Row, activation, whole};
use super::expression::evaluate;
use super::modules::{Built, Sources, build_module};
use super::{Activation, Layer, ModelSpec, Module};
use crate::error::PlanError;
use crate::yaml::show;

/// More rows than this are a mistake (the longest YOLOv5 has 43).
const MAX_ROWS: usize = 1000;

/// What the whole yaml says, needed by every row.
pub(crate) struct Scope {
    pub(crate) nc: usize,
    pub(crate) depth: f64,
    pub(crate) width: f64,
    pub(crate) divisor: usize,
    pub(crate) anchors: Value,
    /// Anchors a level.
    pub(crate) na: usize,
}

impl Scope {
    /// Outputs of the detection layer a level; a row with so many channels is never scaled.
    fn outputs(&self) -> usize {
        self.na * (self.nc + 5)
    }

    /// Output channels after the width multiple: rounded up to the divisor.
    pub(crate) fn scale_channels(&self, channels: usize) -> usize {
        if channels == self.outputs() {
            return channels;
        }
        // Saturating: the limit on channels is checked by the caller.
        (channels as f64 * self.width / self.divisor as f64).ceil() as usize * self.divisor
    }

    /// Repeats after the depth multiple, rounded half to even as Python does.
    fn scale_repeats(&self, n: usize) -> usize {
        if n > 1 { ((n as f64 * self.depth).round_ties_even() as usize).max(1) } else { n }
    }
}

/// Builds a model; `source` names the yaml in messages (`the model x.yaml`).
pub(crate) fn build(
    name: &str,
    source: &str,
    yaml: &Value,
    nc: usize,
    anchors: Option<f64>,
) -> Result<ModelSpec, PlanError> {
    let fail = |reason: String| PlanError::new(format!("{source}: {reason}"));
    let Value::Object(given) = yaml else {
        return Err(fail(format!("a model is a table with backbone and head, this is {}", show(yaml))));
    };
    if nc == 0 || nc > 100_000 {
        return Err(fail(format!("a model of {nc} classes cannot be built")));
    }
    let mut yaml = given.clone();
    yaml.insert("nc".to_owned(), json!(nc));
    if let Some(anchors) = anchors {
        yaml.insert("anchors".to_owned(), json!(anchors.round_ties_even() as i64));
    }
    let channels = match yaml.get("ch") {
        None => 3,
        Some(value) => whole(value)
            .filter(|ch| (1..=64).contains(ch))
            .ok_or_else(|| fail(format!("ch is {}, not a number of input channels", show(value))))?,
    };
    yaml.insert("ch".to_owned(), json!(channels));

    let (levels, na) = read_anchors(&yaml, &fail)?;
    let scope = Scope {
        nc,
        depth: multiple(&yaml, "depth_multiple", &fail)?,
        width: multiple(&yaml, "width_multiple", &fail)?,
        divisor: match yaml.get("channel_multiple") {
            None | Some(Value::Null) => 8,
            Some(value) => whole(value)
                .filter(|divisor| (1..=MAX_SIZE).contains(divisor))
                .ok_or_else(|| fail(format!("channel_multiple is {}, not a whole number", show(value))))?,
        },
        anchors: yaml["anchors"].clone(),
        na,
    };
    let default_act = match yaml.get("activation") {
        None | Some(Value::Null) => Activation::Silu,
        Some(Value::String(text)) => activation(text).map_err(&fail)?,
        Some(other) => return Err(fail(format!("activation is {}, not a name", show(other)))),
    };

    let mut rows = rows(&yaml, "backbone", &fail)?;
    rows.extend(self::rows(&yaml, "head", &fail)?);
    if rows.len() > MAX_ROWS {
        return Err(fail(format!("{} rows are more than the {MAX_ROWS} that a model may have", rows.len())));
    }
    let mut layers: Vec<Layer> = Vec::with_capacity(rows.len());
    let mut detect_anchors = Value::Null;
    for (index, row) in rows.iter().enumerate() {
        if matches!(layers.last(), Some(Layer { module: Module::Detect { .. }, .. })) {
            return Err(fail(format!("row {index} follows Detect, which must be the last")));
        }
        layers.push(read_row(
            source,
            index,
            row,
            &scope,
            channels,
            &layers,
            default_act,
            &mut detect_anchors,
        )?);
    }
    let Some(Module::Detect { channels: sources, .. }) = layers.last().map(|layer| &layer.module) else {
        return Err(fail("the last row is not Detect, and only detectors can be trained".to_owned()));
    };
    let level_count = sources.len();
    // Detect may be given its anchors in its own row; they then stand for the yaml's.
    let levels =
        if detect_anchors == scope.anchors { levels } else { anchors_of(&detect_anchors).map_err(&fail)?.0 };
    let placeholders = levels.is_none();
    let anchors = levels.unwrap_or_else(|| {
        let level =
            (0..detect_na(&layers)).map(|i| [2.0 * i as f64, 2.0 * i as f64 + 1.0]).collect::<Vec<_>>();
        vec![level; level_count]
    });
    if anchors.len() != level_count {
        return Err(fail(format!(
            "there are anchors for {} detection levels, but Detect has {level_count} sources",
            anchors.len()
        )));
    }
    let spec = ModelSpec {
        name: name.to_owned(),
        nc,
        channels,
        anchors,
        anchors_are_placeholders: placeholders,
        layers,
        yaml: Value::Object(yaml),
    };
    // Finds sources of different sizes and maps that shrink to nothing before a tensor does.
    spec.strides().map_err(|error| fail(error.to_string()))?;
    Ok(spec)
}

fn detect_na(layers: &[Layer]) -> usize {
    match layers.last().map(|layer| &layer.module) {
        Some(Module::Detect { na, .. }) => *na,
        _ => 0,
    }
}

fn multiple(
    yaml: &Map<String, Value>,
    key: &str,
    fail: &dyn Fn(String) -> PlanError,
) -> Result<f64, PlanError> {
    let value = yaml.get(key).ok_or_else(|| fail(format!("{key} is missing")))?;
    value
        .as_f64()
        .filter(|multiple| *multiple > 0.0 && *multiple <= 100.0)
        .ok_or_else(|| fail(format!("{key} is {}, not a number above 0 and up to 100", show(value))))
}

type Anchors = Option<Vec<Vec<[f64; 2]>>>;

fn read_anchors(
    yaml: &Map<String, Value>,
    fail: &dyn Fn(String) -> PlanError,
) -> Result<(Anchors, usize), PlanError> {
    let value = yaml.get("anchors").ok_or_else(|| fail("anchors is missing".to_owned()))?;
    anchors_of(value).map_err(fail)
}

/// The anchors of every level, or `None` for a number of placeholders; and the anchors a level.
pub(crate) fn anchors_of(value: &Value) -> Result<(Anchors, usize), String> {
    const MAX: usize = 64;
    let Value::Array(levels) = value else {
        let na = whole(value).filter(|na| (1..=MAX).contains(na));
        return na.map(|na| (None, na)).ok_or_else(|| {
            format!("anchors is {}, neither a list for each level nor a number from 1 to {MAX}", show(value))
        });
    };
    let mut result: Vec<Vec<[f64; 2]>> = Vec::new();
    for (level, values) in levels.iter().enumerate() {
        let numbers: Option<Vec<f64>> = values.as_array().and_then(|list| {
            list.iter().map(|number| number.as_f64().filter(|n| n.is_finite() && *n >= 0.0)).collect()
        });
        let pairs: Vec<[f64; 2]> = match numbers {
            Some(list) if !list.is_empty() && list.len() % 2 == 0 && list.len() <= 2 * MAX => {
                list.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()
            }
            _ => {
                return Err(format!(
                    "the anchors of level {level} are {}, not pairs of width and height in pixels",
                    show(values)
                ));
            }
        };
        if result.first().is_some_and(|first| first.len() != pairs.len()) {
            return Err(format!(
                "level {level} has {} anchors and level 0 has {}",
                pairs.len(),
                result[0].len()
            ));
        }
        result.push(pairs);
    }
    match result.first().map(Vec::len) {
        Some(na) => Ok((Some(result), na)),
        None => Err("anchors is an empty list".to_owned()),
    }
}

fn rows(
    yaml: &Map<String, Value>,
    key: &str,
    fail: &dyn Fn(String) -> PlanError,
) -> Result<Vec<Value>, PlanError> {
    match yaml.get(key) {
        Some(Value::Array(rows)) => Ok(rows.clone()),
        Some(other) => Err(fail(format!("{key} is {}, not a list of rows", show(other)))),
        None => Err(fail(format!("{key} is missing"))),
    }
}

/// The sources of a row as the yaml writes them: one number or a list.
pub(crate) fn raw_sources(row: &Value) -> Option<Vec<i64>> {
    match row.get(0)? {
        Value::Array(list) if !list.is_empty() => list.iter().map(Value::as_i64).collect(),
        single => single.as_i64().map(|from| vec![from]),
    }
}

#[expect(clippy::too_many_arguments, reason = "one call, and each is a separate thing that a row needs")]
fn read_row(
    source: &str,
    index: usize,
    row: &Value,
    scope: &Scope,
    image_channels: usize,
    layers: &[Layer],
    default_act: Activation,
    detect_anchors: &mut Value,
) -> Result<Layer, PlanError> {
    let place = format!("{source}, row {index}");
    let fail = |reason: String| PlanError::new(format!("{place}: {reason}"));
    let Some([_, number, Value::String(module), args]) = row.as_array().map(Vec::as_slice) else {
        return Err(fail(format!("{} is not [from, number, module, args]", show(row))));
    };
    let raw =
        raw_sources(row).ok_or_else(|| fail(format!("from is {}, not layer numbers", show(&row[0]))))?;
    let mut from = Vec::with_capacity(raw.len());
    let mut channels = Vec::with_capacity(raw.len());
    for &f in &raw {
        let absolute = if f < 0 { (index as i64).saturating_add(f) } else { f };
        let is_image = index == 0 && f == -1;
        channels.push(match usize::try_from(absolute).ok().and_then(|i| layers.get(i)) {
            Some(layer) => layer.out_channels,
            None if is_image => image_channels,
            None => return Err(fail(format!("its source {f} is not an earlier layer"))),
        });
        from.push(absolute);
    }
    let lookup = |name: &str| match name {
        "nc" => Some(json!(scope.nc)),
        "anchors" => Some(scope.anchors.clone()),
        "na" => Some(json!(scope.na)),
        _ => None,
    };
    let n = match number {
        Value::String(text) => whole(&evaluate(text, &lookup).map_err(&fail)?),
        value => whole(value),
    }
    .filter(|n| (1..=MAX_SIZE).contains(n))
    .ok_or_else(|| fail(format!("number is {}, not a count from 1 to {MAX_SIZE}", show(number))))?;
    let place = format!("{place} ({module})");
    let Value::Array(args) = args else {
        return Err(fail(format!("its arguments {} are not a list", show(args))));
    };
    let args = args
        .iter()
        .map(|value| match value {
            // Activations are names with arguments, and no arithmetic.
            Value::String(text) if activation(text).is_ok() => Ok(value.clone()),
            Value::String(text) => evaluate(text, &lookup),
            other => Ok(other.clone()),
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|reason| PlanError::new(format!("{place}: {reason}")))?;
    let row = Row { place: &place, args, default_act };
    if module == "Detect" {
        *detect_anchors = row.args.get(1).cloned().unwrap_or(Value::Null);
    }
    let sources = Sources { channels: &channels };
    let n = scope.scale_repeats(n);
    if n > MAX_SIZE {
        return Err(row.error(format!("{n} repeats are too many")));
    }
    let Built { module, copies, out_channels } = build_module(module, n, row, &sources, scope)?;
    if out_channels == 0 || out_channels > MAX_CHANNELS {
        return Err(PlanError::new(format!("{place}: {out_channels} output channels cannot be built")));
    }
    Ok(Layer { index, from, module, copies, out_channels })
}
