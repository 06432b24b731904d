//! The text of `yolo weights` about ONNX files.

use yolo_base::format::{bytes, count, count_of, list};

use super::weights_text::{NO_PICKLE, line, openers, several};
use super::wrap::cut;
use crate::weights_file::onnx::{OnnxDescription, Port};

/// Letters of a name, and of a metadata entry without `--verbose`.
const NAME: usize = 60;
const METADATA: usize = 300;

/// The description of a file.
pub(crate) fn description(file: &OnnxDescription, verbose: bool) -> String {
    let opsets = file.opsets.iter().map(|(domain, version)| match domain.as_str() {
        "" => format!("opset {version}"),
        other => format!("opset {version} of {}", cut(other, NAME)),
    });
    let opsets = list(&opsets.collect::<Vec<_>>());
    let producer = if file.producer.is_empty() { "an unknown program" } else { &*cut(&file.producer, NAME) };
    let format = format!(
        "ONNX, {opsets}, IR version {}, written by {producer}, {}",
        file.ir_version,
        bytes(file.bytes)
    );
    let types: Vec<String> =
        file.tensors.iter().map(|(name, number)| format!("{number} of type {name}")).collect();
    let parameters = usize::try_from(file.parameters).unwrap_or(usize::MAX);
    let tensors = file.tensors.values().sum::<usize>();
    let mut model = format!("{} in {}", count_of(parameters, "number", "numbers"), count(tensors, "tensor"));
    if !types.is_empty() {
        model.push_str(&format!(" ({})", list(&types)));
    }
    let mut often: Vec<(&String, &usize)> = file.operations.iter().collect();
    often.sort_by(|a, b| b.1.cmp(a.1));
    let operations: Vec<String> =
        often.into_iter().map(|(name, number)| format!("{number} {name}")).collect();
    let suppression = match file.suppresses {
        true => "inside the file: its outputs are detections",
        false => "none: overlapping boxes are not removed",
    };
    let metadata = if verbose { usize::MAX } else { METADATA };
    let mut lines = vec![file.file.display().to_string(), line("Format", &format), line("Tensors", &model)];
    lines.extend(ports("Input", &file.inputs));
    lines.extend(ports("Output", &file.outputs));
    lines.push(line("Nodes", &several(&operations, verbose)));
    lines.push(line("NMS", suppression));
    lines.extend(
        file.metadata.iter().map(|(key, value)| line("Metadata", &cut(&format!("{key}: {value}"), metadata))),
    );
    lines.extend(openers(&file.opens_in));
    lines.push(line("In Python", NO_PICKLE));
    lines.push(line("SHA-256", &file.sha256));
    lines.join("\n")
}

fn ports<'a>(title: &'a str, ports: &'a [Port]) -> impl Iterator<Item = String> + 'a {
    ports.iter().map(move |port| {
        let sides: Vec<String> = port.sides().iter().map(|side| cut(side, NAME)).collect();
        line(title, &format!("{}: {} ({})", cut(&port.name, NAME), port.r#type, sides.join(", ")))
    })
}
