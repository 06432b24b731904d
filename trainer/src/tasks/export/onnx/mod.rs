//! ONNX: the operations of the network as a graph for other runtimes. The graph is built from the description of the
//! model and the tensors of the network, and has no shape arithmetic for an input of a fixed size. The input is
//! `images`, the output `output0`, or with suppression `detections` and `num_detections`; as in YOLOv5's exports, the metadata has `names` and `stride`.
//!
//! A protobuf holds at most 2 GB. The largest model, yolov5x6, needs a third of that, so nothing is split.

mod blocks;
mod builder;
mod graph;
mod head;
mod nms;
mod transformer;

use onnx_rs::ast::{
    DataType, Dimension, Graph as GraphMessage, Model as ModelMessage, OperatorSetId, StringStringEntry,
    TensorShape, TensorShapeDimension, TensorTypeProto, TypeProto, TypeValue, ValueInfo,
};
use tch::Kind;
use torch_checkpoint::Replacement;
use yolo_plan::model::Module;
use yolo_plan::run::OnnxSettings;

use self::builder::Blocks;
use self::graph::{Graph, Value};
use super::source::Source;
use crate::error::TrainError;
use crate::model::Model;

/// The input and the output of the graph.
const INPUT: &str = "images";
const OUTPUT: &str = "output0";

/// Versions of the file format: of ONNX 1.7 for opsets before 15, and of ONNX 1.10.
const IR_VERSIONS: [i64; 2] = [7, 8];

/// Writes the graph, and reads it back.
///
/// # Errors
/// When it cannot be written, or another graph is read.
pub(super) fn write(
    source: &Source,
    settings: &OnnxSettings,
    file: &Replacement,
) -> Result<String, TrainError> {
    let network = source.network()?;
    let [batch, _, height, width] = source.images.size()[..] else {
        return Err(TrainError::new("images have four dimensions"));
    };
    let bytes = encode(&network, &source.names, settings, [batch, height, width])?;
    file.write(&bytes)?;
    check(&std::fs::read(file.path())?, &network, settings)
}

/// The bytes of the file of a network, for images (batch, height, width); with `settings.dynamic`, for any.
///
/// # Errors
/// When the network has a module that ONNX cannot express, or memory runs out.
pub fn encode(
    network: &Model,
    names: &[String],
    settings: &OnnxSettings,
    [batch, height, width]: [i64; 3],
) -> Result<Vec<u8>, TrainError> {
    let graph = build(network, settings, [batch, height, width])?;
    let (nodes, constants) = graph.messages();
    let spec = network.spec();
    let kind = match network.state().parameters().next().map(|entry| entry.tensor.kind()) {
        Some(Kind::Half) => DataType::Float16,
        _ => DataType::Float,
    };
    let outputs = spec.nc as i64 + 5;
    let any = |name| Dimension::Param(name);
    let (input, rows) = if settings.dynamic {
        let channels = Dimension::Value(spec.channels as i64);
        (
            vec![any("batch"), channels, any("height"), any("width")],
            vec![any("batch"), any("anchors"), Dimension::Value(outputs)],
        )
    } else {
        let anchors = network.anchors()?.size()[1];
        let boxes = anchors * cells(network, [height, width]);
        let fixed = |sides: &[i64]| sides.iter().map(|&side| Dimension::Value(side)).collect();
        (fixed(&[batch, spec.channels as i64, height, width]), fixed(&[batch, boxes, outputs]))
    };
    let images = rows[0].clone();
    let output = match &settings.nms {
        None => vec![value_info(OUTPUT, DataType::Float, rows)],
        Some(nms) => {
            let most = Dimension::Value(nms.topk_all as i64);
            vec![
                value_info(nms::OUTPUTS[0], DataType::Float, vec![images.clone(), most, Dimension::Value(6)]),
                value_info(nms::OUTPUTS[1], DataType::Int64, vec![images]),
            ]
        }
    };
    let stride = network.largest_stride().to_string();
    let names = python_dict(names);
    let metadata = [("stride", stride.as_str()), ("names", &names), ("model", &spec.name)];
    let message = ModelMessage {
        ir_version: IR_VERSIONS[usize::from(settings.opset >= 15)],
        opset_import: vec![OperatorSetId { domain: "", version: settings.opset }],
        producer_name: "yolo",
        producer_version: env!("CARGO_PKG_VERSION"),
        graph: Some(GraphMessage {
            name: "detector",
            node: nodes,
            initializer: constants,
            input: vec![value_info(INPUT, kind, input)],
            output,
            ..GraphMessage::default()
        }),
        metadata_props: metadata.map(|(key, value)| StringStringEntry { key, value }).to_vec(),
        ..ModelMessage::default()
    };
    Ok(onnx_rs::encode(&message))
}

/// The operations of all layers and of suppression, for images (batch, height, width) or any.
fn build(
    network: &Model,
    settings: &OnnxSettings,
    [batch, height, width]: [i64; 3],
) -> Result<Graph, TrainError> {
    let size = (!settings.dynamic).then_some([height, width]);
    let sizes = size.map(|size| level_sizes(network, size));
    let layer_sizes = size.map(|size| layer_sizes(network, size)).transpose()?;
    let mut blocks = Blocks { graph: Graph::default(), network, size: None };
    let mut done: Vec<Value> = Vec::new();
    for layer in &network.spec().layers {
        let index = layer.index;
        blocks.size = layer_sizes.as_ref().and_then(|sizes| sizes.get(index).copied());
        let source = |&from: &i64| match usize::try_from(from) {
            Ok(from) => done[from].clone(),
            Err(_) => Value::input(INPUT),
        };
        let inputs: Vec<Value> = layer.from.iter().map(source).collect();
        let path = format!("model.{index}");
        let at = |error: TrainError| error.at(format!("layer {index}"));
        let output = match (&layer.module, inputs.as_slice()) {
            (Module::Detect { channels, .. }, inputs) => {
                head::detect(&mut blocks, channels, &path, inputs, sizes.as_deref()).map_err(at)?
            }
            (Module::Concat { dim }, inputs) => blocks.graph.concat(&inputs.iter().collect::<Vec<_>>(), *dim),
            (module, [x]) if layer.copies <= 1 => blocks.module(module, &path, x).map_err(at)?,
            (module, [x]) => (0..layer.copies)
                .try_fold(x.clone(), |x, copy| blocks.module(module, &format!("{path}.{copy}"), &x))
                .map_err(at)?,
            (_, inputs) => {
                let count = inputs.len();
                return Err(at(TrainError::new(format!("the module takes one input but gets {count}"))));
            }
        };
        done.push(output);
    }
    let rows = done.pop().ok_or_else(|| TrainError::new("the model has no layers"))?;
    match &settings.nms {
        None => blocks.graph.rename(&rows, OUTPUT),
        Some(nms) => {
            let anchors = network.anchors()?.size()[1];
            let size = size.map(|size| [batch, anchors * cells(network, size)]);
            nms::suppress(&mut blocks.graph, &rows, network.spec().nc, size, nms);
        }
    }
    Ok(blocks.graph)
}

/// Height and width of the detection levels.
fn level_sizes(network: &Model, [height, width]: [i64; 2]) -> Vec<[i64; 2]> {
    network.strides().iter().map(|&stride| [height / stride as i64, width / stride as i64]).collect()
}

/// The cells of all detection levels together.
fn cells(network: &Model, size: [i64; 2]) -> i64 {
    level_sizes(network, size).iter().map(|[height, width]| height * width).sum()
}

/// Height and width of the output of every layer but the last, seen in a pass over images of zeros.
fn layer_sizes(network: &Model, [height, width]: [i64; 2]) -> Result<Vec<[i64; 2]>, TrainError> {
    let kind = network.state().parameters().next().map_or(Kind::Float, |entry| entry.tensor.kind());
    let shape = [1, network.spec().channels as i64, height, width];
    let zeros = tch::Tensor::f_zeros(shape, (kind, network.device()))?;
    let mut sizes = Vec::new();
    let _ = tch::no_grad(|| {
        network.forward_eval_with(&zeros, &mut |_, output| {
            let size = output.size();
            sizes.push([size.get(2).copied().unwrap_or(0), size.get(3).copied().unwrap_or(0)]);
        })
    })?;
    Ok(sizes)
}

fn value_info<'a>(name: &'a str, elem_type: DataType, dims: Vec<Dimension<'a>>) -> ValueInfo<'a> {
    let dim = dims.into_iter().map(|value| TensorShapeDimension { value, denotation: "" }).collect();
    let tensor = TensorTypeProto { elem_type, shape: Some(TensorShape { dim }) };
    let r#type = Some(TypeProto { value: Some(TypeValue::Tensor(tensor)), ..TypeProto::default() });
    ValueInfo { name, r#type, ..ValueInfo::default() }
}

/// The names as Python writes a dict, which YOLOv5 reads: `{0: 'cat', 1: 'dog'}`.
fn python_dict(names: &[String]) -> String {
    let entry = |(class, name): (usize, &String)| {
        let mut text = String::new();
        for letter in name.chars() {
            match letter {
                '\\' | '\'' => text.extend(['\\', letter]),
                control if control.is_control() => text.push_str(&format!("\\x{:02x}", control as u32)),
                other => text.push(other),
            }
        }
        format!("{class}: '{text}'")
    };
    let entries: Vec<String> = names.iter().enumerate().map(entry).collect();
    format!("{{{}}}", entries.join(", "))
}

/// Reads a file back: every tensor of a convolution must be in it as the network has it.
fn check(bytes: &[u8], network: &Model, settings: &OnnxSettings) -> Result<String, TrainError> {
    let damaged = |why: String| TrainError::new(format!("what was written is not the network: {why}"));
    let read = onnx_rs::parse(bytes).map_err(|error| damaged(error.to_string()))?;
    let graph = read.graph.ok_or_else(|| damaged("it has no graph".to_owned()))?;
    let outputs: Vec<&str> = graph.output.iter().map(|output| output.name).collect();
    let expected: &[&str] = if settings.nms.is_some() { &nms::OUTPUTS } else { &[OUTPUT] };
    if outputs != expected {
        return Err(damaged(format!("it has the outputs {}", outputs.join(" and "))));
    }
    let mut compared = 0;
    for entry in network.state().iter().filter(|entry| entry.tensor.dim() == 4) {
        let tensor = crate::tensor_io::tensor_data(&entry.tensor)?;
        let written = graph.get_initializer(&entry.name).and_then(|written| written.as_raw());
        if written != Some(tensor.bytes.as_slice()) {
            return Err(damaged(format!("{} differs", entry.name)));
        }
        compared += 1;
    }
    Ok(format!("{} nodes, with the {compared} convolutions of the network", graph.node.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_a_dict_that_python_reads() {
        let names = ["cat", "dog's", "a\\b", "l\u{e4}ufer\n"].map(str::to_owned);
        assert_eq!(python_dict(&names), r"{0: 'cat', 1: 'dog\'s', 2: 'a\\b', 3: 'läufer\x0a'}");
    }
}
