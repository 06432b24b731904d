//! A checkpoint that YOLOv5's own scripts open: `val.py`, `detect.py` and `train.py --weights`. It has the network as a
//! tree of Python objects of YOLOv5's classes under the names of its repository, `models.…`, as its own checkpoints do,
//! and the tensors in the precision of the weights file (spec §10). The attributes of each class were seen in objects
//! that YOLOv5 made.

mod modules;
mod node;
mod transformer;

use std::path::Path;

use tch::Device;
use torch_checkpoint::{Replacement, TensorData, Value, encode_modules, read};
use yolo_plan::model::{Layer, Module};

use self::node::{Node, Tensors, int, text};
use super::compare::Difference;
use super::source::Source;
use super::state_dict::read_back;
use crate::checkpoint::json;
use crate::error::TrainError;
use crate::model::Model;

/// Writes the checkpoint, and reads it back.
///
/// # Errors
/// When it cannot be written, or differs from the network.
pub(super) fn write(source: &Source, file: &Replacement) -> Result<Difference, TrainError> {
    let checkpoint = checkpoint(&source.model, &source.names, source.tensors()?, &source.facts)?;
    file.write(&encode_modules(&checkpoint, file.path())?)?;
    let written = read(file.path())?;
    if written.root != checkpoint {
        return Err(TrainError::new("what was written is another model"));
    }
    let rebuilt = Model::from_weights(&written, None, None, Device::Cpu)?;
    if rebuilt.spec().layers != source.model.spec().layers {
        return Err(TrainError::new("the description that was written is that of another model"));
    }
    read_back(source, &written)
}

/// The bytes of a checkpoint with a network in half or single precision. `name` is the file in an error.
///
/// # Errors
/// When a tensor cannot be read from its device.
pub fn encode(network: &Model, names: &[String], half: bool, name: &Path) -> Result<Vec<u8>, TrainError> {
    let Value::Dict(entries) = network.state().to_value(half)? else {
        return Err(TrainError::new("the tensors of a network are a dict"));
    };
    let tensors = entries.into_iter().filter_map(|entry| match entry {
        (Value::Str(name), Value::Tensor(tensor)) => Some((name, tensor)),
        _ => None,
    });
    Ok(encode_modules(&checkpoint(network, names, tensors.collect(), &[])?, name)?)
}

/// The entries of a checkpoint of a finished run, with `facts` among them.
fn checkpoint(
    network: &Model,
    names: &[String],
    tensors: Vec<(String, TensorData)>,
    facts: &[(String, Value)],
) -> Result<Value, TrainError> {
    let fact = |name: &str| {
        let fact = facts.iter().find(|(key, _)| key == name);
        fact.map_or(Value::None, |(_, value)| value.clone())
    };
    Ok(Value::dict([
        // The mark of a finished run.
        ("epoch", Value::Int(-1)),
        ("best_fitness", fact("best_fitness")),
        ("model", model(network, names, Tensors::new(tensors))?),
        ("ema", Value::None),
        ("updates", Value::None),
        ("optimizer", Value::None),
        ("opt", fact("opt")),
        ("git", fact("git")),
        ("date", fact("date")),
    ]))
}

fn model(network: &Model, names: &[String], mut tensors: Tensors) -> Result<Value, TrainError> {
    let spec = network.spec();
    let rows: Vec<&serde_json::Value> =
        ["backbone", "head"].iter().filter_map(|part| spec.yaml.get(part)?.as_array()).flatten().collect();
    let mut layers = Vec::with_capacity(spec.layers.len());
    for layer in &spec.layers {
        let from = rows.get(layer.index).map_or(Value::None, |row| json(&row[0]));
        layers.push(
            self::layer(network, layer, from, &mut tensors)
                .map_err(|error| error.at(format!("layer {}", layer.index)))?,
        );
    }
    tensors.finish()?;
    let mut yaml = spec.yaml.clone();
    if yaml.get("ch").is_none() {
        yaml["ch"] = spec.channels.into();
    }
    let names = names.iter().enumerate().map(|(class, name)| (int(class), text(name)));
    let model = Node::new("models.yolo.DetectionModel")
        .child("model", Node::sequential(layers))
        .attribute("yaml_file", Value::Str(format!("{}.yaml", spec.name)))
        .attribute("yaml", json(&yaml))
        .attribute("save", Value::List(spec.save().into_iter().map(int).collect()))
        .attribute("names", Value::Dict(names.collect()))
        .attribute("inplace", Value::Bool(true))
        .attribute("stride", strides(network))
        .attribute("nc", int(spec.nc));
    Ok(model.into_value())
}

/// A layer with what YOLOv5's forward pass reads from it: its index, its sources, and in messages its type and size.
fn layer(network: &Model, layer: &Layer, from: Value, tensors: &mut Tensors) -> Result<Node, TrainError> {
    let path = format!("model.{}", layer.index);
    let (node, class) = match &layer.module {
        Module::Detect { nc, na, channels } => {
            let node = modules::detect(tensors, [*nc, *na], channels, &path)?;
            let class = node.class().to_owned();
            (node.attribute("stride", strides(network)), class)
        }
        module if layer.copies <= 1 => {
            let node = modules::module(tensors, module, &path)?;
            let class = node.class().to_owned();
            (node, class)
        }
        module => {
            let copies = (0..layer.copies)
                .map(|copy| modules::module(tensors, module, &format!("{path}.{copy}")))
                .collect::<Result<Vec<_>, _>>()?;
            let class = copies.first().map_or("", Node::class).to_owned();
            (Node::sequential(copies), class)
        }
    };
    // YOLOv5 gives a list of inputs to a module whose sources are a list, even if it has one.
    let takes_list = matches!(layer.module, Module::Concat { .. } | Module::Detect { .. });
    let from = match from {
        Value::List(sources) if sources.len() == 1 && !takes_list => {
            sources.into_iter().next().unwrap_or(Value::None)
        }
        Value::Int(source) if takes_list => Value::List(vec![Value::Int(source)]),
        from => from,
    };
    let prefix = format!("{path}.");
    let own = network.state().parameters().filter(|entry| entry.name.starts_with(&prefix));
    let parameters = own.map(|entry| entry.tensor.numel()).sum();
    Ok(node
        .attribute("i", int(layer.index))
        .attribute("f", from)
        .attribute("type", Value::Str(class))
        .attribute("np", int(parameters)))
}

fn strides(network: &Model) -> Value {
    let strides: Vec<f32> = network.strides().iter().map(|&stride| stride as f32).collect();
    Value::Tensor(TensorData::from_f32(vec![strides.len()], &strides))
}
