//! How two ONNX files differ: in what they say about themselves, one fact per operation, input and entry, and in their tensors.

use serde_json::{Value, json};

use super::describe::{OnnxDescription, Port};
use crate::weights_file::diff::{Difference, Facts, TensorDifferences, different, tensors};

/// Compares two files.
pub(crate) fn diff(a: &OnnxDescription, b: &OnnxDescription) -> (Vec<Difference>, TensorDifferences) {
    let [named_a, named_b] =
        [a, b].map(|file| file.tensors_read.named.iter().map(|(name, data)| (name.as_str(), data)).collect());
    let mut found = different(facts(a), facts(b));
    // How often each operation occurs is a fact of its own. If these are equal, the difference is in the order, the
    // connections or the attributes.
    if a.operations == b.operations && a.operations_sha256 != b.operations_sha256 {
        found.push(Difference {
            what: "order, connections or attributes of the operations (SHA-256)".to_owned(),
            values: [first_digits(&a.operations_sha256), first_digits(&b.operations_sha256)],
        });
    }
    let all_read = a.tensors_read.unread.is_empty() && b.tensors_read.unread.is_empty();
    if !all_read && a.tensors_sha256 != b.tensors_sha256 {
        found.push(Difference {
            what: "tensors, some of which cannot be read (SHA-256)".to_owned(),
            values: [first_digits(&a.tensors_sha256), first_digits(&b.tensors_sha256)],
        });
    }
    (found, tensors(&named_a, &named_b))
}

/// Enough of a sum to tell two apart.
fn first_digits(sum: &str) -> Value {
    sum.chars().take(8).collect::<String>().into()
}

/// What a file says, one entry per fact.
fn facts(file: &OnnxDescription) -> Facts {
    let mut facts = Facts::new();
    let mut add = |name: String, value: Value| {
        facts.insert(name, value);
    };
    add("producer".to_owned(), json!(file.producer));
    add("IR version".to_owned(), json!(file.ir_version));
    for (domain, version) in &file.opsets {
        add(format!("opset {domain}").trim_end().to_owned(), json!(version));
    }
    for (key, value) in &file.metadata {
        add(format!("metadata {key}"), json!(value));
    }
    for (title, ports) in [("input", &file.inputs), ("output", &file.outputs)] {
        for port in ports {
            add(format!("{title} {}", port.name), json!(of_port(port)));
        }
    }
    for (name, number) in &file.operations {
        add(format!("operation {name}"), json!(number));
    }
    add("suppresses".to_owned(), json!(file.suppresses));
    add("parameters".to_owned(), json!(file.parameters));
    facts
}

/// The type and the shape of an input or an output.
fn of_port(port: &Port) -> String {
    format!("{} ({})", port.r#type, port.sides().join(", "))
}
