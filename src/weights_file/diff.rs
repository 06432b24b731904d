//! How two weights files differ: in what they say about themselves, and in their tensors.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use torch_checkpoint::{TensorData, WeightsFile};

use super::describe::Description;

/// A fact that differs.
#[derive(Debug, Serialize)]
pub(crate) struct Difference {
    /// The fact.
    pub(crate) what: String,
    /// Its values in both files; `null` where a file has none.
    pub(crate) values: [Json; 2],
}

/// How the tensors of two files differ.
#[derive(Debug, Serialize)]
pub(crate) struct TensorDifferences {
    /// Tensors that only the first or only the second file has.
    pub(crate) only_in: [Vec<String>; 2],
    /// Tensors of different shapes.
    pub(crate) shapes: Vec<Difference>,
    /// How many tensors have equal shapes but different types.
    pub(crate) types: usize,
    /// How many tensors have equal shapes and equal values.
    pub(crate) equal: usize,
    /// Tensors of equal shapes with different values, the largest difference first.
    pub(crate) values: Vec<ValueDifference>,
}

/// A tensor whose values differ.
#[derive(Debug, Serialize)]
pub(crate) struct ValueDifference {
    /// Its name.
    pub(crate) name: String,
    /// The largest absolute difference of two elements.
    pub(crate) largest: f64,
    /// The root mean square of the differences, relative to that of the first tensor; `null` if that is 0.
    pub(crate) relative: Option<f64>,
}

/// Compares two files. The tensors are `null` unless both could be read.
pub(crate) fn diff(a: &Description, b: &Description) -> (Vec<Difference>, Option<TensorDifferences>) {
    let facts = [facts(a), facts(b)];
    let mut names: Vec<&String> = facts[0].keys().collect();
    names.extend(facts[1].keys().filter(|name| !facts[0].contains_key(*name)));
    let differences = names.into_iter().filter_map(|what| {
        let [a, b] = [&facts[0], &facts[1]].map(|facts| facts.get(what).cloned().unwrap_or_default());
        (a != b).then(|| Difference { what: what.clone(), values: [a, b] })
    });
    let tensors = a.content.as_ref().zip(b.content.as_ref()).map(|(a, b)| tensors(a, b));
    (differences.collect(), tensors)
}

/// What a file says, one entry per fact.
fn facts(file: &Description) -> Map<String, Json> {
    let mut facts = Map::new();
    let mut add = |name: &str, value: Json| {
        if !value.is_null() {
            facts.insert(name.to_owned(), value);
        }
    };
    add("format", json!(file.format));
    if let Some(model) = &file.model {
        add("architecture", json!(model.architecture));
        add("parameters", json!(model.parameters));
        add("types", json!(model.tensors));
        add("strides", json!(model.strides));
        add("classes", json!(model.classes));
    }
    if let Some(training) = &file.training {
        add("written by", json!(training.written_by));
        add("finished", json!(training.finished));
        add("epochs done", json!(training.epochs_done));
        add("best fitness", json!(training.best_fitness));
        add("image size", json!(training.image_size));
        for (name, value) in &training.options {
            add(&format!("option {name}"), value.clone());
        }
        for (name, value) in &training.hyperparameters {
            add(&format!("hyperparameter {name}"), value.clone());
        }
    }
    facts
}

fn tensors(a: &WeightsFile, b: &WeightsFile) -> TensorDifferences {
    let missing = |from: &WeightsFile, other: &WeightsFile| {
        from.tensors.keys().filter(|name| !other.tensors.contains_key(*name)).cloned().collect()
    };
    let mut found = TensorDifferences {
        only_in: [missing(a, b), missing(b, a)],
        shapes: Vec::new(),
        types: 0,
        equal: 0,
        values: Vec::new(),
    };
    for (name, one) in &a.tensors {
        let Some(other) = b.tensors.get(name) else { continue };
        if one.shape != other.shape {
            found
                .shapes
                .push(Difference { what: name.clone(), values: [json!(one.shape), json!(other.shape)] });
            continue;
        }
        found.types += usize::from(one.dtype != other.dtype);
        match value_difference(name, one, other) {
            Some(difference) => found.values.push(difference),
            None => found.equal += 1,
        }
    }
    found.values.sort_by(|a, b| b.largest.total_cmp(&a.largest).then_with(|| a.name.cmp(&b.name)));
    found
}

/// `None` if all elements are equal. NaN equals NaN, and differs by infinity from a number.
fn value_difference(name: &str, a: &TensorData, b: &TensorData) -> Option<ValueDifference> {
    if a.dtype == b.dtype && a.bytes == b.bytes {
        return None;
    }
    let (mut largest, mut squares, mut size) = (0.0_f64, 0.0, 0.0);
    for (a, b) in a.to_f64().into_iter().zip(b.to_f64()) {
        let difference = match (a.is_nan(), b.is_nan()) {
            (true, true) => 0.0,
            (false, false) if a == b => 0.0,
            (false, false) => (a - b).abs(),
            _ => f64::INFINITY,
        };
        largest = largest.max(difference);
        squares += difference * difference;
        size += a * a;
    }
    let relative = (size > 0.0).then(|| (squares / size).sqrt()).filter(|relative| relative.is_finite());
    (largest > 0.0).then(|| ValueDifference { name: name.to_owned(), largest, relative })
}
