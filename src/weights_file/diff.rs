//! How two weights files differ: in what they say about themselves, and in their tensors.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use torch_checkpoint::TensorData;

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

/// What a file says about itself: values by the names of facts, in their order.
pub(super) type Facts = Map<String, Json>;

/// The tensors of a file by name, in its order.
pub(super) type Named<'a> = Vec<(&'a str, &'a TensorData)>;

/// Compares two files. The tensors are `null` unless both could be read.
pub(crate) fn diff(a: &Description, b: &Description) -> (Vec<Difference>, Option<TensorDifferences>) {
    let [mut facts_a, mut facts_b] = [facts(a), facts(b)];
    for group in GROUPS {
        group_if_one_has_none(group, &mut facts_a, &mut facts_b);
    }
    let tensors = named(a).zip(named(b)).map(|(a, b)| tensors(&a, &b));
    (different(facts_a, facts_b), tensors)
}

/// The tensors of a file that could be read.
fn named(file: &Description) -> Option<Named<'_>> {
    let tensors = &file.content.as_ref()?.tensors;
    Some(tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect())
}

/// Facts of which a file has many or none: the name of one, and that of all.
const GROUPS: [[&str; 2]; 2] = [["option ", "options"], ["hyperparameter ", "hyperparameters"]];

/// Replaces many facts by their number where the other file has none of them.
fn group_if_one_has_none([one, all]: [&str; 2], a: &mut Facts, b: &mut Facts) {
    let number = |facts: &Facts| facts.keys().filter(|name| name.starts_with(one)).count();
    let numbers = [number(a), number(b)];
    if numbers.contains(&0) {
        for (facts, number) in [a, b].into_iter().zip(numbers) {
            facts.retain(|name, _| !name.starts_with(one));
            if number > 0 {
                facts.insert(all.to_owned(), json!(number));
            }
        }
    }
}

/// The facts that differ, in the order of the first file, and then those that only the second has.
pub(super) fn different(a: Facts, b: Facts) -> Vec<Difference> {
    let facts = [a, b];
    let mut names: Vec<&String> = facts[0].keys().collect();
    names.extend(facts[1].keys().filter(|name| !facts[0].contains_key(*name)));
    let differences = names.into_iter().filter_map(|what| {
        let [a, b] = facts.each_ref().map(|facts| facts.get(what).cloned().unwrap_or_default());
        (a != b).then(|| Difference { what: what.clone(), values: [a, b] })
    });
    differences.collect()
}

/// What a file says, one entry per fact.
fn facts(file: &Description) -> Facts {
    let mut facts = Facts::new();
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
        add("best epoch", json!(training.best_epoch));
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

/// Compares tensors by name, shape, type and values.
pub(super) fn tensors(a: &Named<'_>, b: &Named<'_>) -> TensorDifferences {
    let missing = |from: &Named<'_>, other: &Named<'_>| {
        let others: HashSet<&str> = other.iter().map(|(name, _)| *name).collect();
        from.iter().filter(|(name, _)| !others.contains(name)).map(|(name, _)| (*name).to_owned()).collect()
    };
    let of_b: HashMap<&str, &TensorData> = b.iter().copied().collect();
    let mut found = TensorDifferences {
        only_in: [missing(a, b), missing(b, a)],
        shapes: Vec::new(),
        types: 0,
        equal: 0,
        values: Vec::new(),
    };
    for &(name, one) in a {
        let Some(&other) = of_b.get(name) else { continue };
        if one.shape != other.shape {
            found
                .shapes
                .push(Difference { what: name.to_owned(), values: [json!(one.shape), json!(other.shape)] });
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
