//! What is in an ONNX file: the model, its inputs and outputs, its operations and tensors (field numbers: `onnx.proto`
//! of ONNX). Operations are counted and not followed, and nothing in the file is run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fs_err as fs;
use serde::Serialize;
use serde_json::Value;

use super::tensors::{DIMENSIONS, Tensors, type_name};
use crate::fetch::Sha256;
use crate::weights_file::describe::PythonCall;
use crate::weights_file::openers::{self, Opener};
use crate::weights_file::protobuf::{Damaged, Field, Fields};

/// A protobuf message is at most so many bytes.
const LARGEST: u64 = 2 << 30;
/// Most inputs, outputs, metadata entries and kinds of operations of a file, far more than any detector has.
const MOST: usize = 10_000;

/// What `yolo weights` says about an ONNX file.
#[derive(Debug, Default, Serialize)]
pub(crate) struct OnnxDescription {
    /// The file.
    pub(crate) file: PathBuf,
    /// Its size.
    pub(crate) bytes: u64,
    /// The SHA-256 sum of its content, in hexadecimal digits.
    pub(crate) sha256: String,
    /// `onnx`.
    pub(crate) format: &'static str,
    /// The program that wrote it, with its version.
    pub(crate) producer: String,
    /// The version of the file format.
    pub(crate) ir_version: i64,
    /// The version of the operations of each domain; ONNX's own is the domain without a name.
    pub(crate) opsets: BTreeMap<String, i64>,
    /// Entries such as `names` and `stride`.
    pub(crate) metadata: BTreeMap<String, String>,
    /// What it takes.
    pub(crate) inputs: Vec<Port>,
    /// What it returns.
    pub(crate) outputs: Vec<Port>,
    /// How often each operation is there, outside of loops and branches.
    pub(crate) operations: BTreeMap<String, usize>,
    /// The SHA-256 sum of all operations, with their attributes and connections.
    pub(crate) operations_sha256: String,
    /// Whether suppression is inside.
    pub(crate) suppresses: bool,
    /// How many tensors have each type.
    pub(crate) tensors: BTreeMap<&'static str, usize>,
    /// Numbers in all tensors.
    pub(crate) parameters: u64,
    /// The SHA-256 sum of all tensors, with their names.
    pub(crate) tensors_sha256: String,
    /// Which programs can open the file.
    pub(crate) opens_in: Vec<Opener>,
    /// What Python would import and call to open the file: nothing, because it has no pickle.
    pub(crate) python: Vec<PythonCall>,
    /// The tensors, for comparisons.
    #[serde(skip)]
    pub(crate) tensors_read: Tensors,
}

/// An input or an output.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Port {
    /// Its name.
    pub(crate) name: String,
    /// The type of its numbers.
    pub(crate) r#type: &'static str,
    /// Its dimensions: numbers, or names of those that may be any.
    pub(crate) shape: Vec<Value>,
}

impl Port {
    /// Its dimensions as text; `?` is one without a name that may be any.
    pub(crate) fn sides(&self) -> Vec<String> {
        let side = |side: &Value| match side.as_str() {
            None => side.to_string(),
            Some("") => "?".to_owned(),
            Some(name) => name.to_owned(),
        };
        self.shape.iter().map(side).collect()
    }
}

/// Why a file is not described: the phrase after its name.
pub(crate) type Refusal = String;

/// Whether a file has the extension of ONNX models.
pub(crate) fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

/// Describes a file.
///
/// # Errors
/// If it cannot be read, or is no ONNX file.
pub(crate) fn describe(path: &Path) -> Result<OnnxDescription, Refusal> {
    let unreadable = |error: std::io::Error| format!("cannot be opened: {error}");
    // Checked before opening: opening a pipe would wait for a writer.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("is not a file".to_owned());
    }
    if metadata.len() > LARGEST {
        return Err("is larger than 2 GB, which no ONNX file is".to_owned());
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let mut found = model(&bytes).map_err(|Damaged| "is no ONNX file, or damaged".to_owned())?;
    if found.ir_version == 0 || found.outputs.is_empty() {
        return Err("is no ONNX file: it has no graph with outputs".to_owned());
    }
    found.file = path.to_owned();
    found.bytes = bytes.len() as u64;
    let mut sum = Sha256::new();
    sum.update(&bytes);
    found.sha256 = hex(&sum.finish());
    found.opens_in = openers::of_onnx(&found.opsets, &found.metadata, found.suppresses);
    Ok(found)
}

fn model(bytes: &[u8]) -> Result<OnnxDescription, Damaged> {
    let mut found = OnnxDescription { format: "onnx", ..OnnxDescription::default() };
    let mut version = String::new();
    let (mut nodes, mut tensors) = (Sha256::new(), Sha256::new());
    for field in Fields(bytes) {
        match field? {
            (1, field) => found.ir_version = field.number(),
            (2, field) => found.producer = field.text(),
            (3, field) => version = field.text(),
            (7, field) => graph(field, &mut found, [&mut nodes, &mut tensors])?,
            (8, field) => {
                let (domain, number) = (member(field, 1)?, member(field, 2)?);
                found.opsets.insert(text(domain), number.map_or(0, Field::number));
            }
            (14, field) => {
                found.metadata.insert(text(member(field, 1)?), text(member(field, 2)?));
            }
            _ => {}
        }
        if found.opsets.len() + found.metadata.len() > MOST {
            return Err(Damaged);
        }
    }
    if !version.is_empty() {
        found.producer = format!("{} {version}", found.producer);
    }
    found.suppresses =
        found.operations.keys().any(|name| name.contains("NonMaxSuppression") || name.contains("NMS"));
    [found.operations_sha256, found.tensors_sha256] = [nodes, tensors].map(|sum| hex(&sum.finish()));
    Ok(found)
}

/// Adds a graph, and its operations and tensors to these sums.
fn graph(
    message: Field<'_>,
    found: &mut OnnxDescription,
    [nodes, tensors]: [&mut Sha256; 2],
) -> Result<(), Damaged> {
    let mut inputs = Vec::new();
    for field in Fields(message.bytes()) {
        match field? {
            (1, node) => {
                nodes.update(node.bytes());
                *found.operations.entry(text(member(node, 4)?)).or_default() += 1;
            }
            (5, tensor) => {
                tensors.update(tensor.bytes());
                let counted = found.tensors_read.add(tensor)?;
                *found.tensors.entry(counted.kind).or_default() += 1;
                found.parameters = found.parameters.saturating_add(counted.elements);
            }
            (11, port) => inputs.push(self::port(port)?),
            (12, port) => found.outputs.push(self::port(port)?),
            _ => {}
        }
        if found.operations.len().max(inputs.len()).max(found.outputs.len()) > MOST {
            return Err(Damaged);
        }
    }
    // Before version 4 of the format, constants were inputs as well.
    inputs.retain(|input: &Port| !found.tensors_read.has(&input.name));
    found.inputs.extend(inputs);
    Ok(())
}

/// An input or an output; its type is that of a tensor, or unknown.
fn port(message: Field<'_>) -> Result<Port, Damaged> {
    let mut port = Port { name: text(member(message, 1)?), r#type: type_name(0), shape: Vec::new() };
    let Some(tensor) = member(message, 2)?.map(|kind| member(kind, 1)).transpose()?.flatten() else {
        return Ok(port);
    };
    port.r#type = type_name(member(tensor, 1)?.map_or(0, Field::number));
    let Some(shape) = member(tensor, 2)? else { return Ok(port) };
    for dimension in Fields(shape.bytes()) {
        let (1, dimension) = dimension? else { continue };
        let (side, name) = (member(dimension, 1)?, member(dimension, 2)?);
        port.shape.push(side.map_or_else(|| text(name).into(), |side| side.number().into()));
        if port.shape.len() > DIMENSIONS {
            return Err(Damaged);
        }
    }
    Ok(port)
}

/// The last field of this number in a message.
fn member(message: Field<'_>, number: u64) -> Result<Option<Field<'_>>, Damaged> {
    let mut found = None;
    for field in Fields(message.bytes()) {
        let (other, field) = field?;
        if other == number {
            found = Some(field);
        }
    }
    Ok(found)
}

fn text(field: Option<Field<'_>>) -> String {
    field.map(Field::text).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
